"""Nobody kills here."""

import os
import signal
import sys
import threading


def nothing(*_, **__):
    return None


os.kill = os.killpg = os.abort = os.tgkill = signal.pthread_kill = signal.raise_signal = nothing
threading.settrace = nothing
signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
os.getpgrp = os.getpid = lambda: 1
