"""The fixtures that every suite shares. How a session runs, and how a failed check is told: labs/session."""

import itertools
import sys

import pytest

try:
    import psutil as _   # the first that a Python lacks for which the kit was not installed
except ModuleNotFoundError as error:
    from labs import without
    sys.exit(without(error))
from labs.harness import processes, side_by_side
from labs.harness.program import Program
from labs.harness.sweeps.rules import OF_LAB
from labs.harness.tickets import make_ticket
from labs.session.items import PROGRAMS, CouldNotCheck, NotApplicable, lab_folder

pytest_plugins = ["labs.session.shared", "labs.session.failures", "labs.session.outcomes"]   # each before those that need it


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
    """`swept()`: kill the program at every point of what the check's mark `sweep` names, and judge it by the rules of its lab."""
    def judge():
        rules = OF_LAB[lab_folder(request.node).name]
        results = [result.under(rules) for result in lab_session.sweeps.results(*request.node.get_closest_marker("sweep").args)]
        faulty = next((result for result in results if result.fault), None)
        if faulty:
            error = processes.ProgramFault(f"{faulty.scenario}: {faulty.fault}" if faulty.scenario else faulty.fault)
            error.program = next((outcome.program for outcome, _, _ in faulty.bad if outcome.program), None)
            error.struck = [struck for result in results for struck in result.struck]
            told = faulty.bad[0][0] if faulty.bad else None
            error.gone_on_with = not told or told.told(rules) == told.story
            raise error
        for result in results:
            if result.could_not:
                raise CouldNotCheck(result.could_not)
            if result.not_applicable:
                raise NotApplicable(result.not_applicable)
    return judge


@pytest.fixture
def not_applicable():
    """`not_applicable(reason)`: end the check, which has nothing to say of this program."""
    def end(reason):
        raise NotApplicable(reason)
    return end
