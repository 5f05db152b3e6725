"""A folder for one session's homes and processes: on tmpfs where there is one, gone when its session is."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psutil

PREFIX = "killproof-"


@contextmanager
def scratch():
    """Yield an empty folder; it is removed at the end. What killed sessions left behind is removed first."""
    shared = Path("/dev/shm")
    base = shared if os.access(shared, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    for old in base.glob(f"{PREFIX}*"):
        _remove_abandoned(old)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    # The kernel drops this lock with us, however we die: who can take it knows that the folder is nobody's. Nobody can
    # take it before us, for it has its name only once it is ours.
    lock = open(folder / "being made", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(lock.name, folder / "lock")
    try:
        yield folder
    finally:
        remove(folder)
        lock.close()


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
    try:
        # A program may have put anything there, a pipe that makes us wait or a link.
        with open(folder / "lock", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _end_programs_of(folder)
            remove(folder)
    except OSError:
        pass  # in use, being made this moment, or somebody else's


def _end_programs_of(folder):
    """SIGKILL what a killed session had started and nobody ended."""
    for process in psutil.process_iter():
        try:
            if Path(process.environ().get("LAB_HOME", "/")).is_relative_to(folder):
                process.kill()
        except psutil.Error:
            pass
