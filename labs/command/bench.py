"""What the fork server and the keepers gain: the sweeps against a plain loop, in one run, over points of the same kinds."""

import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace

from rich.console import Console

from labs.harness.ground import Ground
from labs.harness.staging import KIT
from labs.harness.story import counted
from labs.harness.sweeps import KINDS, LINE, sweep
from labs.harness.sweeps.points import scout
from labs.harness.sweeps.rules import judged
from labs.harness.sweeps.trial import RESUME, START, Trial
from labs.harness.tickets import make_ticket

from .preflight import preflight, refuse
from .sweeping import proving_ground

# What a loop without a fork server does: a new interpreter follows the lines of the program, and kills itself at one.
FOLLOW = """
import os, runpy, sys
kit, files, strike, module = sys.argv[1:5]
sys.path.insert(0, kit)
from labs.harness.kills.line import Lines
sys.path[0] = os.getcwd()
sys.argv[1:] = sys.argv[5:]
Lines(files.split(":")).follow(os.getcwd(), int(strike))
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def show_bench(program=None, points=60):
    """Print, for each kind of sweep as it ends, its kill points per second and those of a plain loop.

    Returns an exit code: 1 where a point was bad, 2 for a program that does not run.
    """
    console, ticket = Console(highlight=False), make_ticket("bench")
    path, bad, total = program or max(KIT.glob("solutions/[0-9][0-9]"), default=KIT / "starter"), 0, 0.0
    with proving_ground(path, None, 1) as ground:
        if unfit := preflight(ground, ticket):
            about = {"began": time.strftime("%Y-%m-%d %H:%M:%S"), "program": str(path), "seed": 1, "what": "sweep", "lab": "05"}
            return refuse(ground.staged.name, unfit, about)
        console.print(f"{ground.staged.name}, {counted(os.cpu_count(), 'core')}. The plain loop starts one interpreter per process, one after the other, "
                      "on one core, over some of the points, evenly spread; it takes most of the time.\n")
        _say_row(console, "kind", ("points", "seconds", "points/s", "plain loop", "of them", "gain"), "dim")
        for kind in KINDS:
            with console.status(f"{kind}: the sweep"):
                found = sweep(ground, kind, ticket)
            count, seconds = sum(len(result.outcomes) for result in found), sum(result.seconds for result in found)
            bad, total = bad + sum(len(result.bad) for result in found), total + seconds
            if not count:
                _say_row(console, kind, ["–"] * 6)
                continue
            with console.status(f"{kind}: the plain loop"), one_core():
                tried, plain_seconds = plain_loop(ground, kind, ticket, max(1, count // points))
            rate, plain = count / seconds, tried / plain_seconds
            _say_row(console, kind, (f"{count:,}", f"{seconds:.1f}", f"{rate:.1f}", f"{plain:.1f}/s", f"{tried}", f"{rate / plain:.1f}×"))
    console.print(f"all sweeps: {total:.1f} s, {counted(bad, 'bad point')}")
    return 1 if bad else 0


def _say_row(console, kind, figures, style=""):
    """A row of the table, printed as soon as it is known."""
    console.print(f"{kind:<9}" + "".join(f"{figure:>12}" for figure in figures), style=style, soft_wrap=True)


def plain_loop(ground, kind, ticket, every):
    """The sweep with none of what makes it fast, over each `every`-th of its points. Returns how many these were, and seconds."""
    with Ground(replace(ground.staged, module=None), ground.server, ground.folder, ground.seed, every, threads=1) as plain:
        began = time.monotonic()
        if kind != LINE:
            found = sweep(plain, kind, ticket)
            return sum(len(result.outcomes) for result in found), sum(result.seconds for result in found)
        tried = 0
        for scenario in (START, RESUME):
            events = scout(ground, LINE, scenario, ticket).events
            for number in plain.sample(range(1, len(events) + 1)):
                trial = Trial.prepared(plain, f"plain {scenario.name}", scenario, ticket)
                trial.see(_killed(trial, number))
                trial.finish()
                judged(trial)
                plain.discard(trial.program)
                tried += 1
        ground.rest()
        return tried, time.monotonic() - began


def _killed(trial, number):
    """The process that goes on with the run, killed by itself before its `number`-th line."""
    files = ":".join(trial.program.staged.files)
    process = trial.begin(command=[sys.executable, "-c", FOLLOW, str(KIT), files, str(number), "starter"]).wait()
    trial.program.kill(process)
    return process


@contextmanager
def one_core():
    """All threads of this process, and what they start, on one core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    _pin({min(allowed)})
    try:
        yield
    finally:
        _pin(allowed)


def _pin(cores):
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):   # it has just ended
            os.sched_setaffinity(int(thread), cores)
