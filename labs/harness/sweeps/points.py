"""The sweeps over every point of a run: each line event of its own files, each system call that leaves a trace."""

import math
import re
import time
from bisect import bisect
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

from ..processes import ProgramFault
from ..side_by_side import each_done, side_by_side
from .result import Result, Stories
from .rules import aftermath, judged
from .trial import RESUME, RUN, START, Trial, unspoiled

MOST = 5000   # points of one process; of more, every line's first ones and then evenly spread ones
LEAST, WORK = 500, 100_000_000   # so many for a program of very many: each of its trials takes longer, and WORK is for all of them
FARTHEST = 1 << 21   # no point beyond this one is tried

LINE, CALL = "line", "syscall"
FOLLOW = {LINE: {"lines": True}, CALL: {"calls": True}}   # no more than is needed: who is traced is slower, and may behave otherwise
FOLLOW_ALL = {LINE: FOLLOW[LINE], CALL: {"calls": True, "lines": True}}
_NAMES = {LINE: "line", CALL: "system call"}
MADE_UP = re.compile(r"[0-9a-f]*\d[0-9a-f]*")   # numbers, decimal or hexadecimal, of which none is the same in two runs


@contextmanager
def at_point(point, program):
    """A ProgramFault that ends the sweep, like that of a program that hangs, says where it was and of which program."""
    try:
        yield
    except ProgramFault as fault:
        fault.point, fault.program = point, program
        raise


class CouldNot(Exception):
    """The machine is not able; the message says what it said."""


def sweep_points(ground, kind, scenario, ticket, progress=lambda done, total: None):
    """Kill a run of `scenario` at each of its points of `kind`, finish it, and judge it. Returns a Result.

    `progress(done, total)` is called as points are done.
    """
    began = time.monotonic()
    result = Result(kind, scenario.name)
    if kind == LINE and not ground.staged.module:
        result.not_applicable = "the program is started by a command line: nothing is known of its lines, and its system calls say all"
        return result
    try:
        found = scout(ground, kind, scenario, ticket)
        events, result.blind = found.events, found.blind
        wanted = set(_beyond(ground, kind, ticket, found) if scenario.beyond else range(1, len(events) + 1))
    except CouldNot as error:
        result.could_not = str(error)
        return result
    stories = Stories(ground)
    undisturbed = _undisturbed(ground, kind, scenario, ticket, stories)
    if undisturbed.broken and (scenario.after or scenario.faults):
        # The kill before it, or what fails outside, was too much already: no point is to blame, and to kill it there would say nothing.
        stories.take(undisturbed)
        result.outcomes, result.seconds = stories.outcomes, time.monotonic() - began
        return result
    result.undisturbed = undisturbed.broken
    if scenario.beyond:
        stories.take(undisturbed)   # that it comes through the failures is the first point; of others there may be none
    elif undisturbed.program:
        ground.discard(undisturbed.program)
    numbers = ground.sample([number for number in _chosen(events) if number in wanted])
    result.left_out = len(wanted) - len(numbers)
    names = _names(kind, events)
    like = found.likenesses()
    trace_free = TraceFree()

    def killed_at(number):
        trial = Trial.prepared(ground, f"{kind} {scenario.name}", scenario, ticket)
        with at_point(names[number - 1], trial.program):
            reached = trial.kill(trace_free.knows, strike=number, **FOLLOW[kind])
            broken, free = trace_free.judged(trial) if reached else (judged(trial), False)
        return trial.program, reached and not broken, trial, reached, broken, free

    def at(number):
        *_, trial, reached, broken, free = unspoiled(ground, lambda: killed_at(number))
        name, lines = there(number, trial.kills[-1].process.report) if reached else (names[number - 1], [events[number - 1][-2:]])
        place = _NAMES[kind], scenario.name, [(own(file), line) for file, line in lines if file]
        return stories.outcome(name, trial.program, broken, reached, place, tuple(events[number - 1][1:]), aftermath(trial), free)

    def there(number, report):
        """A point where the program was killed: in words, and the lines that were under way. At a call nobody looked: they are those of one like it."""
        if kind == LINE:
            return names[number - 1], report["stack"]
        _, call, on, *_ = report["last"]
        stack = like(number, call, on)
        return _call_in_words(number, call, on, *(stack[0] if stack else (None, None))), stack

    side_by_side(at, numbers, stories.taking(each_done(progress, len(numbers))), ground.threads)
    result.outcomes = stories.outcomes
    result.seconds = time.monotonic() - began
    return result


