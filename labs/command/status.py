"""How far the learner is: every lab's checks, run afresh or as the last run left them, and what comes next."""

import signal
import sys
from contextlib import nullcontext

from rich.console import Console
from rich.live import Live
from rich.text import Text

from labs.harness.staging import KIT
from labs.harness.story import counted

from .board import Board
from .checks import run_public
from .kit import all_labs, lab_numbered, shown
from .prose import say
from .results import Tally, last_run


def show_status(program=None, number=None):
    """Run the public checks of all labs, or of that lab, drawing the table as they end, and say what comes next. Returns an exit code."""
    console = Console(highlight=False)
    tallies = [Tally.of_public(lab) for lab in _labs(number)]
    try:
        run_live(console, tallies, program)
    except KeyboardInterrupt:
        if any(tally.statuses for tally in tallies):
            console.print(Board(tallies))
        print("interrupted: the checks that were under way have been ended, without a verdict", file=sys.stderr)
        return 130
    console.print(Board(tallies))
    _say_what_is_not_in_it(console, tallies)
    console.print()
    _say_next(console, tallies, program)
    return 0


def _labs(number):
    return all_labs() if number is None else [lab_numbered(number)]


def show_last(number=None):
    """Show what the last run left behind, of all labs or of that lab, labelled as that. Returns an exit code."""
    console = Console(highlight=False)
    tallies, about = last_run(_labs(number))
    console.print(Text.assemble(("Not run now: ", "bold yellow"), f"the last run, {about['began']}, of {about['program']}, "
                                f"seed {about['seed']}"))
    if about["selection"]:
        console.print("It ran a selection (-k, or test names), so what looks passed may have passed in part.")
    console.print(Board(tallies))
    console.print("\n`python -m labs status` runs the checks afresh.", style="dim")
    return 0


def run_live(console, tallies, program=None):
    """Run the checks of these Tallies, which take in how each ends, with a table that is gone at the end."""
    board = Board(tallies, running=tallies[0].lab.number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with Live(board, console=console, transient=True) if console.is_terminal else nullcontext():
        run_public([tally.lab for tally in tallies], board.add, program)


def _say_what_is_not_in_it(console, tallies):
    hidden = [check for tally in tallies for check in tally.lab.checks if check.hidden]
    if hidden:
        total = sum(check.points for tally in tallies for check in tally.lab.checks)
        next_lab = next((tally for tally in tallies if not tally.solved), tallies[-1]).lab
        here = f"`pytest labs/{next_lab.number}` runs those of lab {next_lab.number} too, as the grader does; " if next(KIT.glob("labs/*/hidden"), None) else ""
        say(console, f"Not in this: {counted(len(hidden), 'hidden check')}, for {sum(check.points for check in hidden)} of the {total} points. "
                     f"{here or 'The grader runs them; '}each chapter says what they do.", "dim")


def _say_next(console, tallies, program):
    for tally in tallies:
        if not tally.solved:
            check, number = tally.open[0], tally.lab.number
            wording = {"failed": "first failing check", "could not check": "first check that could not be run",
                       "not run": "first check that was not run"}[tally.verdict(check)]
            console.print(Text.assemble(("next: ", "bold"), f"lab {number}, {wording}: ", (_sentence(check), "bold")))
            say(console, check.does, indent=6)
            if why := tally.whys.get(check.test):
                say(console, f"why   {why}", indent=6)
            options = f" --program {program}" if program else ""
            console.print(f"      run   pytest {shown(KIT / 'labs' / number)}{options}", soft_wrap=True)
            console.print(f"      hint  python -m labs hint {number}", soft_wrap=True)
            return
    say(console, "All checks that you can see pass.", "bold green")
    if program is None and (KIT / "solutions").is_dir():
        say(console, f"`python -m labs solution {tallies[-1].lab.number}` shows where the kit's own way is another.", "dim")


def _sentence(check):
    return check.test.split("::test_")[1].replace("_", " ")

