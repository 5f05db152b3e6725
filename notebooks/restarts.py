"""A kill at each moment of one function, and the program started again after each: what the record and the outside say then.

For small flows whose one effect is made in one statement of that function.
"""

import ast
import json
from dataclasses import dataclass, replace

from experiment import TICKET, trial   # first: it says which kit `labs` is of

from labs.harness.kills.boundary import killed_at

from gaps import KILL, planted, statements

#: What has happened when the kill comes, in the order of a program that records, acts and records.
MOMENTS = ("nothing is done yet", "recorded, not sent", "sent, not acted on", "acted on, unanswered", "answered, not recorded", "all is done")


@dataclass(frozen=True)
class Seen:
    """What is seen of one kill: the record and the `effects` of then, and how the next start ended, with the effects of then."""

    moment: str
    record: dict
    effects: int
    code: int
    effects_after: int


def put(trial, flow):
    """From the next start on the program has this text as its flow.py, as after a deployment."""
    folder, program = trial.program.staged.folder, trial.program
    (folder / "starter" / "flow.py").unlink()
    (folder / "starter" / "flow.py").write_text(flow, encoding="utf-8")
    for compiled in (folder / "starter").glob("__pycache__/flow.*"):
        compiled.unlink()
    for process in program.processes:
        process.folder = None    # what it ran in is a copy of the old one, and serves no more
    program.staged = replace(program.staged)


def in_each_gap(flow, function, look):
    """Kill the flow in each gap between the statements of a function, and start it again, whole. Returns what `look(trial, second)` saw."""
    found = []
    for gap in range(len(statements(flow, function))):
        with trial(planted(flow, function, KILL, [gap])) as one:
            _die(one, gap)
            put(one, flow)
            found.append(look(one, one.program.start(TICKET).wait()))
    return found


def at_each_moment(flow, function, kind="refund", faults=()):
    """Kill the flow at each of the MOMENTS that its function has, and start it again while `faults` strike. Returns the Seen, in order.

    `kind` (refund, mail) is the request that the function makes. The record is in the file `run-1` of LAB_HOME, as JSON.
    """
    return [_seen(flow, function, kind, faults, *place) for place in _places(flow, function)]


def _places(flow, function):
    """(moment, gap, None) for a kill between two statements, (moment, None, "before" or "after") for one while the request is held."""
    body = statements(flow, function)
    call = next(number for number, statement in enumerate(body) if "outside." in ast.unparse(statement))
    for gap in range(len(body)):
        number = 0 if gap == 0 else 1 if gap <= call else 5 if gap == len(body) - 1 else 4
        yield MOMENTS[number], gap, None
        if gap == call:
            yield MOMENTS[2], None, "before"
            yield MOMENTS[3], None, "after"


def _seen(flow, function, kind, faults, moment, gap, when):
    with trial(flow if gap is None else planted(flow, function, KILL, [gap])) as one:
        if gap is None:
            killed_at(one.program, kind, when, lambda: one.program.start(TICKET))
        else:
            _die(one, gap)
            put(one, flow)
        effects = _effects(one, kind)
        record = next((json.loads(path.read_text()) for path in one.program.files() if path.name == "run-1"), {"effect": "nothing"})
        one.outside.plan(*faults)
        second = one.program.start(TICKET).wait()
        return Seen(moment, record, effects, second.code, _effects(one, kind))


def _die(one, gap):
    process = one.program.start(TICKET).wait()
    if process.code != -9:
        raise RuntimeError(f"nobody was killed in gap {gap}: {process} {process.end}: {process.last_words}")


def _effects(one, kind):
    return len({"refund": one.outside.refunds, "mail": one.outside.mails}[kind])
