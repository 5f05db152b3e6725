"""The batch: what is recorded is not done again, what is not recorded earns nothing, and no death of ours loses anything."""

import hashlib
import io
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from contextlib import suppress
from types import SimpleNamespace

import pytest
from grader.tests.small_kit import SmallKit
from rich.console import Console

from grader import progress, results, running, scoring
from grader.progress import Checks
from grader.results import Status
from labs.harness.records import outcomes, read
from labs.harness.staging import KIT

LAB = '''
number = "01"
title = "small"
points = 10
minutes = 1
hints = ["One hint.", "Two hints.", "Three hints."]
[[checks]]
test = "test_small.py::test_first"
points = 3
does = "Looks for the mark of the first check."
[[checks]]
test = "test_small.py::test_second"
points = 2
does = "Looks twice for the mark of the second check."
[[checks]]
test = "hidden/test_close.py::test_third"
points = 5
does = "Looks for the mark of the third check."
'''
#: Each check writes its name down, so that a check which is made again shows. `{gate}` is a pipe: who opens it waits for the test;
#: and where there is a pipe `{arrivals}`, says so first.
SUITE = '''
from pathlib import Path
import os, pytest

def look(session, number):
    source = (session.staged.folder / "starter/__main__.py").read_text()
    with open({log!r}, "a") as log:
        print(number, session.staged.name, file=log, flush=True)
    if f"wait {{number}}" in source and Path({gate!r}).exists():
        if Path({arrivals!r}).exists():
            Path({arrivals!r}).write_text(f"{{number}}\\n")
        open({gate!r}).read()
    if f"die {{number}}" in source:
        os._exit(7)
    if f"skip {{number}}" in source:
        pytest.skip("for no reason")
    if f"xfail {{number}}" in source:
        pytest.xfail("it is known")
    if f"break {{number}}" in source:
        raise RuntimeError("the suite is broken")
    if f"hang {{number}}" in source:
        import threading, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        threading.Event().wait()
    assert f"mark {{number}}" in source, f"there is no mark {{number}}"
'''
FIRST = SUITE + '''
def test_first(lab_session):
    look(lab_session, 1)

@pytest.mark.parametrize("time", [1, 2])
def test_second(lab_session, time):
    look(lab_session, 2)
'''
HIDDEN = SUITE + '''
def test_third(lab_session):
    look(lab_session, 3)
'''
ALL = "mark 1 mark 2 mark 3"


class Class:
    """A kit with one small lab, and a folder of submissions to grade in it."""

    def __init__(self, folder):
        self.kit, self.folder, self.report = SmallKit(folder / "kit"), folder / "class", folder / "report"
        shutil.copytree(KIT / "grader", folder / "kit" / "grader", ignore=shutil.ignore_patterns("__pycache__", "tests", "attacks"))
        shutil.rmtree(folder / "kit" / "labs" / "02")
        self.log, self.gate = folder / "log", folder / "gate"
        self.arrivals = folder / "arrivals"
        self.log.touch()
        self.kit.write("labs/01/lab.toml", LAB)
        for name, text in (("test_small.py", FIRST), ("hidden/test_close.py", HIDDEN)):
            self.kit.write(f"labs/01/{name}", text.format(log=str(self.log), gate=str(self.gate), arrivals=str(self.arrivals)))

    def hands_in(self, name, marks):
        path = self.folder / name / "starter" / "__main__.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {marks}\n")

    def begin(self, *arguments, stdout=subprocess.PIPE, **environment):
        environment = {**os.environ, "PYTHONPATH": str(self.kit.root), "COLUMNS": "200", **environment}
        return subprocess.Popen([sys.executable, "-m", "grader", "grade", str(self.folder), "--out", str(self.report), "--labs", "1", *arguments],
                                cwd=self.kit.root, env=environment, text=True, stdout=stdout, stderr=subprocess.PIPE)

    def grade(self, *arguments):
        """Grade to the end. Returns the exit code, and what was said on stdout and stderr."""
        process = self.begin(*arguments)
        said, complained = process.communicate(timeout=100)
        assert "Traceback" not in complained, complained
        return process.returncode, said, complained

    def result(self, name):
        return results.read(self.report / "results" / f"{results.file_name(name)}.json")

    def statuses(self, name):
        return [str(check.status) for _, check in self.result(name).checks]

    @property
    def looked(self):
        """The checks that were made, in order."""
        return [line.split()[0] for line in self.log.read_text().splitlines()]


