"""Plots by matplotlib, the same bytes wherever they are drawn: a font of its own as outlines, no date, ids that are not made of chance."""

import io

import matplotlib
from matplotlib.figure import Figure

from pictures import WIDTH, Picture

SAME = {"svg.hashsalt": "killproof", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 10,
        "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 12, "axes.titlelocation": "left"}
GOOD, BAD, MUTED = "#1a7f4b", "#c4314b", "#6b7280"   # on white; a mark, a line style or a word has to say the same


def plot(title, words, draw, height=320):
    """A Picture that `draw(axes)` draws, `height` pixels high. `words` say what it shows, for who cannot see it."""
    with matplotlib.rc_context(SAME):
        figure = Figure(figsize=(WIDTH / 96, height / 96), dpi=96, layout="constrained")
        axes = figure.subplots()
        axes.set_title(title)
        draw(axes)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return Picture(file.getvalue(), title, f"{title}\n{words}")