class TraceFree:
    """Of the kills that left no trace at all the first is finished and judged; the others left the very same: nothing.

    A trace is a word on a standard stream, a request, or anything in the home that is not as it was before. A process that finds
    none of them finds what it would have found without the one that was killed.
    """

    def __init__(self):
        self._verdict = None

    def knows(self, trial):
        """Whether to finish the trial would only show again what one like it showed."""
        return self._verdict is not None and trial.trace_free

    def judged(self, trial):
        """Finish the trial and judge it, or do neither where both would be done again: what it broke, and whether it left no trace."""
        free = trial.trace_free
        if free and self._verdict is not None:
            return self._verdict, free
        trial.finish()
        verdict = judged(trial)
        if free:
            self._verdict = verdict
        return verdict, free


def _undisturbed(ground, kind, scenario, ticket, stories):
    """The Outcome of the run that is to be swept, where nobody kills it."""
    trial = Trial.prepared(ground, f"{kind} {scenario.name}", scenario, ticket)
    trial.finish()
    point = f"after the kill at {scenario.after[0]}, {scenario.after[1]} it acted" if scenario.after else "without any kill"
    return stories.outcome(point, trial.program, judged(trial))


@dataclass
class Scouted:
    """All points of an undisturbed run.

    `events` are what keeper.py says of each; `stacks` the lines under way at each call, as far as they are known; `blind` says in a sentence what
    keeps some points from being seen, or None; `failed` is when the first request failed, in seconds of time.monotonic(), or infinity.
    """

    events: list
    stacks: list
    blind: str | None
    failed: float

    def placed(self, traced):
        """Give each call the lines of one like it of a run that was traced."""
        like = traced.likenesses()
        self.stacks = [like(number, name, on) for number, (_, name, on, *_) in enumerate(self.events, 1)]
        for event, stack in zip(self.events, self.stacks):
            event[3:] = stack[0] if stack else (None, None)

    def likenesses(self):
        """A function of a call's number and name, and what it is on: the lines that were under way at the call of this run that is most like it."""
        numbers = {}
        for number, ((_, *what), stack) in enumerate(zip(self.events, self.stacks), 1):
            numbers.setdefault(_likeness(*what[:2]), []).append(number)

        def like(number, name, on):
            known = numbers.get(_likeness(name, on), [])
            place = bisect(known, number)
            nearest = min(known[max(0, place - 1):place + 1], key=lambda other: abs(other - number), default=None)
            return self.stacks[nearest - 1] if nearest else []
        return like


def _likeness(name, on):
    """What two calls have in common that are the same to a reader: a name that was made up for the run is not of it."""
    return name, MADE_UP.sub("", on or "")


def scout(ground, kind, scenario, ticket, **keeping):
    """What is Scouted of an undisturbed run that is followed as those are that will be killed. Raises CouldNot.

    Where calls are made is known of another run, which is traced, as well as two runs are alike: a traced one takes longer, and where calls come
    by the clock it has more of them.
    """
    found = scouted(ground, kind, scenario, ticket, FOLLOW[kind], **keeping)
    if kind == CALL and ground.staged.module:
        found.placed(scouted(ground, kind, scenario, ticket, FOLLOW_ALL[kind], **keeping))
    return found


