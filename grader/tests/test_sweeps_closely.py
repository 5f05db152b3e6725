"""The sweeps and programs in styles of their own: right ones are not refused, wrong ones do not hide, odd ones break nothing."""

import shutil
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest

from labs.harness import descendants
from labs.harness.ground import Ground
from labs.harness.kills.power import spread
from labs.harness.outside import Outside
from labs.harness.scratch import scratch
from labs.harness.staging import KIT, stage
from labs.harness.sweeps import CALL, LINE, POWER, RACE, START, sweep
from labs.harness.sweeps.points import scout
from labs.harness.sweeps.trial import DOWN, FAILING, unspoiled
from labs.harness.tickets import make_ticket

MAIN = "sys.exit(main(sys.argv[1:]))"
HEAD = "import atexit, ctypes, logging, os, signal, socket, threading, time, _thread\nfrom .storage import in_home\n"
#: Programs that do all that the solution does, and before it, or instead of calling main(argv), this; with the kinds of sweep that matter.
RIGHT = {
    "puts all sorts into sys.modules": ("sys.modules['no_such'], sys.modules['odd'] = None, object()\nreturn main(argv)", [CALL]),
    "sets up its streams": ("sys.stdout.reconfigure(line_buffering=True, encoding='utf-8')\nsys.stdin.reconfigure(errors='replace')\nreturn main(argv)", [CALL]),
    "has its own way to say that it crashed": ("sys.excepthook = lambda *what: (sys.stdout.flush(), os._exit(code[0]))\ncode = [main(argv)]\nraise ValueError", [CALL]),
    "logs much in its home": ("logging.basicConfig(level=0, filename=in_home('log'))\nfor n in range(300): logging.info(n)\nreturn main(argv)", [POWER]),
    "has a socket, a pipe and a link in its home": (
        "home = os.path.dirname(in_home('x'))\nif not os.path.lexists(in_home('link')):\n    os.mkfifo(in_home('pipe')) if not os.path.exists(in_home('pipe')) else 0\n"
        "    os.symlink('folder', in_home('link'))\nos.makedirs(in_home('folder'), exist_ok=True)\nopen(in_home('link/file'), 'a').close()\n"
        "listening = socket.socket(socket.AF_UNIX)\ntry:\n    listening.bind(in_home('socket'))\nexcept OSError:\n    pass\nreturn main(argv)", [CALL, POWER]),
    "copies in the kernel": (
        "import shutil\nwith open(in_home('text'), 'w') as file:\n    file.write('word ' * 9000)\nshutil.copy(in_home('text'), in_home('copy'))\n"
        "a, b = open(in_home('text'), 'rb'), open(in_home('copy'), 'r+b')\nos.copy_file_range(a.fileno(), b.fileno(), 100, 5)\nreturn main(argv)", [POWER]),
    "moves files with mv": (
        "import subprocess\nopen(in_home('one'), 'a').close()\nsubprocess.run(['mv', in_home('one'), in_home('other')], check=True)\n"
        "open(in_home('one'), 'a').close()\nsubprocess.run(['mv', in_home('one'), in_home('other')], check=True)\nreturn main(argv)", [POWER]),
    "has a child that says something to it": (
        "import subprocess\nassert subprocess.run(['echo', 'run-7'], capture_output=True).stdout\nreturn main(argv)", [POWER]),
    "runs very many lines": ("for n in range(70_000):\n    pass\nreturn main(argv)", [LINE]),
    "works in a fork and looks after it": (
        "pid = os.fork()\nif not pid:\n    return main(argv)\nwhile True:\n    done, status = os.waitpid(pid, os.WNOHANG)\n    if done:\n"
        "        os._exit(os.waitstatus_to_exitcode(status))\n    time.sleep(0.0005)", [LINE, CALL]),
    "is woken by a timer": ("signal.signal(signal.SIGALRM, lambda *_: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)\nreturn main(argv)", [CALL]),
}
BLIND = {
    "sys.settrace": "sys.settrace(None)\nreturn main(argv)",
    "a thread of its own kind": (
        "done = _thread.allocate_lock()\ndone.acquire()\ncodes = []\n\ndef work():\n    codes.append(main(argv))\n    done.release()\n"
        "_thread.start_new_thread(work, ())\ndone.acquire()\nreturn codes[0]"),
    "refusing to be followed": "return 1 if sys.gettrace() else main(argv)",
}
EVERY = {LINE: 30, CALL: 30, RACE: 30, POWER: 6}


@pytest.fixture(scope="module")
def server():
    descendants.adopt_orphans()
    with scratch() as folder, Outside(folder / "s", seed=5) as server:
        yield server, folder


