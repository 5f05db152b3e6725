"""The learner's command: `python -m labs …`."""

import signal
import sys
from pathlib import Path
from typing import Annotated

before = signal.getsignal(signal.SIGINT)
if before is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)   # while all this is loaded, Ctrl-C has no traceback to show

try:
    import typer
except ModuleNotFoundError as error:
    from . import without
    sys.exit(without(error))

from .command.interruptible import Interruptible
from .command.refused import Refused

if before is signal.default_int_handler:
    signal.signal(signal.SIGINT, before)

app = typer.Typer(cls=Interruptible, add_completion=False, no_args_is_help=True, help="killproof: flows that survive being killed.",
                  context_settings={"help_option_names": ["--help", "-h"]}, pretty_exceptions_enable=False)
LabNumber = Annotated[str, typer.Argument(metavar="NN", help="The lab, by its number: 03, or just 3.")]


@app.callback()
def labs():
    if (Path(__file__).resolve().parents[1] / ".lab-backup").is_dir():
        from .command.reset import mend
        for line in mend():
            print(f"labs: {line}", file=sys.stderr)


@app.command()
def status(number: Annotated[str, typer.Argument(metavar="[NN]", help="One lab, by its number; without it, all.")] = None,
           program: Annotated[str, typer.Option(metavar="DIR", help="Check another program: a folder with a __main__.py, one "
                                                "that holds starter/, or solutions/NN.")] = None,
           last: Annotated[bool, typer.Option("--last", help="Run nothing: show what the last run of the checks left, which "
                                              "may be old.")] = False):
    """Run the checks that you can see, of all labs or of one, and say what comes next."""
    from .command.status import show_last, show_status
    if last and program:
        raise Refused("--last runs nothing, so it cannot be told which --program: leave one of them out")
    raise typer.Exit(show_last(number) if last else show_status(program, number))


@app.command()
def hint(number: LabNumber = None):
    """Give a hint for a lab: one more each time, three in all."""
    from .command.hints import show_hint
    raise typer.Exit(show_hint(number))


@app.command()
def show(name: Annotated[str, typer.Argument(metavar="NAME", help="A failed check, by its name in .lab-evidence/ or a part of it, or the "
                                             "first of a lab, by its number; without it, the first that failed.")] = None,
         open_it: Annotated[bool, typer.Option("--open", help="Open its timeline, or its folder, in a browser.")] = False):
    """Tell the story of the first check, or sweep, that failed in the last run that had a failure, and where all else about it is."""
    from .command.show import show_evidence
    raise typer.Exit(show_evidence(name, open_it))


@app.command()
def solution(number: LabNumber = None,
             reveal: Annotated[bool, typer.Option("--reveal", help="Show it though the checks do not pass yet.")] = False):
    """Show how a lab can be solved, as changes to your starter/, once its checks pass. They are run first."""
    from .command.solution import show_solution
    raise typer.Exit(show_solution(number, reveal))


@app.command()
def reset(number: LabNumber = None, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False):
    """Put starter/ to the state before a lab: as shipped, with the kit's own solutions of the labs before it. Yours is kept in .lab-backup/."""
    from .command.reset import ask_and_reset
    raise typer.Exit(ask_and_reset(number, yes))


@app.command()
def sweep(program: Annotated[str, typer.Argument(metavar="DIR", help="A folder with a __main__.py, one that holds starter/, or solutions/NN.")],
          kind: Annotated[list[str], typer.Option(metavar="KIND", help="line, syscall, double, race or power; again for more than one. "
                                                  "Without it, all five.")] = (),
          seed: Annotated[int, typer.Option(metavar="N", help="What every random choice comes from.")] = 1,
          lab: Annotated[str, typer.Option(metavar="NN", help="Judge by the rules that a program keeps after this lab: 01, 02, 03 or 05.")] = "05",
          as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
          command: Annotated[str, typer.Option(metavar="LINE", help="The command line that starts the program in a copy of DIR, where it "
                                               "is no package of Python; each start is then a new process.")] = None,
          preload: Annotated[list[str], typer.Option(metavar="MODULE", help="An installed module that is loaded once, and not at each start: for one that takes "
                                                     "long to import. Again for more than one.")] = ()):
    """Kill any program that keeps the contract at every line, before every system call, twice, in races, by power cut; say where it is unsafe.

    The contract is labs/CONTRACT.md: how the program is started, what it has to answer, and what it meets outside. A folder is run as a package, so its
    modules import each other as `from . import app`.

    By the rules of lab 05 things fail outside too. No sweep tries memory, `runs`, bad tickets, nonsense or silence: `pytest labs --program DIR` does.

    All five kinds take less than a minute for solutions/05 on two idle cores; longer for a program that starts slowly, which is started some thousand times.

    Exit codes: 0 all right; 1 it does not pass; 2 it cannot be swept, or does not even run to its end when nobody kills it; 3 this machine could not check
    something, or no kind that was asked for can be tried on this program.
    """
    from labs.harness.sweeps import KINDS
    from labs.harness.sweeps.rules import OF_LAB

    from .command.sweeping import show_sweep
    if unknown := set(kind) - set(KINDS):
        raise Refused(f"there is no kind of sweep called {unknown.pop()}; there are {', '.join(KINDS)}")
    lab = f"{int(lab):02}" if lab.isdecimal() else lab
    if lab not in OF_LAB:
        raise Refused(f"no sweep is judged by the rules of lab {lab}; there are {', '.join(OF_LAB)}")
    raise typer.Exit(show_sweep(program, [one for one in KINDS if one in kind] or KINDS, seed, as_json, command, lab, preload))