def scouted(ground, kind, scenario, ticket, follow, **keeping):
    """What is Scouted of an undisturbed run that is followed as `follow` says. Raises CouldNot."""
    def followed():
        trial = Trial.prepared(ground, f"{kind} {scenario.name} scout", scenario, ticket)
        try:
            process = trial.begin(all=True, **follow, **keeping).wait()
        except BaseException:
            ground.discard(trial.program)
            raise
        return trial.program, process.code == scenario.code, process

    program, _, process = unspoiled(ground, followed)
    try:
        if process.report["trouble"]:
            raise CouldNot(process.report["trouble"])
        events, count = process.report["all"], min(process.report["events"], FARTHEST)
        # Of very many line events not all are kept. Of the others only the number is known.
        failed = next((request.received for request in program.outside.requests if not request.answered_well), math.inf)
        events = events + [[process.ended, None, None]] * (count - len(events))
        return Scouted(events, process.report["stacks"], _blind(kind, process, program, scenario), failed)
    finally:
        ground.discard(program)


def _blind(kind, process, program, scenario):
    """Whether the run ended otherwise than undisturbed ones do, or the process sent requests with no line event between two of them."""
    events = process.report["all"]
    if not events:
        return "nothing of the program could be followed: it ended before any of its own code ran" if kind == LINE else \
            "the program made no system call that leaves a trace"
    sent = [request for request in program.outside.requests if request.client == process.pid]
    if kind == LINE and sent:
        # The record is written before each request, so that lines have run since the one before. The last event is always kept.
        received, last = [0.0, *(request.received for request in sent)], process.report["last"]
        times = [at for at, *_ in process.report["all"]] + [last[0]]
        for one, other in zip(received, received[1:]):
            if bisect(times, other) == bisect(times, one) and process.report["events"] == len(process.report["all"]) or last[0] < other:
                _, file, line = next(event for event in reversed([*process.report["all"], last]) if event[0] < other)
                return (f"nothing of the program could be followed from {own(file)}:{line} to its next request (it turned off line events there, or "
                        "became another program by exec): what is not seen does not pass")
    if process.code != scenario.code:
        return f"while it was followed, and not killed, {process} {process.end}: what is not seen does not pass"
    if not (scenario.after or process.stdout.startswith(f"{RUN}\n") or process.stdout.startswith(f"{RUN}\r\n")):
        return f"{process} {process.end}, and its first line was not the run id: what is not begun does not pass"
    return None


def _beyond(ground, kind, ticket, found):
    """The numbers of those points of a run that things fail in which a run without failures does not have. Raises CouldNot.

    Of lines those that do not run there. Of calls all since the first failure: each attempt leaves another state.
    """
    if kind == CALL:
        return [number for number, (at, *_) in enumerate(found.events, 1) if at > found.failed]
    known = {tuple(place) for scenario in (START, RESUME) for _, *place in scout(ground, kind, scenario, ticket).events}
    return [number for number, (_, *place) in enumerate(found.events, 1) if tuple(place) not in known]


def _chosen(events):
    """The numbers of the points to be tried: all of them, unless there are very many."""
    most = max(LEAST, min(MOST, WORK // max(1, len(events))))
    if len(events) <= most:
        return range(1, len(events) + 1)
    seen, chosen = Counter(), []
    for number, (*_, file, line) in enumerate(events, 1):
        seen[file, line] += 1
        if seen[file, line] <= 3 or number % (len(events) // most + 1) == 0:
            chosen.append(number)
    return chosen


def _names(kind, events):
    """Each point in words."""
    if kind == LINE:
        times, names = Counter(), []
        for number, (_, file, line) in enumerate(events, 1):
            if file is None:
                names.append(f"line event {number}")
                continue
            times[file, line] += 1
            count = times[file, line]
            names.append(f"{own(file)}:{line}" + (f", the {_ordinal(count)} time" if count > 1 else ""))
        return [f"before {name}" for name in names]
    return [_call_in_words(number, *what) for number, (_, *what) in enumerate(events, 1)]


def _call_in_words(number, name, on, file, line):
    return f"before system call {number}, {name}{f' {on}' if on else ''}" + (f", in {own(file)}:{line}" if file else "")


def _ordinal(number):
    return f"{number}{'th' if number % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def own(file):
    """A file of the program as a learner knows it: without the folder that it was staged in."""
    return file and file.removeprefix("starter/")
