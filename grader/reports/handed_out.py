"""What of a Result its author may read: all of it, but of a hidden check nothing beyond the line that announces it.

The pages of submissions and Gradescope's files are made of this; the page of the class and the other exports, which the instructor keeps, have all.
"""

import re

from labs.harness.story import counted

from ..results import LabResult, Outcome, Status
from .shown import line

ELSEWHERE = ("look", "kill map")   # of a story: where things lie on the grader's machine, under names that hidden checks have
WITHHELD = "the check broke; your instructor can read how"
NOT_TOLD = "it is not as the check announces"
_LABEL = re.compile(r"  (\S.{0,12}?) *(?:  |$)")
_OURS = re.compile(r"(?:^|\n|: )assert |\n\s*\+  where |\bhidden/")   # of a suite's source, as pytest shows it where an assertion has no words


def handed_out(result):
    """The Result as its author may read it. Hidden checks are called hidden/1, hidden/2, … of their lab."""
    labs = [LabResult(number=lab.number, title=lab.title, checks=[_check(check, place) for place, check in enumerate(lab.checks, 1)])
            for lab in result.labs]
    found = result.model_copy(update={"labs": labs})
    return found.model_copy(update={"reason": _incomplete(found)}) if result.outcome == Outcome.INCOMPLETE else found


def _check(check, place):
    story = check.story and _without(check.story, ELSEWHERE)
    if not check.hidden:
        return check.model_copy(update={"story": story})
    changed = {"test": f"hidden/{place}", "story": story}
    if check.status == Status.GRADER_ERROR:
        changed |= {"why": WITHHELD, "story": None, "evidence": None}
    elif _tells_of(check, check.why):
        changed |= {"why": NOT_TOLD, "story": story and _without(story, ("why", "this check")), "evidence": None}
    elif _tells_of(check, story):
        changed |= {"story": None, "evidence": None}
    return check.model_copy(update=changed)


def _tells_of(check, text):
    """Whether a text has something of the suite's source in it, or the name of the check."""
    file, _, name = check.test.rpartition("::")
    names = {name, name.removeprefix("test_"), name.removeprefix("test_").replace("_", "-"), file.rpartition("/")[2].removesuffix(".py")} - {""}
    return bool(text) and (bool(_OURS.search(text)) or any(name in text for name in names))


def _without(story, labels):
    """A story without what stands under these labels."""
    kept, left_out = [], False
    for part in story.split("\n"):
        if label := _LABEL.match(part):
            left_out = label[1] in labels
        elif not part.startswith(" " * 17):
            left_out = False
        if not left_out:
            kept.append(part)
    return "\n".join(kept)


def _incomplete(result):
    """Why there is no final score, of what may be read."""
    unknown = [(lab, check) for lab, check in result.checks if check.status.is_unknown]
    if not unknown:
        return "not every check could be made"
    lab, check = unknown[0]
    return (f"{counted(len(unknown), 'check')} could not be made, of {counted(sum(check.possible for _, check in unknown), 'point')}; "
            f"lab {lab.number}, “{line(check.does)}”: {check.status}" + (f", {check.why}" if check.why else ""))
