"""Sweeps: a program killed at every point of a kind, finished each time, and judged."""

from ..processes import ProgramFault
from ..story import tell
from .double import sweep_double
from .points import CALL, LINE, sweep_points
from .power import sweep_power
from .race import sweep_race
from .result import Outcome, Result
from .rules import RULES
from .trial import RESUME, START

DOUBLE, RACE, POWER = "double", "race", "power"
KINDS = (LINE, CALL, DOUBLE, RACE, POWER)
_WHOLE = {DOUBLE: sweep_double, RACE: sweep_race, POWER: sweep_power}


def sweep(ground, kind, ticket, progress=lambda done, total: None, scenarios=(START, RESUME)):
    """Sweep the program of `ground` once; returns the Results: one for each scenario where the kind has points, else one.

    `progress(done, total)` is called as points are done, anew for each Result.
    """
    try:
        if kind in _WHOLE:
            return [_whole(kind, "", lambda: _WHOLE[kind](ground, ticket, progress))]
        return [_whole(kind, scenario.name, lambda: sweep_points(ground, kind, scenario, ticket, progress)) for scenario in scenarios]
    finally:
        ground.rest()


def _whole(kind, scenario, run):
    """The Result of `run()`; where the program does what no sweep can go on from, like one that hangs, a Result that says so."""
    try:
        return run()
    except ProgramFault as fault:
        program = getattr(fault, "program", None)
        broken = {rule: ("lost", str(fault)) for rule in RULES}
        story = tuple(tell(program)) if program else ()
        return Result(kind, scenario, [Outcome(getattr(fault, "point", "undisturbed"), broken, story=story, to_the_kill=story, program=program)])
