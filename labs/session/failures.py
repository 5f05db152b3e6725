"""A check that failed: its evidence is kept, its story told, and nothing of the program lives on."""

import os
import re
import shlex
from types import SimpleNamespace

import pytest

from labs.command.mapped import as_text, bad_lines
from labs.command.preflight import mend_of
from labs.command.show import fitted
from labs.harness import descendants, killmap, manifest, processes, story

from .items import PROGRAMS, lab_folder, test_name
from .shared import SESSION

KNOWN = (0, 2, 3, 4, 5, 6)   # exit codes of the contract
CRASHED = "error in the program"


class Told(pytest.fail.Exception):
    """A failed check, with its story. Pytest shows that alone, and does not first make a traceback that nobody sees: that took a tenth of a second."""

    def __init__(self, at_width):
        """`at_width(columns)` makes the story; that of story.WIDTH is kept."""
        super().__init__(at_width(story.WIDTH), pytrace=False)
        self.at_width = at_width


class Shown:
    """How pytest is to show a Told: as wide as the terminal, and in its summary by its reason."""

    def __init__(self, told):
        self._told, self.reprcrash = told, SimpleNamespace(message=told.reason)

    def toterminal(self, writer):
        writer.line(self._told.at_width(writer.fullwidth - 1) if writer.hasmarkup else str(self._told))

    def __str__(self):
        return str(self._told)


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """After a check, keep the evidence of a failure; then let nothing of the program live on, and fail it if it would."""
    session = pyfuncitem.config.stash[SESSION]
    # Where keepers watch they have seen all, and live on themselves.
    watched = session.cell or session.staged and session.staged.preload
    known = set() if watched else {child.pid for child in descendants.living()}
    outcome = yield
    server, made = session.server, pyfuncitem.stash.get(PROGRAMS, [])
    if server and server.errors:
        # The outside itself is broken: nothing that it saw says anything about the program.
        outcome.force_exception(server.errors.pop(0))
        server.errors.clear()
    error = outcome.excinfo[1] if outcome.excinfo else None
    if isinstance(error, LookupError) and _of_a_check(outcome.excinfo[2]):
        # What the check goes on from is not there, like a refund that was never asked for: that is the program's doing, and no fault of ours.
        error = processes.ProgramFault(f"the program did less than this check goes on from ({type(error).__name__}: {error})")
    if isinstance(error, (AssertionError, pytest.fail.Exception)):
        outcome.force_exception(_told(pyfuncitem, error, made))
    left = [words for program in made for process in program.processes for words in process.left_behind()]
    for program in made:
        program.outside.drop()
        program.discard()
    if not watched:
        left += descendants.survivors(known)
    if left and error is None:
        error = processes.Survived(f"{left[0]} still runs after the check: no process may outlive the program")
        outcome.force_exception(_told(pyfuncitem, error, made))


def _of_a_check(traceback):
    """Whether an exception was raised by a line of a check itself, and by nothing that it called."""
    while traceback.tb_next:
        traceback = traceback.tb_next
    return os.path.basename(traceback.tb_frame.f_code.co_filename).startswith("test_")


def _told(item, error, made):
    session, lab = item.config.stash[SESSION], manifest.read(lab_folder(item))
    program = getattr(error, "program", None) or (made[-1] if made else None)
    check = lab.check(test_name(item))
    reason = str(error).split("\nassert ")[0].strip()
    if point := getattr(error, "point", None):
        reason = f"at {point}: {reason}"
    if isinstance(error, processes.Late) and (where := error.process.where()):
        reason += f"; it hung{where}"
    reason += getattr(error, "others", "")
    name = f"{lab.number}-{_short(item)}"

    head = f"lab {lab.number} · {lab.title}"
    does = check.does if check else item.name
    lines = [f"{head:<{story.WIDTH - 4}}FAIL", *story.wrapped("this check", does)]
    gone_on_with = getattr(error, "gone_on_with", True)
    lines += story.tell(program, gone_on_with) if program else []
    lines += story.wrapped("why", reason)
    last = _last_ended(program, gone_on_with)
    if not session.isolation and last and last.code and (mend := mend_of(session.staged, last)):
        lines += story.wrapped("mend", mend)
    # Of a hidden check a learner whose program was graded has no file to run again.
    again = [] if session.isolation and check and check.hidden else [story.labelled("again", _again(item))]
    further = [*again, story.labelled("hint", f"python -m labs hint {lab.number}")]
    pages, struck = {}, getattr(error, "struck", None)
    if struck:
        sources = session.staged.sources
        pages = {"killmap.html": killmap.page(sources, struck, head, f"{does} Seed {session.seed}.")}
    kind = _kind(error, last)
    if kind == CRASHED and last.complaint:   # the story has it where the process ends
        first, parted, others = reason.partition(story.OTHERS)
        reason = f"{first}{story.SAID}{last.complaint}{parted}{others}"
    if look := session.evidence.keep(name, lines + further, program, does, reason, pages):
        lines.append(story.labelled("look", str(look)))
        lines += [story.labelled("kill map", str(look.with_name(page))) for page in pages]

    def at_width(columns):
        told = lines + further if columns >= story.WIDTH else fitted("\n".join(lines + further), columns)
        return "\n".join([*told, *(["", *as_text(bad_lines(sources, struck), min(columns, story.WIDTH))] if struck else [])])

    told = Told(at_width)
    told.reason, told.kind, told.evidence = story.printable(" ".join(reason.split())), kind, str(look.parent) if look else None
    return told


def _kind(error, last):
    """How the check failed, in a word or two: what a grader has statuses for. `last` is the Process that ended last, or None."""
    if last and (last.excess == "memory" or last.code and last.last_words.startswith("MemoryError")):
        return "out of memory"
    if isinstance(error, processes.ProgramFault) and error.kind != "failed":
        return error.kind
    if isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout"):
        return "timeout"
    return CRASHED if last and not last.killed and last.code not in KNOWN else "failed"


def _last_ended(program, gone_on_with):
    """The Process, or None, of those that were judged; of two at one moment the other one may not have ended yet, or has."""
    return next((process for process in reversed(story.judged(program, gone_on_with)) if not process.running), None) if program else None


def _again(item):
    options = item.config.option
    path = os.path.relpath(item.path, item.config.invocation_params.dir)
    words = ["pytest", f"{path}::{item.name}", "--lab-seed", str(options.lab_seed)]
    # A graded program was copied to where it is no more; its author has it as starter/.
    words += ["--program", options.program] if options.program and not options.lab_isolation else []
    words += ["--command", options.command] if options.command else []
    words += [word for module in options.lab_preload for word in ("--lab-preload", module)]
    return shlex.join(words)


def _short(item):
    return re.sub(r"[^\w.-]+", "-", item.name.removeprefix("test_")).strip("-").replace("_", "-")[:80]
