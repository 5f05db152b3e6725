"""The instructor's command: `grader …`, or `python -m grader …`."""

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Annotated

before = signal.getsignal(signal.SIGINT)
if before is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)   # while all this is loaded, Ctrl-C has no traceback to show

try:
    import typer
except ModuleNotFoundError as error:
    sys.exit(f"{sys.executable} has no {error.name}: install the kit into this Python: {sys.executable} -m pip install -e {Path(__file__).resolve().parents[1]}")

from labs.command.interruptible import Interruptible
from labs.command.refused import Refused
from labs.harness.manifest import BadManifest

if before is signal.default_int_handler:
    signal.signal(signal.SIGINT, before)

app = typer.Typer(cls=Interruptible, add_completion=False, no_args_is_help=True, help="killproof's grader: from a folder of submissions to grades one can defend.",
                  context_settings={"help_option_names": ["--help", "-h"]}, pretty_exceptions_enable=False)
Labs = Annotated[str, typer.Option(metavar="1-5", help="Which labs: 1-5, 3 or 1,2.")]
Database = Annotated[str, typer.Option(metavar="URL", help="postgresql://…, where the queue of --engine dbos is.")]


@app.callback()
def grader():
    pass


@app.command()
def grade(submissions: Annotated[str, typer.Argument(metavar="SUBMISSIONS", help="A folder with a folder, zip or tar each; a download of Gradescope, "
                                                     "Moodle, Canvas or GitHub Classroom; or one submission.")],
          out: Annotated[str, typer.Option("--out", metavar="REPORT", help="The report's folder; the same again goes on where it was.")],
          jobs: Annotated[int, typer.Option(min=1, max=64, help="How many submissions at once.")] = 1,
          only: Annotated[list[str], typer.Option(metavar="NAME", help="Grade this one; again for more.")] = (),
          labs: Labs = "1-5",
          seed: Annotated[int, typer.Option(metavar="N", help="What every random choice comes from.")] = 1,
          sample: Annotated[int, typer.Option(metavar="N", min=1, help="Sweeps kill at every N-th point only: quicker, and not for grades.")] = 1,
          workers: Annotated[int, typer.Option(metavar="N", min=1, help="How many programs a sweep of one submission runs side by side (default: three a core, "
                                               "shared among the jobs).")] = None,
          require_isolation: Annotated[bool, typer.Option("--require-isolation", help="Do not run with less than the full isolation.")] = False,
          resume: Annotated[bool, typer.Option("--resume/--fresh", help="Go on with what REPORT has, or begin anew.")] = True,
          one: Annotated[bool, typer.Option("--one", help="SUBMISSIONS is one submission, whatever is in it.")] = False,
          engine: Annotated[str, typer.Option(metavar="local|dbos", help="dbos: share the work with `grader worker` on other machines.")] = "local",
          database: Database = None):
    """Grade submissions, and write the reports. Killed at any point, the same command goes on."""
    from .grade import grade as grade_all
    if engine not in ("local", "dbos"):
        raise Refused(f"there is no engine called {engine}: local or dbos")
    if (engine == "dbos") != (database is not None):
        raise Refused("--engine dbos and --database go together: give both, or none")
    try:
        code = grade_all(submissions, out, jobs=jobs, only=only, labs=labs, seed=seed, sample=sample, require_isolation=require_isolation,
                         fresh=not resume, one=one, workers=workers, engine=engine, database=database)
    except KeyboardInterrupt:   # before the first submission began, or after the last
        print("Ended before all was done. The same command goes on where this one was.", file=sys.stderr)
        code = 130
    raise typer.Exit(code)


@app.command()
def worker(database: Database,
           jobs: Annotated[int, typer.Option(min=1, max=64, help="How many submissions at once.")] = 1,
           until_empty: Annotated[bool, typer.Option("--until-empty", help="End when there is nothing left to take.")] = False):
    """Take part in batches that `grader grade --engine dbos` put into a database. Ctrl-C ends it cleanly."""
    from .batch import open_batch, version
    from .engines.many import work
    raise typer.Exit(work(database, jobs, version(), open_batch, until_empty=until_empty))


@app.command()
def diff(old: Annotated[str, typer.Argument(metavar="OLD", help="A report's folder.")],
         new: Annotated[str, typer.Argument(metavar="NEW", help="Another one.")]):
    """Show what changed between two reports, check by check: after a re-grade, or with another seed."""
    from .diff import show_diff
    raise typer.Exit(show_diff(old, new))


@app.command()
def demo(out: Annotated[str, typer.Option("--out", metavar="REPORT", help="The report's folder (default: a new temporary one).")] = None):
    """Grade the starter, the finished flow and four honest mistakes; print the table and name the report."""
    from .demo import run_demo
    raise typer.Exit(run_demo(out))


@app.command()
def release(folder: Annotated[str, typer.Argument(metavar="DIR", help="A new folder for the kit.")],
            prove: Annotated[bool, typer.Option("--prove/--no-prove", help="Install it into a fresh virtual environment and run its checks.")] = True):
    """Build the learners' kit, without solutions and hidden checks, and prove that it works and gives nothing away."""
    from .release import build_release
    raise typer.Exit(build_release(Path(folder), prove))


@app.command()
def gradescope(path: Annotated[str, typer.Argument(metavar="OUT.zip", help="The zip to upload as an autograder.")], labs: Labs = "1-5"):
    """Write Gradescope's autograder zip: setup.sh, run_autograder, and the kit."""
    from .gradescope import write_autograder
    raise typer.Exit(write_autograder(Path(path), labs))


@app.command()
def selftest(jobs: Annotated[int, typer.Option(min=1, max=64, help="How many submissions at once.")] = 2,
             quick: Annotated[bool, typer.Option("--quick", help="Leave the bank of mistakes out.")] = False):
    """Try the laws of the labs and a battery of attacks on this machine: each must score what its honest part earns, and no more."""
    from .selftest import run_selftest
    raise typer.Exit(run_selftest(jobs, quick))


@app.command()
def doctor():
    """Look what this machine can isolate and kill, and name the command that mends each lack."""
    from .doctor import show_doctor
    raise typer.Exit(show_doctor())


def main(name="grader"):
    """Run the command. What cannot be done is one line on stderr and an exit code other than 0."""
    sys.stdout.reconfigure(errors="replace")
    sys.stderr.reconfigure(errors="replace")
    try:
        app(prog_name=name)
    except KeyboardInterrupt:   # before a command was chosen
        sys.exit(130)
    except Refused as error:
        print(f"grader: {error}", file=sys.stderr)
        sys.exit(error.code)
    except BadManifest as error:
        print(f"grader: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except sqlite3.DatabaseError as error:
        print(f"grader: the report's journal cannot be used ({error}); --fresh begins the report anew", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        print(f"grader: {error.filename or 'a file'} cannot be used: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main("python -m grader")
