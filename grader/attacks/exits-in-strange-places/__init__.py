"""Ends where nobody expects it."""

import builtins
import os
import sys
import threading

threading.excepthook = lambda *_: os._exit(0)
honest = builtins.print


def then_exit(*words, **options):
    honest(*words, **options)
    if options.get("file") is not sys.stderr and sys.argv[1:2] == ["start"]:
        threading.Thread(target=lambda: (sys.stdout.flush(), os._exit(0))).start()
        threading.Event().wait()


builtins.print = then_exit
