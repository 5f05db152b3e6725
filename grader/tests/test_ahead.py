"""The sweeps of a session, which are begun ahead of the checks that judge them."""

import signal
import subprocess
import sys
import threading

import pytest
from grader.tests.small_kit import SmallKit

from labs.session.ahead import Sweeps


class Made:
    """A `make` that notes what it is asked for, and by which thread; that of `held` goes on, from point to point, until it is given up."""

    def __init__(self, held=None):
        self.asked, self.held, self.going, self.over = [], held, threading.Event(), threading.Event()

    def __call__(self, kind, scenario, progress):
        self.asked.append((kind, scenario, threading.current_thread() is threading.main_thread()))
        try:
            while (kind, scenario) == self.held:
                self.going.set()
                progress(1, 2)
        finally:
            self.over.set()
        return f"{kind} {scenario}"


def test_what_was_begun_is_made_once_in_a_thread_and_the_rest_when_it_is_asked_for():
    made = Made()
    with Sweeps(made) as sweeps:
        sweeps.begin("line", "start", "resume")
        sweeps.begin("line", "resume")
        assert sweeps.results("line", "resume") == ["line resume"] and sweeps.results("power") == ["power None"]
        assert sweeps.results("line", "start", "resume") == ["line start", "line resume"]
    assert made.asked == [("line", "start", False), ("line", "resume", False), ("power", None, True)]


def test_one_that_a_timeout_ends_the_wait_for_is_given_up_and_made_anew_for_the_next():
    def late(*_):
        raise TimeoutError

    made = Made(held=("line", "start"))
    with Sweeps(made) as sweeps:
        sweeps.begin("line", "start")
        made.going.wait()
        before = signal.signal(signal.SIGALRM, late)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(TimeoutError):
                sweeps.results("line", "start")
        finally:
            signal.signal(signal.SIGALRM, before)
        assert made.over.wait(10)
        made.held = None
        assert sweeps.results("line", "start") == ["line start"]
    assert [main for _, _, main in made.asked] == [False, True]


def test_those_that_are_not_made_at_the_end_are_given_up():
    made = Made(held=("line", "start"))
    with Sweeps(made) as sweeps:
        sweeps.begin("line", "start", "resume")
        made.going.wait()
    assert made.over.wait(10) and [scenario for _, scenario, _ in made.asked] == ["start"]


def test_what_a_sweep_raises_is_its_checks():
    def make(kind, scenario, progress):
        raise LookupError(kind)

    with Sweeps(make) as sweeps:
        sweeps.begin("line")
        for _ in range(2):
            with pytest.raises(LookupError, match="line"):
                sweeps.results("line")


@pytest.mark.parametrize("options, ahead", [(["--lab-isolation", "process", "--lab-workers", "2"], True), (["--lab-isolation", "process", "--lab-workers", "1"], False),
                                            (["--lab-workers", "2"], False)])
def test_they_are_begun_where_nothing_can_take_them_for_what_a_check_left_behind(options, ahead, tmp_path):
    kit = SmallKit(tmp_path / "kit")
    kit.write("labs/02/test_small.py", f"""
import pytest
from labs.harness.sweeps import LINE, START

def test_the_flow_resumes(lab_session):
    assert ((LINE, START) in lab_session.sweeps._begun) is {ahead}

@pytest.mark.sweep(LINE, START)
def test_swept(swept):
    pass
""")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "labs/02", *options], cwd=kit.root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