@pytest.fixture
def small_class(tmp_path):
    return Class(tmp_path)


def test_points_are_those_of_the_checks_that_passed(small_class):
    small_class.hands_in("ana", ALL)
    small_class.hands_in("ben", "mark 1")
    (small_class.folder / "grades.xlsx").touch()
    code, said, _ = small_class.grade("--jobs", "2")
    for path in ("index.html", "results.csv"):
        assert "grades.xlsx: no folder and no archive" in (small_class.report / path).read_text()
    assert code == 0, said
    assert (small_class.result("ana").points, small_class.result("ben").points, small_class.result("ben").possible) == (10, 3, 10)
    assert small_class.statuses("ben") == ["passed", "failed", "failed"]
    assert small_class.result("ben").labs[0].checks[1].why == "there is no mark 2"


def test_what_is_skipped_or_expected_to_fail_earns_nothing(small_class):
    small_class.hands_in("ana", f"{ALL} skip 1 xfail 3")
    small_class.grade()
    assert small_class.statuses("ana") == ["missing", "passed", "failed"]
    assert small_class.result("ana").points == 2


def test_a_suite_that_breaks_makes_no_zero(small_class):
    small_class.hands_in("ana", f"{ALL} break 3")
    code, said, _ = small_class.grade()
    found = small_class.result("ana")
    assert code == 1 and found.outcome == "incomplete" and found.points is None, said
    assert small_class.statuses("ana") == ["passed", "passed", "grader error"]
    assert "the suite is broken" in found.reason and found.reason.startswith("1 check could not be made, of 5 points; lab 01, hidden/test_close.py::test_third")
    assert "test_third" in (small_class.report / "index.html").read_text()   # the instructor's
    for path in ("submissions/ana.html", "gradescope/ana.json"):   # their author's
        text = (small_class.report / path).read_text()
        assert not {words for words in ("test_third", "test_close", "the suite is broken") if words in text}
        assert "Looks for the mark of the third check." in text and "incomplete" in text


def test_a_check_that_takes_its_session_with_it_is_left_out(small_class):
    small_class.hands_in("ana", f"{ALL} die 1")
    code, _, _ = small_class.grade()
    assert code == 1 and small_class.statuses("ana") == ["grader error", "passed", "passed"]
    assert small_class.looked == ["1", "1", "2", "2", "3"]


def test_a_check_that_the_suite_does_not_have_makes_no_zero(small_class):
    small_class.kit.write("labs/01/hidden/test_close.py", "")
    small_class.hands_in("ana", ALL)
    code, _, _ = small_class.grade()
    assert code == 1 and small_class.statuses("ana") == ["passed", "passed", "grader error"]


@pytest.mark.parametrize("number, made", [(1, ["1", "1", "2", "2", "3"]), (2, ["1", "2", "2", "2", "3"]), (3, ["1", "2", "2", "3", "3"])])
def test_a_killed_grader_goes_on_with_the_check_that_it_was_in(small_class, number, made):
    small_class.hands_in("ana", f"{ALL} wait {number}")
    os.mkfifo(small_class.gate)
    grader = small_class.begin()
    door = os.open(small_class.gate, os.O_WRONLY)   # returns when the check waits there
    grader.kill()
    grader.communicate(timeout=30)
    until_nobody_reads(door)
    small_class.gate.unlink()
    code, said, _ = small_class.grade()
    assert code == 0 and small_class.statuses("ana") == ["passed"] * 3, said
    assert small_class.looked == made


def test_a_session_does_not_outlive_its_grader(small_class):
    small_class.hands_in("ana", f"{ALL} wait 1")
    os.mkfifo(small_class.gate)
    grader = small_class.begin()
    door = os.open(small_class.gate, os.O_WRONLY)
    grader.kill()
    grader.communicate(timeout=30)   # returns when nobody holds its pipes, and raises where somebody does
    until_nobody_reads(door)


def until_nobody_reads(door):
    """Return when whoever read the other end of a pipe is dead. What is written is read, or waits, until then."""
    os.set_blocking(door, True)
    with pytest.raises(BrokenPipeError):
        while True:
            os.write(door, b"x" * 4096)
    os.close(door)


