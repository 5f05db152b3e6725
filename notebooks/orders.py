"""Orders of acting and recording as timelines: what the record says at each moment, what is true, and what the two together mean."""

import textwrap
from itertools import groupby

from plots import BAD, GOOD, MUTED, plot
from restarts import MOMENTS

# What the record says, and whether there is an effect outside: what that comes to, and how it is drawn.
MEANING = {("nothing", False): "✓ right", ("done", True): "✓ right", ("started", False): "? a question", ("started", True): "? a question",
           ("nothing", True): "✗ forgotten", ("done", False): "✗ untrue"}
COLOURS = {"✓": GOOD, "?": MUTED, "✗": BAD}
FILLS = {"nothing": "white", "started": "#e5e7eb", "done": "#bfe3cd", "no refund": "white", "one refund": "#bfe3cd"}
STEP = 4.2   # from order to order, in bars


def timelines(title, orders):
    """A Picture of some orders, {name: what restarts.at_each_moment() saw}: one under the other, the moments from left to right."""
    rows = {name: _rows(seen) for name, seen in orders.items()}
    told = [f"{name}: " + "; ".join(f"{moment}: the record says {record}, in truth {truth}: {meaning}" for moment, (record, truth, meaning)
                                    in zip(MOMENTS, zip(*lines)) if moment in {one.moment for one in orders[name]})
            for name, lines in rows.items()]
    return plot(title, "\n".join(told), lambda axes: _draw(axes, rows), height=80 + 132 * len(rows))


def _rows(seen):
    """Record, truth and meaning at each of MOMENTS, as texts. A moment that an order does not have is as the one before it."""
    known, record, truth = {one.moment: one for one in seen}, [], []
    for moment in MOMENTS:
        one = known.get(moment)
        record.append(one.record["effect"] if one else record[-1])
        truth.append(("one refund" if one.effects else "no refund") if one else truth[-1])
    return record, truth, [MEANING[pair[0], pair[1] == "one refund"] for pair in zip(record, truth)]


def _draw(axes, rows):
    ticks = {}
    for number, (name, lines) in enumerate(rows.items()):
        top = -STEP * number
        axes.text(0, top + 1.0, name, weight="bold", va="center")
        for row, (label, texts) in enumerate(zip(("the record says", "in truth", "together"), lines)):
            y, left = top - row, 0
            ticks[y] = label
            for text, same in groupby(texts):
                wide = len(list(same))
                colour = COLOURS.get(text[0], MUTED)   # of a meaning; a bar that is hatched is wrong
                axes.barh(y, wide - 0.06, left=left + 0.03, height=0.8, facecolor=FILLS.get(text, "white"), edgecolor=colour,
                          hatch="////" if text[0] == "✗" else None, linewidth=1 if text in FILLS else 0)
                axes.text(left + wide / 2, y, text, ha="center", va="center", color=colour if text[0] in COLOURS else "black",
                          weight="bold" if text[0] in COLOURS else "normal", bbox={"facecolor": "white", "linewidth": 0, "pad": 1}
                          if text[0] == "✗" else None)
                left += wide
    axes.set_yticks(list(ticks), ticks.values())
    axes.set_ylim(-STEP * (len(rows) - 1) - 2.6, 1.5)
    axes.set_xlim(0, len(MOMENTS))
    axes.set_xticks([number + 0.5 for number in range(len(MOMENTS))], [textwrap.fill(moment, 13) for moment in MOMENTS])
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
