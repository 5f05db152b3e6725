"""Whether the labs can run on this machine, what it can do beyond that, and the command that mends each lack."""

import os
import platform
import sys
import textwrap
from importlib.util import find_spec

from rich.console import Console
from rich.text import Text

from labs.harness import machine
from labs.harness.machine import Ability
from labs.harness.staging import KIT
from labs.harness.story import counted

PYTHON = (3, 11)
PACKAGES = ("jinja2", "psutil", "pydantic", "pytest", "pytest_timeout")  # but for those that the command itself cannot start without
PORT = 8765  # where `labs outside` listens by default
NAMES = 19   # columns


def show_doctor():
    """Print what was found. Returns 0 when the labs can run, 1 when they cannot."""
    console = Console(highlight=False)
    able = section(console, "What the labs need", needed(), "✗", "red")
    if able:
        able = section(console, "", the_outside(), "✗", "red")
        pages = [machine.browser()] if (KIT / "grader" / "tests").is_dir() else []
        section(console, "", [machine.sqlite(), machine.port(PORT), *pages], "!", "yellow")
        section(console, "\nHow this machine can kill a program", machine.kills(), "!", "yellow")
        section(console, "\nHow it can confine one (`pytest labs` needs the last alone; the grader takes the strongest)", machine.confinement(), "!", "yellow")
    console.print()
    if able:
        console.print("The labs can run here.", style="bold green")
    else:
        console.print("The labs cannot run here until what is marked ✗ is mended.", style="bold red")
    return 0 if able else 1


def needed():
    """What has to be so before anything of the harness can be imported."""
    version, wanted = platform.python_version(), ".".join(map(str, PYTHON))
    yield Ability("Python", sys.version_info >= PYTHON, f"{version}, {sys.executable}",
                  f"install Python {wanted} or newer, and make the virtual environment with it")
    yield Ability("system", os.name == "posix", f"{platform.system()} {platform.release()}", "use WSL: https://learn.microsoft.com/windows/wsl")
    missing = [name for name in PACKAGES if not find_spec(name)]
    yield Ability("packages", not missing, f"not installed: {', '.join(missing)}" if missing else "all installed",
                  f"{sys.executable} -m pip install -e {KIT}")
    labs = sorted((KIT / "labs").glob("[0-9][0-9]/lab.toml"))
    whole = bool(labs) and (KIT / "starter" / "__main__.py").is_file()
    yield Ability("kit", whole, f"{counted(len(labs), 'lab')} in {KIT}" if whole else f"{KIT} has no {'starter/' if labs else 'labs'}",
                  "python -m labs reset 01" if labs else "unpack the kit again, and run the command in it")


def the_outside():
    """The scratch folder and the outside in it, really opened."""
    from labs.harness.outside import Outside
    from labs.harness.scratch import scratch
    try:
        with scratch() as folder, Outside(folder / "outside.sock"):
            homes = machine.homes(folder)
    except OSError as error:
        yield Ability("the outside", False, f"cannot listen on a socket in a temporary folder: {error}",
                      "set TMPDIR to a folder of your own with a short path")
        return
    yield Ability("the outside", True, "listens on a Unix socket")
    yield Ability("homes", True, homes.found + ("" if homes.there else f"; faster: {homes.mend}"))


def section(console, title, abilities, mark, style):
    """Print some abilities, each as it is found; returns whether all are there."""
    if title:
        console.print(title, style="bold")
    all_there = True
    for ability in abilities:
        all_there = all_there and ability.there
        hanging = " " * (NAMES + 3)
        lines = textwrap.wrap(ability.found, max(30, console.width - len(hanging)), break_on_hyphens=False) or [""]
        console.print(Text.assemble((f" {'✓' if ability.there else mark} ", "green" if ability.there else style),
                                    f"{ability.name:<{NAMES}}", f"\n{hanging}".join(lines)), soft_wrap=True)
        if not ability.there:
            console.print(f"{hanging}[bold]→[/] ", end="")
            console.print(ability.mend, style="bold", markup=False, soft_wrap=True)
    return all_there
