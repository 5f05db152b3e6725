"""The layout of a timeline from left to right: the order of everything is exact, the distances are made to fit the words."""

import textwrap

from rich.cells import cell_len

from .events import Hidden
from .story import SHOWN, printable

WIDTH, MARGIN, GUTTER = 800, 16, 134   # pixels: of the picture, around it, and of the lanes' names
FONT, CELL = 12, 0.603                 # pixels, and what part of them a character of a monospaced font is wide
BAR, GAP, BREAK = 16, 8, 12            # pixels: of a bar that lasts no time, around a label, more for a pause
LABEL, MARK = 14, 20                   # characters in a line of a label, and of how a process ended
PAUSE = 0.05                           # seconds in which nothing happens that are cut out
CALLS = 24                             # requests that are shown at most
STEPS, STAIRS = (64, 46, 34, 24, 18), (1, 2, 4)  # pixels from moment to moment, rows of one lane: the first that fit
NEVER = float("inf")
SERVICES = ("model", "payments", "mail", "elsewhere")


def width(text, size=FONT):
    """How many pixels wide a text is at most. Reckoned from a monospaced font, so that labels can be kept apart."""
    return cell_len(text) * size * CELL


def cut(text, cells):
    """A text that is at most so many characters wide and holds nothing that cannot be shown."""
    text = printable(" ".join(text[:10 * cells].split()))
    if cell_len(text) <= cells:
        return text
    while cell_len(text) >= cells:
        text = text[:-1]
    return text + "…"


def label(what):
    """The lines that stand at a Call or at Hidden ones: what it did, and what became of it."""
    return _lines(what.deed), _lines(what.outcome)


def _lines(text):
    parts = text.split(", ") if len(text) > LABEL else [text]
    parts = [*(f"{part}," for part in parts[:-1]), parts[-1]]
    return [cut(line, LABEL) for part in parts for line in textwrap.wrap(part[:200], LABEL)]


