"""A batch: what is to be graded into one report, and how one of its submissions is. Any process that knows the report's folder can open it."""

import glob
import json
import os
import socket
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from pydantic import ValidationError

from labs.command.refused import Refused
from labs.harness import manifest
from labs.harness.records import read
from labs.harness.scratch import remove, scratch
from labs.harness.staging import KIT

from . import intake, results, scoring
from .journal import Journal
from .progress import Checks
from .results import Outcome, Result, file_name
from .running import Options, Sessions, run_checks

VERSION = metadata.version("killproof")
_OURS = ("journal.sqlite", "lock", "results", "records", "evidence", "submissions", "gradescope", "index.html", "results.csv", "results.jsonl",
         "junit.xml")


class Batch:
    """The submissions in `submissions` and what is known of them in `report`. With `only`, names, no others are graded.

    `journal` is the report's, for the one process that began the batch; the others write results and nothing else.
    """

    def __init__(self, report, submissions, batch_id, options, isolation, only=(), one=False, sessions=None, journal=None):
        self.report, self.submissions, self.id = Path(os.path.abspath(report)), Path(submissions), batch_id
        self.options, self.isolation, self.sessions, self.journal = options, isolation, sessions or Sessions(), journal
        found = intake.find(self.submissions, one=one)
        self.found, self.ignored = {submission.name: submission for submission in found.submissions}, found.ignored
        self.chosen = [submission.name for submission in intake.chosen(found.submissions, only)]

    @property
    def version(self):
        return version()

    @property
    def names(self):
        """Those to be graded that have no result yet, in the order of the folder."""
        return [name for name in self.chosen if not self.is_graded(name)]

    def is_graded(self, name):
        """Whether there is a result of the submission as it is now, judged as it would be now."""
        return self.result(name) is not None

    def result(self, name):
        """The Result of a submission as it is now, by what judges now; None where there is none."""
        found = self.last_result(name)
        if not found:
            return None
        same = (found.suite_hash, found.looks, found.seed, found.sample) == (suite_hash(), _looks(self.found[name].source), self.options.seed, self.options.sample)
        return found if same and found.isolation and found.isolation.level == self.isolation.level else None

    def last_result(self, name):
        """The Result that was written last, of whatever the submission was then; None where there is none."""
        try:
            return results.read(self._path("results", name, ".json"))
        except (OSError, ValidationError):
            return None

    def reopen(self, name):
        """Make a submission one that is to be graded, but keep what is known of its checks; those that could not be made are made again."""
        for path in (self.report / "records").glob(f"{glob.escape(file_name(name))}.*jsonl"):
            known = [entry for entry in read(path) if "trouble" not in entry and entry.get("status") not in ("error", "could not check")]
            results.write_durably(path, "".join(json.dumps(entry) + "\n" for entry in known))
        self._path("results", name, ".json").unlink(missing_ok=True)

    def checks(self, names):
        """The Checks of these submissions, to see how far they are."""
        guess = sum(len(manifest.read(KIT / "labs" / lab).checks) for lab in self.options.labs)
        return Checks(self.report / "records", names, self._judged, guess)

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
        looks = _looks(submission.source)
        if self.journal:
            self.journal.start(name, worker or f"{socket.gethostname()}:{os.getpid()}")
        about = {"name": name, "looks": looks, "source": submission.relative, "attempt": submission.attempt, "doubts": [*submission.doubts],
                 "seed": self.options.seed, "sample": self.options.sample, "grader_version": VERSION, "suite_hash": suite_hash(),
                 "isolation": self.isolation, "began": began}
        with scratch() as folder:
            try:
                taken = intake.take(submission, folder / "taken")
            except intake.Invalid as invalid:
                found = Result(**about, outcome=Outcome.INVALID, reason=str(invalid))
            else:
                records = self._records(name, taken.sha256, token)
                checks = self.options.checks.get(name, ())
                run_checks(taken.program, records, self.report / "evidence" / f"{file_name(name)}{token}", self.options, self.sessions, checks)
                entries = read(records)
                labs = scoring.lab_results(entries, self.options.labs, "evidence/", checks)
                outcome, reason = scoring.outcome(entries, labs)
                about["doubts"] += taken.doubts
                found = Result(**about, outcome=outcome, reason=reason, labs=labs, figures=scoring.figures(entries), dropped=taken.dropped,
                               notes=taken.notes, submission_hash=taken.sha256, seconds=round(time.monotonic() - since, 2))
        (self.report / "results").mkdir(exist_ok=True)
        with (lease or nullcontext)():
            results.write(found, self.report / "results")
        if self.journal:
            self.journal.done(name)
        return found

    @property
    def _judged(self):
        return suite_hash(), self.options.judged_by(), self.options.isolation

    def _path(self, room, name, ending):
        return self.report / room / f"{file_name(name)}{ending}"

    def _records(self, name, submission_hash, token):
        """The records file, gone on with where there is one of the same files, judged by the same; else a new one.

        With a `token` it is the caller's own, and begins as a copy of the one that came farthest.
        """
        path, key = self._path("records", name, f"{token}.jsonl"), {"of": [submission_hash, *self._judged]}
        path.parent.mkdir(exist_ok=True)
        if token:
            others = [read(other) for other in path.parent.glob(f"{glob.escape(file_name(name))}.*jsonl")]
            farthest = max((other for other in others if key in other[:1]), key=len, default=[key])
            results.write_durably(path, "".join(json.dumps(entry) + "\n" for entry in farthest))
        elif key not in read(path)[:1]:
            remove(self.report / "evidence" / file_name(name))
            results.write_durably(path, json.dumps(key) + "\n")
        return path


