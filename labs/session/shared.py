"""What all checks of a session share: its options, the staged program, the outside, and what was swept."""

import itertools
import os
import signal
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from labs.command.preload import checked
from labs.command.refused import Refused
from labs.harness import descendants, records, sandbox, side_by_side
from labs.harness.evidence import Evidence
from labs.harness.ground import Ground
from labs.harness.kept import Cell
from labs.harness.outside import Outside
from labs.harness.scratch import scratch
from labs.harness.staging import KIT, NoProgram, stage
from labs.harness.sweeps import sweep
from labs.harness.tickets import make_ticket

from .ahead import Sweeps


def pytest_addoption(parser):
    group = parser.getgroup("labs")
    group.addoption("--program", metavar="DIR", help="what is tested: a folder with a __main__.py, one that holds starter/, "
                    "or solutions/NN (default: starter)")
    group.addoption("--command", metavar="LINE", help="the command line that starts the program in a copy of DIR, "
                    "where it is not `python -m starter`")
    group.addoption("--lab-seed", metavar="N", type=int, default=1, help="what every random choice comes from (default: 1)")
    group.addoption("--lab-sample", metavar="N", type=int, default=1, help="sweeps kill at every N-th of their points (default: at every one)")
    group.addoption("--lab-preload", metavar="MODULE", action="append", default=[], help="an installed module that is loaded once, and not at each "
                    "start: for a program whose framework takes long to import; again for more than one")
    group.addoption("--lab-results", metavar="FILE", help="write one JSON line per check to FILE, as each ends")
    group.addoption("--lab-continue", action="store_true", help="leave out what FILE says has ended")
    group.addoption("--lab-evidence", metavar="DIR", help="where evidence is kept (default: .lab-evidence)")
    group.addoption("--lab-workers", metavar="N", type=int, help="how many programs a sweep runs side by side (default: three a core); "
                    "with one, nothing runs beside it")
    group.addoption("--lab-isolation", metavar="LEVEL", help="confine the program: bubblewrap, landlock or process, and after a slash how each start "
                    "is shut in: view, landlock or limits")


class Session:
    """What all checks of one session share."""

    def __init__(self, config):
        self.seed = config.getoption("--lab-seed")
        self.evidence = Evidence(config.getoption("--lab-evidence") or KIT / ".lab-evidence")
        self.about = {"began": time.strftime("%Y-%m-%d %H:%M:%S"), "program": config.option.program or "starter", "seed": self.seed,
                      "selection": bool(config.option.keyword) or any("::" in argument for argument in config.args)}
        self.results, self.results_file = {}, config.getoption("--lab-results")
        self.items_of = Counter()   # how many items there are of each (lab, check)
        self.numbers = itertools.count(1)
        # What sweeps are made on is another one: a program that breaks its fork servers there takes nothing from the checks that run meanwhile.
        self.staged = self.server = self.folder = self.ground = self.sweeping = self.cell = None
        self.workers = config.getoption("--lab-workers") or side_by_side.THREADS
        self.isolation = config.getoption("--lab-isolation")
        self.could_not = set()
        self.every = max(1, config.getoption("--lab-sample"))
        self.sweeps = Sweeps(self._sweep, lambda result: self.write({"sweep": result.kind, "scenario": result.scenario, **result.figures}),
                             config.getoption("timeout", None))

    def _sweep(self, kind, scenario, progress):
        result, = sweep(self.sweeping, kind, make_ticket(f"{self.seed} sweep"), progress, (scenario,) if scenario else ())
        return result

    def sweeps_go_ahead(self):
        """Whether sweeps may be made while other checks run: where a start shares no process, no count and no limit with another one's.

        Outside a cell a check looks for processes that were left behind, and would find those of a sweep. With one worker one program is to run at
        a time. And where a session died in a check, a sweep may be what it died of.
        """
        died = self.results_file and records.under_way(records.read(self.results_file))
        return self.workers > 1 and not died and self.cell and (self.cell.sandbox.level, self.cell.sandbox.how) == ("bubblewrap", "view")

    def confine(self):
        """The Cell that all programs of this session run in, None where none was asked for."""
        if self.isolation:
            level, _, how = self.isolation.partition("/")
            found = sandbox.sandbox(level, how or None, str(self.folder))
            found.open(self.folder)
            self.staged = replace(self.staged, give=found.give)
            self.cell = Cell(found, self.folder, self.folder / "outside.sock")

    def write(self, entry):
        """Write a line to the records, and return when it is on the disk."""
        if self.results_file:
            records.append(self.results_file, entry)


