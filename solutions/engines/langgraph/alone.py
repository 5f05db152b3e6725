"""One worker at a time: a lock on a run, which no engine that keeps its store in a file has for us."""

import fcntl
import hashlib

from .exits import Busy
from .storage import in_home


def claim(run_id):
    """Work on a run alone until the returned file is closed. Raises Busy. The kernel drops the lock when its holder dies."""
    locks = open(in_home("locks"), "ab")
    try:
        fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(hashlib.sha256(run_id.encode()).hexdigest()[:15], 16))
    except (BlockingIOError, PermissionError):
        locks.close()
        raise Busy(f"another process works on run {run_id}; `python -m starter status {run_id}` shows how far it is") from None
    return locks
