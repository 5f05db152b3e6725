"""Where a program can be killed and where it cannot: its own source, every line marked with what became of the kills there.

A sweep kills a program at point after point, resumes it each time and judges what came of it. Here the points are laid
on the source: as a page that needs nothing else, or as data for whoever draws it another way.
"""

import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import CodeType

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .staging import shipped_texts
from .story import printable

MARKS = {  # worst first: how a line is marked, in a sign and in words
    "repeated": ("2×", "effect repeated"),
    "outlived": ("↷", "process lived on"),
    "lost": ("∅", "unrecorded or stuck"),
    "broken": ("✗", "record broken"),
    "not reached": ("○", "not killed"),
    "safe": ("✓", "safe"),
}
BAD = ("repeated", "outlived", "lost", "broken")
OFTEN = 0.3     # the share of kills that has to do harm for a line to be called unsafe: a call that acts unrecorded is safe until it has acted
LONGEST = 2000  # characters of a line or a sentence
LABEL = 15      # columns of a story that hold its labels: see `story.wrapped`


@dataclass(frozen=True)
class Struck:
    """One point of a sweep, and what came of the kill there."""

    kind: str                    # "line" or "system call"
    scenario: str                # which run was killed: "start", "resume", "start, things failing"
    file: str                    # "flow.py": relative to the program's package folder, with slashes
    line: int                    # from 1: a line that was about to run or under way
    point: str                   # in words: "before flow.py:31, the 2nd time"
    outcome: str                 # a key of MARKS; "not reached" if the run did not come to the point
    why: str                     # one sentence; "" if it was safe
    story: tuple[str, ...]       # the lines of `story.tell`; () if it was safe
    inner: bool = True           # whether it is the innermost of the lines that were under way: each point has one


@dataclass(frozen=True)
class Line:
    """A line of source. `text` can be shown anywhere; `mark` is a key of MARKS, or None where nothing can be run."""

    number: int
    text: str
    mark: str | None
    points: tuple[Struck, ...]

    @property
    def bad(self):
        return self.mark in BAD

    @property
    def kills(self):
        """How many of the points the program was killed at."""
        return sum(point.outcome != "not reached" for point in self.points)

    @property
    def bad_kills(self):
        return sum(point.outcome in BAD for point in self.points)

    @property
    def share(self):
        """Which part of the kills there did harm, from 0 to 1."""
        return self.bad_kills / self.kills if self.kills else 0.0

    @property
    def groups(self):
        """The points as lists, each of one outcome and one `why`; the worst first."""
        groups = defaultdict(list)
        for point in self.points:
            groups[point.outcome, point.why].append(point)
        return sorted(groups.values(), key=lambda group: _badness(group[0].outcome))


@dataclass(frozen=True)
class File:
    name: str
    lines: tuple[Line, ...]

    @property
    def bad(self):
        return [line for line in self.lines if line.bad]

    @property
    def marks(self):
        """How many lines have each mark."""
        return Counter(line.mark for line in self.lines if line.mark)

    @property
    def runs(self):
        """Neighbours with the same mark, as lists of lines."""
        return _runs(self.lines)


class Mapped:
    """The points of a sweep, laid on the source.

    `files` are in the order in which to look at them: first those with lines in `where`, of these first what is not as the
    starter gave it, then those with bad lines, then by name.
    `where` has the lines where the program is unsafe, by file: those at which three kills in ten or more did harm; all bad
    ones where there is none like that. A line that is under way for long, like a call of `main`, is bad soon and unsafe late. `marks` counts
    lines by mark, `outcomes` counts points by outcome, `kinds` kills by kind; `harmful` is the number of kills that did harm.
    """

    def __init__(self, sources, struck):
        """`sources` maps the name of a file to its text. A point outside of it still has its line, with an empty text."""
        points = defaultdict(lambda: defaultdict(list))
        self.outcomes, self.kinds = Counter(), Counter()
        for point in struck:
            points[point.file][point.line].append(point)
            self.outcomes[point.outcome] += point.inner
            self.kinds[point.kind] += point.inner and point.outcome != "not reached"
        files = [_file(name, sources.get(name, ""), points[name]) for name in sources | points]
        least = OFTEN if any(line.share >= OFTEN for file in files for line in file.bad) else 0.0
        self.where = {file.name: [line for line in file.bad if line.share >= least] for file in files}
        given = {name for name, text in shipped_texts().items() if sources.get(name) == text}
        self.files = sorted(files, key=lambda file: (not self.where[file.name], file.name in given, not file.bad, file.name))
        self.marks = sum((file.marks for file in files), Counter())
        self.harmful = sum(self.outcomes[outcome] for outcome in BAD)

    @property
    def verdict(self):
        killed = self.kinds.total()
        if not killed:
            return "Nothing was killed here"
        # A sweep has more points than these: its map has no place for a kill where the interpreter was at work for itself.
        at = f"{_kills(killed)} at lines of the program"
        return f"{self.harmful:,} of {at} did harm" if self.harmful else f"{at}, and none did harm"


def _runs(lines):
    """Lines with the same mark that follow each other, as lists."""
    place = {line.number: place for place, line in enumerate(lines)}
    return [list(run) for _, run in groupby(lines, key=lambda line: (line.mark, line.number - place[line.number]))]


def page(sources, struck, title, about):
    """The kill map as an HTML document, in a string: it needs no other file and no network, and reads without JavaScript.

    `sources` and `struck` are those of `Mapped`; `title` and `about`, a heading and a sentence, stand over it.
    """
    return _TEMPLATE.render(map=Mapped(sources, struck), title=title, about=about)


def executable(text):
    """The numbers of the lines, from 1, that Python could run: an empty set if the text is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _lines_of(compile(text, "source", "exec", dont_inherit=True))
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return set()


def _lines_of(code):
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    # What is only set-up has the number 0 or None.
    return {number for _, _, number in code.co_lines() if number}.union(*map(_lines_of, inner))


def _file(name, text, points):
    # Not splitlines(): it also splits at characters that end no line of Python.
    texts = dict(enumerate(text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n"), 1))
    runnable = executable(text)
    return File(shown(name), tuple(
        Line(number, shown(texts.get(number, "").expandtabs(4)), _mark(points[number], number in runnable), tuple(points[number]))
        for number in sorted(texts | points)))


def _mark(points, runnable):
    return min((point.outcome for point in points), key=_badness, default="not reached" if runnable else None)


def _badness(outcome):
    return list(MARKS).index(outcome)


def shown(text):
    """The text as it can be shown on a terminal or a page: of no more than LONGEST characters, all of them printable."""
    return printable(text if len(text) <= LONGEST else f"{text[:LONGEST]} … and {len(text) - LONGEST:,} characters more")


def _told(story):
    """The lines of a story as [label, text] pairs, so that a page can break them where it likes."""
    parts = []
    for line in story:
        label, text = line[:LABEL].strip(), line[LABEL:].strip()
        if label or not parts:
            parts.append([label, text])
        else:
            parts[-1][1] += f" {text}"
    return parts


def _kills(count):
    return f"{count:,} kill{'s' * (count != 1)}"


_ENVIRONMENT = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                           loader=FileSystemLoader(Path(__file__).parent))
_ENVIRONMENT.filters |= {"shown": shown, "told": _told, "kills": _kills, "runs": _runs}
_ENVIRONMENT.globals |= {"MARKS": MARKS, "BAD": BAD}
_TEMPLATE = _ENVIRONMENT.get_template("killmap.html.jinja")