SESSION = pytest.StashKey()


def pytest_configure(config):
    config.addinivalue_line("markers", "sweep(kind, *scenarios): what the check judges, by its fixture `swept`; it is begun ahead of the check")
    if config.getoption("--lab-continue"):
        file = config.getoption("--lab-results")
        if not file:
            raise pytest.UsageError("--lab-continue leaves out what a file says has ended: name that file with --lab-results FILE")
        if os.path.exists(file):
            records.mend(file)   # whoever wrote it may have been killed in the middle of a line
    config.stash[SESSION] = Session(config)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session):
    """Run the checks with the outside, the scratch folder and the staged program at hand."""
    config = session.config
    if config.option.collectonly or not session.items:
        return (yield)
    shared = config.stash[SESSION]
    with _ready(shared, config):
        if shared.sweeps_go_ahead():
            for marker in filter(None, (item.get_closest_marker("sweep") for item in session.items)):
                shared.sweeps.begin(*marker.args)
            # Who only waits for a sweep comes last: what can be done meanwhile is done meanwhile, and does not remain for the end.
            session.items.sort(key=lambda item: item.get_closest_marker("sweep") is not None)
        config.add_cleanup(partial(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, _interrupt)))
        try:
            return (yield)
        except KeyboardInterrupt:
            raise Interrupted("the check that was under way has been ended, without a verdict", pytest.ExitCode.INTERRUPTED) from None


class Interrupted(pytest.exit.Exception):
    """Ctrl-C, in words."""


Interrupted.__module__ = "builtins"   # pytest shows a name with its module, which looks like a crash, but for these


def _interrupt(*_):
    # What ends now takes a second or two. Another Ctrl-C would be a traceback, and leave behind what had not been cleared up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextmanager
def _ready(session, config):
    """Raises UsageError, which a fixture cannot do in a line of its own."""
    options = config.option
    descendants.adopt_orphans()
    with scratch() as folder:
        path = config.invocation_params.dir / options.program if options.program else KIT / "starter"
        try:
            session.staged = replace(stage(path, folder / "staged", options.command), preload=checked(options.lab_preload))
            session.folder = folder
            session.confine()
        except (NoProgram, Refused, sandbox.NoSandbox) as error:
            raise pytest.UsageError(str(error)) from None
        with Outside(folder / "outside.sock", seed=session.seed) as server:
            session.server = server
            if session.cell:
                session.cell.sandbox.give(session.cell.socket)
            session.staged.places   # made by one thread, before there are others
            ground = partial(Ground, session.staged, server, folder, session.seed, session.every, cell=session.cell)
            # Ahead, a sweep is not to take the cores from the checks, which come one after the other: with the half of its threads all end sooner.
            threads = max(2, session.workers // 2) if session.sweeps_go_ahead() else session.workers
            with session.sweeps, ground(threads=threads) as session.sweeping, ground(threads=session.workers) as session.ground:
                yield


@pytest.fixture(scope="session")
def lab_session(pytestconfig):
    """What all checks of this session share."""
    return pytestconfig.stash[SESSION]


def pytest_report_header(config):
    return f"program under test: {config.option.program or 'starter'}, lab seed {config.option.lab_seed}"
