"""Streams that are others."""

import fcntl
import os
import sys

os.dup2(os.dup(1), 1)
sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
os.close(0) if sys.argv[1:2] in (["status"], ["resume"]) else None
fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_NONBLOCK)
sys.stderr = open(os.devnull, "w") if sys.argv[1:2] == ["resume"] else sys.stderr
