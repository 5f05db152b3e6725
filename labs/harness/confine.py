"""What a start shuts itself into before the program's first line, inside whatever sandbox there is (sandbox.py).

A *view*: a user, a mount, an IPC and a network namespace of its own, in which the home and the start's own place are all that
it can write to and that lasts; /tmp and /dev/shm are fresh and gone at its end, and no other start can be spoken with. Where
the kernel does not let it have one, *landlock*: the same files, refused rather than hidden. And limits, in any case.
Sources: user_namespaces(7), mount(2), landlock(7), capabilities(7), getrlimit(2).
"""

import ctypes
import os
import resource
import stat
import struct

from . import withheld

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long

MEMORY, PROCESSES, OPEN, FILE, HOME, CPU = 1 << 30, 64, 1024, 64 << 20, 256 << 20, 60   # bytes, processes, files, bytes, bytes, seconds
CANNOT = "the program cannot be confined"
PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")
_CREATE, _ADD, _RESTRICT = 444, 445, 446   # landlock's calls, on every architecture
_REFER, _READ, _WRITE_OF_ABI = 1 << 13, 0b1101, {1: 0x1FF2, 2: 0x3FF2, 3: 0x7FF2}   # execute, read files and folders; all that changes something


class CannotConfine(Exception):
    """The kernel does not let us; the message says what it said."""


def enter(confined):
    """Shut this process in, for good. `confined` is a dict, what sandbox.py makes of a start. Raises CannotConfine or OSError.

    `how` is "view", "landlock" or "limits"; `writable` the folders that it may write to, `shown` further paths that it needs,
    `arena` the folder that all of them are in; `readable` what it may read where it is Landlock that says so.
    """
    if confined["how"] == "view":
        _view(confined)
        _scope()
    elif confined["how"] == "landlock":
        _landlock(confined["writable"], confined["readable"])
    if confined["how"] != "limits":
        withheld.withhold()
    limits()


def limits():
    """Limit this process and all that it starts. The memory of all of them together is for the keeper to watch."""
    for what, most in ((resource.RLIMIT_FSIZE, FILE), (resource.RLIMIT_NPROC, PROCESSES), (resource.RLIMIT_NOFILE, OPEN),
                       (resource.RLIMIT_DATA, 2 * MEMORY), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, CPU)):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


# ---- a view of its own

def _view(confined):
    MS_BIND, MS_REC, MS_NOSUID, MS_NODEV, MS_PRIVATE = 4096, 16384, 2, 4, 1 << 18
    NEWNS, NEWIPC, NEWUSER, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x40000000
    user, group = os.getuid(), os.getgid()
    _call("unshare", LIBC.unshare(NEWUSER | NEWNS | NEWIPC | NEWNET))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    # Taken hold of before they are hidden, and in this namespace, for no other's may be bound.
    held = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in (*confined["writable"], *confined["shown"])}
    folders = {path for path in held if os.path.isdir(path)}
    private = [path for path in PRIVATE if os.path.isdir(path)]
    if not any(confined["arena"].startswith(f"{path}/") for path in private):
        private.append(confined["arena"])
    for path in private:
        _mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={FILE},nr_inodes=10000")
    for path, descriptor in held.items():
        os.makedirs(path if path in folders else os.path.dirname(path), exist_ok=True)
        if path not in folders:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        _mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)
        os.close(descriptor)
    _drop_capabilities()


def _mount(source, target, kind, flags, options=None):
    encoded = [os.fsencode(text) if text is not None else None for text in (source, target, kind)]
    _call(f"mount of {target}", LIBC.mount(*encoded, ctypes.c_ulong(flags), options.encode() if options else None))


def _drop_capabilities():
    """Those that came with the namespace: with them the view could be taken down again."""
    PR_CAPBSET_DROP, VERSION_3 = 24, 0x20080522
    number = 0
    while LIBC.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    _call("capset", LIBC.capset(struct.pack("=Ii", VERSION_3, 0), bytes(24)))


# ---- Landlock

