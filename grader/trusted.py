"""The trusted side of one grading session: pytest over the labs, with the grader's own settings, in a process of its own.

Run as a script by Python's isolated mode, so that neither the environment nor a user's site-packages decide what it
imports. The program that is graded is never imported here. The first argument is the number of a pipe: when nobody holds its other end
any more, the grader is dead, and so is this session at once. The second is the records file: one session at a time writes to it,
and one that comes after a killed grader waits for the end of the one before.
"""

import fcntl
import os
import signal
import sys
import threading
from pathlib import Path


def end_with(pipe):
    """SIGKILL this process when the pipe's other end is closed."""
    os.read(pipe, 1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    threading.Thread(target=end_with, args=(int(sys.argv[1]),), daemon=True).start()
    records = open(sys.argv[2], "rb")
    fcntl.flock(records, fcntl.LOCK_EX)   # the kernel drops it with us
    import pytest
    sys.exit(pytest.main(sys.argv[3:]))
