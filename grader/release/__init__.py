"""`grader release DIR`: the kit that learners get, without anything that they should find themselves, and the proof of it."""

import os
import shutil
import subprocess
from pathlib import Path

from rich.console import Console

from labs.command.durable import write_tree
from labs.command.refused import Refused
from labs.harness import manifest

from .contents import contents
from .leaks import leaks
from .proof import Unproven, prove_clone

SIGNED = ("-c", "user.name=killproof", "-c", "user.email=killproof@localhost", "-c", "commit.gpgsign=false")


def build_release(folder, prove=True):
    """Write the learner's kit to `folder`, and with `prove` install and check a clone of it. Says what it did; returns an exit code.

    0: it may be handed out. 1: a leak, and nothing was written; or it was written and is not proven. Raises Refused where
    `folder` has something in it already, or where this is no whole kit.
    """
    console, folder = Console(highlight=False, soft_wrap=True), Path(folder)
    _refuse_unless_free(folder)
    files = contents()
    if found := leaks(files):
        _say(console, False, "Nothing was written: learners would find what they should not.")
        for leak in found:
            console.print(f"   {leak}", markup=False)
        return 1
    _write(folder, files)
    committed = _commit(folder)

    checks = [check for each in manifest.folders() for check in manifest.read(each).checks]
    hidden = sum(check.hidden for check in checks)
    console.print(f"[bold]The learner's kit[/] is in {folder}: {len(files)} files, {len(manifest.folders())} labs, "
                  f"{len(checks) - hidden} checks; {hidden} hidden ones are announced.")
    _say(console, True, "nothing of the solutions, of hidden checks or of the grader is in it")
    _say(console, committed, "a Git repository with one commit" if committed else "no Git repository: there is no git here that could make one")
    if not prove:
        console.print("   Not proven: its checks were not run.", style="dim")
        return 0
    try:
        with console.status("installing and checking a clone") as status:
            prove_clone(folder, lambda done: _say(console, True, done), status.update)
    except Unproven as reason:
        _say(console, False, str(reason))
        console.print("[bold red]It is not proven[/]: do not hand it out before that is mended and the release is made again.")
        return 1
    console.print("[bold green]It may be handed out.[/]")
    return 0


def _say(console, good, what):
    console.print(" [green]✓[/] " if good else " [yellow]![/] ", end="")
    console.print(what, markup=False)


def _refuse_unless_free(folder):
    if os.path.lexists(folder) and not (folder.is_dir() and not folder.is_symlink()):
        raise Refused(f"{folder} is no folder: name one that does not exist yet")
    if folder.is_dir() and any(folder.iterdir()):
        raise Refused(f"{folder} is not empty: name a folder that does not exist yet, or an empty one")


def _write(folder, files):
    """All of it or nothing."""
    making = folder.absolute().with_name(f".{folder.name}-{os.getpid()}")
    try:
        write_tree(making, files)
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _commit(folder):
    """Make a repository of it. Returns whether there is one; without git, or where git will not, the kit is as good."""
    if not shutil.which("git"):
        return False
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for command in (["init", "--quiet", "--template=", "--initial-branch=main"], ["add", "--force", "--all"],
                    [*SIGNED, "commit", "--quiet", "--no-verify", "--message", "The kit as handed out"]):
        done = subprocess.run(["git", *command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode:
            shutil.rmtree(folder / ".git", ignore_errors=True)
            return False
    return True
