"""The solution of a lab, as what it changes in the learner's own program; unlocked by passing."""

import difflib
import sys

from rich.console import Console
from rich.syntax import Syntax

from labs.harness.staging import KIT
from labs.harness.story import counted

from .kit import lab_numbered, shown
from .refused import Refused
from .results import Tally
from .shipped import files_of, overlay
from .status import run_live


ALIKE = 0.4   # of all lines: with less in common than that, a file is easier to read than what it changes


def show_solution(number, reveal=False):
    """Print a lab's solution if its public checks, run now, pass on starter/, or with `reveal`. Returns an exit code.

    Raises Refused where the kit has no such solution, or where checks still fail.
    """
    lab = lab_numbered(number)
    files = overlay(lab.number)
    console = Console(highlight=False)
    if not reveal:
        tally = Tally.of_public(lab)
        try:
            run_live(console, [tally])
        except KeyboardInterrupt:
            print("interrupted: nothing is unlocked", file=sys.stderr)
            return 130
        _refuse_unless_solved(tally)
    mine = files_of(KIT / "starter") if (KIT / "starter").is_dir() else {}
    for name, content in files.items():
        _print_change(console, name, mine.get(name), content, lab.number)
    _print_how_to_try(console, lab.number, mine, files)
    return 0


def _refuse_unless_solved(tally):
    if tally.solved:
        return
    number, total = tally.lab.number, len(tally.counted)
    failing = [check for check in tally.open if tally.verdict(check) == "failed"]
    how = f"{len(failing)} of {counted(total, 'check')} fail" if failing else f"{len(tally.open)} of {counted(total, 'check')} could not be run"
    raise Refused(f"lab {number} is not solved yet, {how}: `pytest {shown(KIT / 'labs' / number)}` shows them; "
                  f"`python -m labs solution {number} --reveal` shows the solution all the same", code=1)


def _print_change(console, name, mine, theirs, number):
    source, target = (f"starter/{name}" if mine is not None else "/dev/null"), f"solutions/{number}/{name}"
    ours, lines = _lines(mine or b""), _lines(theirs)
    changes = list(difflib.unified_diff(ours, lines, source, target))
    if not changes:
        console.print(f"[bold]{target}[/]  the same as your starter/{name}\n")
    elif not console.is_terminal:
        print("".join(changes))   # a patch
    elif mine is not None and difflib.SequenceMatcher(None, ours, lines, autojunk=False).ratio() < ALIKE:
        _show(console, f"{target}  whole: it has little in common with your starter/{name}", lines, "python" if name.endswith(".py") else "text")
    else:
        _show(console, f"{target}  " + (f"what it changes in your starter/{name}" if mine is not None else "a new file"), changes, "diff")


def _show(console, title, lines, language):
    console.print(title, style="bold", markup=False, soft_wrap=True)
    console.print(Syntax("".join(lines).rstrip("\n"), language, theme="ansi_dark", background_color="default", word_wrap=True))
    console.print()


def _lines(content):
    text = content.decode(errors="replace")
    return text.splitlines(keepends=True) if text.endswith("\n") or not text else (text + "\n").splitlines(keepends=True)


def _print_how_to_try(console, number, mine, files):
    earlier = {}
    for folder in sorted((KIT / "solutions").glob("[0-9][0-9]")):
        if folder.name < number:
            earlier |= dict.fromkeys(files_of(folder), folder.name)
    needed = [f"solutions/{lab}/{name}" for name, lab in earlier.items() if name not in files and name not in mine]
    if needed:
        console.print(f"It builds on files of earlier labs that your starter/ does not have: {', '.join(needed)}", soft_wrap=True)
    if any(mine.get(name, content) != content for name, content in files.items()):
        console.print(f"This is the program after lab {number}: what you have made since then is not in it.", soft_wrap=True)
    console.print(f"Try it: pytest {shown(KIT / 'labs' / number)} --program {shown(KIT / 'solutions' / number)}", soft_wrap=True)