def test_what_has_a_result_is_not_graded_again(small_class):
    small_class.hands_in("ana", ALL)
    small_class.hands_in("ben", "mark 1")
    small_class.grade()
    before = small_class.looked
    small_class.hands_in("ben", "mark 1 mark 2")
    code, said, _ = small_class.grade()
    assert code == 0 and "1 of 2 has a result already" in said
    assert small_class.looked == before + ["1", "2", "2", "3"]
    assert small_class.result("ben").points == 5


def test_fresh_begins_anew(small_class):
    small_class.hands_in("ana", ALL)
    small_class.grade()
    small_class.grade("--fresh")
    assert small_class.looked == ["1", "2", "2", "3"] * 2


def test_a_report_of_other_options_is_not_mixed(small_class):
    small_class.hands_in("ana", ALL)
    small_class.grade()
    code, _, complained = small_class.grade("--seed", "2")
    assert code == 2 and "was begun with seed 1, now seed 2" in complained and "--fresh" in complained


def test_a_second_grader_on_one_report_is_turned_away(small_class):
    small_class.hands_in("ana", f"{ALL} wait 1")
    os.mkfifo(small_class.gate)
    grader = small_class.begin()
    door = os.open(small_class.gate, os.O_WRONLY)
    code, _, complained = small_class.grade()
    assert code == 5 and "another grader is working on" in complained
    os.close(door)
    assert grader.wait(timeout=60) == 0
    grader.communicate()


def test_ctrl_c_keeps_what_there_is_and_says_how_to_go_on(small_class):
    small_class.hands_in("ana", ALL)
    small_class.hands_in("ben", f"{ALL} wait 2")
    os.mkfifo(small_class.gate)
    grader = small_class.begin()
    door = os.open(small_class.gate, os.O_WRONLY)
    grader.send_signal(signal.SIGINT)
    said, complained = grader.communicate(timeout=30)
    os.close(door)
    assert grader.returncode == 130 and "The same command goes on" in said and not complained, said + complained
    assert (small_class.report / "index.html").exists()
    small_class.gate.unlink()
    code, _, _ = small_class.grade()
    assert code == 0 and small_class.result("ben").points == 10


def test_who_is_graded_has_a_page_while_others_are_graded_yet(small_class):
    small_class.hands_in("ana", ALL)
    small_class.hands_in("ben", f"{ALL} wait 1")
    os.mkfifo(small_class.gate)
    grader = small_class.begin()
    door = os.open(small_class.gate, os.O_WRONLY)   # returns when ben's first check waits there
    grader.kill()
    grader.communicate(timeout=30)
    until_nobody_reads(door)
    index = (small_class.report / "index.html").read_text()
    assert "not graded yet" in index and "results.csv" not in index, "it links to what is written at the end"
    assert [page.stem for page in (small_class.report / "submissions").iterdir()] == ["ana"]


def test_the_submissions_are_never_written_to(small_class):
    small_class.hands_in("ana", ALL)
    small_class.hands_in("ben", "mark 2 break 1")

    def state():
        found = hashlib.sha256()
        for path in sorted(small_class.folder.rglob("*")):
            status = path.lstat()
            found.update(f"{path} {status.st_mode} {status.st_mtime_ns} {status.st_ctime_ns}".encode())
            found.update(path.read_bytes() if path.is_file() else b"")
        return found.hexdigest()
    before = state()
    small_class.grade("--jobs", "2")
    assert state() == before


@pytest.mark.parametrize("arguments, says", [
    (["--labs", "7"], "there is no lab 07"), (["--labs", "x"], "give numbers"), (["--engine", "slow"], "there is no engine called slow"),
    (["--engine", "dbos"], "go together"), (["--fresh", "--only", "ana"], "leave one of them out"),
    (["--only", "zoe"], "zoe")])
def test_a_bad_option_is_refused_in_one_line(small_class, arguments, says):
    small_class.hands_in("ana", ALL)
    code, _, complained = small_class.grade(*arguments)
    assert code == 2 and says in complained and len(complained.strip().splitlines()) == 1, complained


