"""What this machine can do for the labs: each ability really tried, not concluded from a version."""

import ctypes
import os
import platform
import shutil
import socket
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from . import sandbox
from .kept import ForkServer, Kept
from .kills.syscall import NUMBERS

LANDLOCK_CREATE_RULESET = 444                # on every architecture
ON_LINUX = "use Linux, in a virtual machine or a container"


@dataclass(frozen=True)
class Ability:
    """One thing that the machine can do or not: in words what was found, and for a lack the command or deed that mends it."""

    name: str
    there: bool
    found: str
    mend: str = ""


def sqlite():
    """SQLite with upserts, which came with 3.24."""
    version = sqlite3.sqlite_version
    return Ability("SQLite", sqlite3.sqlite_version_info >= (3, 24), f"{version}, " + (
        "with upserts" if sqlite3.sqlite_version_info >= (3, 24) else "older than 3.24: `ON CONFLICT … DO UPDATE` will not work"),
        "use a Python with a newer SQLite, such as one from python.org")


def homes(folder):
    """Where the homes of programs go: `folder` is the scratch folder of a session."""
    free = shutil.disk_usage(folder).free >> 20
    shared = str(folder).startswith("/dev/shm/")
    return Ability("homes on tmpfs", shared, f"{Path(folder).parent}, {free:,} MiB free" + ("" if shared else ", a disk: slower syncs"),
                   "mount -t tmpfs tmpfs /dev/shm" if sys.platform == "linux" else "nothing to mend here: only Linux has /dev/shm")


def kills():
    """The kinds of death that a program can be given here."""
    yield Ability("at a boundary", True, "SIGKILL while the outside holds a request")
    yield Ability("at a line", True, "sys.settrace, in a fork of a Python that is up")
    found = seccomp_notification()
    yield Ability("at a system call", *found)
    yield Ability("by power cut", found[0], "from what a program writes and syncs, seen the same way" if found[0] else "needs the same", found[2])


def seccomp_notification():
    """Whether system calls can be watched by seccomp user notification, tried on a shell: (there, found, mend)."""
    if sys.platform != "linux":
        return False, f"seccomp is Linux's, this is {platform.system()}", ON_LINUX
    if not NUMBERS or sys.maxsize < 1 << 32:
        return False, f"not for this processor ({platform.machine()})", "use a 64-bit x86-64 or aarch64 machine"
    with ForkServer() as forks:   # raises RuntimeError where not even that works
        tried = Kept(forks, {"command": ["/bin/sh", "-c", "echo > /dev/null"], "arguments": [], "folder": "/", "environment": {}, "calls": True})
        tried.stdin.close()
        tried.wait()
        for stream in (tried.stdout, tried.stderr):
            stream.close()
    if tried.report["trouble"] or not tried.report["events"]:
        return False, tried.report["trouble"] or "no call was seen", "use Linux 5.6 or newer; in a container: --security-opt seccomp=unconfined"
    return True, f"seccomp user notification, Linux {platform.release().split('-')[0]} on {platform.machine()}", ""


def confinement():
    """What can keep a program from reaching anything that it should not."""
    yield bubblewrap()
    yield landlock()
    yield subreaper()


def bubblewrap():
    """bwrap, run once with namespaces of its own."""
    name, path = "bubblewrap", sandbox.bubblewrap()
    if sys.platform != "linux":
        return Ability(name, False, "it is for Linux", ON_LINUX)
    if not path:
        return Ability(name, False, "not installed", install("bubblewrap"))
    command = [path, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-net",
               "--die-with-parent", "--", "/bin/sh", "-c", "exit 0"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Ability(name, False, f"{path} cannot be run: {error}", install("bubblewrap"))
    if done.returncode == 0:
        return Ability(name, True, f"{path}, with a process and a network namespace")
    said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return Ability(name, False, f"installed, and it fails: {said[:100]}", allow_namespaces())


def allow_namespaces():
    """The command that lets bubblewrap make namespaces here, as far as one can tell."""
    def setting(name):
        try:
            return Path("/proc/sys", name).read_text().strip()
        except OSError:
            return None
    if setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu's rule, until the next boot)"
    if setting("kernel/unprivileged_userns_clone") == "0":
        return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if setting("user/max_user_namespaces") == "0":
        return "sudo sysctl -w user.max_user_namespaces=10000"
    return "in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or --privileged"


def landlock():
    """Landlock, by its ABI: 4 and later can also refuse TCP."""
    if sys.platform != "linux":
        return Ability("Landlock", False, "it is Linux's", ON_LINUX)
    VERSION = 1
    abi, error = _system_call(LANDLOCK_CREATE_RULESET, None, 0, VERSION)
    if error:
        off = error == 95  # EOPNOTSUPP: in the kernel, and not switched on
        return Ability("Landlock", False, f"the kernel says: {os.strerror(error)}",
                       "boot with `landlock` in the lsm= list" if off else "install a kernel from 5.13 on (6.7 for TCP)")
    return Ability("Landlock", abi >= 4, f"ABI {abi}" + (", files and TCP" if abi >= 4 else ", files but not TCP"),
                   "install a kernel from 6.7 on")


def subreaper():
    """Whether orphaned grandchildren come to us, so that none can slip away."""
    PR_GET_CHILD_SUBREAPER = 37
    there = sys.platform == "linux" and not ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(ctypes.c_int()), 0, 0, 0)
    return Ability("child subreaper", there, "orphaned processes are found" if there else "orphaned processes are looked for one by one",
                   "" if there else ON_LINUX)


def port(number):
    """Whether `labs outside` can listen where it does by default."""
    try:
        socket.create_server(("127.0.0.1", number)).close()
    except OSError as error:
        other = f"http://127.0.0.1:{number + 1}"
        return Ability(f"port {number}", False, f"{error.strerror}: `labs outside` cannot listen there",
                       f"python -m labs outside --port {number + 1}, and OUTSIDE={other} for the program")
    return Ability(f"port {number}", True, "free, for `labs outside`")


def browser():
    """What the kit's own tests of pages need: Chromium, and Playwright to drive it."""
    path = chromium()
    if not path:
        return Ability("a browser", False, "no Chromium on the PATH: the kit's own tests of pages are skipped", install("chromium"))
    if not find_spec("playwright"):
        return Ability("a browser", False, f"{path}, without Playwright: the kit's own tests of pages are skipped",
                       "python -m pip install 'playwright>=1.44'")
    return Ability("a browser", True, f"{path}, for the kit's own tests of pages")


def chromium():
    """The path of this machine's Chromium, under whichever name it has one on the PATH; or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def install(package):
    """The command that installs a package here."""
    for tool, command in {"apt-get": "apt-get install", "dnf": "dnf install", "pacman": "pacman -S", "zypper": "zypper install",
                          "apk": "apk add", "brew": "brew install"}.items():
        if shutil.which(tool):
            return f"{'' if tool == 'brew' else 'sudo '}{command} {package}"
    return f"install {package}"


def _system_call(number, *arguments):
    """What a system call returned, and its errno, 0 where it did not fail."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    words = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    returned = libc.syscall(ctypes.c_long(number), *words)
    return returned, ctypes.get_errno() if returned == -1 else 0
