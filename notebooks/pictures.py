"""Pictures that the notebooks draw themselves: what is where at each moment, and what a kill between two lines leaves.

What a colour says, a shape or a word says too. Every picture has its content in words.
"""

import base64
import textwrap
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gaps import statements

WIDTH, MARGIN, GUTTER, FONT, LINE = 800, 16, 150, 12, 18   # pixels
CELL = 0.603 * FONT                                          # pixels that a character of a monospaced font is wide
MARKS = {"process": "in the process", "gone": "was in the process: the kill took it", "disk": "on disk",
         "outside": "outside: it has happened"}
VERDICTS = {"✓": "outside", "✗": "bad", "?": "cut"}   # how each is drawn: full, with a thick border, dashed


class Picture:
    """An SVG, shown in a notebook as an image; `words` say the same where no image can be."""

    def __init__(self, svg, title, words):
        self.svg, self.title, self.words = svg, title, words

    def _repr_html_(self):
        # As an image: its styles stay its own, and it is shown in a notebook that nobody has trusted yet.
        data = base64.b64encode(self.svg.encode()).decode()
        return f'<img alt="{escape(self.title)}" style="max-width: 100%" src="data:image/svg+xml;base64,{data}">'

    def __repr__(self):
        return self.words


def grid(title, columns, rows):
    """A Picture of a table. `rows` are lists of cells by name, as long as `columns`; a cell is one of MARKS, a text, or empty."""
    sheet, wide = _Sheet(title), (WIDTH - 2 * MARGIN - GUTTER) / len(columns)
    middles = [MARGIN + GUTTER + wide * (number + 0.5) for number in range(len(columns))]
    fits = max(1, int((wide - 6) / CELL))
    headings = [textwrap.wrap(column, fits) for column in columns]
    for line in range(max(map(len, headings))):
        y = sheet.down(LINE)
        for x, heading in zip(middles, headings):
            sheet.text(x, y - 5, heading[line] if line < len(heading) else "", "muted", "middle")
    sheet.down(4)
    for name, cells in rows.items():
        wrapped = [[cell] if cell in MARKS else textwrap.wrap(cell, fits) for cell in cells]
        height = max(28, LINE * max(map(len, wrapped)) + 8)
        sheet.shape("rect", "lane", x=MARGIN - 8, y=sheet.y, width=WIDTH - 2 * MARGIN + 16, height=height - 3)
        sheet.text(MARGIN, sheet.y + height / 2 + 3, name, "strong")
        for x, lines in zip(middles, wrapped):
            _cell(sheet, x, sheet.y + (height - 3) / 2, lines)
        sheet.down(height)
    used = [mark for mark in MARKS if any(mark in cells for cells in rows.values())]
    x = MARGIN + 8
    for mark in used:
        _cell(sheet, x, sheet.y + 18, [mark])
        sheet.text(x + 14, sheet.y + 22, MARKS[mark], "muted")
        x += 40 + CELL * len(MARKS[mark])
    sheet.down(30 if used else 0)
    told = [f"{name}: " + "; ".join(f"{column}: {MARKS.get(cell, cell) or '-'}" for column, cell in zip(columns, cells))
            for name, cells in rows.items()]
    return sheet.picture("\n".join([title, *told]))


def _cell(sheet, x, y, lines):
    mark = lines[0] if lines else ""
    if mark in ("process", "gone"):
        sheet.shape("circle", mark, cx=round(x, 1), cy=round(y, 1), r=7)
        if mark == "gone":
            sheet.path("bad", x - 6, y - 6, "l12 12m0 -12l-12 12")
    elif mark == "disk":
        sheet.shape("rect", mark, x=round(x - 7, 1), y=round(y - 7, 1), width=14, height=14)
    elif mark == "outside":
        sheet.path(mark, x, y - 9, "l9 9l-9 9l-9 -9z")
    else:
        for number, line in enumerate(lines or ["·"]):
            sheet.text(x, y + 4 + LINE * (number - (len(lines or "·") - 1) / 2), line, "" if lines else "muted", "middle")


