"""The demonstration: the starter, the finished flow and four honest mistakes graded like a class, in about a minute."""

import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from labs.command.refused import Refused
from labs.harness.staging import KIT, SHIPPED, stage

from . import results
from .grade import STOPPED, grade

SAMPLE = 25   # sweeps try each 25th of their points here
JOBS = 3
LABS = "1-3"   # those that make a flow durable
#: What is graded, by the name that it gets: where it is in the kit.
PROGRAMS = {
    "starter": SHIPPED,
    "finished": max(KIT.glob("solutions/[0-9][0-9]")),
    **{name: KIT / "solutions" / "mistakes" / name
       for name in ("act-then-record", "started-taken-for-done", "key-per-attempt", "lock-that-outlives-its-owner")},
}


def run_demo(out):
    """Grade them into the folder `out`, a new temporary one where it is None. Print the table and return an exit code."""
    console = Console(highlight=False)
    if out and Path(out).is_dir() and any(Path(out).iterdir()):
        raise Refused(f"{out} is not empty: name a new folder, the demonstration keeps nothing that is there")
    report = Path(out) if out else Path(tempfile.mkdtemp(prefix="killproof-report-"))
    console.print(f"A class of {len(PROGRAMS)}: each program is started, killed, started again, and the outside world is asked what happened.\n"
                  f"Labs {LABS} here, and every {SAMPLE}th point of the sweeps; `grader grade` makes all checks and tries every point.\n")
    with tempfile.TemporaryDirectory(prefix="killproof-class-") as folder:
        for name, path in PROGRAMS.items():
            staged = stage(path, Path(folder, "staged", name))
            shutil.copytree(staged.folder, Path(folder, "class", name), ignore=shutil.ignore_patterns("__pycache__"))
        code = grade(Path(folder, "class"), report, jobs=JOBS, labs=LABS, sample=SAMPLE, quiet=True)
    if code == STOPPED:
        print("interrupted: the report has what was graded until then; the same command begins anew", file=sys.stderr)
    found = [results.read(path) for path in sorted((report / "results").glob("*.json"))]
    if found:
        console.print(_table(found))
    for result in found:
        if result.reason:
            console.print(Text(f"{result.name}: {result.outcome}, {result.reason}", "yellow"))
    console.print(f"\nThe report, with every story: {report / 'index.html'}", soft_wrap=True)
    return code


def _table(found):
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("submission", no_wrap=True)
    for lab in found[0].labs:
        table.add_column(f"{lab.number}\n/{lab.possible}", justify="right", no_wrap=True)
    for name in (f"all\n/{found[0].possible}", "resumed", "doubled"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in sorted(found, key=lambda result: (result.points is None, -(result.points or 0))):
        figures = result.figures
        table.add_row(Text(result.name), *(_part(lab.points, lab.possible) for lab in result.labs), _part(result.points, result.possible),
                      *("–" if figures.share(name) is None else f"{figures.share(name):.0%}" for name in ("resumed", "duplicated")))
    return table


def _part(points, possible):
    return Text("?" if points is None else f"{points}", "green" if points == possible else "red" if not points else "yellow")
