"""What a sweep found: how many points there were, and what came of each."""

from dataclasses import dataclass, field

from ..killmap import BAD, Struck
from ..story import tell

STORIES = 3   # kept of one sentence; the others happened likewise


@dataclass
class Outcome:
    """What came of one point. `struck` lays it on the source, where it can be laid."""

    point: str
    outcome: str                 # of killmap.MARKS
    why: str = ""
    story: tuple = ()
    struck: Struck | None = None
    program: object = None       # of the first bad ones: for the evidence, not discarded yet

    @property
    def bad(self):
        return self.outcome in BAD


@dataclass
class Result:
    """One kind of sweep over one scenario.

    `seconds` is how long it took. `could_not` says why nothing could be found out, `not_applicable` why there is nothing to
    find out, both None where there was; `blind` is what the program did that keeps points from being reached.
    """

    kind: str
    scenario: str = ""
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    left_out: int = 0            # points of a run with very many of them
    could_not: str | None = None
    not_applicable: str | None = None
    blind: str | None = None

    @property
    def bad(self):
        return [outcome for outcome in self.outcomes if outcome.bad]

    @property
    def reached(self):
        return [outcome for outcome in self.outcomes if outcome.outcome != "not reached"]

    @property
    def fault(self):
        """In a sentence why the program does not pass, or None. Few unreached points are none: no two runs are the same."""
        if self.bad:
            first = self.bad[0]
            return f"at {first.point} ({len(self.bad)} of {len(self.outcomes)} points failed): {first.why}"
        if self.blind:
            return self.blind
        missed = len(self.outcomes) - len(self.reached)
        if 10 * missed > len(self.outcomes):
            return f"{missed} of {len(self.outcomes)} points were not reached again: no two runs of the program are alike"
        return None


class Stories:
    """Tells the stories of bad trials, the first few of each sentence; and keeps the program of the very first."""

    def __init__(self, ground):
        self._ground, self._told, self._kept = ground, {}, None

    def outcome(self, point, program, outcome, why, **struck):
        """The Outcome of a trial of `program`, which is discarded; `struck` has the fields of Struck that say where it was."""
        story, kept = (), None
        if outcome in BAD:
            self._told[why] = self._told.get(why, 0) + 1
            if self._told[why] <= STORIES:
                story = tuple(tell(program))
            if self._kept is None:
                self._kept = kept = program
        if kept is None:
            self._ground.discard(program)
        laid = Struck(point=point, outcome=outcome, why=why, story=story, **struck) if struck.get("file") else None
        return Outcome(point, outcome, why, story, laid, kept)
