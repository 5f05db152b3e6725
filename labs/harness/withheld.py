"""System calls that a confined program does without: they keep things where no view hides them, or change other processes of its user.

By seccomp(2), which holds for all threads and children, whatever the program is written in: they are answered as if the kernel had none,
or were not allowed. Who means itself may go on to change its own limits and its own priority.
"""

import ctypes
import errno
import os
import platform
import struct

from .kills.syscall import AUDIT_ARCH

_NUMBERS = {
    "x86_64": dict(shmget=29, semget=64, msgget=68, setpriority=141, sched_setparam=142, sched_setscheduler=144, sched_setaffinity=203, mq_open=240,
                   add_key=248, request_key=249, keyctl=250, prlimit64=302, sched_setattr=314, seccomp=317, io_uring_setup=425,
                   memfd_secret=447),
    "aarch64": dict(sched_setparam=118, sched_setscheduler=119, sched_setaffinity=122, setpriority=140, mq_open=180, msgget=186,
                    semget=190, shmget=194, add_key=217, request_key=218, keyctl=219, prlimit64=261, sched_setattr=274, seccomp=277,
                    io_uring_setup=425, memfd_secret=447),
}.get(platform.machine(), {})
_WHOLLY = ("shmget", "semget", "msgget", "mq_open", "add_key", "request_key", "keyctl", "io_uring_setup", "memfd_secret")
#: For others than the caller: the arguments that are 0 where it means itself.
_FOR_OTHERS = {"prlimit64": (0,), "setpriority": (0, 1), "sched_setparam": (0,), "sched_setscheduler": (0,), "sched_setaffinity": (0,),
               "sched_setattr": (0,)}
KNOWN = bool(_NUMBERS)   # whether it can be done on this processor
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


def withhold():
    """Do without them from now on, for good. Raises OSError."""
    if not KNOWN:
        return
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in _filter())
    code = ctypes.create_string_buffer(program)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER = 38, 1
    _LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _LIBC.syscall(ctypes.c_long(_NUMBERS["seccomp"]), ctypes.c_long(SET_MODE_FILTER), ctypes.c_long(0),
                     ctypes.byref(Program(len(program) // 8, ctypes.addressof(code)))) < 0:
        raise OSError(ctypes.get_errno(), f"seccomp says: {os.strerror(ctypes.get_errno())}")


def _filter():
    LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
    ALLOW, NOT_THERE, NOT_ALLOWED = 0x7FFF0000, 0x50000 | errno.ENOSYS, 0x50000 | errno.EPERM
    program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, AUDIT_ARCH), (RETURN, 0, 0, NOT_THERE), (LOAD, 0, 0, 0),
               (AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, NOT_THERE)]
    for name in _WHOLLY:
        program += [(EQUAL, 0, 1, _NUMBERS[name]), (RETURN, 0, 0, NOT_THERE)]
    for name, arguments in _FOR_OTHERS.items():
        own = [step for argument in arguments for step in ((LOAD, 0, 0, 16 + 8 * argument), (EQUAL, 1, 0, 0), (RETURN, 0, 0, NOT_ALLOWED))]
        program += [(EQUAL, 0, len(own) + 1, _NUMBERS[name]), *own, (RETURN, 0, 0, ALLOW)]
    program.append((RETURN, 0, 0, ALLOW))
    return program
