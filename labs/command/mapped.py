"""The kill map in a terminal: only the lines at which the program is unsafe, each with its neighbours."""

import io

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from labs.harness.killmap import MARKS, Mapped, shown

AROUND = 3  # lines shown before and after a bad one
KILLS = "✂ 2 of 9: two of nine kills before that line, or during it, did harm"
STYLES = {"repeated": "bold red", "outlived": "bold blue", "lost": "bold magenta", "broken": "bold yellow", "not reached": "dim", "safe": "green"}


def bad_lines(sources, struck):
    """The unsafe lines of each file (Mapped.where) as a rich renderable: with what came of the kills there, how many, and the first `why`.

    `sources` maps file names to texts, `struck` are the sweep's points: those of `labs.harness.killmap.Mapped`.
    """
    mapped = Mapped(sources, struck)
    parts = [part for file in mapped.files if mapped.where[file.name]
             for part in (Text(file.name, "bold"), _excerpt(file, mapped.where[file.name]), Text())]
    return Group(*parts, *([Text(KILLS, "dim")] if parts else []), Text(mapped.verdict, "bold"), _legend(mapped.marks))


def as_text(renderable, width, most=24):
    """A renderable as plain lines of text; of more than `most` of them the first ones, and a line that says so."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    lines = [line.rstrip() for line in console.file.getvalue().rstrip().splitlines()]
    return lines if len(lines) <= most else [*lines[:most - 2], "…", lines[-1]]


def _excerpt(file, unsafe):
    table = Table.grid(padding=(0, 1))
    table.add_column(width=2)
    table.add_column(justify="right", width=len(str(file.lines[-1].number)))
    table.add_column()
    skipped, said = False, None
    for place, line in enumerate(file.lines):
        if not any(near in unsafe for near in file.lines[max(0, place - AROUND):place + AROUND + 1]):
            skipped = True
            continue
        if skipped and table.row_count:
            table.add_row("", "⋮")
        skipped = False
        sign, style = (MARKS[line.mark][0], STYLES[line.mark]) if line.mark else ("", "")
        table.add_row(Text(sign, style), Text(str(line.number), style if line.bad else "dim"),
                      Text(line.text, "bold" if line.bad else "dim", no_wrap=True, overflow="ellipsis"))
        if line.bad:
            why = shown(line.groups[0][0].why)
            words = Text(f"✂ {line.bad_kills:,} of {line.kills:,}, {MARKS[line.mark][1]}: ", style)
            words.append("as above" if why == said else why, "not bold default")
            table.add_row("", "", Padding(words, (0, 0, 0, 4)))
            said = why
    return table


def _legend(marks):
    counts = [Text.assemble((" ".join(words), STYLES[mark]), f" {marks[mark]:,}") for mark, words in MARKS.items() if marks[mark]]
    return Text.assemble("lines: ", Text(", ").join(counts)) if counts else Text("no line can be run")