def abi():
    """Landlock's version here, 0 where there is none."""
    return max(0, LIBC.syscall(ctypes.c_long(_CREATE), None, ctypes.c_long(0), ctypes.c_long(1)))


def _scope():
    """Let it look into no process outside, whose view is another; send no signal there; reach no abstract socket (these two: Linux 6.12)."""
    version = abi()
    if version >= 2:   # any ruleset keeps it from looking; the first version's would keep it from renaming too
        ruleset = _ruleset(_REFER, 0, 0b11 if version >= 6 else 0)
        _allow(ruleset, "/", _REFER)
        _restrict(ruleset)


def _landlock(writable, readable):
    version = abi()
    if version < 1:
        raise CannotConfine("the kernel has no Landlock")
    changes = _WRITE_OF_ABI[min(version, 3)]
    ruleset = _ruleset(_READ | changes, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
    for path, access in [*((path, _READ | changes) for path in writable), *((path, _READ) for path in readable),
                         *((path, _READ | 0b10) for path in ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty"))]:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue   # not on this machine
        if not os.path.isdir(path):
            access &= 0b101 | (1 << 1) | (1 << 14 if version >= 3 else 0)   # what there is of a file: execute, read, write, truncate
        os.close(descriptor)
        _allow(ruleset, path, access)
    _restrict(ruleset)


def _allow(ruleset, path, access):
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rule = struct.pack("=Qi", access, descriptor)
    _call(f"a rule for {path}", LIBC.syscall(ctypes.c_long(_ADD), ctypes.c_long(ruleset), ctypes.c_long(1), rule, ctypes.c_long(0)))
    os.close(descriptor)


def _ruleset(files, network, scopes):
    version = abi()
    attributes = struct.pack("=QQQ", files, network, scopes)[:8 if version < 4 else 16 if version < 6 else 24]
    return _call("landlock_create_ruleset",
                 LIBC.syscall(ctypes.c_long(_CREATE), attributes, ctypes.c_long(len(attributes)), ctypes.c_long(0)))


def _restrict(ruleset):
    PR_SET_NO_NEW_PRIVS = 38
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call("landlock_restrict_self", LIBC.syscall(ctypes.c_long(_RESTRICT), ctypes.c_long(ruleset), ctypes.c_long(0)))
    os.close(ruleset)


def _call(what, returned):
    if returned < 0:
        raise CannotConfine(f"{what} says: {os.strerror(ctypes.get_errno())}")
    return returned


# ---- what the keeper watches

def excess(pids, folders):
    """What these processes have too much of, "memory" or "files", or None.

    Memory is what is resident and in no file, shared or not; files are those in the folders, and those that have no name any more.
    What is kept from us, who are the same user, is too much: an honest program has no reason to.
    """
    memory = nameless = 0
    for pid in pids:
        memory += _resident(pid)
        nameless += _nameless(pid)
    if memory > MEMORY:
        return "memory"
    return "files" if _size(folders) + nameless > HOME else None


def _resident(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith(("RssAnon:", "RssShmem:")))
    except (OSError, ValueError, IndexError):
        return 0   # it has just ended


def _nameless(pid):
    """Bytes of the files that a process has open and no folder has: unlinked ones, and memory that looks like a file."""
    size = 0
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                try:
                    status = entry.stat()
                except OSError:
                    continue   # closed meanwhile
                if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                    size += status.st_blocks * 512
    except (FileNotFoundError, ProcessLookupError):
        pass
    except OSError:
        return HOME + 1 if _resident(pid) else 0   # one that is dying has neither memory nor anything to show
    return size


def _size(folders):
    """Bytes of the files below these folders, or as many as are too many."""
    size, folders = 0, list(folders)
    while folders and size <= HOME:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    size += 4096 + (0 if entry.is_symlink() else entry.stat(follow_symlinks=False).st_size)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except FileNotFoundError:
            pass   # what it has just removed
        except OSError:
            return HOME + 1   # closed to us, or too deep to be named
    return size
