"""Death by power cut: what a run wrote and synced, and the states of its home that a power cut may leave.

The recorder notes the calls that change files while they wait for the keeper (syscall.py). A file system may keep back
all that was not synced, in any order: of a cut between two calls we build the state with everything, with only what was synced,
with names but no data, with data but no names, every prefix, and the states in which one thing is lost or torn. What
fsync(2) says of files and folders is all that is relied on; Pillai et al., "All File Systems Are Not Created Equal" (OSDI
2014), shows what real file systems do beyond it.
"""

import base64
import os
import struct
import time

from . import syscall

_LARGEST = 16 << 20   # bytes of one write


class Recorder:
    """Notes what is done to the files below `home`. `found` is a list of [seconds, what, …]; see `note`."""

    def __init__(self, home):
        self.home, self.found = home, []

    def note(self, call):
        """Write down what the waiting call is about to do:

        create P · empty P · write P offset data · cut P length · sync P · syncall · rename P Q · unlink P · mkdir P ·
        rmdir P · link P Q · symlink P text · say (on stdout) · send (to a socket) · unknown call

        Paths are relative to the home, data in base64. Calls elsewhere are left out.
        """
        try:
            for entry in self._entries(call):
                self.found.append([time.monotonic(), *entry])
        except OSError:
            pass   # it names what is not there, and will fail

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
            elif path.startswith("pipe:") or not self._below(path):
                if number == 1:
                    yield "say",
            elif name in ("fsync", "fdatasync"):
                yield "sync", self._short(path)
            elif name == "ftruncate":
                yield "cut", self._short(path), arguments[1]
            elif name == "fallocate":
                if arguments[1] == 0:   # it makes the file longer, with zeros
                    yield "extend", self._short(path), arguments[2] + arguments[3]
                elif arguments[1] != 1:  # FALLOC_FL_KEEP_SIZE alone changes nothing that can be read
                    yield "unknown", name
            else:
                yield from self._write(call, number, self._short(path))

    def _below(self, path):
        return path == self.home or path.startswith(self.home + os.sep)

    def _short(self, path):
        return os.path.relpath(path, self.home)

    def _open(self, call):
        path, = syscall.paths(call)
        if not self._below(path):
            return
        flags = {"open": 1, "openat": 2}.get(call.name)
        if call.name == "openat2":
            flags = struct.unpack("=Q", syscall.memory(call, call.arguments[2], 8))[0]
        else:
            flags = os.O_CREAT | os.O_TRUNC if flags is None else call.arguments[flags]
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            yield "unknown", "open with O_TMPFILE"
        if flags & os.O_CREAT and not (flags & os.O_EXCL and os.path.lexists(path)):
            yield "create", self._short(path)
        if flags & os.O_TRUNC:
            yield "empty", self._short(path)

    def _name(self, call):
        what = {"renameat": "rename", "renameat2": "rename", "mkdirat": "mkdir", "unlinkat": "unlink", "linkat": "link",
                "symlinkat": "symlink", "truncate": "cut"}.get(call.name, call.name)
        paths = syscall.paths(call)
        if not any(map(self._below, paths)):
            return
        if call.name == "unlinkat" and call.arguments[2] & 0x200:   # AT_REMOVEDIR
            what = "rmdir"
        if call.name == "renameat2" and call.arguments[4]:
            yield "unknown", "renameat2 with flags"
        # A call that fails changes nothing: these are the reasons that can be seen before.
        there = [os.path.lexists(path) for path in paths]
        if what in ("mkdir", "symlink") and there[0] or what in ("unlink", "rmdir", "rename", "cut") and not there[0]:
            return
        if what == "link" and (there[1] or not there[0]):
            return
        if what == "rename" and not all(map(self._below, paths)):
            yield "unknown", "a rename into LAB_HOME or out of it"
            return
        more = [call.arguments[1]] if what == "cut" else []
        yield what, *map(self._short, paths), *more

    def _write(self, call, number, path):
        arguments = call.arguments
        position, flags = _position(call, number)
        if call.name in ("write", "pwrite64"):
            data = syscall.memory(call, arguments[1], min(arguments[2], _LARGEST))
        elif call.name in ("writev", "pwritev", "pwritev2"):
            vector = syscall.memory(call, arguments[1], 16 * arguments[2])
            data = b"".join(syscall.memory(call, *part) for part in struct.iter_unpack("=QQ", vector))
        else:
            yield "unknown", call.name
            return
        if call.name in ("pwrite64", "pwritev", "pwritev2"):
            position = arguments[3]
        if flags & os.O_APPEND:
            position = None
        yield "write", path, position, base64.b64encode(data).decode()
        if flags & os.O_DSYNC:
            yield "sync", path


def _position(call, number):
    """Where the next write(2) to a descriptor goes, and the flags that it was opened with."""
    with open(f"/proc/{call.thread}/fdinfo/{number}") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["pos"]), int(fields["flags"], 8)
