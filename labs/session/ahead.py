"""The sweeps of a session, which keep all cores busy: where they cannot get in each other's way they go on while checks of one program run."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest


class Sweeps:
    """The Results of sweeps, each made once, by `make(kind, scenario, progress)`: what one check has swept, another one judges by its own rules.

    `taken(result)` is called when the first check takes one. Use it as a context; its end waits for the one that is being made, so see to it that
    that one ends.
    """

    def __init__(self, make, taken=lambda result: None, limit=None):
        """`limit`: seconds that one may take which is made ahead; then it fails as a check does that is ended by its timeout."""
        self._make, self._taken, self._limit = make, taken, limit
        self._thread, self._begun, self._made = ThreadPoolExecutor(1), {}, {}

    def begin(self, kind, *scenarios):
        """Have these made in a thread of their own, one after the other."""
        for which in _each(kind, scenarios):
            if which not in self._begun:
                given_up = Event()
                self._begun[which] = self._thread.submit(self._ahead, which, given_up), given_up

    def results(self, kind, *scenarios):
        """The Results of these. One that was not begun is made now; so is one that was given up, as a timeout does that ends the wait for it."""
        for which in _each(kind, scenarios):
            if which not in self._made:
                self._made[which] = self._wait(which) if which in self._begun else self._make(*which, lambda done, total: None)
                self._taken(self._made[which])
        return [self._made[which] for which in _each(kind, scenarios)]

    def _wait(self, which):
        made, given_up = self._begun[which]
        try:
            return made.result()
        except BaseException:
            if not made.done():
                given_up.set()
                del self._begun[which]
            raise

    def _ahead(self, which, given_up):
        began = time.monotonic()

        def progress(done, total):
            if given_up.is_set():
                raise _GivenUp
            if self._limit and time.monotonic() - began > self._limit:
                # By its own clock, so that a verdict does not hang on what else was to be done meanwhile.
                pytest.fail(f"Timeout (>{self._limit:g}s): {done} of {total} points were tried", pytrace=False)

        return self._make(*which, progress)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._thread.shutdown(cancel_futures=True)


class _GivenUp(Exception):
    """Nobody waits for this sweep any more."""


def _each(kind, scenarios):
    return [(kind, scenario) for scenario in scenarios or (None,)]
