"""Two kills in one run: at a point of its start, then at a point of its resume, before the next resume has to finish it."""

import time
from random import Random

from ..kills.boundary import BOUNDARIES, held_at
from ..processes import ProgramFault
from ..side_by_side import side_by_side
from .points import CALL, FOLLOW_ALL, LINE, CouldNot, at_point, own, scouted
from .result import Result, Stories
from .rules import aftermath, judged
from .trial import RESUME, START, Trial, unspoiled

PAIRS = 200   # both of whose kills struck; where the resume had ended before its point another pair is drawn


def sweep_double(ground, ticket, progress=lambda done, total: None):
    """PAIRS pairs of points of the line and the call sweep, drawn with the ground's seed, and all pairs of boundaries. Returns a Result."""
    began, stories = time.monotonic(), Stories(ground)
    result = Result("double", outcomes=stories.outcomes)
    kinds = _kinds(ground, ticket, result)
    wanted_pairs = PAIRS // ground.every
    boundaries = ground.sample([(first, nth, when) for first in BOUNDARIES for nth in range(1, 5) for when in ("before", "after")])
    random, tries, done = Random(f"{ground.seed} double"), 4 * wanted_pairs if kinds else 0, 0

    def count(outcome):
        nonlocal done
        if outcome:   # both kills struck
            stories.take(outcome)
            done += 1
        progress(min(done, wanted_pairs + len(boundaries)), wanted_pairs + len(boundaries))

    def run(experiment, pairs):
        side_by_side(lambda pair: experiment(ground, ticket, stories, *pair), pairs, count, ground.threads)

    while tries > 0 and len(result.outcomes) < wanted_pairs:
        wanted = min(tries, wanted_pairs - len(result.outcomes))
        tries -= wanted
        run(_killed_twice, [(_drawn(random, kinds, 0), _drawn(random, kinds, 1)) for _ in range(wanted)])
    run(_killed_at_boundaries, boundaries)
    result.seconds = time.monotonic() - began
    return result


def _kinds(ground, ticket, result):
    """For each kind of point that there is here, how many a start and a resume have."""
    counts = {}
    for kind in (LINE, CALL):
        if kind == LINE and not ground.staged.module:
            continue
        try:
            counts[kind] = [len(scouted(ground, kind, scenario, ticket, FOLLOW_ALL[kind]).events) for scenario in (START, RESUME)]
        except CouldNot as error:
            result.could_not = str(error)
    counts = {kind: both for kind, both in counts.items() if all(both)}
    return counts


def _drawn(random, kinds, which):
    kind = random.choice(sorted(kinds))
    return kind, random.randint(1, kinds[kind][which])


def _killed_twice(ground, ticket, stories, first, second):
    _, _, trial, twice, broken = unspoiled(ground, lambda: _both(ground, ticket, first, second))
    if not twice and not broken:
        ground.discard(trial.program)
        return None
    point = ", then ".join(_where(seen.process) for seen in trial.kills) or "no point"
    return stories.outcome(point, trial.program, broken, after=aftermath(trial))


def _both(ground, ticket, first, second):
    trial = Trial.prepared(ground, "double", START, ticket)
    with at_point(f"two kills, at {first[0]} {first[1]} and {second[0]} {second[1]}", trial.program):
        twice = all(trial.kill(strike=number, **FOLLOW_ALL[kind]) for kind, number in (first, second))
        if twice:
            trial.finish()
        broken = judged(trial)
    return trial.program, not broken, trial, twice, broken


def _where(process):
    *_, file, line = last = process.report["last"]
    call = f"{last[1]}{f' {last[2]}' if last[2] else ''}" if len(last) == 5 else ""
    return f"before {call}{' in ' if call and file else ''}{f'{own(file)}:{line}' if file else ''}"


def _killed_at_boundaries(ground, ticket, stories, first, nth, when):
    trial = Trial.prepared(ground, "double boundaries", START, ticket)
    program, (kind, first_when) = trial.program, first
    try:
        trial.strike(lambda: held_at(program, kind, first_when, trial.begin)[0])
        trial.strike(lambda: held_at(program, "any", when, trial.begin, nth)[0])
    except ProgramFault as fault:
        if program.processes[-1].running:   # it hangs
            fault.point, fault.program = f"two kills, at {kind} and at request {nth} of the resume", program
            raise
        # It ended, having sent fewer requests: a run that was killed once, or not at all.
        program.outside.plan()
        trial.last = program.processes[-1].wait()
        broken = judged(trial)
        if not broken:
            ground.discard(program)
            return None
    else:
        trial.finish()
        broken = judged(trial)
    return stories.outcome(f"{kind}, {first_when} it acted, then request {nth} of the resume, {when} it acted", program, broken, after=aftermath(trial))
