"""What is known of a graded submission: the schema of REPORT/results/NAME.json. Exports are made of nothing else, pages of this and of the evidence."""

import os
from enum import StrEnum
from hashlib import sha256
from math import ceil
from pathlib import Path
from unicodedata import combining, normalize

from pydantic import BaseModel, ConfigDict, Field

SCHEMA = 1


class Status(StrEnum):
    """How a check ended. Only PASSED earns points; NOT_APPLICABLE takes its points out of the total."""

    PASSED = "passed"
    FAILED = "failed"
    CRASHED = "error in the program"         # it ended otherwise than the contract knows
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out of memory"
    OUTPUT_LIMIT = "output limit"
    SURVIVORS = "survivors"                  # a process of it lived on
    NOT_APPLICABLE = "not applicable"
    MISSING = "missing"                      # there is no record that it passed: it was not run, or was skipped
    COULD_NOT_CHECK = "could not check"      # this machine is not able to; says nothing about the program
    GRADER_ERROR = "grader error"            # we are not able to; says nothing about the program either

    @property
    def is_unknown(self):
        """Whether nobody can say if the program is right: then the submission is incomplete, and no zero."""
        return self in (Status.COULD_NOT_CHECK, Status.GRADER_ERROR)


class Outcome(StrEnum):
    """What a Result is."""

    GRADED = "graded"
    INCOMPLETE = "incomplete"   # something could not be checked: no final score
    INVALID = "invalid"         # nothing could be started; `reason` says why


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CheckResult(_Strict):
    """How one check of a lab ended. `test` is like `hidden/test_x.py::test_y`, `does` the line of lab.toml that announces it."""

    test: str
    does: str
    hidden: bool
    possible: int
    points: int
    status: Status
    seconds: float = 0.0
    why: str | None = None        # in a sentence, of the first item that did not pass
    story: str | None = None      # what a learner would have read on the terminal
    evidence: str | None = None   # a folder with timeline.svg, killmap.html, …, relative to the report's folder


class LabResult(_Strict):
    number: str
    title: str
    checks: list[CheckResult]

    @property
    def points(self):
        return sum(check.points for check in self.checks)

    @property
    def possible(self):
        return sum(check.possible for check in self.checks if check.status != Status.NOT_APPLICABLE)


class Dropped(_Strict):
    """Something of the submission that was left out, and why."""

    path: str
    why: str


class Isolation(_Strict):
    """How the program was kept from reaching anything else. `level` is bubblewrap, landlock or process, from strong to weak."""

    level: str
    detail: str
    lacks: list[str] = []   # what this level does not stop


class Figures(_Strict):
    """What came of the runs that the sweeps killed and started again: counts, and how long the next start took to the end."""

    kills: int = 0              # runs that were killed and gone on with
    resumed: int = 0            # of them: the next start ended well, and asked for no finished step again
    duplicated: int = 0         # of them: a refund or a mail happened more than once
    completed: int = 0          # of them: in the end there was a refund and a mail
    resume_seconds: list[float] = []   # of those that resumed

    @classmethod
    def together(cls, figures):
        """The figures of several submissions as those of one."""
        figures = list(figures)
        return cls(kills=sum(one.kills for one in figures), resumed=sum(one.resumed for one in figures),
                   duplicated=sum(one.duplicated for one in figures), completed=sum(one.completed for one in figures),
                   resume_seconds=sorted(second for one in figures for second in one.resume_seconds))

    def share(self, name):
        """`resumed`, `duplicated` or `completed` as a part of all kills, from 0 to 1; None where nothing was killed."""
        return getattr(self, name) / self.kills if self.kills else None

    def seconds(self, quantile):
        """The quantile (0.5: the median) of the seconds to resume; None where nothing resumed."""
        ordered = sorted(self.resume_seconds)
        return ordered[max(0, ceil(quantile * len(ordered)) - 1)] if ordered else None


class Result(_Strict):
    """All that is known of one submission."""

    schema_version: int = SCHEMA
    name: str                        # as it is called in the submissions folder, without the parts that are the platform's
    source: str                      # the file or folder, relative to the submissions folder
    attempt: str | None = None       # which of several, in words, and which were not taken
    doubts: list[str] = []           # what makes it worth a look whether that is the right one: late, 1 of 3 taken
    outcome: Outcome
    reason: str | None = None        # why it is invalid or incomplete, in a sentence
    labs: list[LabResult] = []
    figures: Figures = Figures()
    isolation: Isolation | None = None
    dropped: list[Dropped] = []
    notes: list[str] = []            # anything else that an instructor should know
    seed: int = 1
    sample: int = Field(1, ge=1)     # sweeps killed at every N-th point
    grader_version: str = ""
    suite_hash: str = ""             # of all that judges: checks, harness, grader
    submission_hash: str = ""        # of the files that were taken
    looks: str = ""                  # of names, sizes and times, to see whether the submission was changed since
    began: str = ""                  # in UTC, ISO 8601
    seconds: float = 0.0

    @property
    def points(self):
        """The score; None where it is not final or there is none."""
        return sum(lab.points for lab in self.labs) if self.outcome == Outcome.GRADED else None

    @property
    def possible(self):
        return sum(lab.possible for lab in self.labs)

    @property
    def is_sampled(self):
        """Whether its points are those of a first look, and no grade."""
        return self.sample > 1 and self.outcome == Outcome.GRADED

    @property
    def checks(self):
        """All checks, each with its lab."""
        return [(lab, check) for lab in self.labs for check in lab.checks]


def file_name(name):
    """A name of a submission as a file name: readable, one for each, whatever is in it, also where capitals make no difference."""
    plain = "".join(letter for letter in normalize("NFKD", name) if not combining(letter))   # Jörg is Jorg, and no J_rg
    readable = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in plain).strip("._-")[:60] or "_"
    return readable if readable == name.lower() else f"{readable}-{sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"


def write(result, folder):
    """Write a Result to `folder`/NAME.json, whole or not at all, and durably. Returns the path."""
    path = Path(folder) / f"{file_name(result.name)}.json"
    write_durably(path, result.model_dump_json(indent=1))
    return path


def write_durably(path, text):
    """Put a text into a file, so that after any death of ours or of the machine it is there whole, or the old one is."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(fresh, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(path):
    """The Result in a file. Raises pydantic.ValidationError or OSError."""
    return Result.model_validate_json(Path(path).read_text(encoding="utf-8"))
