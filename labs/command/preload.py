"""Modules that are loaded once for all starts of a program: what takes a framework a second to import is then paid once, not some thousand times."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress

from .refused import Refused

LONGEST = 60.0   # seconds that an import may take
# Neither a thread nor a process comes along into a fork, and what a thread had locked stays locked there for ever.
_ALONE = """
import importlib, os, sys, threading
importlib.import_module(sys.argv[1])
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()
try:
    os.waitpid(-1, os.WNOHANG)
    sys.exit("it starts a process when it is imported")
except ChildProcessError:
    sys.exit(f"it starts {threads - 1} thread{'s' * (threads > 2)} when it is imported" if threads > 1 else 0)
"""


def checked(names):
    """These names of installed modules as a tuple, each tried in an interpreter of its own. Raises Refused.

    Each has to be there, be imported within LONGEST, and start no thread and no process.
    """
    for name in names:
        if said := _trouble(name):
            raise Refused(f"{name or 'a module without a name'} cannot be loaded beforehand: {said}")
    return tuple(names)


def _trouble(name):
    """What keeps a module from being loaded once for all, in a line; none where nothing does."""
    with tempfile.TemporaryFile() as words:   # no pipe: a process that it starts might hold that open
        alone = subprocess.Popen([sys.executable, "-I", "-B", "-c", _ALONE, name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=words,
                                 start_new_session=True)
        try:
            if not alone.wait(LONGEST):
                return None
        except subprocess.TimeoutExpired:
            return f"its import did not end within {LONGEST:g} seconds"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(alone.pid, signal.SIGKILL)   # and what it started
            alone.wait()
        words.seek(0)
        said = words.read().decode(errors="replace").strip().splitlines()
    return said[-1] if said else "it ended the interpreter"
