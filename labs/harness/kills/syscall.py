"""Death at a system call: the calls that leave a trace wait for the keeper, who counts them and lets each go on, or kills.

By seccomp user notification (seccomp(2), seccomp_unotify(2)): no root, no ptrace, over all threads and child processes,
whatever the program is written in. What a program does to memory that it shares with a file makes no call, and io_uring
would pass this by: it is answered as if the kernel had none. Reading a socket by read(2) is not seen either; the call
after it is.
"""

import ctypes
import errno
import fcntl
import os
import platform
import struct
from dataclasses import dataclass

#: The calls, by their number on each architecture; `open` and `openat` count where they create or empty a file.
_NUMBERS = {
    "x86_64": dict(write=1, open=2, pwrite64=18, writev=20, msync=26, sendfile=40, connect=42, sendto=44, recvfrom=45, sendmsg=46,
                   recvmsg=47, fcntl=72, flock=73, fsync=74, fdatasync=75, truncate=76, ftruncate=77, rename=82, mkdir=83, rmdir=84,
                   creat=85, link=86, unlink=87, symlink=88, sync=162, openat=257, mkdirat=258, unlinkat=263, renameat=264, linkat=265,
                   symlinkat=266, splice=275, sync_file_range=277, vmsplice=278, fallocate=285, pwritev=296, recvmmsg=299, syncfs=306,
                   sendmmsg=307, renameat2=316, copy_file_range=326, pwritev2=328, io_uring_setup=425, openat2=437, seccomp=317),
    "aarch64": dict(fcntl=25, flock=32, mkdirat=34, unlinkat=35, symlinkat=36, linkat=37, renameat=38, truncate=45, ftruncate=46,
                    fallocate=47, openat=56, write=64, writev=66, pwrite64=68, pwritev=70, sendfile=71, vmsplice=75, splice=76, sync=81,
                    fsync=82, fdatasync=83, sync_file_range=84, connect=203, sendto=206, recvfrom=207, sendmsg=211, recvmsg=212,
                    msync=227, recvmmsg=243, syncfs=267, sendmmsg=269, renameat2=276, copy_file_range=285, pwritev2=287,
                    io_uring_setup=425, openat2=437, seccomp=277),
}
NUMBERS = _NUMBERS.get(platform.machine(), {})
NAMES = {number: name for name, number in NUMBERS.items()}
LOCKS = ("fcntl", "flock")         # they leave no trace, but order two processes: only asked for by races
#: Where a call has the paths that it is about: (argument of the folder's descriptor or None, argument of the path).
_PATHS = {"open": [(None, 0)], "openat": [(0, 1)], "openat2": [(0, 1)], "creat": [(None, 0)], "rename": [(None, 0), (None, 1)],
          "renameat": [(0, 1), (2, 3)], "renameat2": [(0, 1), (2, 3)], "mkdir": [(None, 0)], "mkdirat": [(0, 1)], "rmdir": [(None, 0)],
          "unlink": [(None, 0)], "unlinkat": [(0, 1)], "link": [(None, 0), (None, 1)], "linkat": [(0, 1), (2, 3)],
          "symlink": [(None, 1)], "symlinkat": [(1, 2)], "truncate": [(None, 0)]}
NAMING = tuple(name for name in _PATHS if name not in ("open", "openat", "openat2", "creat"))
_DESCRIPTOR = {"splice": 2, "copy_file_range": 2}   # the argument that says where it goes, where that is not the first
_AT_FDCWD, _LONGEST_PATH = -100, 4096
_APART = {"open": 1, "openat": 2, "fcntl": 1}   # calls that count by one of their arguments, and which it is
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}.get(platform.machine())
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_PIDFD_GETFD = 438
_ALLOW, _NOTIFY, _NOT_THERE = 0x7FFF0000, 0x7FC00000, 0x00050000 | errno.ENOSYS
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTICE, _REPLY = struct.Struct("=QII i I Q 6Q"), struct.Struct("=QqiI")
_GOES_ON = 1


class CannotWatch(Exception):
    """This machine does not let us watch system calls; the message says what it said."""


def _filter(locks):
    """The BPF program: one of the calls → notify, io_uring or a foreign architecture → as if it were not there, else allow."""
    LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
    plain = [number for name, number in NUMBERS.items() if name not in (*_APART, *LOCKS, "io_uring_setup", "seccomp")]
    if locks:
        plain.append(NUMBERS["flock"])
    creates = os.O_CREAT | os.O_TRUNC | (os.O_TMPFILE & ~os.O_DIRECTORY)
    program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, AUDIT_ARCH), (RETURN, 0, 0, _NOT_THERE), (LOAD, 0, 0, 0),
               (AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, _NOT_THERE),
               (EQUAL, 0, 1, NUMBERS["io_uring_setup"]), (RETURN, 0, 0, _NOT_THERE)]
    for number in plain:
        program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, _NOTIFY)]
    for name in ("open", "openat"):
        if name in NUMBERS:
            program += [(EQUAL, 0, 4, NUMBERS[name]), (LOAD, 0, 0, 16 + 8 * _APART[name]), (ANY_BIT, 0, 1, creates),
                        (RETURN, 0, 0, _NOTIFY), (RETURN, 0, 0, _ALLOW)]
    if locks:
        wanted = (fcntl.F_SETLK, fcntl.F_SETLKW, 37, 38)  # and those of open file descriptions
        program += [(EQUAL, 0, 2 + 2 * len(wanted), NUMBERS["fcntl"]), (LOAD, 0, 0, 16 + 8 * _APART["fcntl"])]
        for command in wanted:
            program += [(EQUAL, 0, 1, command), (RETURN, 0, 0, _NOTIFY)]
        program.append((RETURN, 0, 0, _ALLOW))
    program.append((RETURN, 0, 0, _ALLOW))
    return program


