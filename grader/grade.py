"""`grader grade`: the batch from the first submission to the reports, on this machine or with workers on others."""

import os
import signal
import threading
import traceback
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

from labs.command.kit import all_labs
from labs.command.refused import Refused
from labs.harness import manifest

from . import batch, intake, isolation
from .journal import Busy, held
from .progress import Display
from .results import Outcome, file_name, write_durably
from .running import Options, Stopped

GRADED, NOT_ALL, BUSY, STOPPED = 0, 1, 5, 130   # exit codes


def grade(submissions, report, *, jobs=1, only=(), labs="1-5", seed=1, sample=1, require_isolation=False, fresh=False, one=False, workers=None,
          engine="local", database=None, quiet=False, checks=None):
    """Grade what is not graded yet, write the reports, and return an exit code. `checks` are as in Options. Raises Refused.

    With `quiet` nothing is shown but the progress, on a terminal.
    """
    console = Console(highlight=False, quiet=quiet)
    if fresh and only:
        raise Refused("--fresh begins the whole report anew, and --only names a part of it: leave one of them out (a changed submission is graded again by itself)")
    all_labs()   # a manifest that cannot be used is refused now, and not after minutes
    report, numbers = Path(report), lab_numbers(labs)
    if not Path(submissions).exists():
        raise Refused(f"there is no {submissions}: name the folder with the submissions, or one submission")
    intake.find(submissions, one=one)   # what there is nothing to grade in leaves no report behind
    rung, found, reasons = isolation.strongest()
    if rung not in isolation.STRONG:
        console.print(Text(f"Not the full isolation: {found.detail}. {'; '.join(reasons)}. `grader doctor` says what would help.", "yellow"))
        if require_isolation:
            raise Refused(f"--require-isolation: this machine does not give it ({reasons[0]}); `grader doctor` says what would help", 3)
    options = Options(numbers, seed, sample, rung, workers or max(1, 3 * (os.cpu_count() or 1) // jobs), checks=checks or {})
    batch.refuse_report(report, Path(submissions).resolve())
    report.mkdir(parents=True, exist_ok=True)
    try:
        with held(report / "lock"):
            work = batch.create(report, submissions, options, found, only, one, fresh)
            return _graded(work, console, jobs, engine, database)
    except Busy:
        raise Refused(f"another grader is working on {report}: wait for it, or end it", BUSY) from None


def lab_numbers(text):
    """The labs of a text like 1-5, 3 or 1,2,4, as "01", "02", …. Raises Refused."""
    there, found = [folder.name for folder in manifest.folders()], set()
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            found.update(f"{number:02}" for number in range(int(first), int(last or first) + 1))
    except ValueError:
        raise Refused(f"--labs {text}: give numbers, like 1-5, 3 or 1,2") from None
    if unknown := sorted(found - set(there)):
        raise Refused(f"--labs {text}: there is no lab {unknown[0]}; there are {', '.join(there)}")
    if not found:
        raise Refused(f"--labs {text}: names no lab")
    return tuple(sorted(found))


def _graded(work, console, jobs, engine, database):
    waiting = work.names
    already = len(work.chosen) - len(waiting)
    if work.ignored:
        console.print(Text(f"Not taken for submissions: {', '.join(map(shown, work.ignored))}", "dim"))
    if already:
        console.print(f"{already} of {len(work.chosen)} {'has' if already == 1 else 'have'} a result already; going on with {len(waiting)}.")
    errors, stopped, of = {}, False, {}
    if waiting:
        with Display(Console(highlight=False) if console.quiet else console, work.checks(waiting), len(work.chosen), already, console.quiet) as progress:
            def ended(name):
                from .reports import write_first_pages   # not before the first job has begun
                of.update({one: work.result(one) for one in (work.found if not of else [name])})
                if not console.quiet:
                    progress.say(one_line(of[name], name))
                if of[name]:
                    with suppress(Exception):   # a grade does not hang on it; write_reports(), at the end, says what is wrong
                        write_first_pages(work.report, *_standing(work, of), of[name])
                progress.ended(name)
            if engine == "dbos":
                from .engines.many import grade_on_queue
                before = signal.signal(signal.SIGTERM, signal.default_int_handler)
                try:
                    errors = dict(grade_on_queue(work, database, jobs, ended, say=lambda line: progress.say(Text(line))))
                except KeyboardInterrupt:
                    stopped = True
                finally:
                    signal.signal(signal.SIGTERM, before)
            else:
                errors, stopped = _side_by_side(work, waiting, jobs, ended)
    return _concluded(work, console, errors, stopped)


def _standing(work, of):
    """What a report is made of: the Results that there are, and what it is about. `of` is {name: its Result, or None}."""
    about = work.journal.about()
    return [result for result in of.values() if result], {
        "title": Path(about["submissions"]).name, "submissions": about["submissions"], "seed": about["seed"], "began": about["began"],
        "grader_version": batch.VERSION, "unfinished": [name for name, result in of.items() if not result], "ignored": [shown(one) for one in work.ignored]}


def _side_by_side(work, names, jobs, ended):
    """Grade `jobs` at once. Returns ({name: what went wrong}, whether Ctrl-C or a SIGTERM ended it)."""
    errors, stop = {}, threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    names, running = iter(names), {}
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while not stop.is_set():
                while len(running) < jobs and (name := next(names, None)) is not None:
                    running[pool.submit(work.grade, name)] = name
                if not running:
                    break
                # A signal's handler runs between two of these, and not within one.
                done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    name = running.pop(future)
                    error = future.exception()
                    if error is None:
                        ended(name)
                    elif not isinstance(error, Stopped):
                        errors[name] = repr(error)
                        (work.report / "records").mkdir(exist_ok=True)
                        write_durably(work.report / "records" / f"{file_name(name)}.error", "".join(traceback.format_exception(error)))
        finally:
            if running:
                work.sessions.stop()
            for number, handler in before.items():
                signal.signal(number, handler)
    return errors, stop.is_set()


def one_line(result, name):
    """A submission's result in a line, as Text: nothing in a name is markup."""
    line = _of_result(result, name)
    return line.append(f"  ⚑ {shown(', '.join(result.doubts))}", "yellow") if result and result.doubts else line


def _of_result(result, name):
    if result is None:
        return Text(f"? {name}: no result", "yellow")
    if result.outcome == Outcome.INVALID:
        return Text(f"– {shown(name)}: invalid, {shown(result.reason or '')}", "yellow")
    labs = "  ".join(f"{lab.number} {lab.points}/{lab.possible}" for lab in result.labs)
    if result.outcome == Outcome.INCOMPLETE:
        return Text(f"? {shown(name)}: incomplete, {shown(result.reason or '')}", "yellow")
    return Text.assemble(("✓ " if result.points == result.possible else "· "), (shown(name), "bold"), f"  {result.points} of {result.possible}  ",
                         (labs, "dim"), f"  {result.seconds:.0f} s")


def shown(text):
    """A text of a submission's for a terminal: what would steer it is named instead."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))


def _concluded(work, console, errors, stopped):
    from .reports import write_reports
    of = {name: work.result(name) for name in work.found}
    found, about = _standing(work, of)
    missing = about["unfinished"]
    write_reports(work.report, found, about)
    incomplete = [result for result in found if result.outcome == Outcome.INCOMPLETE]
    invalid = [result for result in found if result.outcome == Outcome.INVALID]
    for name, error in errors.items():
        console.print(Text(f"! {shown(name)}: the grader broke on it: {shown(error)}; records/{file_name(name)}.error has all", "bold red"))
    counts = [f"{len(found) - len(incomplete) - len(invalid)} graded"] + [f"{len(some)} {word}" for some, word in
                                                                         ((incomplete, "incomplete"), (invalid, "invalid"), (missing, "not graded")) if some]
    console.print(f"{', '.join(counts)}. The report: {work.report / 'index.html'}", soft_wrap=True)
    if work.options.sample > 1:
        console.print(f"Sweeps tried one of {work.options.sample} of their points only: not for grades.")
    if stopped:
        console.print("Ended before all were graded. The same command goes on where this one was.")
        return STOPPED
    return NOT_ALL if errors or any(not of[name] or of[name].outcome == Outcome.INCOMPLETE for name in work.chosen) else GRADED


