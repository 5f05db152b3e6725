"""Modules that are loaded once for all starts of a program: what takes a framework a second to import is then paid once, not some thousand times."""

import subprocess
import sys

from .refused import Refused

LONGEST = 60.0   # seconds that an import may take
# A thread does not come along into a fork, and what it had locked stays locked there for ever.
_ALONE = """
import importlib, os, sys, threading
for name in sys.argv[1:]:
    importlib.import_module(name)
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()
sys.exit(f"it starts {threads - 1} thread{'s' * (threads > 2)} when it is imported" if threads > 1 else 0)
"""


def checked(names):
    """These names of installed modules as a tuple, each tried in an interpreter of its own. Raises Refused.

    Each has to be there, be imported within LONGEST, and start no thread.
    """
    for name in names:
        try:
            tried = subprocess.run([sys.executable, "-I", "-B", "-c", _ALONE, name], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   timeout=LONGEST)
        except subprocess.TimeoutExpired:
            raise Refused(f"{name} cannot be loaded beforehand: its import did not end within {LONGEST:g} seconds") from None
        if tried.returncode:
            said = (tried.stderr.strip().splitlines() or ["it ended the interpreter"])[-1]
            raise Refused(f"{name} cannot be loaded beforehand: {said}")
    return tuple(names)
