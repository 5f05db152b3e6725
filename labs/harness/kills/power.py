"""Death by power cut: what a run wrote and synced, and the states of its home that a power cut may leave.

The recorder notes the calls that change files while they wait for the keeper (syscall.py). A file system may keep back
all that was not synced, in any order: of a cut between two calls we build the state with everything, with only what was synced,
with names but no data, with data but no names, every prefix, and the states in which one thing is lost or torn. What
fsync(2) says of files and folders is all that is relied on; Pillai et al., "All File Systems Are Not Created Equal" (OSDI
2014), shows what real file systems do beyond it.
"""

import base64
import ctypes
import os
import stat
import struct
import time

from . import syscall

_LARGEST, _MOST = 16 << 20, 64 << 20   # bytes of one write, and of all
_COPIES = {"sendfile": (1, 2, None, 3), "copy_file_range": (0, 1, 3, 4)}   # as _copied() takes them
_MOST_PARTS, _FARTHEST = 1024, (1 << 63) - 1   # more of them, or a place beyond, and the kernel refuses
_FEW = 32   # unsynced changes that are left out, lost or torn one by one; of more, the last ones and then evenly spread ones
_TOLD = 3   # unsynced changes that are named
WHOLE = ("everything got there", "only what was synced got there", "names got there, contents did not", "contents got there, names did not")


