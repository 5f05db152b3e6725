"""One trial: a run that is killed, once or more, and finished; and all that was seen of it."""

import os
import shutil
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..kills.boundary import killed_at
from ..outside import Fault, Request
from ..processes import Process, ProgramFault

TRIES = 5   # of an experiment that a signal got into, see unspoiled()
RUN = "run-7"
POSTS = {"triage": "model", "refund": "refund", "reply": "mail"}   # the requests of each step


@dataclass(frozen=True)
class Scenario:
    """Which process of a run is swept: its `start`, or the `resume` after a kill at the boundary `after`.

    `faults` are what goes wrong outside meanwhile. `ends` is the state that the run has to come to. With `beyond` only those of its
    points are tried that START and RESUME have not.
    """

    name: str
    after: tuple | None = None
    faults: tuple = ()
    ends: str = "done"
    beyond: bool = False

    @property
    def code(self):
        """The exit code of a process that brings the run there."""
        return 3 if self.ends == "failed" else 0


START = Scenario("start")
RESUME = Scenario("resume", after=("refund", "after"))
#: Each step fails once, in another way: refused for now, made and said to have failed, made and never answered.
FAILING = Scenario("start, things failing", faults=(Fault("model", "answer"), Fault("refund", "fail_after"), Fault("mail", "close")), beyond=True)
DOWN = Scenario("start, payments down", faults=(Fault("refund", "answer", times=None),), ends="failed", beyond=True)


@dataclass
class Seen:
    """What there was right after a kill."""

    process: Process
    printed: bool                 # whether the run id was out, as a whole line
    sent: list[Request]           # all that the outside had received by then
    asked: Process | None = None  # the `status` that was asked, None where nothing had been said or done yet
    record: dict | None = None    # what it printed
    unreadable: str = ""          # what was wrong with that, in words


@dataclass(frozen=True)
class Before:
    """A run that was killed once, to be gone on with in many trials: a copy of its home, and what was seen."""

    home: Path
    files: dict
    seen: object

    def put_into(self, trial):
        program = trial.program
        try:
            shutil.copytree(self.home, program.home, symlinks=True, dirs_exist_ok=True, copy_function=_copy)
        except OSError as error:
            raise ProgramFault(f"what it left in LAB_HOME cannot be copied: {str(error)[:160]}") from None
        program.give_home()
        program.outside.repeat(self.seen.sent)
        program.processes += [self.seen.process, self.seen.asked]
        trial.kills.append(replace(self.seen, sent=list(program.outside.requests)))
        trial.begun, trial.before = True, self


def unspoiled(ground, experiment):
    """What `experiment()` returns, a tuple (program, whether it came out well, …); made anew where it did not, and it may have been our doing.

    That is so where a signal ended a call of the program before the keeper saw it (syscall.Call): nobody ends a call like fsync(2) but who
    watches it. The keeper knows exactly when that was. A program that fails each of TRIES times fails; and at once where an effect happened
    twice: no call that came to nothing explains that, and a program that signals itself would buy tries for it.
    """
    for left in reversed(range(TRIES)):
        program, well, *rest = experiment()
        twice = len(program.outside.refunds) > 1 or len(program.outside.mails) > 1
        if well or twice or not left or not any(process.report and process.report["unseen"] for process in program.processes):
            return program, well, *rest
        ground.discard(program)


def files_of(home):
    """All that is in a home: {path: bytes, None for a folder, a tuple with the text of a link}.

    Sockets and pipes are no files: nobody reads from them what was written before. Raises ProgramFault.
    """
    found = {}
    try:
        for folder, folders, names in os.walk(home):
            for path in (Path(folder, name) for name in (*folders, *names)):
                mode = path.lstat().st_mode
                if stat.S_ISLNK(mode):
                    found[os.path.relpath(path, home)] = os.readlink(path),
                elif stat.S_ISDIR(mode):
                    found[os.path.relpath(path, home)] = None
                elif stat.S_ISREG(mode):
                    found[os.path.relpath(path, home)] = path.read_bytes()
    except OSError as error:
        raise ProgramFault(f"what it left in LAB_HOME cannot be read: {str(error)[:160]}") from None
    return found


def _copy(source, target):
    mode = os.lstat(source).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        os.mknod(target, mode)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _first(scenario):
    return f"{scenario.name}, killed before"


def _killed_before(ground, scenario, ticket):
    program = ground.program(_first(scenario), like=_first(scenario))
    trial = Trial(program, scenario, ticket)
    process, _ = killed_at(program, *scenario.after, lambda: program.start(ticket, RUN))
    trial.see(process)
    return Before(program.home, files_of(program.home), trial.kills[0])


@dataclass
class Trial:
    """A run of `program`. `kills` has what was Seen after each kill; `last` is the Process that had to finish it."""

    program: object
    scenario: Scenario
    ticket: dict
    kills: list[Seen] = field(default_factory=list)
    last: Process | None = None
    begun: bool = False
    before: Before | None = None

    @classmethod
    def prepared(cls, ground, name, scenario, ticket):
        """A fresh trial whose run stands where the process that is swept begins."""
        if not scenario.after:
            trial = cls(ground.program(name), scenario, ticket)
        else:
            trial = cls(ground.program(name, like=_first(scenario)), scenario, ticket)
            ground.once((scenario, ticket["ticket_id"]), lambda: _killed_before(ground, scenario, ticket)).put_into(trial)
        trial.program.outside.plan(*scenario.faults)
        return trial

    def begin(self, **keeping):
        """Start the process that goes on with the run, with what its keeper has to do. Returns the Process."""
        resume = self.begun and (not self.kills or self.kills[-1].printed)
        self.begun = True
        return self.program.resume(RUN, **keeping) if resume else self.program.start(self.ticket, RUN, **keeping)

    def kill(self, unasked=lambda trial: False, **keeping):
        """Go on with the run until it is killed as its keeper is told. Returns whether it was; if not, it has ended by itself.

        With `unasked(trial)` nobody asks what the record says then.
        """
        process = self.begin(**keeping)
        process.wait()
        if not process.killed:
            self.last = process
            return False
        self.program.kill(process)
        self.see(process, unasked)
        return True

    def strike(self, hold):
        """Kill the Process that `hold()` returns, which is held somewhere."""
        process = hold()
        self.program.kill(process)
        self.program.outside.plan()
        self.see(process)

    @property
    def trace_free(self):
        """Whether the last kill left nothing at all: no word, no request, and the home as it was before."""
        process, before = self.kills[-1].process, self.before
        return not (process.stdout or process.stderr or process.outlived) and len(self.program.outside.requests) == (len(before.seen.sent) if before else 0) \
            and files_of(self.program.home) == (before.files if before else {})

    def finish(self):
        """Let the run come to its end, undisturbed."""
        self.last = self.begin().wait()

    def see(self, process, unasked=lambda trial: False):
        printed = process.stdout.startswith(f"{RUN}\n") or process.stdout.startswith(f"{RUN}\r\n") or \
            any(seen.printed for seen in self.kills)
        seen = Seen(process, printed, list(self.program.outside.requests))
        self.kills.append(seen)
        if not unasked(self):
            self.look(seen)

    def look(self, seen):
        """Ask `status` what the record says after a kill, where somebody may know of the run."""
        if seen.printed or seen.sent:
            seen.asked = self.program.ask("status", RUN)
            try:
                seen.record = self.program.status_of(seen.asked)
            except ProgramFault as fault:
                seen.unreadable = str(fault)
