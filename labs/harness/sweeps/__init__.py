"""Sweeps: a program killed at every point of a kind, finished each time, and judged."""

from .double import sweep_double
from .points import CALL, LINE, sweep_points
from .power import sweep_power
from .race import sweep_race
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
            return [_WHOLE[kind](ground, ticket, progress)]
        return [sweep_points(ground, kind, scenario, ticket, progress) for scenario in scenarios]
    finally:
        ground.rest()