def test_a_folder_with_other_things_in_it_is_no_report(small_class):
    small_class.hands_in("ana", ALL)
    small_class.report.mkdir()
    (small_class.report / "thesis.txt").write_text("mine")
    code, _, complained = small_class.grade()
    assert code == 2 and "thesis.txt" in complained and os.listdir(small_class.report) == ["thesis.txt"]


def test_a_report_within_the_submissions_is_refused(small_class):
    small_class.hands_in("ana", ALL)
    small_class.report = small_class.folder / "report"
    code, _, complained = small_class.grade()
    assert code == 2 and "nothing is written" in complained and not small_class.report.exists()


def test_a_check_that_hangs_ends_with_its_whole_session(small_class, monkeypatch):
    """Even one that no signal reaches: the watch from outside ends it, and the other checks go on."""
    small_class.hands_in("ana", f"{ALL} hang 1")
    monkeypatch.setattr(running, "KIT", small_class.kit.root)
    monkeypatch.setattr(running, "GRACE_SECONDS", 1.0)
    monkeypatch.setattr(scoring, "KIT", small_class.kit.root)
    records = small_class.report / "records" / "ana.jsonl"
    running.run_checks(small_class.folder / "ana", records, small_class.report / "evidence", running.Options(("01",), isolation="process/limits",
                                                                                                            check_seconds=4.0), running.Sessions())
    lab, = scoring.lab_results(read(records), ("01",))
    assert [check.status for check in lab.checks] == [Status.TIMEOUT, Status.PASSED, Status.PASSED]
    assert lab.points == 7


def test_a_torn_last_line_is_no_record(tmp_path):
    records = tmp_path / "records"
    whole = {"lab": "01", "check": "test_x.py::test_y", "item": "test_y", "status": "passed"}
    records.write_text(json.dumps(whole) + "\n" + json.dumps(whole)[:-3])
    assert read(records) == [whole]


def test_a_session_killed_in_the_middle_of_a_line_takes_no_other_line_with_it(tmp_path, monkeypatch):
    records, codes = tmp_path / "records.jsonl", iter(["late", 0])

    def session(*_):
        with open(records, "a") as file:
            file.write('{"collected": [["01", "check", "item"]]}\n{"began": "item", "in": "check", "of": "01"}\n{"lab": "01", "che')
        return next(codes)

    monkeypatch.setattr(running, "_session", session)
    running.run_checks(None, records, None, SimpleNamespace(submission_seconds=60, check_seconds=1), None)
    assert [(entry["item"], entry["kind"]) for entry in outcomes(read(records))] == [("item", "timeout")]


# ---- found by reading: each of these lost something, or scored what nobody knew

@pytest.mark.parametrize("report", ["..", ".", "sub"])
def test_a_report_that_would_mix_with_the_submissions_is_refused(small_class, report):
    small_class.hands_in("submissions/ana", ALL)
    small_class.report, small_class.folder = small_class.folder / "submissions" / report, small_class.folder / "submissions"
    small_class.report = small_class.report.resolve()
    before = sorted(small_class.folder.rglob("*"))
    code, _, complained = small_class.grade("--fresh")
    assert code == 2 and ("written" in complained), complained
    assert sorted(small_class.folder.rglob("*")) == before


def test_a_folder_with_results_of_somebody_else_is_no_report(small_class):
    small_class.hands_in("ana", ALL)
    (small_class.report / "results").mkdir(parents=True)
    (small_class.report / "results" / "mine.txt").write_text("mine")
    code, _, complained = small_class.grade("--fresh")
    assert code == 2 and "no report's" in complained and (small_class.report / "results" / "mine.txt").exists()


def test_a_session_that_gives_up_makes_no_zero(small_class):
    small_class.kit.write("labs/01/hidden/test_close.py", small_class.kit.read("labs/01/hidden/test_close.py") + "\n    pytest.exit('the disk is full', 4)\n")
    small_class.hands_in("ana", "mark 1 mark 2 mark 3")
    code, _, _ = small_class.grade()
    assert code == 1 and small_class.result("ana").outcome == "incomplete"
    assert small_class.statuses("ana") == ["passed", "passed", "grader error"]


@pytest.mark.parametrize("touched", [False, True])
def test_what_was_incomplete_is_made_again_and_the_rest_is_kept(small_class, touched):
    small_class.hands_in("ana", f"{ALL} break 3")
    assert small_class.grade()[0] == 1
    if touched:   # not changed but for its time
        os.utime(small_class.folder / "ana/starter/__main__.py", (1, 1))
    small_class.log.write_text("")
    assert small_class.grade()[0] == 1 and small_class.looked == ["3"]


