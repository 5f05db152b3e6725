"""A batch: what is to be graded into one report, and how one of its submissions is. Any process that knows the report's folder can open it."""

import glob
import json
import os
import socket
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from pydantic import ValidationError

from labs.command.refused import Refused
from labs.harness.scratch import remove, scratch
from labs.harness.staging import KIT

from . import intake, results, scoring
from .journal import Journal
from .results import Isolation, Outcome, Result, file_name
from .running import Options, Sessions, read_records, run_checks

VERSION = metadata.version("killproof")
_OURS = ("journal.sqlite", "lock", "results", "records", "evidence", "submissions", "gradescope", "index.html", "results.csv", "results.jsonl",
         "junit.xml")


class Batch:
    """The submissions in `submissions` and what is known of them in `report`. `only` are names, to grade no others."""

    def __init__(self, report, submissions, options, isolation, only=(), sessions=None):
        self.report, self.submissions, self.options, self.isolation = Path(os.path.abspath(report)), Path(submissions), options, isolation
        self.sessions = sessions or Sessions()
        found = intake.find(self.submissions, only)
        self.found, self.ignored = {submission.name: submission for submission in found.submissions}, found.ignored
        self.journal = Journal(self.report / "journal.sqlite")

    @cached_property
    def id(self):
        """The same for every process that works on this report."""
        return self.journal.about()["id"]

    @property
    def version(self):
        return version()

    @property
    def names(self):
        """The submissions that have no result yet, in the order of the folder."""
        known = self.journal.submissions()
        return [name for name in self.found if not self.is_graded(name, known)]

    def is_graded(self, name, known=None):
        """Whether there is a result of the submission as it is now."""
        state, looks, _ = (self.journal.submissions() if known is None else known).get(name, (None, None, 0))
        return state == "done" and looks == _looks(self.found[name].source) and self.result(name) is not None

    def result(self, name):
        """The Result of a submission, by what judges now; None where there is none."""
        try:
            found = results.read(self._path("results", name, ".json"))
        except (OSError, ValidationError):
            return None
        return found if found.suite_hash == suite_hash() else None

    def stop(self):
        """End every grade() that runs, or is begun from now on, by Stopped."""
        self.sessions.stop()

    def grade(self, name, worker=None, lease=None):
        """Grade one submission and write its result. Returns it. Raises Stopped where the grader is to end meanwhile.

        Where other workers may come to grade it too, `lease()` is a context that lets one of them write its result and raises in the others; until
        then each keeps what it finds to itself.
        """
        if self.is_graded(name):
            return self.result(name)
        token = f".{os.urandom(4).hex()}" if lease else ""
        submission, began, since = self.found[name], datetime.now(UTC).isoformat(), time.monotonic()
        self.journal.start(name, _looks(submission.source), worker or f"{socket.gethostname()}:{os.getpid()}")
        about = {"name": name, "source": submission.relative, "attempt": submission.attempt, "seed": self.options.seed, "sample": self.options.sample,
                 "grader_version": VERSION, "suite_hash": suite_hash(), "isolation": self.isolation, "began": began}
        with scratch() as folder:
            try:
                taken = intake.take(submission, folder / "taken")
            except intake.Invalid as invalid:
                found = Result(**about, outcome=Outcome.INVALID, reason=str(invalid))
            else:
                records = self._records(name, taken.sha256, token)
                checks = self.options.checks.get(name, ())
                run_checks(taken.program, records, self.report / "evidence" / f"{file_name(name)}{token}", self.options, self.sessions, checks)
                entries = read_records(records)
                labs = scoring.lab_results(entries, self.options.labs, "evidence/", checks)
                outcome, reason = scoring.outcome(entries, labs)
                found = Result(**about, outcome=outcome, reason=reason, labs=labs, figures=scoring.figures(entries), dropped=taken.dropped,
                               notes=taken.notes, submission_hash=taken.sha256, seconds=round(time.monotonic() - since, 2))
        (self.report / "results").mkdir(exist_ok=True)
        with (lease or nullcontext)():
            results.write(found, self.report / "results")
            self.journal.done(name)
        return found

    def all_results(self):
        """The Results that there are, in the order of the folder."""
        return [found for found in map(self.result, self.found) if found]

    def _path(self, room, name, ending):
        return self.report / room / f"{file_name(name)}{ending}"

    def _records(self, name, submission_hash, token):
        """The records file, gone on with where there is one of the same files, judged by the same; else a new one.

        With a `token` it is the caller's own, and begins as a copy of the one that came farthest.
        """
        path, key = self._path("records", name, f"{token}.jsonl"), {"of": [submission_hash, suite_hash(), self.options.judged_by()]}
        path.parent.mkdir(exist_ok=True)
        if token:
            others = [read_records(other) for other in path.parent.glob(f"{glob.escape(file_name(name))}.*jsonl")]
            farthest = max((other for other in others if key in other[:1]), key=len, default=[key])
            results.write_durably(path, "".join(json.dumps(entry) + "\n" for entry in farthest))
        elif key not in read_records(path)[:1]:
            remove(self.report / "evidence" / file_name(name))
            results.write_durably(path, json.dumps(key) + "\n")
        return path