@pytest.fixture
def tried(server, request):
    """`tried(body, kinds)`: sweep the solution under a `run(argv)` with this body; returns the Results."""
    server, folder = server

    def sweep_it(body, kinds, every=EVERY):
        place = folder / request.node.name.replace("/", "-").replace(" ", "-")
        staged = stage(KIT / "solutions" / "05", place / "solution")
        main = staged.folder / "starter" / "__main__.py"
        lines = body.replace("\n", "\n    ")
        text = main.read_text().replace(MAIN, "sys.exit(run(sys.argv[1:]))")
        main.write_text(text.replace('if __name__ == "__main__":', f'{HEAD}\ndef run(argv):\n    {lines}\n\n\nif __name__ == "__main__":'))
        written = place / "written"
        shutil.copytree(staged.folder, written)
        staged, results = stage(written, place / "staged"), []
        for kind in kinds:
            with Ground(staged, server, place, 1, every[kind]) as ground:
                results += sweep(ground, kind, make_ticket("closely"), scenarios=(START,))
        return results
    return sweep_it


@pytest.mark.parametrize("style", RIGHT)
def test_a_right_program_of_another_style_is_not_refused(tried, style):
    for result in tried(*RIGHT[style]):
        assert (result.fault, result.could_not) == (None, None), f"{result.kind}: {result.fault}"
        # One that looks again and again comes to its look more or less often.
        assert result.never_struck == 0 and (result.missed == 0 or "time.sleep" in RIGHT[style][0])


@pytest.mark.parametrize("how", BLIND)
def test_a_program_that_is_not_followed_does_not_pass(tried, how):
    result, = tried(BLIND[how], [LINE])
    assert result.fault and "what is not seen does not pass" in result.fault


def test_a_program_that_does_right_only_while_it_is_traced_is_killed_at_a_call_untraced(tried):
    """It does not record an effect before it acts, where nobody looks."""
    body = ("from . import record\nsave = record.save\n\ndef lazily(run):\n"
            "    if not any(effect['state'] == 'started' for effect in run['effects'].values()):\n        save(run)\n"
            "if argv[0] == 'start' and not sys.gettrace():\n    record.save = lazily\nreturn main(argv)")
    result, = tried(body, [CALL], {CALL: 2})
    assert "refunded twice" in result.fault


@pytest.mark.parametrize("kind", [LINE, CALL, RACE, POWER])
def test_a_program_that_kills_its_keeper_is_told_of(tried, kind):
    known = set(psutil.Process().children(recursive=True))
    result, = tried("os.kill(os.getppid(), 9)\ntime.sleep(60)", [kind])
    assert "a process that watches it" in result.fault
    gone, alive = psutil.wait_procs(set(psutil.Process().children(recursive=True)) - known, timeout=5)
    assert not alive


def test_what_went_on_after_a_kill_is_named(tried):
    body = "if not os.fork():\n    os.setsid()\n    time.sleep(60)\n    os._exit(0)\nreturn main(argv)"
    result, = tried(body, [CALL])
    assert "a process that it forked outlived the program" in result.fault
    assert {mark for _, mark, _ in result.bad} == {"outlived"}


def test_calls_that_make_no_sense_break_no_keeper(tried):
    body = ("libc = ctypes.CDLL(None)\nlong = ctypes.c_ulong\nfile = os.open(in_home('odd'), os.O_CREAT | os.O_WRONLY)\n"
            "libc.open(long(2**64 - 1), os.O_CREAT, 0)\nlibc.writev(file, long(2**63), long(2**60))\nlibc.writev(file, long(4096), long(2**59))\n"
            "libc.pwrite(file, long(2**63 + 5), long(9), ctypes.c_long(-7))\nlibc.ftruncate(file, ctypes.c_long(-5))\nreturn main(argv)")
    for result in tried(body, [CALL, POWER]):
        assert (result.fault, result.could_not) == (None, None)


def test_a_huge_file_cannot_be_checked(tried):
    result, = tried("os.ftruncate(os.open(in_home('huge'), os.O_CREAT | os.O_WRONLY), 1 << 40)\nreturn main(argv)", [POWER])
    assert "64 MiB" in result.could_not


def test_what_nobody_can_read_does_not_pass(tried):
    body = ("here = os.getcwd()\nos.chdir(os.path.dirname(in_home('x')))\nfor _ in range(30):\n    os.makedirs('d' * 200, exist_ok=True)\n    os.chdir('d' * 200)\n"
            "os.chdir(here)\nreturn main(argv)")
    result, = tried(body, [POWER])
    assert "what it left in LAB_HOME cannot be read" in result.fault and not result.could_not


