"""Runs that are killed and resumed, and two real processes on one run: how often the outside was asked, and what it did.

The flows are small ones, whose only run has the id `run-1`. Nothing here waits for a time: the first process is held at a request.
"""

from dataclasses import dataclass

from experiment import TICKET, trial   # first: it says which kit `labs` is of

from labs.harness.kills.boundary import held_at, killed_at
from labs.harness.processes import ProgramFault

RUN = "run-1"


@dataclass(frozen=True)
class Outcome:
    """What the outside did in all, and how the last process ended: its exit code and what it said last."""

    models: int
    refunds: int
    mails: int
    code: int
    words: str

    @property
    def counts(self):
        return f"{self.models} · {self.refunds} · {self.mails}"


def resumed(flow, kind, when, again=None):
    """Kill a start at a boundary, resume, and return the Outcome.

    With `again`, (kind, when), the resume is killed as well, there, and a second resume goes to the end; None where the first one
    ends without such a request.
    """
    with trial(flow) as one:
        program = one.program
        killed_at(program, kind, when, lambda: program.start(TICKET))
        if again:
            try:
                killed_at(program, *again, lambda: program.resume(RUN))
            except ProgramFault:
                if program.processes[-1].running:
                    raise
                return None
        return _outcome(one, program.resume(RUN))


def with_a_second(flow, kind="mail", tell=False):
    """Resume a run while its first process is alive, in the middle of its request of this kind. Returns the second one's exit code and the Outcome.

    The first one goes on once the second has ended, or has printed a line, which says that it waits. With `tell` the story is printed.
    """
    with trial(flow) as one:
        program = one.program
        first, _ = held_at(program, kind, "before", lambda: program.start(TICKET))
        second = program.resume(RUN)
        second.wait_until(lambda: second.stdout or not second.running, "print a line or end")
        program.outside.plan()
        program.outside.release()
        first.wait()
        outcome = _outcome(one, second)
        if tell:
            one.story()
        return second.code, outcome


def after_a_death(flow, number_taken=False):
    """Kill the first process in the middle of its mail, then resume. Returns the Outcome.

    With `number_taken` the dead process keeps its process id, as a number that has been given to another process looks.
    """
    with trial(flow) as one:
        program = one.program
        first, _ = held_at(program, "mail", "before", lambda: program.start(TICKET))
        program.kill(first, bury=not number_taken)
        program.outside.plan()
        return _outcome(one, program.resume(RUN))


def _outcome(one, process):
    process.wait()
    return Outcome(len(one.outside.readings()), len(one.outside.refunds), len(one.outside.mails), process.code, process.last_words)