@app.command()
def bench(program: Annotated[str, typer.Argument(metavar="DIR", help="What is swept.")] = None,
          points: Annotated[int, typer.Option(metavar="N", min=1, help="About how many points of each kind the plain loop tries, most of the time that this takes.")] = 60):
    """Measure the sweeps against a plain loop that starts one interpreter per process, on one core, over points of the same kinds.

    It takes some minutes, nearly all of them in the plain loop; with --points 10 less than two on two busy cores. A row comes as each kind ends.
    """
    from .command.bench import show_bench
    raise typer.Exit(show_bench(program, points))


@app.command()
def engines(points: Annotated[int, typer.Option(metavar="N", min=1, help="About how many points of each scenario are tried, evenly spread.")] = 40,
            runs: Annotated[int, typer.Option(metavar="N", min=1, help="How often a run and a resume are timed.")] = 5,
            seed: Annotated[int, typer.Option(metavar="N", help="What every random choice comes from.")] = 1,
            only: Annotated[list[str], typer.Option(metavar="NAME", help="Only this program of solutions/engines; again for more than one.")] = (),
            kind: Annotated[list[str], typer.Option(metavar="KIND", help="Renew only this kind of sweep in the figures; again for more than one.")] = (),
            as_json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object too.")] = False):
    """Sweep and measure the programs on durable-execution engines, as one writes them first and mended; write solutions/engines/figures.json.

    The notebook 08-engines reads that file. It takes some minutes: an engine's start is longer than all of the flow.
    """
    from labs.harness.sweeps import KINDS

    from .command.engines import make_figures
    if unknown := set(kind) - set(KINDS):
        raise Refused(f"there is no kind of sweep called {unknown.pop()}; there are {', '.join(KINDS)}")
    raise typer.Exit(make_figures(points, runs, seed, only, [one for one in KINDS if one in kind], as_json))


@app.command()
def doctor():
    """Look whether the labs can run here, how this machine can kill and confine a program, and what would help."""
    from .command.doctor import show_doctor
    raise typer.Exit(show_doctor())


@app.command()
def outside(port: Annotated[int, typer.Option(min=1, max=65535, help="Where to listen, on 127.0.0.1.")] = 8765,
            pace: Annotated[float, typer.Option(min=0, max=4, help="Seconds before a request acts, and again before it is "
                                                "answered: time for you to kill the program.")] = 2.0):
    """Run the model, the payment service and the mail service; print all that they see; show the customer's inbox as a page."""
    from .by_hand import run_outside
    raise typer.Exit(run_outside(port, pace))


@app.command()
def demo():
    """Kill the starter between steps two and three, then the finished flow, where the kit has it. See who is refunded twice."""
    from .demo import run_demo
    raise typer.Exit(run_demo())


def main(name="labs"):
    """Run the command. What cannot be done is one line on stderr and an exit code other than 0."""
    # A terminal that knows no ✓ gets a question mark, not a traceback.
    sys.stdout.reconfigure(errors="replace")
    sys.stderr.reconfigure(errors="replace")
    try:
        app(prog_name=name)
    except KeyboardInterrupt:   # before a command was chosen
        sys.exit(130)
    except Refused as error:
        print(f"labs: {error}", file=sys.stderr)
        sys.exit(error.code)
    except OSError as error:
        print(f"labs: {error.filename or 'a file'} cannot be used: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main("python -m labs")
