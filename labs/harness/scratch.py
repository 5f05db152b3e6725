"""A folder for one session's homes and processes: on tmpfs where there is one, gone when its session is."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

PREFIX = "killproof-"


@contextmanager
def scratch():
    """Yield an empty folder; it is removed at the end. What killed sessions left behind is removed first."""
    shared = Path("/dev/shm")
    base = shared if os.access(shared, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    for old in base.glob(f"{PREFIX}*"):
        _remove_abandoned(old)
    folder, lock = _claim_new(base)
    try:
        yield folder
    finally:
        remove(folder)
        os.close(lock)


def _claim_new(base):
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        lock = _open(folder)
        # The kernel drops this lock with us, however we die: who can take it knows that the folder is nobody's.
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)
        # Somebody took it for abandoned before it was locked.


def remove(folder):
    """Remove a folder, whatever a program made in it. What cannot be removed stays, which is no error."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        pass
    if os.path.lexists(folder):
        # A program can make folders that are deeper than Python goes, and close them to itself and to us.
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _remove_abandoned(folder):
    lock = _open(folder)
    if lock is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(folder)
    except OSError:
        pass  # in use
    finally:
        os.close(lock)


def _open(folder):
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None  # gone, no folder, or somebody else's
