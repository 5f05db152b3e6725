"""What a sweep found: how many points there were, and what came of each."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from ..killmap import MARKS, Struck
from ..story import counted, more_like, tell
from .rules import RESUMED, RULES

STORIES = 3   # kept of one sentence; the others happened likewise


@dataclass(frozen=True)
class Outcome:
    """What came of one point: the rules that were broken there, as of rules.judged().

    `place` is the kind of point, the scenario, and the lines that were under way, the innermost first, as (file, line); None where
    it has no place in the source. `like` is the same for points that only differ in how often the run came there before.
    `program` is one that was not discarded: of the first point at which a rule was broken. `after` is what rules.aftermath() says
    of a run that was killed and gone on with; `trace_free` whether the kill left nothing. `to_the_kill` is the story without what went on with the run.
    """

    point: str
    broken: dict
    reached: bool = True
    story: tuple = ()
    place: tuple | None = None
    like: tuple | None = None
    program: object = None
    after: tuple | None = None
    trace_free: bool = False
    to_the_kill: tuple = ()

    def under(self, rules):
        """The worst that came of it under these rules: an outcome of killmap.MARKS, and a sentence."""
        found = [self.broken[rule] for rule in rules if rule in self.broken]
        return min(found, key=lambda verdict: list(MARKS).index(verdict[0]), default=("safe" if self.reached else "not reached", ""))

    def told(self, rules):
        """Its story, for one who judges by these rules."""
        return self.story if RESUMED in rules else self.to_the_kill


@dataclass
class Result:
    """One kind of sweep over one scenario, judged by `rules`.

    `seconds` is how long it took; `left_out` how many points were not tried. `could_not` says why not all could be found out, `not_applicable`
    why there is nothing to find out, both None where there was; `blind` is what the program did that keeps points from being seen;
    `undisturbed` the rules that it breaks without being killed.
    """

    kind: str
    scenario: str = ""
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    left_out: int = 0
    could_not: str | None = None
    not_applicable: str | None = None
    blind: str | None = None
    undisturbed: dict = field(default_factory=dict)
    rules: tuple = tuple(RULES)

    def under(self, rules):
        """The same, judged by these rules alone."""
        return replace(self, rules=rules)

    @cached_property
    def bad(self):
        """The outcomes that broke one of the rules, as (outcome, its mark, why)."""
        found = [(outcome, *outcome.under(self.rules)) for outcome in self.outcomes]
        return [entry for entry in found if entry[1] not in ("safe", "not reached")]

    @property
    def figures(self):
        """What came of the runs that were killed and gone on with: how many of them `resumed`, were `duplicated` and `completed`, and the seconds."""
        found = [outcome.after for outcome in self.outcomes if outcome.after]
        resumed, duplicated, completed, seconds = zip(*found) if found else [()] * 4
        return {"kills": len(found), "resumed": sum(resumed), "duplicated": sum(duplicated), "completed": sum(completed),
                "resume_seconds": [round(second, 4) for second, did in zip(seconds, resumed) if did]}

    @property
    def missed(self):
        """How many points the program did not come to when it was to be killed there."""
        return sum(not outcome.reached for outcome in self.outcomes)

    @property
    def never_struck(self):
        """Which part of the places it was not killed at once, from 0 to 1: one that waits in a loop comes to the same place more or less often."""
        places = {outcome.like or outcome.point for outcome in self.outcomes}
        struck = {outcome.like or outcome.point for outcome in self.outcomes if outcome.reached}
        return 1 - len(struck) / len(places)

    @property
    def fault(self):
        """In a sentence why the program does not pass, or None. A few unreached points are no fault: no two runs are the same."""
        if self.bad:
            outcome, _, why = self.bad[0]
            alike, others = more_like([why for _, _, why in self.bad])
            return f"{outcome.point} ({len(self.bad)} of {counted(len(self.outcomes), 'point')} failed{alike}): {why}{others}"
        if self.could_not or self.not_applicable:
            return None
        if self.blind:
            return self.blind
        if not self.outcomes:
            return "there was no point to kill it at"
        if self.never_struck > 0.1:
            return f"{self.missed} of {counted(len(self.outcomes), 'point')} were not reached again, {self.never_struck:.0%} of the places: no two runs of the program are alike"
        return None

    @property
    def struck(self):
        """The outcomes that have a place in the source, as killmap.Struck: one for each line that was under way."""
        if set(self.undisturbed) & set(self.rules):
            return   # it is wrong everywhere, and to say so of each line would not say where
        for outcome in self.outcomes:
            mark, why = outcome.under(self.rules)
            kind, scenario, lines = outcome.place or ("", "", [])
            for depth, (file, line) in enumerate(dict.fromkeys(lines)):
                yield Struck(kind, scenario, file, line, outcome.point, mark, why, outcome.told(self.rules) if why else (), inner=depth == 0)


class Stories:
    """Makes Outcomes on many threads, and takes them in the order of their points.

    Which of the bad ones have their stories told and which programs are kept is decided in that order, not by who ended first: `outcomes`
    has the first few of each sentence with their stories, and the first of each rule with its program.
    """

    def __init__(self, ground):
        self.outcomes = []
        self._ground, self._told, self._kept, self._free = ground, {}, set(), False

    def outcome(self, point, program, broken, reached=True, place=None, like=None, after=None, trace_free=False):
        """The Outcome of a trial of `program`, which is discarded where no rule was broken, and else by take()."""
        if not broken:
            self._ground.discard(program)
        return Outcome(point, broken, reached, (), place, like, program if broken else None, after, trace_free)

    def take(self, outcome):
        """Add the next Outcome to `outcomes`."""
        whys = {why for _, why in outcome.broken.values()}
        story = to_the_kill = ()
        if any(self._told.get(why, 0) < STORIES for why in whys):
            story, to_the_kill = tuple(tell(outcome.program)), tuple(tell(outcome.program, gone_on_with=False))
        for why in whys:
            self._told[why] = self._told.get(why, 0) + 1
        first = set(outcome.broken) - self._kept
        self._kept |= first
        if outcome.program and not first:
            self._ground.discard(outcome.program)
        # Of the kills that left nothing, how many were gone on with before the first had its verdict is a matter of threads: one counts.
        after = None if outcome.trace_free and self._free else outcome.after
        self._free = self._free or bool(outcome.trace_free and after)
        self.outcomes.append(replace(outcome, story=story, to_the_kill=to_the_kill, program=outcome.program if first else None, after=after))

    def taking(self, done):
        """A `done` for side_by_side() that takes each Outcome and calls the other `done`."""
        def take(outcome):
            self.take(outcome)
            done(outcome)
        return take