def create(report, submissions, options, isolation, only=(), one=False, fresh=False):
    """The Batch for a report, made anew or gone on with; its journal is held. Raises Refused where the report is of something else."""
    report, submissions = Path(report), Path(submissions).resolve()
    if fresh and (report / "journal.sqlite").exists():
        # The journal last: so that a report whose end was begun is still known as one.
        for name in (*(name for name in _OURS if not name.startswith(("lock", "journal"))), "journal.sqlite-journal", "journal.sqlite"):
            remove(report / name)
    journal = Journal(report / "journal.sqlite")
    about, wanted = journal.about(), {"submissions": str(submissions), "one": one, **options.judged_by()}
    if changed := [name for name, value in wanted.items() if about and about.get(name) != value]:
        raise Refused(f"{report} was begun with {', '.join(f'{name} {_shown(about.get(name))}' for name in changed)}, now "
                      f"{', '.join(f'{name} {_shown(wanted[name])}' for name in changed)}: use another --out, or --fresh to begin anew")
    batch = Batch(report, submissions, about.get("id") or os.urandom(8).hex(), options, isolation, only, one, journal=journal)
    if not about:
        journal.set_about(id=batch.id, began=datetime.now(UTC).isoformat(timespec="seconds"), **wanted)
    journal.set_about(isolation=options.isolation, workers=options.workers)
    for name in batch.chosen:   # what could not be checked is checked again: the machine may have been mended
        if (found := batch.last_result(name)) and found.outcome == Outcome.INCOMPLETE:
            batch.reopen(name)
    return batch


def open_batch(report):
    """The Batch of a report that was begun, for another worker. Raises Refused."""
    from .isolation import LADDER, strongest, tried
    report = Path(report)
    if not (report / "journal.sqlite").exists():
        raise Refused(f"{report} is no report that was begun: a worker needs the same folder as `grader grade --out`")
    journal = Journal(report / "journal.sqlite")
    about = journal.about()
    journal.close()
    rung, _, _ = strongest()
    if LADDER.index(rung) > LADDER.index(about["isolation"]):
        raise Refused(f"this machine isolates by {rung}, and the batch was begun with {about['isolation']}: see `grader doctor`")
    options = Options(tuple(about["labs"]), about["seed"], about["sample"], about["isolation"], about["workers"], checks=about.get("checks", {}))
    return Batch(report, about["submissions"], about["id"], options, tried(about["isolation"]), one=about["one"])


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
    if submissions.is_relative_to(report.resolve()):
        raise Refused(f"{submissions} is within {report}, where the report would be written: name a folder elsewhere with --out")
    # The journal is there before anything else of ours: where it is not, nothing is.
    others = sorted(path.name for path in report.iterdir() if path.name != "lock") if report.is_dir() else []
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
                           if path.suffix in (".py", ".toml", ".ini") and not {"tests", "attacks"} & set(path.relative_to(KIT).parts)):
            digest.update(path.relative_to(KIT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
        _suite_hash = digest.hexdigest()
    return _suite_hash