def watch_this_process(locks=False):
    """Put the filter on this process, for good, and return the descriptor that the keeper has to listen at. Raises CannotWatch."""
    if AUDIT_ARCH is None:
        raise CannotWatch(f"not for this processor ({platform.machine()})")
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in _filter(locks))
    code = ctypes.create_string_buffer(program)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE = 38, 1, 8, 32
    _LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # A signal that it handles does not make a call that was seen begin anew, and count twice; Linux before 5.19 cannot do that.
    for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER):
        listener = _LIBC.syscall(ctypes.c_long(NUMBERS["seccomp"]), ctypes.c_long(SET_MODE_FILTER), ctypes.c_long(flags),
                                ctypes.byref(Program(len(program) // 8, ctypes.addressof(code))))
        if listener >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    if listener < 0:
        error = ctypes.get_errno()
        raise CannotWatch("another watcher is there already, and the kernel allows one" if error == errno.EBUSY else
                          f"seccomp(2) says: {os.strerror(error)}")
    return listener


def listener_of(pid, descriptor):
    """The listener that process `pid` has as `descriptor`, as a descriptor of this process. Raises CannotWatch."""
    try:
        pidfd = os.pidfd_open(pid)
    except (OSError, AttributeError) as error:
        raise CannotWatch(f"pidfd_open(2) says: {error}") from None
    try:
        found = _LIBC.syscall(ctypes.c_long(_PIDFD_GETFD), ctypes.c_long(pidfd), ctypes.c_long(descriptor), ctypes.c_long(0))
    finally:
        os.close(pidfd)
    if found < 0:
        raise CannotWatch(f"pidfd_getfd(2) says: {os.strerror(ctypes.get_errno())}")
    return found


@dataclass(frozen=True)
class Call:
    """A system call that waits: `thread` makes it, and it is `name` with its six raw `arguments`.

    The kernel numbers all calls that come to wait here, one after the other; `notice` is that number. Until it is read by next_call() a call may
    still be ended by a signal that the program handles: the program is told EINTR, also of a call that otherwise never says so, like fsync(2) of a
    file. Then a number is missing between two that were read, and that is all that can be known of it.
    """

    notice: int
    thread: int
    name: str
    arguments: tuple


def next_call(listener):
    """The Call that waits at the listener; None where whoever made it is gone."""
    buffer = bytearray(_NOTICE.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    notice, thread, _, number, _, _, *arguments = _NOTICE.unpack(buffer)
    return Call(notice, thread, NAMES.get(number, str(number)), tuple(arguments))


def let_go_on(listener, call):
    """Let the kernel do what the call asks for."""
    try:
        fcntl.ioctl(listener, _SEND, _REPLY.pack(call.notice, 0, 0, _GOES_ON))
    except OSError as error:
        if error.errno != errno.ENOENT:   # it is gone
            raise


# ---- what a call is about, read from whoever makes it while it waits

def memory(call, address, size):
    """`size` bytes of the memory of whoever makes the call, or as many as there are. Raises OSError."""
    try:
        with open(f"/proc/{call.thread}/mem", "rb", buffering=0) as file:
            file.seek(address)
            return file.read(size)
    except (OverflowError, MemoryError) as error:
        raise OSError(errno.EFAULT, str(error)) from None   # the call will say so too


def paths(call):
    """The absolute paths that the call names, not followed where their last part is a link."""
    return [_path(call, folder, argument) for folder, argument in _PATHS.get(call.name, [])]


def text(call, argument):
    """The text that an argument of the call points to: a path, or what a link is to say."""
    address, data = call.arguments[argument], b""
    while b"\0" not in data and len(data) < _LONGEST_PATH:
        # Up to the end of a page at a time: the next one may not be there.
        data += memory(call, address + len(data), 4096 - (address + len(data)) % 4096)
    return os.fsdecode(data.split(b"\0")[0])


def _path(call, folder, argument):
    name = text(call, argument)
    descriptor = _AT_FDCWD if folder is None else ctypes.c_int(call.arguments[folder]).value
    above = f"/proc/{call.thread}/{'cwd' if descriptor == _AT_FDCWD else f'fd/{descriptor}'}"
    # The folder is followed as the kernel will, so that a file has one path however it is named.
    folder, last = os.path.split(os.path.join(os.readlink(above), name).rstrip("/"))
    return os.path.realpath(os.path.join(folder, last)) if last in ("", ".", "..") else os.path.join(os.path.realpath(folder), last)


def descriptor(call):
    """The descriptor that the call writes to, syncs or sends through."""
    return ctypes.c_int(call.arguments[_DESCRIPTOR.get(call.name, 0)]).value


def opened(call, number):
    """What a descriptor of whoever makes the call stands for: a path, or something like `socket:[12]`."""
    return os.readlink(f"/proc/{call.thread}/fd/{number}")


def target(call, home):
    """In a word or two what the call is about, for people: paths below `home` are shortened."""
    try:
        if call.name in _PATHS:
            return " → ".join(os.path.relpath(path, home) if path.startswith(home + os.sep) else path for path in paths(call))
        if call.name in ("sync", "msync"):
            return ""
        if call.name in ("connect", "sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg"):
            return "the outside"
        number = descriptor(call)
        found = opened(call, number)
        if found.startswith("socket:"):
            return "the outside"
        if found.startswith("pipe:"):
            return {1: "stdout", 2: "stderr"}.get(number, "a pipe")
        return os.path.relpath(found, home) if found.startswith(home + os.sep) else "LAB_HOME" if found == home else found
    except OSError:
        return ""   # a descriptor that is not open, a path that is none: the call will fail