@pytest.fixture
def ground(server):
    """`ground(solution, every)`: the Ground of a solution, on which only each `every`-th point is tried."""
    server, folder = server
    with ExitStack() as stack, scratch() as place:
        yield lambda solution, every: stack.enter_context(Ground(stage(KIT / "solutions" / solution, place / solution), server, place, 1, every))


@pytest.mark.parametrize("kind", [LINE, CALL])
@pytest.mark.parametrize("scenario", [FAILING, DOWN])
def test_a_program_that_knows_no_failures_does_not_pass_where_things_fail(ground, kind, scenario):
    result, = sweep(ground("03", 1), kind, make_ticket("closely"), scenarios=(replace(scenario, beyond=True),))
    assert "without any kill (1 of 1 point failed): `start` ended with exit code 1" in result.fault


@pytest.mark.parametrize("kind", [LINE, CALL])
def test_where_things_fail_no_point_is_tried_that_a_run_without_failures_has(ground, kind):
    ground, ticket = ground("05", 10), make_ticket("closely")
    result, = sweep(ground, kind, ticket, scenarios=(replace(FAILING, beyond=True),))
    assert (result.fault, result.could_not) == (None, None)
    points, start = [[place for _, *place in scout(ground, kind, scenario, ticket).events] for scenario in (FAILING, START)]
    tried = len(result.outcomes) - 1 + result.left_out
    assert result.outcomes[0].point == "without any kill" and 10 < tried < len(points)
    if kind == LINE:
        assert all(list(outcome.like) not in start for outcome in result.outcomes[1:])
    else:
        assert points[:len(points) - tried] == start[:len(points) - tried], "up to the first failure nothing differs"


SLOWER = """\
    import os, sys
    os.mkdir(f"{os.environ['LAB_HOME']}/before")
    for number in range(50 * bool(sys.gettrace())):
        os.mkdir(f"{os.environ['LAB_HOME']}/{number}")   # as by the clock: who is traced has time for more of them
"""


def test_calls_are_those_of_a_run_that_is_not_traced_and_their_lines_of_one_that_is(ground, tmp_path):
    staged = stage(KIT / "solutions" / "05", tmp_path)
    flow = staged.folder / "starter" / "flow.py"
    text = flow.read_text()
    flow.write_text(text.replace("    print(run_id, flush=True)\n", SLOWER + "    print(run_id, flush=True)\n"))
    line = flow.read_text().splitlines().index(SLOWER.splitlines()[1]) + 1
    ground, ticket = ground("05", 20), make_ticket("closely")
    ground.staged = staged
    events = scout(ground, CALL, START, ticket).events
    assert [(number, *place) for number, (_, *place) in enumerate(events, 1) if place[0] == "mkdir" and place[1] in ("before", "0")] == \
        [(number, "mkdir", "before", "starter/flow.py", line) for number, event in enumerate(events, 1) if event[2] == "before"]
    result, = sweep(ground, CALL, ticket, scenarios=(START,))
    assert (result.fault, result.could_not, result.missed) == (None, None, 0)
    assert all(file for *_, file, _ in events)


@pytest.mark.parametrize("unseen, well, refunds, mails, times", [
    ([1, 0], [False, True], 1, 1, 2), ([1, 1, 0], [False, False, False], 1, 1, 3), ([1], [True], 1, 1, 1), ([0], [False], 1, 1, 1),
    ([1] * 9, [False] * 9, 1, 1, 5), ([1] * 9, [False] * 9, 2, 1, 1), ([1] * 9, [False] * 9, 0, 2, 1)])
def test_what_went_wrong_is_tried_again_only_where_a_signal_ended_an_unseen_call(unseen, well, refunds, mails, times):
    """And never where an effect happened twice: a program that signals itself as often as it likes buys no try for that."""
    made, discarded = [], []
    ground = SimpleNamespace(discard=discarded.append)

    def experiment():
        number = len(made)
        made.append(SimpleNamespace(processes=[SimpleNamespace(report=None), SimpleNamespace(report={"unseen": unseen[number]})],
                                    outside=SimpleNamespace(refunds=[None] * refunds, mails=[None] * mails)))
        return made[-1], well[number], number
    assert unspoiled(ground, experiment) == (made[-1], well[times - 1], times - 1)
    assert len(made) == times and discarded == made[:-1]


def test_of_very_many_things_the_last_are_kept():
    assert spread(range(5), 8) == [0, 1, 2, 3, 4]
    assert spread(range(100), 8) == [0, 16, 32, 49, 65, 81, 98, 99]
