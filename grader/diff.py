"""`grader diff OLD NEW`: what changed between two reports, submission by submission, check by check."""

from pathlib import Path

from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from labs.command.refused import Refused
from labs.harness.story import counted

from . import results
from .grade import shown

NAMED = 6   # submissions that are named one by one


def show_diff(old, new):
    """Print every difference. Returns 0 where there is none, 1 where there are some. Raises Refused."""
    console, before, after = Console(highlight=False), _read(old), _read(new)
    both = sorted(before.keys() & after.keys())
    missing = [*_missing(old, before, after), *_missing(new, after, before)]
    labs, lacking = _labs(old, before, new, after)
    for line in [*missing, *lacking]:
        console.print(Text(line, "yellow"), soft_wrap=True)
    same = 0
    for name in both:
        lines = list(differences(before[name], after[name], labs))
        if not lines:
            same += 1
            continue
        console.print(Text(f"{shown(name)}: {_score(before[name], labs)} → {_score(after[name], labs)}", "bold"))
        for line in lines:
            console.print(Text(f"  {line}"), soft_wrap=True)
    console.print(f"the same: {same} of {counted(len(both), 'submission')}{' that both have' if missing else ''}")
    return 0 if same == len(both) and not missing and not lacking else 1


def differences(before, after, labs=None):
    """What is different in two Results of one submission, in lines; with `labs`, numbers, of these alone."""
    for what, name in (("the submission itself", "submission_hash"), ("what judges", "suite_hash"), ("the seed", "seed"), ("the sample", "sample")):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield f"{what} changed: {str(one)[:12]} → {str(other)[:12]}"
    if before.outcome != after.outcome:
        yield f"{before.outcome} → {after.outcome}" + (f": {shown(after.reason)}" if after.reason else "")
    checks = {(lab.number, check.test): check for lab, check in before.checks if not labs or lab.number in labs}
    for lab, check in after.checks:
        if labs and lab.number not in labs:
            continue
        old = checks.pop((lab.number, check.test), None)
        if old is None:
            yield f"{lab.number}/{check.test}: new, {check.status}, {check.points} of {check.possible}"
        elif (old.status, old.points, old.possible) != (check.status, check.points, check.possible):
            yield (f"{lab.number}/{check.test}: {old.status}, {old.points} of {old.possible} → {check.status}, {check.points} of {check.possible}"
                   + (f": {shown(check.why)}" if check.why else ""))
    for (lab, test), check in checks.items():
        yield f"{lab}/{test}: gone, it was {check.status}, {check.points} of {check.possible}"


def _missing(report, there, other):
    """In a line which results of another report this one lacks."""
    if lacking := sorted(other.keys() - there.keys()):
        named = ", ".join(map(shown, lacking[:NAMED])) + (f" and {len(lacking) - NAMED:,} more" if len(lacking) > NAMED else "")
        yield f"{report} has no result of {counted(len(lacking), 'submission')} ({named}): not graded there yet, or not handed in; compared is the rest"


def _labs(old, before, new, after):
    """(the labs to compare, None for all; in lines which ones only one report has)."""
    one, other = ({lab.number for result in found.values() for lab in result.labs} for found in (before, after))
    lines = [f"{report} has no lab {', '.join(sorted(lacking))}: compared is the rest"
             for report, lacking in ((old, other - one), (new, one - other)) if lacking and one & other]
    return (one & other if lines else None), lines


def _score(result, labs):
    if result.points is None:
        return str(result.outcome)
    counting = [lab for lab in result.labs if not labs or lab.number in labs]
    return f"{sum(lab.points for lab in counting)} of {sum(lab.possible for lab in counting)}"


def _read(report):
    paths = sorted(Path(report, "results").glob("*.json"))
    if not paths:
        raise Refused(f"{report} has no result yet: nothing of it is graded; the same `grader grade` goes on with it" if Path(report, "journal.sqlite").exists()
                      else f"{report} has no results: name the folder of a `grader grade --out`")
    found = {}
    for path in paths:
        try:
            result = results.read(path)
        except ValidationError as error:
            raise Refused(f"{path} cannot be read as a result ({counted(error.error_count(), 'fault')}, the first: {error.errors()[0]['msg']}): "
                          "was it written by another version of the grader?") from None
        found[result.name] = result
    return found