class Layout:
    """The place of everything along the time.

    `at` has (left, right) in pixels, `depth` what is above what: (0, lane of a process), (1, lane of a service, row).
    `pauses` are where time is cut out, `ticks` are (x, seconds, whether a process starts or ends). `reach` is how far
    it goes to the right.
    """

    def __init__(self, senders, starts, calls, hidden, step, stairs):
        self.senders, self.starts, self.calls, self.hidden, self.more_starts = senders, starts, calls, hidden, 0
        self.at, self.depth, self.pauses, self.ticks, self.reach = {}, {}, [], [], 0
        self.rows = {lane: [None] for lane in SERVICES[:3]}  # of each lane; in each row the request that has not ended
        self._x, self._step, self._stairs = MARGIN + GUTTER, step, stairs
        self._lines, self._boxes = [], []  # what must not meet: (x, upper depth, lower depth), (left, right, depth)
        moments = [(start.at, self._start, start) for start in starts] + [(more.at, self._more, more) for more in hidden]
        moments += [moment for call in calls for moment in ((call.at, self._ask, call), (_or_never(call.until), self._done, call))]
        moments += [(_or_never(start.until), self._end, start) for start in starts]
        self._place(sorted(moments, key=lambda moment: moment[0]))

    def _place(self, moments):
        before, last = 0, None
        for at, place, what in moments:
            left, pause = self._x, PAUSE <= at - before < NEVER
            self._x += BREAK if pause else 0
            if at == before == NEVER:
                self._step = 0  # what never ended reaches to the same place
            self._x = place(what, what is last and at < NEVER)
            self.reach = max(self.reach, self._x)
            if pause:
                self.pauses.append((left + self._x) / 2)
            if at < NEVER:
                self.ticks.append((self._x, at, what in self.starts))
            before, last = at, what

    def _start(self, start, _):
        x = self._x + self._step
        self.at[start], self.depth[start] = (x, x), (0, self.senders.index(start.name))
        return x

    def _end(self, start, _):
        x = self._x + self._step
        self.at[start] = (self.at[start][0], x)
        self._box(x + GAP, x + 2 * GAP + width(cut(start.mark, MARK)), self.depth[start])
        return x

    def _ask(self, call, _):
        upper = (0, self.senders.index(call.sender))
        x, depth = self._labelled(call, upper)
        self._lines.append((x, upper, depth))
        self.at[call], self.depth[call] = (x, x), depth
        self.rows[call.lane][depth[2]] = call
        return x

    def _done(self, call, at_once):
        depth = self.depth[call]
        upper = (0, self.senders.index(call.sender)) if call.end == "answered" else depth
        x = self._x + BAR if at_once else self._past(self._x + self._step, upper, depth)
        self._lines.append((x, upper, depth))
        self.at[call] = (self.at[call][0], x)
        self.rows[call.lane][depth[2]] = None
        return x

    def _more(self, more, _):
        x, depth = self._labelled(more, None)
        self.at[more], self.depth[more] = (x, x), depth
        return x

    def _labelled(self, what, upper):
        """The first place, (x, depth), in a row of its lane for a line from `upper` with a label on its left."""
        rows, wide, found = self.rows.setdefault(what.lane, [None]), max(map(width, sum(label(what), []))), []
        free = [row for row, call in enumerate(rows) if call is None]
        for row in free + [len(rows)] * (not free or len(rows) < self._stairs):
            depth = (1, SERVICES.index(what.lane), row)
            taken = [x for x, high, low in self._lines if high <= depth <= low] + [right for _, right, at in self._boxes if at == depth]
            x = max(self._x + self._step, max([MARGIN + GUTTER, *taken]) + 2 * GAP + wide)
            found.append((self._past(x, upper or depth, depth), depth))
        x, depth = min(found)
        rows.extend([None] * (depth[2] == len(rows)))
        self._box(x - GAP - wide, x - GAP, depth)
        return x, depth

    def _past(self, x, upper, lower):
        """The first place from x on where a line between these depths goes through no label."""
        return max([x, *(right + GAP for _, right, depth in self._boxes if upper <= depth < lower)])

    def _box(self, left, right, depth):
        self._boxes.append((left, right, depth))
        self.reach = max(self.reach, right)


def _or_never(at):
    return NEVER if at is None else at


def fitting(starts, calls, left_out):
    """The widest Layout that fits, of as many starts and requests as fit: the first and the last ones."""
    asking = {call.sender for call in calls}
    # As in the story: a question that was answered, and that nothing came of, is left out unless it is the end.
    starts = [start for start in starts if start.name in asking or start.code != 0 or start is starts[-1]]
    shown = _ends(starts, SHOWN)
    left = {start.name for start in starts} - {start.name for start in shown}
    senders = [start.name for start in shown] + sorted(asking - {start.name for start in starts})
    possible = [call for call in calls if call.sender not in left]
    for count in range(min(len(possible), CALLS), -1, -1):
        visible = _ends(possible, count)
        hidden = _hidden([call for call in calls if call not in visible], left_out)
        tightest = Layout(senders, shown, visible, hidden, STEPS[-1], STAIRS[-1])
        if tightest.reach <= WIDTH - MARGIN:
            break
    layouts = (Layout(senders, shown, visible, hidden, step, stairs) for stairs in STAIRS for step in STEPS)
    layout = next((layout for layout in layouts if layout.reach <= WIDTH - MARGIN), tightest)
    layout.more_starts = len(left)
    return layout


def _ends(items, count):
    return items if len(items) <= count else items[:(count + 1) // 2] + items[len(items) - count // 2:]


def _hidden(calls, left_out):
    found = {}
    for one in [Hidden(call.lane, call.at, 1, int(call.nth > 0), call.nth) for call in calls] + left_out:
        some = found.setdefault(one.lane, Hidden(one.lane, one.at))
        some.at, some.nth = min(some.at, one.at), max(some.nth, one.nth)
        some.requests, some.effects = some.requests + one.requests, some.effects + one.effects
    return list(found.values())
