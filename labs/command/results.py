"""How the checks of a lab ended, from the records of the suites."""

import json
from dataclasses import dataclass, field

from labs.harness import records, verdict
from labs.harness.manifest import Check, Lab

from .kit import EVIDENCE
from .refused import Refused


@dataclass
class Tally:
    """One lab's checks, and what is known of each. A check passes as a whole or not at all."""

    lab: Lab
    checks: list[Check]
    statuses: dict[str, set] = field(default_factory=dict)
    whys: dict[str, str] = field(default_factory=dict)   # of a check that did not pass, the first reason

    @classmethod
    def of_public(cls, lab):
        """The checks that a learner sees, none of them run yet."""
        return cls(lab, [check for check in lab.checks if not check.hidden])

    def add(self, entry):
        """Take in one line of results."""
        self.statuses.setdefault(entry["check"], set()).add(entry["status"])
        if entry["status"] != "passed" and entry.get("why"):
            self.whys.setdefault(entry["check"], entry["why"])

    def verdict(self, check):
        """"passed", "failed", "not run", "not applicable", or "could not check": the suite broke, which says nothing."""
        found = verdict.of_check(self.statuses.get(check.test, ()))
        return "could not check" if found in ("error", "skipped") else found

    def having(self, verdict):
        """The checks with that verdict, in the order of the manifest."""
        return [check for check in self.checks if self.verdict(check) == verdict]

    @property
    def counted(self):
        """The checks that have something to say of this program. The points of the others leave the total."""
        return [check for check in self.checks if self.verdict(check) != "not applicable"]

    @property
    def open(self):
        """The counted checks that have not passed, in the order of the manifest."""
        return [check for check in self.counted if self.verdict(check) != "passed"]

    @property
    def solved(self):
        return not self.open


def last_run(labs):
    """What the last run of the suites left in .lab-evidence, whatever was swept since: a Tally per lab, and the dict that says which run it was.

    Hidden checks count where that run had them. Raises Refused where nothing is left of a run.
    """
    folder = max((path.parent for path in EVIDENCE.glob("*/results.jsonl") if not path.parent.is_symlink()), default=EVIDENCE / "latest")
    try:
        found = records.outcomes(records.read(folder / "results.jsonl"))
    except OSError:
        found = []
    if not found:
        raise Refused("no run has left results here: run `python -m labs status`, or `pytest labs/01`")
    tallies = []
    for lab in labs:
        mine = [entry for entry in found if entry["lab"] == lab.number]
        ran = {entry["check"] for entry in mine}
        tally = Tally(lab, [check for check in lab.checks if not check.hidden or check.test in ran])
        for entry in mine:
            tally.add(entry)
        tallies.append(tally)
    return tallies, about(folder)


def about(session):
    """What the session in an evidence folder says of itself, as far as it can be read: `began`, `program`, `seed`, `selection`; `what` it was
    of, checks or sweeps; of sweeps, the `lab`.
    """
    try:
        found = json.loads((session / "session.json").read_text())
    except (OSError, ValueError):
        found = None
    unknown = {"began": "an unknown time", "program": "an unknown program", "seed": "?", "selection": False, "what": "check"}
    return unknown | (found if isinstance(found, dict) else {})
