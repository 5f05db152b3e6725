"""The sweeps of a session, which keep all cores busy: where nothing forbids it they go on while checks of one program at a time run."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event


class Sweeps:
    """The Results of sweeps, each made once, by `make(kind, scenario, progress)`: what one check has swept, another one judges by its own rules.

    Use it as a context: at its end those that were begun and are not made are given up.
    """

    def __init__(self, make):
        self._make, self._thread, self._begun, self._made = make, ThreadPoolExecutor(1), {}, {}

    def begin(self, kind, *scenarios):
        """Have these made in a thread of their own, one after the other."""
        for which in _each(kind, scenarios):
            if which not in self._begun:
                given_up = Event()
                self._begun[which] = self._thread.submit(self._make, *which, _unless(given_up)), given_up

    def results(self, kind, *scenarios):
        """The Results of these. One that was not begun is made now; so is one that was given up, as a timeout does that ends the wait for it."""
        for which in _each(kind, scenarios):
            if which not in self._made:
                self._made[which] = self._wait(which) if which in self._begun else self._make(*which, lambda done, total: None)
        return [self._made[which] for which in _each(kind, scenarios)]

    def _wait(self, which):
        made, given_up = self._begun[which]
        try:
            return made.result()
        except BaseException:
            given_up.set()
            del self._begun[which]
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._thread.shutdown(wait=False, cancel_futures=True)
        for _, given_up in self._begun.values():
            given_up.set()


class _GivenUp(Exception):
    """Nobody waits for this sweep any more."""


def _each(kind, scenarios):
    return [(kind, scenario) for scenario in scenarios or (None,)]


def _unless(given_up):
    """A `progress` for sweep() that ends it, at its next point, when it is given up."""
    def progress(done, total):
        if given_up.is_set():
            raise _GivenUp
    return progress
