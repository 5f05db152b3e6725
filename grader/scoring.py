"""From the records of a submission's checks to its Result. Closed: what is not recorded as passed earns nothing."""

from collections import defaultdict

from labs.harness import manifest
from labs.harness.records import collected
from labs.harness.staging import KIT
from labs.harness.story import counted

from .results import CheckResult, Figures, LabResult, Outcome, Status

_STATUSES = {"passed": Status.PASSED, "not applicable": Status.NOT_APPLICABLE, "could not check": Status.COULD_NOT_CHECK,
             "error": Status.GRADER_ERROR, "skipped": Status.MISSING}
#: Of the items of one check the first of these decides: a failure is one whatever else could not be found out.
_WORST_FIRST = (Status.SURVIVORS, Status.OUT_OF_MEMORY, Status.OUTPUT_LIMIT, Status.TIMEOUT, Status.CRASHED, Status.FAILED,
                Status.GRADER_ERROR, Status.COULD_NOT_CHECK, Status.MISSING, Status.PASSED, Status.NOT_APPLICABLE)


def lab_results(found, labs, evidence="", checks=()):
    """The LabResults of these labs, from the records that were `found`. `evidence` goes before the folders of evidence.

    With `checks`, like 02/test_effects.py::test_x, they are of these alone.
    """
    items, there, broke = defaultdict(dict), defaultdict(list), any("trouble" in entry for entry in found)
    for lab, check, item in collected(found):
        there[lab, check].append(item)
    for entry in found:
        if "status" in entry:
            items[entry["lab"], entry["check"]][entry["item"]] = entry
    read = [manifest.read(KIT / "labs" / lab) for lab in labs]
    results = [LabResult(number=lab.number, title=lab.title,
                         checks=[_check(check, there[lab.number, check.test], items[lab.number, check.test], evidence, broke)
                                 for check in lab.checks if not checks or f"{lab.number}/{check.test}" in checks])
               for lab in read]
    return [lab for lab in results if lab.checks]


def _check(check, there, entries, evidence, broke):
    statuses = {item: _status(entries.get(item), broke) for item in there}
    worst = min(statuses.values(), key=_WORST_FIRST.index, default=Status.GRADER_ERROR)   # a check that is not there is ours to mend
    entry = next((entries[item] for item in there if statuses[item] == worst and item in entries), {})
    passed = worst == Status.PASSED
    why = None if passed else entry.get("why") or ("the suite has no such check" if not there else "there is no record that it passed")
    return CheckResult(test=check.test, does=check.does, hidden=check.hidden, possible=check.points, points=check.points if passed else 0,
                       status=worst, seconds=round(sum(entry["seconds"] for entry in entries.values()), 3), why=_valid(why),
                       story=None if passed else _valid(entry.get("story")),
                       evidence=f"{evidence}{entry['evidence']}" if not passed and entry.get("evidence") else None)


def _valid(text):
    """A text that can be written down: a program may print half a letter, which is none in any encoding."""
    return text and text.encode(errors="backslashreplace").decode()


def _status(entry, broke):
    if entry is None:
        return Status.GRADER_ERROR if broke else Status.MISSING   # we did not come to it
    if entry["status"] == "failed":
        return Status(entry.get("kind") or "failed")
    return _STATUSES.get(entry["status"], Status.GRADER_ERROR)


def figures(found):
    """What the sweeps say of the runs that they killed; of a sweep that was made again the last counts."""
    sweeps = {(entry["sweep"], entry["scenario"]): entry for entry in found if "sweep" in entry}
    return Figures.together(Figures(**{name: entry[name] for name in Figures.model_fields}) for entry in sweeps.values())


def outcome(found, labs):
    """(Outcome, in a sentence why the score is not final, or None)."""
    unknown = [(lab, check) for lab in labs for check in lab.checks if check.status.is_unknown]
    if not unknown:
        return Outcome.GRADED, None
    trouble = next((entry["trouble"] for entry in found if "trouble" in entry), None)
    lab, check = unknown[0]
    return Outcome.INCOMPLETE, (f"{counted(len(unknown), 'check')} could not be made, of {counted(sum(check.possible for _, check in unknown), 'point')}; "
                                f"lab {lab.number}, {check.test}: {check.status}, {trouble or check.why}")
