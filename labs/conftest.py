"""The fixtures that every suite shares, and how a failed check is told."""

import itertools
import json
import os
import re
import shlex
import time

import pytest

from labs.command.mapped import as_text, bad_lines
from labs.harness import killmap, manifest, processes, story
from labs.harness.evidence import Evidence
from labs.harness.ground import Ground
from labs.harness.outside import Outside
from labs.harness.program import Program
from labs.harness.scratch import scratch
from labs.harness.staging import KIT, NoProgram, stage
from labs.harness.sweeps import sweep
from labs.harness.sweeps.rules import OF_LAB
from labs.harness.side_by_side import on_fresh_programs
from labs.harness.tickets import make_ticket


def pytest_addoption(parser):
    group = parser.getgroup("labs")
    group.addoption("--program", metavar="DIR", help="what is tested: a folder with a __main__.py, one that holds starter/, "
                    "or solutions/NN (default: starter)")
    group.addoption("--command", metavar="LINE", help="the command line that starts the program in a copy of DIR, "
                    "where it is not `python -m starter`")
    group.addoption("--lab-seed", metavar="N", type=int, default=1, help="what every random choice comes from (default: 1)")
    group.addoption("--lab-sample", metavar="N", type=int, default=1, help="sweeps kill at every N-th of their points (default: at every one)")
    group.addoption("--lab-results", metavar="FILE", help="write one JSON line per check to FILE, as each ends")


class Session:
    """What all checks of one session share."""

    def __init__(self, config):
        self.seed = config.getoption("--lab-seed")
        self.evidence = Evidence(KIT / ".lab-evidence")
        self.about = {"began": time.strftime("%Y-%m-%d %H:%M:%S"), "program": config.option.program or "starter", "seed": self.seed,
                      "selection": bool(config.option.keyword) or any("::" in argument for argument in config.args)}
        self.results = {}
        self.numbers = itertools.count(1)
        self.staged = self.server = self.folder = self.ground = None
        self.could_not = set()
        self.every, self._swept = max(1, config.getoption("--lab-sample")), {}

    def swept(self, kind, scenarios):
        """The Results of a sweep. What one check has swept, another one of this session judges by its own rules."""
        for scenario in scenarios or (None,):
            if (kind, scenario) not in self._swept:
                self._swept[kind, scenario], = sweep(self.ground, kind, make_ticket(f"{self.seed} sweep"),
                                                     scenarios=(scenario,) if scenario else ())
        return [self._swept[kind, scenario] for scenario in scenarios or (None,)]


def pytest_configure(config):
    config.stash[SESSION] = Session(config)


SESSION = pytest.StashKey()
PROGRAMS = pytest.StashKey()


@pytest.fixture(scope="session")
def lab_session(request):
    """The outside, the scratch folder and the staged program."""
    session, options = request.config.stash[SESSION], request.config.option
    processes.adopt_orphans()
    with scratch() as folder:
        path = request.config.invocation_params.dir / options.program if options.program else KIT / "starter"
        try:
            session.staged = stage(path, folder / "staged", options.command)
        except NoProgram as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        session.folder = folder
        with Outside(folder / "outside.sock", seed=session.seed) as server:
            session.server = server
            with Ground(session.staged, server, folder, session.seed, session.every) as session.ground:
                yield session


@pytest.fixture
def programs(lab_session, request):
    """A function that makes a fresh Program: a home and an account of its own. Options go to Program."""
    made, within = request.node.stash.setdefault(PROGRAMS, []), itertools.count(1)

    def make(**options):
        number = next(lab_session.numbers)
        # Named after the check, so that it meets the same outside whether it runs alone or among others.
        account = lab_session.server.open_account(f"{request.node.nodeid} {next(within)}")
        program = Program(lab_session.staged, lab_session.folder / f"program-{number}", lab_session.server, account,
                          seed=lab_session.seed, **options)
        made.append(program)
        return program
    return make


@pytest.fixture
def program(programs):
    """The program under test, in an empty home and with a fresh account."""
    return programs()


@pytest.fixture
def outside(program):
    """The account of the program under test: what the outside saw, and what goes wrong there."""
    return program.outside


@pytest.fixture
def ticket(lab_session, request):
    """A ticket that no other check has."""
    return make_ticket(f"{lab_session.seed} {request.node.nodeid}")


@pytest.fixture
def each(programs):
    """`each(points, experiment)`: the experiment at each of the points, side by side, on fresh programs."""
    return lambda points, experiment: on_fresh_programs(programs, points, experiment)


@pytest.fixture
def swept(lab_session, request):
    """`swept(kind, *scenarios)`: kill the program at every point of that kind, and judge it by the rules of the check's lab."""
    def judge(kind, *scenarios):
        rules = OF_LAB[_lab_folder(request.node).name]
        results = [result.under(rules) for result in lab_session.swept(kind, scenarios)]
        faulty = next((result for result in results if result.fault), None)
        if faulty:
            error = processes.ProgramFault(f"{faulty.scenario}: {faulty.fault}" if faulty.scenario else faulty.fault)
            error.program = next((outcome.program for outcome, _, _ in faulty.bad if outcome.program), None)
            error.struck = [struck for result in results for struck in result.struck]
            raise error
        for result in results:
            if result.could_not:
                raise CouldNotCheck(result.could_not)
            if result.not_applicable:
                pytest.skip(result.not_applicable)
    return judge


class CouldNotCheck(pytest.skip.Exception):
    """The machine, or the harness, is not able: that says nothing about the program, neither good nor bad."""


