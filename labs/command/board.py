"""The table of labs with a bar for each, which can be drawn while results still come in."""

from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

OTHER_COLUMNS = 62  # what the rest of a row takes, so that a row fits into its line
STYLES = {"passed": ("━", "green"), "failed": ("╍", "red"), "could not check": ("?", "yellow"), "not run": ("─", "dim")}


class Board:
    """A row for each Tally. `running` is the number of the lab whose checks run at this moment, if any."""

    def __init__(self, tallies, running=None):
        self.tallies, self.running = tallies, running
        self._spinner = Spinner("dots", style="cyan")

    def add(self, entry):
        """Take in one line of results."""
        self.running = entry["lab"]
        for tally in self.tallies:
            if tally.lab.number == entry["lab"]:
                tally.add(entry)

    def __rich_console__(self, console, options):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column(width=1)
        table.add_column("lab", no_wrap=True, overflow="ellipsis")
        table.add_column(no_wrap=True)
        for name in ("checks", "points", "minutes"):
            table.add_column(name, justify="right", no_wrap=True)
        width = max(8, min(32, options.max_width - OTHER_COLUMNS))
        for tally in self.tallies:
            passed = tally.having("passed")
            table.add_row(self._mark(tally), f"{tally.lab.number} {tally.lab.title}", bar(tally, width),
                          f"{len(passed)}/{len(tally.counted)}",
                          f"{sum(check.points for check in passed)}/{sum(check.points for check in tally.counted)}",
                          str(tally.lab.minutes))
        yield table

    def _mark(self, tally):
        if tally.lab.number == self.running:
            return self._spinner
        return Text("✓", "bold green") if tally.solved else Text("·", "dim")


def bar(tally, width):
    """The checks of a lab as a Text of `width` cells: passed, failed, then those that were not run."""
    cells, done, ends = Text(), 0, 0
    for verdict, (character, style) in STYLES.items():
        done += len(tally.having(verdict))
        end = round(width * done / len(tally.counted)) if tally.counted else 0
        cells.append(character * (end - ends), style)
        ends = end
    return cells