def test_only_leaves_the_others_in_the_report(small_class):
    small_class.hands_in("ana", ALL)
    small_class.hands_in("ben", "mark 1")
    small_class.grade()
    code, said, _ = small_class.grade("--only", "ben")
    table = (small_class.report / "results.csv").read_text()
    assert code == 0 and "ana" in table and "ben" in table
    assert "1 of 1 has a result already" in said


def test_of_several_attempts_the_report_says_which_was_taken(small_class):
    small_class.hands_in("ana", ALL)
    with zipfile.ZipFile(small_class.folder / "ana.zip", "w") as archive:
        archive.writestr("starter/__main__.py", "# mark 1\n")
    code, said, _ = small_class.grade()
    assert code == 0 and "⚑ 1 of 2 taken" in said and small_class.result("ana").points == 3
    assert "⚑ 1 of 2 taken" in (small_class.report / "index.html").read_text()
    assert '"1 of 2 taken","2 have this name, ana.zip was taken, not taken: ana"' in (small_class.report / "results.csv").read_text()


def test_a_changed_submission_has_no_score_until_it_is_graded(small_class):
    small_class.hands_in("ana", ALL)
    small_class.hands_in("ben", ALL)
    small_class.grade()
    small_class.hands_in("ben", "mark 1")
    code, said, _ = small_class.grade("--only", "ana")
    assert code == 0 and "1 not graded" in said


def test_results_of_a_weaker_isolation_are_not_taken_for_those_of_a_stronger_one(small_class):
    small_class.hands_in("ana", ALL)
    small_class.grade()
    path = small_class.report / "results" / "ana.json"
    weaker = json.loads(path.read_text())
    weaker["isolation"]["level"] = "process"
    path.write_text(json.dumps(weaker))
    small_class.grade()
    assert small_class.result("ana").isolation.level != "process"


def test_a_damaged_journal_or_manifest_is_told_in_one_line(small_class):
    small_class.hands_in("ana", ALL)
    small_class.grade()
    (small_class.report / "journal.sqlite").write_bytes(b"no database, " * 100)
    code, _, complained = small_class.grade()
    assert code == 2 and "--fresh" in complained and len(complained.strip().splitlines()) == 1
    small_class.kit.write("labs/01/lab.toml", LAB.replace("points = 3", 'points = "three"'))
    code, _, complained = small_class.grade("--fresh")
    assert code == 2 and "lab.toml" in complained and "points" in complained and len(complained.strip().splitlines()) == 1, complained
    small_class.kit.write("labs/01/lab.toml", LAB.replace("points = 3", "points = 4"))
    code, _, complained = small_class.grade("--fresh")
    assert code == 2 and "points says 10, and those of its checks are 11" in complained, complained


def test_one_submission_is_one_whatever_is_in_it(small_class):
    small_class.hands_in("ana/project", ALL)
    (small_class.folder / "ana" / "docs").mkdir()
    (small_class.folder / "ana" / "docs" / "notes.txt").write_text("notes")
    small_class.folder = small_class.folder / "ana"
    code, said, _ = small_class.grade("--one")
    assert code == 0 and small_class.result("ana").points == 10, said


def test_the_quantiles_of_few_seconds_are_among_them():
    assert results.Figures(resume_seconds=[1.0, 3.0]).seconds(0.5) == 1.0
    assert results.Figures(resume_seconds=[float(n) for n in range(1, 101)]).seconds(0.95) == 95.0


def test_a_report_of_a_class_is_not_made_one_of_a_submission(small_class):
    small_class.hands_in("ana", ALL)
    small_class.grade()
    code, _, complained = small_class.grade("--one")
    assert code == 2 and "one False, now one True" in complained and (small_class.report / "submissions" / "ana.html").exists()


def test_the_pages_of_who_is_not_there_any_more_go(small_class):
    small_class.hands_in("ana", ALL)
    small_class.hands_in("ben", "mark 1")
    small_class.grade()
    shutil.rmtree(small_class.folder / "ben")
    small_class.grade()
    assert [path.name for path in (small_class.report / "submissions").iterdir()] == ["ana.html"]