@pytest.fixture
def not_applicable():
    """`not_applicable(reason)`: end the check, which has nothing to say of this program. Its points leave the total."""
    return pytest.skip


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """After a check, keep the evidence of a failure; then let nothing of the program live on, and fail it if it would."""
    known = {child.pid for child in processes.descendants()}
    outcome = yield
    server, made = pyfuncitem.config.stash[SESSION].server, pyfuncitem.stash.get(PROGRAMS, [])
    if server and server.errors:
        # The outside itself is broken: nothing that it saw says anything about the program.
        outcome.force_exception(server.errors.pop(0))
        server.errors.clear()
    error = outcome.excinfo[1] if outcome.excinfo else None
    if isinstance(error, (AssertionError, pytest.fail.Exception)):
        outcome.force_exception(_told(pyfuncitem, error, made))
    left = [words for program in made for process in program.processes for words in process.left_behind()]
    for program in made:
        program.outside.drop()
        program.discard()
    left += processes.survivors(known)
    if left and error is None:
        error = processes.ProgramFault(f"{left[0]} still runs after the check: no process may outlive the program")
        outcome.force_exception(_told(pyfuncitem, error, made))


class Told(AssertionError):
    """A failed check, with its story."""


def _told(item, error, made):
    session, lab = item.config.stash[SESSION], manifest.read(_lab_folder(item))
    program = getattr(error, "program", None) or (made[-1] if made else None)
    check = lab.check(_test_name(item))
    reason = str(error).split("\nassert ")[0].strip()
    if point := getattr(error, "point", None):
        reason = f"at {point}: {reason}"
    name = f"{lab.number}-{_short(item)}"

    head = f"lab {lab.number} · {lab.title}"
    does = check.does if check else item.name
    lines = [f"{head:<{story.WIDTH - 4}}FAIL", *story.wrapped("this check", does)]
    lines += story.tell(program) if program else []
    lines += story.wrapped("why", reason)
    further = [story.labelled("again", _again(item)), story.labelled("hint", f"python -m labs hint {lab.number}")]
    pages, struck = {}, getattr(error, "struck", None)
    if struck:
        sources = session.staged.sources
        pages = {"killmap.html": killmap.page(sources, struck, head, f"{does} Seed {session.seed}.")}
    if look := session.evidence.keep(name, lines + further, program, does, reason, pages):
        lines.append(story.labelled("look", str(look)))
        lines += [story.labelled("kill map", str(look.with_name(page))) for page in pages]
    if struck:
        further += ["", *as_text(bad_lines(sources, struck), story.WIDTH)]
    told = Told("\n".join(lines + further))
    told.reason = reason
    return told


def _again(item):
    options = item.config.option
    path = os.path.relpath(item.path, item.config.invocation_params.dir)
    words = ["pytest", f"{path}::{item.name}", "--lab-seed", str(options.lab_seed)]
    words += ["--program", options.program] if options.program else []
    words += ["--command", options.command] if options.command else []
    return shlex.join(words)


def _short(item):
    return re.sub(r"[^\w.-]+", "-", item.name.removeprefix("test_")).strip("-").replace("_", "-")[:80]


def _lab_folder(item):
    return next(folder for folder in item.path.parents if (folder / "lab.toml").is_file())


def _test_name(item):
    return f"{item.path.relative_to(_lab_folder(item)).as_posix()}::{item.originalname}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, Told):
        report.longrepr = str(error)
    if call.when == "call" or report.failed:
        status = "passed" if report.passed else "failed" if isinstance(error, Told) else \
            "could not check" if isinstance(error, CouldNotCheck) else "not applicable" if report.skipped else "error"
        lab = _lab_folder(item).name
        entry = {"lab": lab, "check": _test_name(item), "item": item.name, "status": status,
                 "seconds": round(call.duration, 3), "why": getattr(error, "reason", str(error) if error else None),
                 "story": str(error) if isinstance(error, Told) else None}
        session = item.config.stash[SESSION]
        if isinstance(error, CouldNotCheck):
            session.could_not.add(str(error))
        session.results.setdefault(lab, {}).setdefault(entry["check"], []).append(status)
        session.evidence.record(entry, session.about)
        if path := item.config.getoption("--lab-results"):
            with open(path, "a") as file:
                file.write(json.dumps(entry) + "\n")
                file.flush()
                os.fsync(file.fileno())


def pytest_collection_modifyitems(items):
    # What a learner sees and has a chapter about comes first.
    items.sort(key=lambda item: (_lab_folder(item).name, item.path.parent.name == "hidden"))


def pytest_terminal_summary(terminalreporter, config):
    session = config.stash[SESSION]
    for number, checks in sorted(session.results.items()):
        lab = manifest.read(KIT / "labs" / number)
        passed = [check for check in lab.checks if set(checks.get(check.test, ["missing"])) == {"passed"}]
        ran = [check for check in lab.checks if check.test in checks and set(checks[check.test]) != {"not applicable"}]
        unknown = [check for check in ran if "could not check" in checks[check.test]]
        terminalreporter.write_line(
            f"lab {number} · {lab.title}: {len(passed)} of {len(ran)} checks passed, "
            f"{sum(check.points for check in passed)} of {sum(check.points for check in ran)} points; "
            f"program {session.staged.name if session.staged else '?'}, seed {session.seed}"
            + (f"; a sample, each {session.every}th point of a sweep" if session.every > 1 else ""))
        if unknown:
            terminalreporter.write_line(f"lab {number}: {len(unknown)} checks, of {sum(check.points for check in unknown)} points, could not be made, "
                                        f"neither passed nor failed: {'; '.join(sorted(session.could_not))} (`python -m labs doctor`)")


def pytest_report_header(config):
    return f"program under test: {config.option.program or 'starter'}, lab seed {config.option.lab_seed}"
