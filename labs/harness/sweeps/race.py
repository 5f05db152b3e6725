"""Two processes on one run: released at one moment, and the second one while the first stands still somewhere."""

import time

from ..kills.boundary import BOUNDARIES, held_at, killed_at
from ..outside import Fault
from ..processes import ProgramFault
from ..side_by_side import each_done, side_by_side
from .points import CALL, CouldNot, own, scout
from .result import Result, Stories
from .rules import Bad, judged
from .trial import RUN, START, Trial, unspoiled

TIMES = 25     # for two starts, and for two resumes
WINDOW = 0.2   # seconds that the second one has while the first stands still; a longer one finds more, a right program passes any


def sweep_race(ground, ticket, progress=lambda done, total: None):
    """Two starts, and two resumes, at one moment, TIMES times each; a second process while the first is stopped at each boundary,
    and while it stands before each of its calls that order two processes. Returns a Result.
    """
    began, result, stories = time.monotonic(), Result("race"), Stories(ground)
    trials = [(f"two starts at one moment, try {number}", _two_starts) for number in range(1, TIMES + 1)]
    trials += [(f"two resumes at one moment after a kill at {kind}, {when} it acted, try {number}", _two_resumes(kind, when))
               for number in range(1, TIMES + 1) for kind, when in [BOUNDARIES[number % len(BOUNDARIES)]]]
    trials += [(f"a resume while the first process is stopped at {kind}, {when} it acted", _stopped_at(kind, when)) for kind, when in BOUNDARIES]
    calls, result.could_not = _calls(ground, ticket)
    trials += [(f"a second start while the first stands before {name}", _held_at(number)) for number, name in calls]
    trials = ground.sample(trials)

    side_by_side(lambda trial: _raced(ground, ticket, stories, *trial), trials, stories.taking(each_done(progress, len(trials))), ground.threads)
    result.outcomes = stories.outcomes
    result.seconds = time.monotonic() - began
    return result


def _raced(ground, ticket, stories, point, experiment):
    program, _, broken = unspoiled(ground, lambda: _tried(ground, ticket, point, experiment))
    return stories.outcome(point, program, broken)


def _tried(ground, ticket, point, experiment):
    trial = Trial.prepared(ground, "race", START, ticket)
    try:
        experiment(trial)
        broken = judged(trial, (3, 8))
    except Bad as bad:
        broken = {3: (bad.outcome, str(bad))}
    except ProgramFault as fault:
        if any(process.running for process in trial.program.processes):   # it hangs, and would hang again and again
            fault.point, fault.program = point, trial.program
            raise
        broken = {3: ("lost", str(fault))}
    return trial.program, not broken, broken


def _two_starts(trial):
    _released(trial, lambda: trial.program.start(trial.ticket, RUN, gated=True))


def _two_resumes(kind, when):
    def experiment(trial):
        process, _ = killed_at(trial.program, kind, when, lambda: trial.program.start(trial.ticket, RUN))
        trial.see(process)
        _released(trial, lambda: trial.program.resume(RUN, gated=True))
    return experiment


def _released(trial, begin):
    pair = [begin(), begin()]
    for process in pair:
        process.until_ready()
    for process in pair:
        process.go()
    _ended(trial, pair)


def _stopped_at(kind, when):
    def experiment(trial):
        program = trial.program
        first, request = held_at(program, kind, when, lambda: program.start(trial.ticket, RUN))
        first.stop()
        program.outside.plan(Fault("any", "hold_before", times=None))   # whatever the second one sends shows, and does no harm
        second = program.resume(RUN)
        with program.outside.changed:
            program.outside.changed.wait_for(lambda: not second.running or len(program.outside.held()) > 1, WINDOW)
        others = [held for held in program.outside.held() if held is not request]
        program.outside.plan()
        program.outside.release()
        first.go_on()
        _ended(trial, [first, second])
        if others:
            raise Bad("repeated", f"the first process was stopped and alive, and the second one sent a {others[0].kind} request")
    return experiment


def _held_at(number):
    def experiment(trial):
        program = trial.program
        first = program.start(trial.ticket, RUN, calls=True, locks=True, hold=number)
        held = first.until_held()
        second = program.start(trial.ticket, RUN)
        if held:
            with program.outside.changed:
                program.outside.changed.wait_for(lambda: not second.running, WINDOW)
            first.go()
        _ended(trial, [first, second])
    return experiment


def _ended(trial, pair):
    codes = sorted(process.wait().code for process in pair)
    trial.last = next((process for process in pair if process.code == 0), pair[0])
    if codes not in ([0, 0], [0, 5]):
        raise Bad("lost", "of two processes on one run one should end with exit code 0, the other with 5 (or wait, then 0); "
                  f"they ended with {codes[0]} and {codes[1]}")


def _calls(ground, ticket):
    """Where the first of two may stand: (number, in words) of the first and the last of its like calls; and why there are none, or None."""
    try:
        events = scout(ground, CALL, START, ticket, locks=True).events
    except CouldNot as error:
        return [], str(error)
    first, last = {}, {}
    for number, (_, name, on, file, line) in enumerate(events, 1):
        place = name, on, file, line
        first.setdefault(place, number)
        last[place] = number
    found = sorted((number, f"call {number}, {name} {on}{f' in {own(file)}:{line}' if file else ''}")
                  for places in (first, last) for (name, on, file, line), number in places.items() if places is first or number != first[name, on, file, line])
    return found, None