def create(report, submissions, options, rung_isolation, only=(), fresh=False, sessions=None):
    """The Batch for a report, made anew or gone on with. Raises Refused where the report is of something else."""
    report, submissions = Path(report), Path(submissions).resolve()
    if fresh and report.is_dir():
        for name in _OURS:
            if name != "lock":
                remove(report / name)
        if (report / "journal.sqlite-journal").exists():
            (report / "journal.sqlite-journal").unlink()
    batch = Batch(report, submissions, options, rung_isolation, only, sessions)
    about, wanted = batch.journal.about(), {"submissions": str(submissions), **options.judged_by()}
    if not about:
        batch.journal.set_about(id=os.urandom(8).hex(), began=datetime.now(UTC).isoformat(timespec="seconds"), **wanted,
                                isolation=options.isolation, workers=options.workers)
    elif changed := [name for name, value in wanted.items() if about.get(name) != value]:
        raise Refused(f"{report} was begun with {', '.join(f'{name} {_shown(about.get(name))}' for name in changed)}, now it is "
                      f"{', '.join(_shown(wanted[name]) for name in changed)}: use another --out, or --fresh to begin anew")
    return batch


def open_batch(report):
    """The Batch of a report that was begun, for another worker. Raises Refused."""
    from .isolation import LADDER, strongest
    report = Path(report)
    if not (report / "journal.sqlite").exists():
        raise Refused(f"{report} is no report that was begun: a worker needs the same folder as `grader grade --out`")
    journal = Journal(report / "journal.sqlite")
    about = journal.about()
    journal.close()
    rung, isolation, _ = strongest()
    if LADDER.index(rung) > LADDER.index(about["isolation"]):
        raise Refused(f"this machine isolates by {rung}, and the batch was begun with {about['isolation']}: see `grader doctor`")
    options = Options(tuple(about["labs"]), about["seed"], about["sample"], about["isolation"], about["workers"])
    return Batch(report, about["submissions"], options, isolation)


def version():
    """What judges here: who has another one judges otherwise."""
    return f"{VERSION}-{suite_hash()[:16]}"


def _shown(value):
    return "-".join(value[::len(value) - 1] if len(value) > 1 else value) if isinstance(value, list) else str(value)


def refuse_report(report, submissions):
    """Refuse a folder that is not for a report: nothing in it is lost. Raises Refused."""
    if report.exists() and not report.is_dir():
        raise Refused(f"{report} is a file: name a folder for the report")
    if report.resolve() == submissions or report.resolve().is_relative_to(submissions):
        raise Refused(f"the report would be within {submissions}, where nothing is written: name a folder elsewhere with --out")
    others = sorted(path.name for path in report.iterdir() if path.name not in _OURS) if report.is_dir() else []
    if others and not (report / "journal.sqlite").exists():
        raise Refused(f"{report} has files that are no report's ({others[0]}): name an empty or a new folder")


def _looks(source):
    """How a submission looks from outside, to see that it was changed: names, sizes and times, nothing is read."""
    source, seen = Path(source), []
    try:
        if source.is_dir() and not source.is_symlink():
            for folder, folders, files in os.walk(source):
                folders.sort()
                for name in sorted(files):
                    status = os.lstat(os.path.join(folder, name))
                    seen.append((os.path.relpath(os.path.join(folder, name), source), status.st_size, status.st_mtime_ns))
        else:
            status = os.lstat(source)
            seen.append((status.st_size, status.st_mtime_ns))
    except OSError as error:
        seen.append(str(error))
    return sha256(repr(seen).encode(errors="replace")).hexdigest()


_suite_hash = None


def suite_hash():
    """The hash of all that judges: the labs' checks and manifests, the harness, and the grader."""
    global _suite_hash
    if _suite_hash is None:
        digest = sha256()
        for path in sorted(path for room in ("labs", "grader") for path in (KIT / room).rglob("*")
                           if path.suffix in (".py", ".toml", ".ini") and "tests" not in path.parts and "attacks" not in path.parts):
            digest.update(path.relative_to(KIT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
        _suite_hash = digest.hexdigest()
    return _suite_hash
