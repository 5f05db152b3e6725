"""starter/ put back to the state before a lab, so that a kill at any moment loses nothing.

The new state is written next to the old one and synced; then two renames swap them. The learner's folder itself
becomes the backup: nothing is copied, so nothing that an editor saves meanwhile is missed. In `.lab-backup/TIME/`:

    making/    the new state, being written: worth nothing
    ready/     the new state, complete and on the disk
    starter/   the learner's folder, moved here by the first rename

A kill before the first rename leaves starter/ as it was, and the next call throws the new state away. A kill between
the two leaves no starter/, and the next call does the second one.
"""

import fcntl
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import typer

from labs.harness.staging import KIT

from .durable import move, sync, sync_tree, write_tree
from .kit import lab_numbered, shown
from .refused import Refused
from .shipped import files_of, state_before

BACKUPS = ".lab-backup"


def ask_and_reset(number, yes=False):
    """Reset starter/ as a person at a terminal asks for it; `yes` asks nothing back. Returns an exit code; raises Refused."""
    lab = lab_numbered(number)
    inside = Path.cwd().is_relative_to(KIT / "starter")

    def agree(changes):
        print(f"To be the starter before lab {lab.number} ({_made_of(lab.number)}), starter/ changes:")
        print("\n".join(f"  {change}" for change in changes))
        print(f"What it is now will be kept in {BACKUPS}/.")
        try:
            return yes or typer.confirm("Go on?")
        except typer.Abort:   # Ctrl-C, or there is nobody to answer
            print("" if sys.stdin.isatty() else "\nnobody answers here; with --yes nobody is asked")
            return False

    changes, backup = reset(lab.number, agree)
    if not changes:
        print(f"starter/ is the starter before lab {lab.number} already; nothing to do")
    elif not backup:
        print("nothing changed")
        return 1
    else:
        print(f"\nstarter/ is now the starter before lab {lab.number}.")
        if (backup / "starter").exists():
            kept = shown(backup / "starter")
            print(f"What it was is in {kept}\nTo have that back: rm -r {shown(KIT / 'starter')} && cp -R {kept} {shown(KIT / 'starter')}")
        if inside:
            print("Your shell stands in the folder that is the backup now: cd .. and into starter/ again.")
    return 0


def _made_of(number):
    layers = [f"solutions/{lab:02}" for lab in range(1, int(number))]
    return f"the shipped one under {', '.join(layers)}" if layers else "the shipped one"


def reset(number, agree, kit=KIT):
    """Put starter/ to the state before lab `number`, if `agree(changes)` says so. Returns the changes and the backup.

    `changes` are lines, one for each file that would become another; where there are none nobody is asked. The backup
    is a folder, or None where nothing was changed. Raises Refused where that state cannot be made, or while another
    reset runs.
    """
    files = state_before(number, kit)
    with _alone(kit):
        _mend(kit)
        starter = kit / "starter"
        if starter.is_symlink():
            raise Refused(f"starter/ is a link to {starter.resolve()}: put a folder in its place, and reset that")
        changes = list(_changes(files_of(starter) if starter.is_dir() else {}, files))
        if not changes or not agree(changes):
            return changes, None
        backup = _new_folder(kit)
        write_tree(backup / "making", files)
        move(backup / "making", backup / "ready")
        sync(kit / BACKUPS)
        sync(kit)
        if starter.exists():
            sync_tree(starter)
            move(starter, backup / "starter")
        move(backup / "ready", starter)
        return changes, backup


def mend(kit=KIT):
    """Finish or undo resets that were killed. Returns a line for each; none while a reset is at work."""
    if not [*(kit / BACKUPS).glob("*/making"), *(kit / BACKUPS).glob("*/ready")]:
        return []
    try:
        with _alone(kit):
            return _mend(kit)
    except Refused:
        return []


def _mend(kit):
    said = []
    for folder in sorted((kit / BACKUPS).glob("*/")):
        making, ready, starter = folder / "making", folder / "ready", kit / "starter"
        moved = (folder / "starter").exists()
        if ready.is_dir() and moved and not starter.exists():
            move(ready, starter)
            said.append(f"a reset that was killed is finished: what starter/ was is in {BACKUPS}/{folder.name}/starter")
        elif ready.is_dir():
            # Under a name that nobody takes for complete, before the first of its files goes.
            move(ready, making)
        if making.is_dir():
            shutil.rmtree(making)
            said.append("a reset that was killed is undone: starter/ is as it was" if not moved else
                        f"a reset that was killed is given up: starter/ is there, and what it was is in {BACKUPS}/{folder.name}/starter")
        if not any(folder.iterdir()):
            folder.rmdir()
    return said


@contextmanager
def _alone(kit):
    """One reset at a time. The kernel drops the lock with whoever holds it."""
    (kit / BACKUPS).mkdir(exist_ok=True)
    with open(kit / BACKUPS / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused("another `labs reset` is at work; end it first") from None
        yield


def _new_folder(kit):
    name = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        folder = kit / BACKUPS / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            pass
    raise Refused(f"{BACKUPS}/ has too many folders of this second")


def _changes(old, new):
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"{name} goes"
        elif name not in old:
            yield f"{name} comes"
        elif old[name] != new[name]:
            yield f"{name} changes"
