"""The report as pages for people: the class, and each submission. A page needs no other file and no network, and reads without JavaScript.

Whatever a submission wrote is escaped; no other script than the page's own can run in it, since its policy names that one's hash.
"""

import re
import shlex
from base64 import b64encode
from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256
from math import floor
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from labs.harness.story import OTHERS, SAID, counted

from ..results import Outcome, Status, file_name
from .handed_out import handed_out
from .shown import line, lines, told
from .standing import BINS, NOT_YET, SAMPLED, Standing, columns, percent, status

SIGNS = {  # what a check's end looks like: a sign, and the class of its colour
    Status.PASSED: ("✓", "passed"),
    Status.FAILED: ("✗", "failed"),
    Status.CRASHED: ("!", "fault"),
    Status.TIMEOUT: ("T", "fault"),
    Status.OUT_OF_MEMORY: ("M", "fault"),
    Status.OUTPUT_LIMIT: ("O", "fault"),
    Status.SURVIVORS: ("S", "fault"),
    Status.MISSING: ("N", "fault"),
    Status.COULD_NOT_CHECK: ("?", "unknown"),
    Status.GRADER_ERROR: ("G", "unknown"),
    Status.NOT_APPLICABLE: ("–", "idle"),
}
OUTCOMES = {Outcome.GRADED: ("✓", "passed"), SAMPLED: ("≈", "fault"), Outcome.INCOMPLETE: ("?", "unknown"), Outcome.INVALID: ("✗", "failed"), NOT_YET: ("…", "idle")}
FIGURES = {  # of results.Figures: what each is called, and what it says
    "resumed": ("resumption success", "Of the runs that were killed: the next start ended well and asked for no finished step again. After a kill before the run was known, that is a new `start`, which needs no `resume`. The target is all."),
    "duplicated": ("duplicate actions", "Of the runs that were killed: a refund or a mail happened more than once. The target is 0."),
    "completed": ("completion", "Of the runs that were killed: in the end there was a refund and a mail. The target is all."),
    "seconds": ("time to resume", "How long the next start took to the end, for those that resumed: half of them at most this."),
}
TARGETS = {"resumed": 1, "duplicated": 0, "completed": 1}   # shares of all kills
MOST = 8                 # checks that are shown as most often failed
DROPPED = 200            # of what was left out, that are named
EVIDENCE = 2_000_000     # bytes of one file; of all kill maps of a page, twice that


def index(results, about):
    """The page of the class, in a string. `about` is that of `write_reports`."""
    standing = Standing(results)
    return _render("index", standing=standing, about=about, unfinished=about.get("unfinished", ()), ignored=about.get("ignored", ()))


def submission(result, report):
    """The page of one submission, in a string, to be handed out; its evidence is read from the folder `report`."""
    result = handed_out(result)
    numbers = {key: column.id for key, column in columns([result]).items()}
    lost = [(lab, check) for lab, check in result.checks if check.status not in (Status.PASSED, Status.NOT_APPLICABLE)]
    lost.sort(key=lambda pair: (pair[0].number, -pair[1].possible))   # each lab builds on those before it
    return _render("submission", result=result, numbers=numbers, evidence=_Evidence(report), lost=lost,
                   common_cause=_common_cause([check for _, check in lost]))


class _Evidence:
    """What a check left behind, as far as it is a file of the report's own evidence."""

    def __init__(self, report):
        self._report, self._left = Path(report), 2 * EVIDENCE

    def timeline(self, check):
        """The timeline as the address of an image, in which nothing can run; None where there is none."""
        data = self._read(check, "timeline.svg")
        return data and "data:image/svg+xml;base64," + b64encode(data).decode()

    def killmap(self, check):
        """The kill map as a document for a frame, or None: there is none, or the page has enough of them."""
        data = self._read(check, "killmap.html")
        if not data or len(data) > self._left:
            return None
        self._left -= len(data)
        # Without the base a link to a line would open our page within the frame; and its script would not run there.
        text = data.decode(errors="replace").replace("<head>", '<head><base href="about:srcdoc">', 1)
        return re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL)

    def link(self, check):
        """The address of the kill map itself, from a page of a submission; None where there is none, or where it would name a hidden check."""
        return f"../{quote(check.evidence)}/killmap.html" if not check.hidden and self._read(check, "killmap.html") else None

    def _read(self, check, name):
        if not check.evidence:
            return None
        try:
            path = (self._report / check.evidence / name).resolve()
            if path.is_relative_to((self._report / "evidence").resolve()) and path.is_file() and path.stat().st_size <= EVIDENCE:
                return path.read_bytes()
        except (OSError, ValueError):
            pass   # the verdict stands without it
        return None


