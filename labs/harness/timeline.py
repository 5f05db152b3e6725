"""What happened, as a picture: one SVG that needs nothing else, drawn from events (see events.py).

Time runs from left to right. Every process and every service has a lane; a request is an arrow from one to the other.
What a colour says, a shape or a word says too.
"""

import textwrap
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .events import read, seconds, sentences
from .layout import BAR, FONT, GAP, GUTTER, MARGIN, MARK, PAUSE, SERVICES, WIDTH, cut, fitting, label, width
from .story import printable

SMALL, LARGE, LINE = 11, 15, 15  # pixels: of smaller and larger letters, and from line to line of a label
LONGEST = 2000                   # characters of a sentence


def draw(events, title="", why=""):
    """The events of one program as an SVG document, in a string: 800 pixels wide, as high as it needs.

    `title` and `why` are sentences that stand over it. Of many starts or requests it shows the first and the last ones,
    and says how many it does not show.
    """
    title, drawing = title or "What happened", _Drawing(fitting(*read(events)))
    drawing.write(title, why)
    return _TEMPLATE.render(groups=drawing.groups, width=WIDTH, height=drawing.y, title=printable(title[:LONGEST]),
                            told=[printable(text[:LONGEST]) for text in (why, *sentences(events)) if text])


class _Drawing:
    """A layout as shapes. `groups` are (a text to be shown on pointing, or None, [(tag, attributes, text), …])."""

    def __init__(self, layout):
        self.layout, self.groups, self.y, self.lanes = layout, [(None, [])], MARGIN, {}

    def write(self, title, why):
        self._paragraph(title, "title", LARGE, 21)
        self._paragraph(why and f"Why: {why}", "", FONT, 18)
        self._lanes()
        for start in self.layout.starts:
            self._start(start)
        for call in self.layout.calls:
            self._call(call)
        for more in self.layout.hidden:
            self._label(more, "strong", "again" if more.nth > 1 else "strong")
        self._axis()

    def _paragraph(self, text, name, size, height, lines=3):
        cells = int((WIDTH - 2 * MARGIN) / width("x", size))
        wrapped = textwrap.wrap(printable(" ".join(text[:LONGEST].split())), cells)
        for number, line in enumerate(wrapped[:lines], 1):
            self._text(MARGIN, self._down(height) - 5, cut(line + "…" * cells if number == lines < len(wrapped) else line, cells), name, size)

    def _down(self, pixels):
        self.y += pixels
        return self.y

    # ---- the lanes

    def _lanes(self):
        layout, words = self.layout, {start.name: start.words for start in self.layout.starts}
        self._text(MARGIN, self._down(32) - 6, "your program", "muted", SMALL)
        for place, name in enumerate(layout.senders):
            if layout.more_starts and place == (len(layout.starts) + 1) // 2:
                self._text(MARGIN, self._down(20) - 6, f"… {layout.more_starts} more starts", "muted")
            self._lane([(0, place)], [40], name, words.get(name))
        self._text(MARGIN, self._down(26) - 6, "the outside", "muted", SMALL)
        for lane, rows in layout.rows.items():
            depths = [(1, SERVICES.index(lane), row) for row in range(len(rows))]
            lines = [max([2, *(len(sum(label(call), [])) for call in layout.calls if layout.depth[call] == depth)]) for depth in depths]
            self._lane(depths, [LINE * count + 14 for count in lines], lane)

    def _lane(self, depths, heights, name, words=None):
        self._shape("rect", "lane", x=MARGIN - 8, y=self.y, width=WIDTH - 2 * MARGIN + 16, height=sum(heights) - 3)
        middle = self.y + heights[0] / 2
        self._text(MARGIN, middle - 4 if words else middle + 3, name, "strong")
        self._text(MARGIN, middle + 11, words and cut(words, 17), "")
        for depth, height in zip(depths, heights):
            self.lanes[depth] = self.y, height - 3
            self._down(height)

    def _bar(self, what):
        """Where the bar of a process or a request is: left, right, its top, and the top of its lane."""
        top, height = self.lanes[self.layout.depth[what]]
        return *self.layout.at[what], top + (height - BAR) / 2, top

    # ---- what happened in them

    def _start(self, start):
        left, right, y, top = self._bar(start)
        killed = start.mark.startswith("✂")
        self._group(f"{start.name}, {start.words}: {seconds(start.at)}, {start.end}")
        self._shape("rect", "process", x=left, y=y, width=right - left, height=BAR)
        self._breaks(left, right, y)
        if killed:
            self._path("kill", f"M{right} {top + 2}v33M{right - 6} {y + 2}l12 12m0 -12l-12 12")
        elif start.until is not None:
            self._path("end", f"M{right} {y - 4}v{BAR + 8}")
        self._text(right + 10, y + BAR - 4, cut(start.mark, MARK), "kill" if killed else "strong")

    def _call(self, call):
        left, right, y, top = self._bar(call)
        above, tall = self.lanes[(0, self.layout.senders.index(call.sender))]
        sender, good = above + (tall + BAR) / 2, "" if call.went_well else "bad"
        self._group(f"request {call.number} of {call.sender} to {call.lane} at {seconds(call.at)}: {call.deed}; {call.outcome}")
        self._arrow("ask", left, sender, y - 1, 8)
        self._shape("rect", "idle" if call.made is None else "acted", x=left, y=y, width=right - left, height=BAR)
        self._breaks(left, right, y)
        if call.end == "answered":
            self._arrow(f"answer {good}", right, y, sender + 1, -8)
        elif call.end:
            self._path("lost", f"M{right} {y}V{top + 7}")
            self._path("cross", f"M{right - 4} {top + 2}l8 8m0 -8l-8 8")
        for shift in (-2.5, 2.5) if call.nth > 1 else (0,) if call.effect else ():
            x = (right - BAR / 2 if call.held else left + BAR / 2) + shift
            self._path("effect again" if call.nth > 1 else "effect", f"M{x} {y + 1}l7 7l-7 7l-7 -7z")
        self._label(call, "again" if call.nth > 1 else "strong" if call.effect else "", good)

    def _label(self, what, deed, outcome):
        (top, height), (deeds, outcomes) = self.lanes[self.layout.depth[what]], label(what)
        y = top + (height - LINE * len(deeds + outcomes)) / 2 - 4
        for number, line in enumerate(deeds + outcomes):
            self._text(self.layout.at[what][0] - GAP, y + LINE * (number + 1), line, deed if number < len(deeds) else outcome, anchor="end")

    def _arrow(self, name, x, y, end, head):
        self._path(name, f"M{x} {y}V{end}")
        self._path(f"head {name}", f"M{x - 4} {end - head}h8l-4 {head}z")

    def _breaks(self, left, right, y):
        for x in self.layout.pauses:
            if left < x < right:
                self._path("gap", f"M{x - 6} {y + BAR + 2}l6 -20h6l-6 20z")
                self._path("edge", f"M{x - 6} {y + BAR + 2}l6 -20m6 0l-6 20")

    def _axis(self):
        self._group(None)
        y, taken = self._down(12), []
        self._path("edge", f"M{MARGIN + GUTTER} {y}H{WIDTH - MARGIN}")
        self._breaks(0, WIDTH, y - BAR / 2)
        for x, at, _ in sorted(self.layout.ticks, key=lambda tick: not tick[2]):
            wide = width(seconds(at), SMALL)
            middle = min(x, WIDTH - MARGIN - wide / 2)
            if all(abs(middle - other) >= wide + GAP for other in taken):
                taken.append(middle)
                self._path("edge", f"M{x} {y}v6")
                self._text(middle, y + 23, seconds(at), "muted", SMALL, "middle")
        pause = f"; // cuts out a pause of {PAUSE} s or more" if self.layout.pauses else ""
        self._text(MARGIN, self._down(46), f"Time runs from left to right; the distances are not to scale{pause}.", "muted", SMALL)
        self._down(MARGIN)

    # ---- shapes

    def _group(self, tip):
        self.groups.append((tip and printable(tip[:LONGEST]), []))

    def _shape(self, tag, name, text=None, **attributes):
        self.groups[-1][1].append((tag, {"class": name.strip() or None, **attributes}, text))

    def _path(self, name, d):
        self._shape("path", name, d=d)

    def _text(self, x, y, text, name, size=FONT, anchor=None):
        if text:
            self._shape("text", name, text, **{"x": round(x, 1), "y": round(y, 1), "font-size": size, "text-anchor": anchor})


_TEMPLATE = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                        loader=FileSystemLoader(Path(__file__).parent)).get_template("timeline.svg.jinja")