def matrix(title, columns, rows):
    """A Picture of verdicts. `rows` are lists of cells by name, as long as `columns`; a cell is (sign, text), or None where there is none.

    The sign is one of VERDICTS; each has a shape of its own too. A text may have several lines, which are not wrapped where they fit.
    """
    sheet, wide = _Sheet(title), (WIDTH - 2 * MARGIN - GUTTER) / len(columns)
    fits, names = int((wide - 14) / CELL), int((GUTTER - 8) / CELL)
    headings = [textwrap.wrap(column, fits) for column in columns]
    for line in range(max(map(len, headings))):
        y = sheet.down(LINE)
        for number, heading in enumerate(headings):
            sheet.text(MARGIN + GUTTER + wide * (number + 0.5), y - 5, heading[line] if line < len(heading) else "", "muted", "middle")
    sheet.down(4)
    for name, cells in rows.items():
        told = [_lines(f"{cell[0]} {cell[1]}" if cell else "–", fits) for cell in cells]
        name_lines = textwrap.wrap(name, names)
        height = LINE * max(map(len, [*told, name_lines])) + 16
        for number, line in enumerate(name_lines):
            sheet.text(MARGIN, sheet.y + height / 2 + 1 + LINE * (number - (len(name_lines) - 1) / 2), line, "strong")
        for number, (cell, lines) in enumerate(zip(cells, told, strict=True)):
            x, middle = MARGIN + GUTTER + wide * number, sheet.y + (height - 6) / 2
            if cell:
                sheet.path(VERDICTS[cell[0]], x + 3, sheet.y, f"h{round(wide - 6, 1)}v{height - 6}h{round(6 - wide, 1)}z")
            for line, text in enumerate(lines):
                sheet.text(x + wide / 2, middle + 4 + LINE * (line - (len(lines) - 1) / 2), text,
                           {"✗": "bad", "✓": ""}.get(cell[0], "strong") if cell else "muted", "middle")
        sheet.down(height)
    return sheet.picture("\n".join([title, *(f"{name}: " + "; ".join(
        f"{column}: {' '.join(f'{cell[0]} {cell[1]}'.split()) if cell else '-'}" for column, cell in zip(columns, cells)) for name, cells in rows.items())]))


def _lines(text, fits):
    return [part for line in text.split("\n") for part in textwrap.wrap(line, fits)]


def between_the_lines(title, text, function, verdicts):
    """A Picture of a function's source, and in each gap what a kill there leaves: `verdicts` are (whether that is all right, why), one a gap."""
    sheet, source, told = _Sheet(title), text.splitlines(), [title]
    body = statements(text, function)
    head = next(line for line in source if line.startswith(f"def {function}("))
    sheet.code(head)
    for statement, (good, why) in zip(body, verdicts, strict=True):
        sign = "✓" if good else "✗"
        indent = MARGIN + CELL * statement.col_offset
        sheet.path("cut", indent, sheet.down(LINE) - 9, f"H{WIDTH - MARGIN}")
        lines = textwrap.wrap(f"✂ {sign} {why}", int((WIDTH - MARGIN - indent) / CELL))
        for line in lines:
            sheet.text(indent, sheet.down(LINE) - 7, line, "good" if good else "bad")
        sheet.down(4)
        for line in source[statement.lineno - 1:statement.end_lineno]:
            sheet.code(line)
        told.append(f"killed before `{source[statement.lineno - 1].strip()}`: {sign} {why}")
    return sheet.picture("\n".join(told))


class _Sheet:
    """A drawing that grows downwards."""

    def __init__(self, title):
        self.title, self.shapes, self.y = title, [], MARGIN
        for line in textwrap.wrap(title, int((WIDTH - 2 * MARGIN) / (CELL * 15 / FONT))):
            self.text(MARGIN, self.down(22) - 6, line, "title", size=15)
        self.down(6)

    def down(self, pixels):
        self.y += pixels
        return self.y

    def shape(self, tag, name, text=None, **attributes):
        self.shapes.append((tag, {"class": name or None, **attributes}, text))

    def path(self, name, x, y, rest):
        self.shape("path", name, d=f"M{round(x, 1)} {round(y, 1)}{rest}")

    def text(self, x, y, text, name="", anchor=None, size=FONT):
        if text:
            self.shape("text", name, text, **{"x": round(x, 1), "y": round(y, 1), "font-size": size, "text-anchor": anchor})

    def code(self, line):
        self.text(MARGIN, self.down(LINE) - 5, line)

    def picture(self, words):
        svg = _TEMPLATE.render(width=WIDTH, height=round(self.y + MARGIN), title=self.title, words=words, shapes=self.shapes)
        return Picture(svg, self.title, words)


_TEMPLATE = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                        loader=FileSystemLoader(Path(__file__).parent)).get_template("picture.svg.jinja")