# ---- parts of a Result

def _of_labs(result):
    """{number of a lab: (points, possible)}; the points are None where something could not be checked."""
    return {lab.number: (None if any(check.status.is_unknown for check in lab.checks) else lab.points, lab.possible) for lab in result.labs}


def _cells(result, columns):
    """The cells of a row of the map: the sign of each, and its classes."""
    statuses = {(lab.number, check.test): check.status for lab, check in result.checks}
    for key, column in columns.items():
        sign, kind = SIGNS[statuses[key]] if key in statuses else ("", "none")
        yield sign, f"'{kind} first'" if column.number == 1 else kind


def _again(result):
    """The command that grades a submission once more."""
    labs = ",".join(str(int(lab.number)) for lab in result.labs if lab.number.isdecimal()) or "1-5"
    sample = ["--sample", str(result.sample)] if result.sample > 1 else []
    return line(shlex.join(["grader", "grade", "SUBMISSIONS", f"--only={result.name}", "--labs", labs, "--seed", str(result.seed), *sample, "--out", "AGAIN"]))


# ---- words and numbers

def _prose(text):
    """One line of ours, in which what stands between backticks is code; whatever else is in it stays text."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(line(text)))))


def _sentence(text):
    """A sentence that begins with a capital letter, unless it begins with code."""
    return text[:1].upper() + text[1:]


def _common_cause(checks):
    """What a program said last in at least half of the checks that it failed, as (what, in how many, of how many): one that does not start fails them all for that."""
    failed = [check for check in checks if not check.status.is_unknown]
    said = Counter(check.why.partition(SAID)[2].partition(OTHERS)[0] for check in failed if SAID in (check.why or ""))
    [(words, number)] = said.most_common(1) or [("", 0)]
    return (words, number, len(failed)) if number > 1 and 2 * number >= len(failed) else None


def _number(value):
    """A number with one decimal, if it needs one."""
    return f"{value:,.1f}".removesuffix(".0")


def _share(part):
    """A share in per cent that never looks like none or all where it is not."""
    if part is None:
        return "–"
    return "under 0.1 %" if 0 < part < 0.001 else f"{_number(floor(round(part * 1000, 6)) / 10)} %"


def _when(text):
    """A time in ISO 8601, to the minute in UTC; of what is no such time, the text itself."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return line(text)


def _seconds(value):
    return "–" if value is None else f"{value * 1000:,.0f} ms" if value < 1 else f"{value:,.1f} s"


# ---- rendering

_FOLDER = Path(__file__).parent
_ENVIRONMENT = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FileSystemLoader(_FOLDER))
_ENVIRONMENT.filters |= {"line": line, "lines": lines, "told": told, "prose": _prose, "sentence": _sentence, "count": counted, "number": _number, "share": _share,
                         "seconds": _seconds, "percent": percent, "of_labs": _of_labs, "cells": _cells, "when": _when, "status": status, "file_name": file_name}
_ENVIRONMENT.globals |= {"SIGNS": SIGNS, "OUTCOMES": OUTCOMES, "FIGURES": FIGURES, "TARGETS": TARGETS, "MOST": MOST, "DROPPED": DROPPED, "BINS": BINS,
                         "NOT_YET": NOT_YET, "again": _again, "style": Markup((_FOLDER / "style.css").read_text(encoding="utf-8"))}


def _render(name, **data):
    script = "".join((_FOLDER / f"{part}.js").read_text(encoding="utf-8") for part in (name, "scroll"))
    policy = f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
    return _ENVIRONMENT.get_template(f"{name}.html.jinja").render(script=Markup(script), policy=policy, **data)