# ---- how far it is

def records(folder, name, ended, items=4, judged=("hash", {"labs": ["01"]}, "bubblewrap/view")):
    folder.mkdir(exist_ok=True)
    there = [["01", "test_x.py::test_y", f"test_y[{number}]"] for number in range(items)]
    lines = [{"of": ["of the submission", *judged]}, {"collected": there},
             *({"lab": "01", "check": "test_x.py::test_y", "item": f"test_y[{number}]", "status": "passed", "seconds": seconds} for number, seconds in ended.items())]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def checks_of(folder, *names):
    return Checks(folder, names, ("hash", {"labs": ["01"]}, "bubblewrap/view"), 3)


def test_progress_is_counted_in_checks_and_what_is_left_in_their_seconds(tmp_path):
    folder = tmp_path / "records"
    checks = checks_of(folder, "ana", "ben", "cy")
    checks.look()
    assert (checks.done, checks.total, checks.left(10)) == (0, 9, None)   # nothing is known but how many there may be
    records(folder, "ana", {0: 1.0, 1: 1.0, 2: 37.0})
    records(folder, "ben.8f3a", {0: 1.0})   # another machine's
    checks.look()
    assert (checks.done, checks.total, checks.made) == (4, 12, 4)
    # 40 seconds of checks in 20 of the clock; left are ana's last (as the others: 10), ben's 1 + 37 + 10, cy's 1 + 1 + 37 + 10.
    assert checks.left(20) == pytest.approx((10 + 48 + 49) / 2)
    checks.over("cy")   # it is invalid
    assert (checks.done, checks.total) == (4, 8) and checks.left(20) == pytest.approx((10 + 48) / 2)


def test_checks_that_were_made_before_do_not_make_the_pace(tmp_path):
    folder = tmp_path / "records"
    records(folder, "ana", {0: 1.0, 1: 1.0})
    records(folder, "ben", {0: 1.0}, judged=("another hash", {"labs": ["01"]}, "bubblewrap/view"))
    checks = checks_of(folder, "ana", "ben")
    checks.look()
    assert (checks.done, checks.total, checks.made, checks.left(5)) == (2, 8, 0, None)
    records(folder, "ana", {0: 1.0, 1: 1.0, 2: 4.0})
    checks.look()
    assert (checks.done, checks.made) == (3, 1) and checks.left(4) == pytest.approx(2 + 1 + 1 + 4 + 2)


def test_a_class_of_one_is_seen_to_go_on_check_by_check(small_class):
    small_class.hands_in("ana", f"{ALL} wait 2")
    os.mkfifo(small_class.gate)
    master, slave = pty.openpty()
    grader = small_class.begin(stdout=slave, TERM="xterm")
    os.close(slave)
    door = os.open(small_class.gate, os.O_WRONLY)   # returns when the second check waits there
    seen = b""
    while b"1 of 4 tests" not in seen:
        assert select.select([master], [], [], 60)[0], seen[-2000:]
        seen += os.read(master, 65536)
    assert b"graded 0 of 1" in seen and b"a minute" in seen
    small_class.gate.unlink()
    os.close(door)
    reader = threading.Thread(target=drain, args=(master,))
    reader.start()
    assert grader.wait(timeout=60) == 0
    reader.join()
    os.close(master)


@pytest.mark.parametrize("silent", [False, True])
def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(tmp_path, monkeypatch, silent):
    monkeypatch.setattr(progress, "MINUTE", 0.01)
    folder, said = tmp_path / "records", Said()
    records(folder, "ana", {0: 1.0})
    with progress.Display(Console(file=said, width=100), checks_of(folder, "ana", "ben"), 3, 1, silent):
        assert silent or said.line.wait(60)
        assert any("_watch" in thread.name for thread in threading.enumerate()) == (not silent)
    assert ("graded 1 of 3, 1 of 8 tests\n" in said.getvalue()) == (not silent)


class Said(io.StringIO):
    """What was said, and an event that something was."""

    def __init__(self):
        super().__init__()
        self.line = threading.Event()

    def write(self, text):
        super().write(text)
        if "tests" in text:
            self.line.set()


def drain(master):
    with suppress(OSError):   # where the other end is closed
        while os.read(master, 65536):
            pass