class Recorder:
    """Notes what is done to the files below `home`. `found` is a list of [seconds, what, …]; see `note`.

    `stdout` is a descriptor of what the program has as its standard output: of its children many have another one.
    """

    def __init__(self, home, stdout):
        self.home, self.found, self._size = os.path.realpath(home), [], 0
        self._stdout = f"pipe:[{os.fstat(stdout).st_ino}]"

    def note(self, call):
        """Write down what the waiting call is about to do:

        create P · empty P · write P offset data · cut P length · sync P · syncall · rename P Q · unlink P · mkdir P ·
        rmdir P · link P Q · symlink P text · say (on stdout) · send (to a socket) · unknown call

        Paths are relative to the home, data in base64. Calls elsewhere are left out.
        """
        try:
            for entry in self._entries(call):
                self.found.append([time.monotonic(), *entry])
        except (OSError, OverflowError):
            pass   # it names what is not there, or no place, and will fail

    def _entries(self, call):
        name, arguments = call.name, call.arguments
        if name in ("open", "openat", "creat", "openat2"):
            yield from self._open(call)
        elif name in syscall.NAMING:
            yield from self._name(call)
        elif name in ("sync", "syncfs"):
            yield "syncall",
        elif name in ("connect", "recvfrom", "recvmsg", "recvmmsg", "sync_file_range"):   # which promises nothing
            return
        elif name == "msync":
            yield "unknown", name
        else:
            number = syscall.descriptor(call)
            path = syscall.opened(call, number)
            if path.startswith("socket:"):
                yield "send",
            elif path == self._stdout:
                yield "say",
            elif not self._below(path):
                return
            elif name in ("fsync", "fdatasync"):
                yield "sync", self._short(path)
            elif name == "ftruncate":
                yield from self._sized("cut", self._short(path), arguments[1])
            elif name == "fallocate":
                if arguments[1] == 0 and max(arguments[2:4]) <= _FARTHEST:   # it makes the file longer, with zeros
                    yield from self._sized("extend", self._short(path), arguments[2] + arguments[3])
                elif arguments[1] != 1:  # FALLOC_FL_KEEP_SIZE alone changes nothing that can be read
                    yield "unknown", name
            else:
                yield from self._write(call, number, self._short(path))

    def _sized(self, what, path, length):
        if length <= _FARTHEST:   # a negative one is refused
            yield ("unknown", "a file of more than 64 MiB") if length > _MOST else (what, path, length)

    def _below(self, path):
        return path == self.home or path.startswith(self.home + os.sep)

    def _short(self, path):
        return os.path.relpath(path, self.home)

    def _open(self, call):
        path, = syscall.paths(call)
        flags = {"open": 1, "openat": 2}.get(call.name)
        if call.name == "openat2":
            flags = struct.unpack("=Q", syscall.memory(call, call.arguments[2], 8))[0]
        else:
            flags = os.O_CREAT | os.O_TRUNC if flags is None else call.arguments[flags]
        path = _real(path, follow=not flags & (os.O_NOFOLLOW | os.O_EXCL))
        if not self._below(path):
            return
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            yield "unknown", "open with O_TMPFILE"
        there = os.path.lexists(path)
        if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path)) or flags & os.O_EXCL and there:
            return   # it fails
        if flags & os.O_CREAT and not there:
            yield "create", self._short(path)
        if flags & os.O_TRUNC:
            yield "empty", self._short(path)

    def _name(self, call):
        what = {"renameat": "rename", "renameat2": "rename", "mkdirat": "mkdir", "unlinkat": "unlink", "linkat": "link",
                "symlinkat": "symlink", "truncate": "cut"}.get(call.name, call.name)
        paths = [_real(path, follow=what == "cut") for path in syscall.paths(call)]
        if not any(map(self._below, paths)):
            return
        if call.name == "unlinkat" and call.arguments[2] & 0x200:   # AT_REMOVEDIR
            what = "rmdir"
        if _fails(what, *paths):
            return
        if call.name == "renameat2" and call.arguments[4]:
            if call.arguments[4] != 1:
                yield "unknown", "renameat2 with flags"
            elif os.path.lexists(paths[1]):   # RENAME_NOREPLACE
                return
        if what == "cut" and call.arguments[1] > _FARTHEST:
            return
        if what == "rename" and not all(map(self._below, paths)):
            yield "unknown", "a rename into LAB_HOME or out of it"
            return
        if what == "cut":
            yield from self._sized(what, self._short(paths[0]), call.arguments[1])
            return
        more = [syscall.text(call, 0)] if what == "symlink" else []
        yield what, *map(self._short, paths), *more

    def _write(self, call, number, path):
        arguments = call.arguments
        position, flags = _position(call, number)
        if call.name in ("write", "pwrite64"):
            data = syscall.memory(call, arguments[1], min(arguments[2], _LARGEST))
        elif call.name in ("writev", "pwritev", "pwritev2"):
            if arguments[2] > _MOST_PARTS:
                return
            vector = syscall.memory(call, arguments[1], 16 * arguments[2])
            data = b"".join(syscall.memory(call, at, min(size, _LARGEST))
                            for at, size in struct.iter_unpack("=QQ", vector[:len(vector) // 16 * 16]))
        elif call.name in _COPIES:
            data, to = _copied(call, *_COPIES[call.name])
            position = position if to is None else to
            if data is None:
                yield "unknown", call.name
                return
        else:
            yield "unknown", call.name
            return
        if call.name in ("pwrite64", "pwritev", "pwritev2"):
            position = arguments[3]
            if position > _FARTHEST:
                return
        if flags & os.O_APPEND:
            position = None
        self._size += len(data)
        if self._size > _MOST or (position or 0) > _MOST:
            yield "unknown", f"a write of more than {_MOST >> 20} MiB in all"
            return
        yield "write", path, position, base64.b64encode(data).decode()
        if flags & os.O_DSYNC:
            yield "sync", path


def _real(path, follow):
    """A path without links, as the kernel takes it: the last part is followed only where the call does."""
    return os.path.realpath(path) if follow else os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _fails(what, path, other=None):
    """Whether a call that is about names is going to fail, and changes nothing, by what can be seen before it."""
    def folder(path):
        return os.path.isdir(path) and not os.path.islink(path)

    there = os.path.lexists(path)
    if not os.path.isdir(os.path.dirname(other or path)) or there == (what in ("mkdir", "symlink")):
        return True
    if what == "rmdir":
        return not folder(path) or bool(os.listdir(path))
    if what == "link":
        return folder(path) or os.path.lexists(other)
    if what == "rename" and os.path.lexists(other):
        if os.path.samestat(os.lstat(path), os.lstat(other)):
            return True   # two names of one file: both stay
        if folder(path) != folder(other) or folder(other) and os.listdir(other):
            return True
    if what == "rename":
        return other.startswith(path + os.sep)
    return what in ("unlink", "cut") and folder(path)


def _copied(call, source, at, to, size):
    """What a copy in the kernel is about to read, None where that is no file, and where it puts it, None where the target stands.

    Of each the number of the argument: the descriptor that is read, the pointers to the places, the size.
    """
    number = ctypes.c_int(call.arguments[source]).value
    path = f"/proc/{call.thread}/fd/{number}"
    if not stat.S_ISREG(os.stat(path).st_mode):
        return None, None

    def place(argument):
        pointer = argument is not None and call.arguments[argument]
        return int.from_bytes(syscall.memory(call, pointer, 8), "little") if pointer else None

    start = place(at)
    with open(path, "rb", buffering=0) as file:
        file.seek(_position(call, number)[0] if start is None else start)
        return file.read(min(call.arguments[size], _LARGEST)), place(to)


def _position(call, number):
    """Where the next write(2) to a descriptor goes, and the flags that it was opened with."""
    with open(f"/proc/{call.thread}/fdinfo/{number}") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["pos"]), int(fields["flags"], 8)


# ---- what a power cut may leave


class Disk:
    """The files below a home: what is safe on the disk, and what was done since, in order, and may or may not get there.

    An operation is a tuple: what it is and its operands. Names and contents are apart, as on a disk: a file is a number, its
    content is under that number, and its name is an entry in a folder.
    """

    def __init__(self):
        self.names, self.contents = {}, {}   # path → a number, "folder" or a link's text in a tuple; number → bytes
        self.pending = []
        self._now, self._numbers = {}, 0     # the names as the program sees them

    def do(self, what, *operands):
        """Take in one of the Recorder's entries, without its time."""
        if what == "create":
            path, = operands
            if path not in self._now:
                self._numbers += 1
                self._name("enter", path, self._numbers)
        elif what in ("mkdir", "symlink"):
            self._name("enter", operands[0], "folder" if what == "mkdir" else operands[1:])
        elif what in ("unlink", "rmdir"):
            self._name("leave", operands[0])
        elif what == "rename":
            self._name("move", *operands, self._now.get(operands[0]))
        elif what == "link":
            self._name("enter", operands[1], self._now.get(operands[0]))
        elif what in ("write", "empty", "cut", "extend"):
            number = self._now.get(operands[0])
            if isinstance(number, int):
                self.pending.append(("empty", number) if what == "empty" else (what, number, *operands[1:]))
        elif what == "sync":
            self._sync(operands[0])
        elif what == "syncall":
            self._settle(lambda operation: True)

    def _name(self, *operation):
        _apply([operation], self._now, {})
        self.pending.append(operation)

    def _sync(self, path):
        number = "folder" if path == "." else self._now.get(path)
        if number == "folder":
            self._settle(lambda done: done[0] in _NAMES and any(_parent(name) == path for name in done[1:3] if isinstance(name, str)))
        else:
            self._settle(lambda done: done[0] not in _NAMES and done[1] == number)

    def _settle(self, safe):
        _apply([done for done in self.pending if safe(done)], self.names, self.contents)
        self.pending = [done for done in self.pending if not safe(done)]

    def states(self):
        """The states that a power cut may leave now, each as ({path: content, None for a folder}, in words how it comes about; of the
        first four these end with one of WHOLE)."""
        pending = self.pending
        yield self._with(pending), WHOLE[0]
        if not pending:
            return
        unsynced = list(dict.fromkeys(_in_words(done, self._now) for done in pending))
        more = f" and {len(unsynced) - _TOLD} more" if len(unsynced) > _TOLD else ""
        yield self._with([]), f"{', '.join(unsynced[:_TOLD])}{more} had not been synced; {WHOLE[1]}"
        names = [done for done in pending if done[0] in _NAMES]
        yield self._with(names), WHOLE[2]
        yield self._with([done for done in pending if done[0] not in _NAMES]), WHOLE[3]
        for count in spread(range(1, len(pending)), _FEW):
            yield self._with(pending[:count]), f"only the first {count} of {len(pending)} unsynced changes got there"
        for number in spread(range(len(pending)), _FEW):
            done = pending[number]
            yield self._with(pending[:number] + pending[number + 1:]), f"all got there but this: {_in_words(done, self._now)}"
            if done[0] == "write" and len(done[3]) > 1:
                torn = (*done[:3], done[3][:len(done[3]) // 2])
                yield self._with([*pending[:number], torn, *pending[number + 1:]]), f"half got there of this: {_in_words(done, self._now)}"

    def _with(self, operations):
        names, contents = dict(self.names), dict(self.contents)
        _apply(operations, names, contents)
        found = {}
        for path in sorted(names):   # what is in a folder that is not there is not there
            if _parent(path) == "." or found.get(_parent(path), b"") is None:
                number = names[path]
                found[path] = None if number == "folder" else number if isinstance(number, tuple) else contents.get(number, b"")
        return found


def spread(things, most):
    """The things, in order, where there are at most `most`; of more, the last ones and of the rest evenly spread ones."""
    if len(things) <= most:
        return list(things)
    last = most // 4
    early = things[:len(things) - last]
    return [early[number * len(early) // (most - last)] for number in range(most - last)] + list(things[len(things) - last:])


_NAMES = ("enter", "leave", "move")


def _apply(operations, names, contents):
    for what, *operands in operations:
        if what == "enter":
            names[operands[0]] = operands[1]
        elif what == "leave":
            names.pop(operands[0], None)
        elif what == "move":
            # The entry says which file it is, so it needs no other entry to be there.
            old, new, number = operands
            names.pop(old, None)
            if number is not None:
                names[new] = number
            for path in [path for path in names if path.startswith(f"{old}/")]:
                names[new + path[len(old):]] = names.pop(path)
        else:
            number, content = operands[0], contents.get(operands[0], b"")
            if what == "empty":
                content = b""
            elif what == "cut":
                content = content[:operands[1]].ljust(operands[1], b"\0")
            elif what == "extend":
                content = content.ljust(operands[1], b"\0")
            else:
                at, data = len(content) if operands[1] is None else operands[1], operands[2]
                content = content[:at].ljust(at, b"\0") + data + content[at + len(data):]
            contents[number] = content


def _parent(path):
    return os.path.dirname(path) or "."


def _in_words(done, names):
    what, *operands = done
    if what in _NAMES:
        return {"enter": "the name {}", "leave": "the removal of {}", "move": "the renaming of {} to {}"}[what].format(*operands)
    path = next((path for path, number in names.items() if number == operands[0]), "a file that has no name any more")
    return f"{len(operands[-1])} bytes of {path}" if what == "write" else f"the {'emptying' if what == 'empty' else 'new length'} of {path}"
