"""The ground on which a program is tried: where it was staged, the outside that it meets, and the fork servers that start it."""

import itertools
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from random import Random

from .kept import ForkServers
from .program import Program
from .side_by_side import THREADS

FEWEST = 8   # points that a sample has, where there are as many


class Closed(Exception):
    """The ground was closed: nothing is to be found out any more."""


class Ground:
    """Makes programs for sweeps. Close it at the end.

    `staged` is the Staged, `server` the Outside, `folder` a place for homes. Of all points only each `every`-th is tried,
    but FEWEST of them at least, on this many `threads`. With a `cell` every program is confined.
    """

    def __init__(self, staged, server, folder, seed=0, every=1, threads=THREADS, cell=None):
        self.staged, self.server, self.folder, self.seed, self.every, self.threads = staged, server, folder, seed, every, threads
        self.cell = cell
        self._numbers, self._lock, self._forks = itertools.count(1), threading.Lock(), None
        self._lock_of_once = threading.RLock()
        self._alive, self._once, self._closed = set(), {}, False

    @property
    def forks(self):
        """The fork servers, started when they are first needed."""
        with self._lock:
            if self._closed:
                raise Closed
            if self._forks and self._forks.broken:
                self._forks.close()
                self._forks = None
            if self._forks is None:
                self._forks = ForkServers(self.staged.folder, (*self.staged.imports, *self.staged.preload), self.cell)
            return self._forks

    def program(self, name, forked=True, like=None, **options):
        """A fresh Program: an empty home, and an account in which all that is made up comes from the seed and from `name`, or `like`.

        So all programs of one name meet the same outside, whatever their order.
        """
        if self._closed:
            raise Closed
        number = next(self._numbers)
        account = self.server.open_account(f"{name} {number}", like or name)
        program = Program(self.staged, Path(tempfile.mkdtemp(prefix="trial-", dir=self.folder)), self.server, account, seed=self.seed,
                          forks=self.forks if forked else None, cell=self.cell, **options)
        with self._lock:
            if not self._closed:
                self._alive.add(program)
                return program
        program.discard()
        raise Closed

    def sample(self, points):
        """Those of the points that are to be tried: with `every` above 1 a few, which ones comes from the seed."""
        every = max(1, min(self.every, len(points) // FEWEST))
        return points[Random(f"{self.seed} sample").randrange(every)::every]

    def once(self, key, make):
        """`make()`, which is called only the first time that this `key` is asked for."""
        with self._lock_of_once:
            if key not in self._once:
                self._once[key] = make()
            return self._once[key]

    def discard(self, program):
        """End a program of this ground, and forget its account. Returns what of it still ran, in words."""
        self._alive.discard(program)
        program.outside.drop()
        ran = program.discard()
        self.server.close_account(program.outside)
        return ran

    def rest(self):
        """End the fork servers; they are started again when they are needed. In a sandbox they stay, for all that is started is started there."""
        if not self.cell:
            self._end_forks()

    def _end_forks(self):
        with self._lock:
            if self._forks:
                self._forks.close()
            self._forks = None

    def close(self):
        """End all that still runs. Nothing new begins: program() raises Closed."""
        with self._lock:
            self._closed = True
        for program in list(self._alive):
            with suppress(Exception):
                self.discard(program)
        self._end_forks()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
