"""The fixtures that every suite shares, and how a failed check is told."""

import itertools
import json
import os
import re
import shlex
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from labs.command.mapped import as_text, bad_lines
from labs.command.preload import checked
from labs.command.refused import Refused
from labs.harness import killmap, manifest, processes, sandbox, side_by_side, story, verdict
from labs.harness.evidence import Evidence
from labs.harness.ground import Ground
from labs.harness.kept import Cell
from labs.harness.outside import Outside
from labs.harness.program import Program
from labs.harness.scratch import scratch
from labs.harness.staging import KIT, NoProgram, stage
from labs.harness.sweeps import sweep
from labs.harness.sweeps.rules import OF_LAB
from labs.harness.tickets import make_ticket


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
    group.addoption("--lab-workers", metavar="N", type=int, help="how many programs run side by side (default: three a core)")
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
        self.numbers = itertools.count(1)
        self.staged = self.server = self.folder = self.ground = self.cell = None
        self.workers = config.getoption("--lab-workers") or side_by_side.THREADS
        self.isolation = config.getoption("--lab-isolation")
        self.could_not = set()
        self.every, self._swept = max(1, config.getoption("--lab-sample")), {}

    def swept(self, kind, scenarios):
        """The Results of a sweep. What one check has swept, another one of this session judges by its own rules."""
        for scenario in scenarios or (None,):
            if (kind, scenario) not in self._swept:
                self._swept[kind, scenario], = sweep(self.ground, kind, make_ticket(f"{self.seed} sweep"),
                                                     scenarios=(scenario,) if scenario else ())
                self.write({"sweep": kind, "scenario": scenario.name if scenario else "", **self._swept[kind, scenario].figures})
        return [self._swept[kind, scenario] for scenario in scenarios or (None,)]

    def confine(self):
        """The Cell that all programs of this session run in, None where none was asked for."""
        if self.isolation:
            level, _, how = self.isolation.partition("/")
            found = sandbox.sandbox(level, how or None, str(self.folder))
            found.open(self.folder)
            self.staged = replace(self.staged, give=found.give)
            self.cell = Cell(found, self.folder, self.folder / "outside.sock")

    def write(self, entry):
        """Write a line to the results file, and return when it is on the disk."""
        if self.results_file:
            with open(self.results_file, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
                file.flush()
                os.fsync(file.fileno())


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
            session.staged = replace(stage(path, folder / "staged", options.command), preload=checked(options.lab_preload))
        except (NoProgram, Refused) as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        session.folder = folder
        session.confine()
        with Outside(folder / "outside.sock", seed=session.seed) as server:
            session.server = server
            if session.cell:
                session.cell.sandbox.give(session.cell.socket)
            with Ground(session.staged, server, folder, session.seed, session.every, session.workers, session.cell) as session.ground:
                yield session


@pytest.fixture
def programs(lab_session, request):
    """A function that makes a fresh Program: a home and an account of its own. Options go to Program."""
    made, within = request.node.stash.setdefault(PROGRAMS, []), itertools.count(1)

    def make(**options):
        number = next(lab_session.numbers)
        # Named after the check, so that it meets the same outside whether it runs alone or among others.
        account = lab_session.server.open_account(f"{request.node.nodeid} {next(within)}")
        ground = lab_session.ground
        # What is confined is started in the sandbox; there a keeper knows what became of it.
        confined = {"forks": ground.forks, "executed": True, "cell": ground.cell} if ground.cell else \
            {"forks": ground.forks} if lab_session.staged.preload else {}
        program = Program(lab_session.staged, lab_session.folder / f"program-{number}", lab_session.server, account,
                          seed=lab_session.seed, **confined, **options)
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
def each(programs, lab_session):
    """`each(points, experiment)`: the experiment at each of the points, side by side, on fresh programs."""
    return lambda points, experiment: side_by_side.on_fresh_programs(programs, points, experiment, lab_session.workers)


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
                raise NotApplicable(result.not_applicable)
    return judge


class CouldNotCheck(pytest.skip.Exception):
    """The machine, or the harness, is not able: that says nothing about the program, neither good nor bad."""


class NotApplicable(pytest.skip.Exception):
    """The check has nothing to say of this program. Its points leave the total."""


@pytest.fixture
def not_applicable():
    """`not_applicable(reason)`: end the check, which has nothing to say of this program."""
    def end(reason):
        raise NotApplicable(reason)
    return end


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
    if isinstance(error, LookupError) and _of_a_check(outcome.excinfo[2]):
        # What the check goes on from is not there, like a refund that was never asked for: that is the program's doing, and no fault of ours.
        error = processes.ProgramFault(f"the program did less than this check goes on from ({type(error).__name__}: {error})")
    if isinstance(error, (AssertionError, pytest.fail.Exception)):
        outcome.force_exception(_told(pyfuncitem, error, made))
    left = [words for program in made for process in program.processes for words in process.left_behind()]
    for program in made:
        program.outside.drop()
        program.discard()
    session = pyfuncitem.config.stash[SESSION]
    if not (session.cell or session.staged and session.staged.preload):   # there the keepers have seen all, and they live on themselves
        left += processes.survivors(known)
    if left and error is None:
        error = processes.Survived(f"{left[0]} still runs after the check: no process may outlive the program")
        outcome.force_exception(_told(pyfuncitem, error, made))


def _of_a_check(traceback):
    """Whether an exception was raised by a line of a check itself, and by nothing that it called."""
    while traceback.tb_next:
        traceback = traceback.tb_next
    return os.path.basename(traceback.tb_frame.f_code.co_filename).startswith("test_")


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
    # Of a hidden check a learner whose program was graded has no file to run again.
    again = [] if session.isolation and check and check.hidden else [story.labelled("again", _again(item))]
    further = [*again, story.labelled("hint", f"python -m labs hint {lab.number}")]
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
    told.reason, told.kind, told.evidence = reason, _kind(error, program), str(look.parent) if look else None
    return told


def _kind(error, program):
    """How the check failed, in a word or two: what a grader has statuses for."""
    last = program.processes[-1] if program and program.processes else None
    if last and (last.excess == "memory" or last.code and last.last_words.startswith("MemoryError")):
        return "out of memory"
    if isinstance(error, processes.ProgramFault) and error.kind != "failed":
        return error.kind
    if isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout"):
        return "timeout"
    return "error in the program" if last and not last.running and not last.killed and last.code not in KNOWN else "failed"


KNOWN = (0, 2, 3, 4, 5, 6)   # exit codes of the contract


def _again(item):
    options = item.config.option
    path = os.path.relpath(item.path, item.config.invocation_params.dir)
    words = ["pytest", f"{path}::{item.name}", "--lab-seed", str(options.lab_seed)]
    # A graded program was copied to where it is no more; its author has it as starter/.
    words += ["--program", options.program] if options.program and not options.lab_isolation else []
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
    if call.when == "call" or report.failed or call.when == "setup" and report.skipped:
        status = "passed" if report.passed else "failed" if isinstance(error, Told) else \
            "could not check" if isinstance(error, CouldNotCheck) else "not applicable" if isinstance(error, NotApplicable) else \
            "skipped" if report.skipped else "error"
        lab = _lab_folder(item).name
        entry = {"lab": lab, "check": _test_name(item), "item": item.name, "status": status,
                 "seconds": round(call.duration, 3), "why": getattr(error, "reason", str(error) if error else None),
                 "story": str(error) if isinstance(error, Told) else None, "kind": getattr(error, "kind", None),
                 "evidence": getattr(error, "evidence", None)}
        session = item.config.stash[SESSION]
        if isinstance(error, CouldNotCheck):
            session.could_not.add(str(error))
        session.results.setdefault(lab, {}).setdefault(entry["check"], []).append(status)
        session.evidence.record(entry, session.about)
        session.write(entry)


def pytest_collection_modifyitems(config, items):
    # What a learner sees and has a chapter about comes first.
    items.sort(key=lambda item: (_lab_folder(item).name, item.path.parent.name == "hidden"))
    config.stash[SESSION].write({"collected": [[_lab_folder(item).name, _test_name(item), item.name] for item in items]})
    if config.getoption("--lab-continue"):
        ended = _ended(config.getoption("--lab-results"))
        left_out = [item for item in items if (_lab_folder(item).name, _test_name(item), item.name) in ended]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def _ended(path):
    """Which items a results file has an end of, as (lab, check, item). The last line may be torn."""
    found = set()
    with suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        for line in file:
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                found.add((entry["lab"], entry["check"], entry["item"]))
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.config.stash[SESSION].write({"began": item.name, "in": _test_name(item), "of": _lab_folder(item).name})


def pytest_terminal_summary(terminalreporter, config):
    session = config.stash[SESSION]
    for number, checks in sorted(session.results.items()):
        lab = manifest.read(KIT / "labs" / number)
        verdicts = {check.test: verdict.of_check(checks.get(check.test, ())) for check in lab.checks}
        ran = [check for check in lab.checks if verdicts[check.test] not in ("not run", "not applicable")]
        passed, unknown = ([check for check in ran if verdicts[check.test] == wanted] for wanted in ("passed", "could not check"))
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
