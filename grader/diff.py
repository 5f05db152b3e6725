"""`grader diff OLD NEW`: what changed between two reports, submission by submission, check by check."""

from pathlib import Path

from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from labs.command.refused import Refused
from labs.harness.story import counted

from . import results
from .grade import shown


def show_diff(old, new):
    """Print every difference. Returns 0 where there is none, 1 where there are some. Raises Refused."""
    console, before, after = Console(highlight=False), _read(old), _read(new)
    same = 0
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            console.print(Text(f"{shown(name)}: only in {old if name in before else new}", "yellow"))
            continue
        lines = list(differences(before[name], after[name]))
        if not lines:
            same += 1
            continue
        console.print(Text(f"{shown(name)}: {_score(before[name])} → {_score(after[name])}", "bold"))
        for line in lines:
            console.print(Text(f"  {line}"), soft_wrap=True)
    console.print(f"{same} of {len(before.keys() | after.keys())} are the same")
    return 0 if same == len(before.keys() | after.keys()) else 1


def differences(before, after):
    """What is different in two Results of one submission, in lines."""
    for what, name in (("the submission itself", "submission_hash"), ("what judges", "suite_hash"), ("the seed", "seed"), ("the sample", "sample")):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield f"{what} changed: {str(one)[:12]} → {str(other)[:12]}"
    if before.outcome != after.outcome:
        yield f"{before.outcome} → {after.outcome}" + (f": {shown(after.reason)}" if after.reason else "")
    checks = {(lab.number, check.test): check for lab, check in before.checks}
    for lab, check in after.checks:
        old = checks.pop((lab.number, check.test), None)
        if old is None:
            yield f"{lab.number}/{check.test}: new, {check.status}, {check.points} of {check.possible}"
        elif (old.status, old.points, old.possible) != (check.status, check.points, check.possible):
            yield (f"{lab.number}/{check.test}: {old.status}, {old.points} of {old.possible} → {check.status}, {check.points} of {check.possible}"
                   + (f": {shown(check.why)}" if check.why else ""))
    for (lab, test), check in checks.items():
        yield f"{lab}/{test}: gone, it was {check.status}, {check.points} of {check.possible}"


def _score(result):
    return str(result.outcome) if result.points is None else f"{result.points} of {result.possible}"


def _read(report):
    paths = sorted(Path(report, "results").glob("*.json"))
    if not paths:
        raise Refused(f"{report} has no results: name the folder of a `grader grade --out`")
    found = {}
    for path in paths:
        try:
            result = results.read(path)
        except ValidationError as error:
            raise Refused(f"{path} cannot be read as a result ({counted(error.error_count(), 'fault')}, the first: {error.errors()[0]['msg']}): "
                          "was it written by another version of the grader?") from None
        found[result.name] = result
    return found
