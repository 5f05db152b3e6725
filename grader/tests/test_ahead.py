"""The sweeps of a session, which are begun ahead of the checks that judge them."""

import subprocess
import sys
import threading

import pytest
from grader.tests.small_kit import SmallKit

from labs.harness import records
from labs.harness.machine import bubblewrap
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


def test_one_that_a_timeout_ends_the_wait_for_is_given_up_and_made_anew_for_the_next(monkeypatch):
    def late():
        raise TimeoutError

    made = Made(held=("line", "start"))
    with Sweeps(made) as sweeps:
        sweeps.begin("line", "start")
        made.going.wait()
        monkeypatch.setattr(sweeps._begun["line", "start"][0], "result", late)   # as by the signal of pytest-timeout
        with pytest.raises(TimeoutError):
            sweeps.results("line", "start")
        assert made.over.wait(10)
        made.held = None
        assert sweeps.results("line", "start") == ["line start"]
    assert [main for _, _, main in made.asked] == [False, True]


def test_the_end_waits_for_the_one_that_is_being_made_and_begins_no_other():
    asked, begun, going, over = [], threading.Event(), threading.Event(), threading.Event()

    def make(kind, scenario, progress):
        asked.append(scenario)
        going.set()
        begun.wait()
        while not sweeps._begun["line", "resume"][0].cancelled():
            pass   # the end has begun when that one is
        over.set()

    with Sweeps(make) as sweeps:
        sweeps.begin("line", "start", "resume")
        begun.set()
        going.wait()
    assert over.is_set() and asked == ["start"]


def test_what_a_sweep_raises_is_its_checks():
    def make(kind, scenario, progress):
        raise LookupError(kind)

    with Sweeps(make) as sweeps:
        sweeps.begin("line")
        for _ in range(2):
            with pytest.raises(LookupError, match="line"):
                sweeps.results("line")


def test_one_that_takes_too_long_by_its_own_clock_fails_whoever_asks():
    made = Made(held=("line", "start"))
    with Sweeps(made, limit=0.05) as sweeps:
        sweeps.begin("line", "start")
        for _ in range(2):
            with pytest.raises(pytest.fail.Exception, match="^Timeout .>0.05s.: 1 of 2 points"):
                sweeps.results("line", "start")
    assert len(made.asked) == 1


def test_each_is_noted_when_it_is_first_taken():
    noted = []
    with Sweeps(Made(), noted.append) as sweeps:
        sweeps.begin("line", "start", "resume")
        sweeps.results("line", "resume")
        sweeps.results("line", "resume")
        sweeps.results("power")
    assert noted == ["line resume", "power None"]


BUBBLEWRAP = pytest.mark.skipif(not bubblewrap().there, reason="this machine makes no namespaces")


@pytest.mark.parametrize("options, ahead", [
    pytest.param(["--lab-isolation", "bubblewrap/view", "--lab-workers", "6"], True, marks=BUBBLEWRAP),
    pytest.param(["--lab-isolation", "bubblewrap/view", "--lab-workers", "1"], False, marks=BUBBLEWRAP),
    pytest.param(["--lab-isolation", "bubblewrap/landlock", "--lab-workers", "2"], False, marks=BUBBLEWRAP),   # its processes count with those of others
    (["--lab-isolation", "process", "--lab-workers", "2"], False), (["--lab-workers", "2"], False)])
def test_they_are_begun_where_they_share_nothing_with_a_check(options, ahead, tmp_path):
    kit = SmallKit(tmp_path / "kit")
    kit.write("labs/02/test_small.py", f"""
import pytest
from labs.harness.sweeps import LINE, START

RAN = []

@pytest.mark.sweep(LINE, START)
def test_the_flow_resumes(swept):   # the first of the manifest
    RAN.append("swept")

def test_another(lab_session):
    assert ((LINE, START) in lab_session.sweeps._begun) is {ahead}
    assert lab_session.ground is not lab_session.sweeping
    assert RAN == ([] if {ahead} else ["swept"])   # who waits for one that goes ahead comes last
    assert (lab_session.sweeping.threads < lab_session.ground.threads) is {ahead}
""")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "labs/02", *options], cwd=kit.root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


@BUBBLEWRAP
def test_none_is_begun_where_a_session_died_in_a_check(tmp_path):
    kit, file = SmallKit(tmp_path / "kit"), tmp_path / "records.jsonl"
    kit.write("labs/02/test_small.py", """
import pytest
from labs.harness.sweeps import LINE, START

def test_the_flow_resumes(lab_session):
    assert not lab_session.sweeps._begun

@pytest.mark.sweep(LINE, START)
def test_swept(swept):
    pass
""")
    records.append(file, {"began": "test_the_flow_resumes", "in": "test_small.py::test_the_flow_resumes", "of": "02"})
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "labs/02", "--lab-isolation", "bubblewrap/view", "--lab-workers", "2", "--lab-continue",
                           "--lab-results", str(file)], cwd=kit.root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
