"""How a class stands: what the overview shows of many Results, counted."""

from collections import Counter
from dataclasses import dataclass, field
from statistics import median

from ..results import Figures, Outcome, Status

NOT_YET = "not graded yet"
SAMPLED = "sampled, no grade"   # instead of graded, where sweeps tried a part of their points
BINS = 10   # of the histogram, each a tenth of the points


@dataclass(frozen=True)
class Column:
    """One check, over all submissions. `possible` is what it is worth where it applies."""

    lab: str
    title: str
    number: int      # within the lab, from 1
    test: str
    does: str
    hidden: bool
    possible: int
    statuses: Counter = field(default_factory=Counter)

    @property
    def id(self):
        return f"{self.lab}.{self.number}"

    @property
    def judged(self):
        """In how many submissions somebody can say whether it is right."""
        return sum(count for status, count in self.statuses.items() if not status.is_unknown and status != Status.NOT_APPLICABLE)

    @property
    def failed(self):
        return self.judged - self.statuses[Status.PASSED]


def columns(results):
    """The checks of all results, in the order of the labs: {(lab, test): Column}."""
    found, numbers = {}, Counter()
    for lab, check in sorted(((lab, check) for result in results for lab, check in result.checks), key=lambda pair: pair[0].number):
        key = lab.number, check.test
        if key not in found:
            numbers[lab.number] += 1
            found[key] = Column(lab.number, lab.title, numbers[lab.number], check.test, check.does, check.hidden, check.possible)
        found[key].statuses[check.status] += 1
    return found


def status(result):
    """The outcome of a Result, in words that nobody takes for a grade where it is none."""
    return SAMPLED if result.is_sampled else str(result.outcome)


def percent(result):
    """The score in hundredths of what is possible for this program; None where there is no score."""
    return 100 * result.points / result.possible if result.points is not None and result.possible else None


class Standing:
    """All that the overview says of `results`."""

    def __init__(self, results):
        self.results = results
        self.columns = columns(results)
        self.outcomes = Counter(status(result) for result in results)
        self.sampled = [result for result in results if result.sample > 1]
        self.percents = sorted(score for result in results if (score := percent(result)) is not None)
        self.figures = Figures.together(result.figures for result in results)
        self.weak = [result for result in results if result.isolation and result.isolation.level != "bubblewrap"]

    @property
    def full(self):
        """What is possible where every check applies."""
        return sum(column.possible for column in self.columns.values())

    @property
    def labs(self):
        """{number: its Columns}."""
        found = {}
        for column in self.columns.values():
            found.setdefault(column.lab, []).append(column)
        return found

    @property
    def median(self):
        return median(self.percents) if self.percents else None

    @property
    def bins(self):
        """How many scores there are in each tenth; full marks are in the last one."""
        counts = Counter(min(BINS - 1, int(score * BINS / 100)) for score in self.percents)
        return [counts[number] for number in range(BINS)]

    @property
    def most_failed(self):
        """The Columns that anybody failed, most often first."""
        return sorted((column for column in self.columns.values() if column.failed), key=lambda column: -column.failed)

    @property
    def lacks(self):
        """What the weaker kinds of isolation do not stop: {level: sentences}, with how often each level was used."""
        found = {}
        for result in self.weak:
            count, lacks = found.get(result.isolation.level, (0, result.isolation.lacks))
            found[result.isolation.level] = count + 1, lacks
        return found

    @property
    def ranked(self):
        """Results in the order of the map: the best first, those without a score last."""
        return sorted(self.results, key=lambda result: (-(percent(result) or 0), result.outcome != Outcome.GRADED, result.outcome == Outcome.INVALID))
