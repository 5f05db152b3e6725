"""How far a batch is, counted in tests of the checks (a check has one, or one for each of its parameters): a submission takes a minute or more, and one that is slow is not one that hangs."""

import os
import threading
import time
from collections import defaultdict
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from statistics import mean

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from labs.harness import records as session_records
from labs.harness.story import counted

from .results import file_name

TICK = 0.5   # seconds between two looks at the records
MINUTE = 60  # seconds between two lines, where there is no terminal


class Checks:
    """The checks of the submissions `names`, as the files in `records` have them.

    Only files that were judged by the same count, which have `judged` in their first line. `guess` is how many checks a submission has, until one
    of them is known to have others.
    """

    def __init__(self, records, names, judged, guess):
        self._records, self._judged, self._guess = Path(records), list(judged), guess
        self._names, self._over = {file_name(name): name for name in names}, set()
        self._sizes, self._items, self._ended, self._before = {}, [], {name: {} for name in names}, None

    def look(self):
        """Read what is new."""
        for entry in os.scandir(self._records) if self._records.is_dir() else ():
            stem = entry.name.removesuffix(".jsonl")
            name = self._names.get(stem) or self._names.get(stem.rpartition(".")[0])   # where several machines grade, each has a file of its own
            if name is not None and stem != entry.name:
                with suppress(FileNotFoundError):   # it went while we looked
                    self._read(name, entry)
        if self._before is None:
            self._before = {(name, item) for name, ended in self._ended.items() for item in ended}

    def _read(self, name, entry):
        size = os.stat(entry.path).st_size
        if self._sizes.get(entry.name) == size:
            return
        self._sizes[entry.name] = size
        found = session_records.read(entry.path)
        if found[:1] and found[0].get("of", [])[1:] == self._judged:
            self._items = session_records.collected(found) or self._items
            ended = {(one["lab"], one["check"], one["item"]): one["seconds"] for one in session_records.outcomes(found)}
            if len(ended) > len(self._ended[name]):
                self._ended[name] = ended

    def over(self, name):
        """Say that a submission has its result: no check of it will come, though there be none at all, as of an invalid one."""
        self._over.add(name)

    @property
    def done(self):
        return sum(map(len, self._ended.values()))

    @property
    def total(self):
        return sum(len(ended) if name in self._over else max(len(ended), len(self._items) or self._guess) for name, ended in self._ended.items())

    @property
    def made(self):
        """How many have ended since the first look: what was there before took none of this time."""
        return self.done - len(self._before or ())

    def left(self, elapsed):
        """About how many seconds are left after `elapsed` ones; None where nothing is known yet.

        A sweep takes a hundred times as long as another check, so what is left is reckoned in the seconds that each check took elsewhere.
        """
        took, spent = defaultdict(list), 0.0
        for name, ended in self._ended.items():
            for item, seconds in ended.items():
                took[item].append(seconds)
                spent += 0 if (name, item) in (self._before or ()) else seconds
        if not spent:
            return None
        usual = mean(seconds for each in took.values() for seconds in each)
        items = self._items or [None] * self._guess
        return elapsed / spent * sum(mean(took[item]) if item in took else usual for name, ended in self._ended.items() if name not in self._over
                                     for item in items if item not in ended)


class Display:
    """The progress on a terminal while `with` lasts; elsewhere a line each minute, unless `silent`. `already` of `submissions` were graded before."""

    def __init__(self, console, checks, submissions, already, silent=False):
        self._checks, self._submissions, self._graded = checks, submissions, already
        self._progress = Progress(TextColumn("{task.description}"), BarColumn(8), TextColumn("{task.fields[checks]}"), TimeElapsedColumn(),
                                  TextColumn("gone{task.fields[left]}"), console=console, transient=True)
        self._task = self._progress.add_task("", total=None, checks="", left="")
        self._end, self._began, self._lock = threading.Event(), time.monotonic(), threading.Lock()
        self._plain = not console.is_terminal
        self._thread = None if self._plain and silent else threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._update()
        self._progress.start()
        if self._thread:
            self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        if self._thread:
            self._thread.join()
        self._progress.stop()

    def say(self, line):
        """Print a line above the progress."""
        self._progress.console.print(line)

    def ended(self, name):
        """Count a submission that has its result."""
        with self._lock:
            self._checks.over(name)
            self._graded += 1
        self._update()

    def _watch(self):
        while not self._end.wait(MINUTE if self._plain else TICK):
            self._update()
            if self._plain:
                task, = self._progress.tasks
                self.say(f"{task.description}, {task.fields['checks']}{task.fields['left']}")

    def _update(self):
        with self._lock:
            self._checks.look()
            elapsed, checks = time.monotonic() - self._began, self._checks
            left = checks.left(elapsed)
            pace = f", {60 * checks.made / elapsed:.0f} a minute" if checks.made else ""
            self._progress.update(self._task, description=f"graded {self._graded} of {self._submissions}", completed=checks.done, total=checks.total,
                                  checks=f"{checks.done:,} of {counted(checks.total, 'test')}{pace}",
                                  left="" if left is None else f", {timedelta(seconds=round(left))} left")
