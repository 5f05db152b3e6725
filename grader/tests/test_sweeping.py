"""`labs sweep` and `labs bench`: the sweeps of any program, from the command line."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import psutil
import pytest

from rich.console import Console

from labs.command import bench, preflight
from labs.command.sweeping import FAILING_IN, _say, scenarios_of, show_sweep
from labs.harness import descendants, processes
from labs.harness.kept import ForkServer, Kept
from labs.harness.staging import KIT, shipped_texts
from labs.harness.sweeps import CALL, KINDS, LINE, RESUME, START
from labs.harness.sweeps.result import Outcome, Result
from labs.harness.sweeps.trial import DOWN, FAILING

pytestmark = pytest.mark.timeout(300)


def labs(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "labs", *arguments], cwd=KIT, capture_output=True, text=True, timeout=250,
                          env={**os.environ, "COLUMNS": "120"}, **options)


def test_a_right_program_passes_each_kind():
    done = labs("sweep", "solutions/03", "--kind", "race", "--kind", "power", "--lab", "3", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert list(found["kinds"]) == ["race", "power"] and found["lab"] == "03" and found["evidence"] == []
    for kind in found["kinds"].values():
        assert kind["verdict"] == "passed" and kind["points"] > 50 and kind["bad"] == 0 and kind["reason"] is None, kind


def test_a_program_that_cannot_resume_yet_is_swept_by_the_rules_of_its_lab():
    done = labs("sweep", "solutions/01", "--lab", "01", "--kind", "syscall", "--kind", "race", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = json.loads(done.stdout)["kinds"]
    assert kinds["syscall"]["verdict"] == "passed" and kinds["syscall"]["points"] > 50
    assert kinds["race"]["verdict"] == "not applicable" and kinds["race"]["points"] == 0


@pytest.mark.parametrize("arguments", [("solutions/01", "--lab", "01", "--kind", "race"), ("solutions/01", "--lab", "01", "--kind", "race", "--kind", "double", "--json"),
                                       ("solutions/05", "--kind", "line", "--command", "python3 -c 'print(\"run-7\")'")])
def test_where_nothing_is_tested_it_does_not_pass(arguments):
    done = labs("sweep", *arguments)
    assert done.returncode == 3 and done.stderr.startswith("nothing was tested: "), done.stdout + done.stderr
    assert done.stdout.startswith("{") or ("killed and finished" in done.stdout) == ("01" not in arguments)   # nothing resumes in lab 01


@pytest.mark.parametrize("scenarios, said", [([FAILING], True), ([FAILING, DOWN], True), ([START, FAILING], False)])
def test_what_only_lab_05_asks_for_is_called_that(capsys, scenarios, said):
    _say(Console(width=100), CALL, [Result(CALL, scenario.name, [Outcome("a point", {3: ("lost", "it should finish the run")})]) for scenario in scenarios])
    assert ("--lab 03 leaves that out" in capsys.readouterr().out) == said


def test_a_wrong_program_is_told_where_and_leaves_a_kill_map():
    done = labs("sweep", "solutions/mistakes/result-and-step-in-two-commits", "--kind", "syscall", "--lab", "03")
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert "no sweep tries memory, `runs`, bad tickets, nonsense or silence of the outside: pytest labs/01 labs/02 labs/03 --program solutions/mistakes/" in done.stdout
    assert " ✗ syscall" in done.stdout and "the model was asked twice" in done.stdout and "flow.py\n" in done.stdout
    looks = [KIT / line.removeprefix("look  ") for line in done.stdout.splitlines() if line.startswith("look  ")]
    assert [path.name for path in looks] == ["timeline.svg", "timeline.svg", "killmap.html"] and all(path.is_file() for path in looks)
    assert looks[-1].read_text().startswith("<!doctype html>")
    told = labs("show").stdout
    assert told.endswith(f"kill map: {looks[-1].relative_to(KIT)}\n")
    assert re.match(r"2 sweeps failed in the run of [\d-]+ [\d:]+, of solutions/mistakes/result-and-step-in-two-commits, seed 1, by the rules of lab 03\n", told)


def test_a_program_that_is_no_python_is_swept_by_its_system_calls(tmp_path):
    # The program after lab 1, as a command line of which nobody knows that it is Python: each of its processes begins an interpreter.
    for layer in ("starter", "solutions/01"):
        for path in (KIT / layer).iterdir():
            if path.is_file():
                (tmp_path / "starter").mkdir(exist_ok=True)
                (tmp_path / "starter" / path.name).write_bytes(path.read_bytes())
    done = labs("sweep", str(tmp_path), "--command", f"{sys.executable} -m starter", "--kind", "line", "--kind", "power", "--lab", "1", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = json.loads(done.stdout)["kinds"]
    assert kinds["line"]["verdict"] == "not applicable" and kinds["power"]["verdict"] == "passed" and kinds["power"]["points"] > 100


@pytest.mark.parametrize("arguments, said", [
    (["no/such/folder"], "there is no folder"),
    (["solutions/mistakes"], "say how with --command 'LINE'"),
    (["solutions/05", "--kind", "earthquake"], "there is no kind of sweep called earthquake; there are line, syscall, double, race, power"),
    (["solutions/05", "--lab", "04"], "no sweep is judged by the rules of lab 04"),
    (["solutions/05", "--command", "'"], "--command cannot be read")])
def test_what_cannot_be_swept_is_one_line(arguments, said):
    done = labs("sweep", *arguments)
    assert done.returncode == 2 and done.stderr.startswith("labs: ") and said in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


BEGUN = "import os, sys, time, urllib.request\nprint('run-7', flush=True)\n"
UNFIT = {   # the files of a program, --command, what is said of it
    "that ends at once": ({"__main__.py": "sys = 1\nraise SystemExit(7)"}, None, ["does not finish undisturbed: `start --run-id run-7 ticket.json` ended with exit code 7"]),
    "with a missing package": ({"__main__.py": "import nosuchpackage"}, None, ["No module named 'nosuchpackage'", "install nosuchpackage there"]),
    "that imports its neighbour absolutely": ({"__main__.py": "import app", "app.py": ""}, None, ["write `from . import app`", "--command 'python3 .'"]),
    "that knows no Unix sockets": ({"__main__.py": BEGUN + "urllib.request.urlopen(os.environ['OUTSIDE'])"}, None, ["OUTSIDE was unix:/", "a Unix socket"]),
    "that prints more than its id": ({"__main__.py": "print('starting run run-7')"}, None, ["should be run-7 alone, it is 'starting run run-7'"]),
    "that ends its line nowhere": ({"__main__.py": "print('run-7', end='')"}, None, ["does not print its run id"]),
    "that says too much": ({"__main__.py": BEGUN + "while True: print('x' * 99999)"}, None, ["does not finish undisturbed", "MiB of output"]),
    "of a command with a typo": ({"app.sh": ""}, "nosuchcommand app.sh", ["cannot be run: `nosuchcommand` cannot be started: No such file"]),
    "of a file that may not be executed": ({"app.sh": ""}, "./app.sh", ["cannot be run: `./app.sh` cannot be started: Permission denied"]),
    "of a script that is not there": ({"app.sh": ""}, "python3 nosuch.py", ["does not finish undisturbed", "exit code 2; it said last: ", "No such file", "name files by their path from there"]),
}


@pytest.mark.parametrize("which", UNFIT)
def test_a_program_that_does_not_run_is_not_swept(which, tmp_path):
    files, command, said = UNFIT[which]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = labs("sweep", str(tmp_path), "--json", *(["--command", command] if command else []))
    assert done.returncode == 2 and "Traceback" not in done.stderr.partition("\n")[2], done.stderr
    assert done.stderr.startswith(f"labs: {tmp_path.name} ") and "Nothing was swept" in done.stderr
    found, told = json.loads(done.stdout), " ".join(done.stderr.split())
    assert found["kinds"] == {} and found["reason"] in told and all(words in told for words in said), told
    assert " ".join(found["story"][-1].split()) in told and len(found["evidence"]) == 1


def test_a_program_that_hangs_is_not_swept_and_ended(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(processes.Process.wait, "__defaults__", (1.0,))
    monkeypatch.setattr(preflight, "EVIDENCE", tmp_path / ".lab-evidence")
    (tmp_path / "__main__.py").write_text("import signal\nsignal.pause()")
    assert show_sweep(tmp_path) == 2
    told = capsys.readouterr()
    assert "does not finish undisturbed: `start --run-id run-7 ticket.json` did not end within 1 seconds; it hung in starter/__main__.py, line 2. " in told.err
    assert "hung in starter/__main__.py, line 2\n" in told.err.partition("\n")[2] and "mend" not in told.err and not told.out
    assert not descendants.survivors()


def test_what_holds_a_database_is_said():
    assert "lasts until COMMIT" in preflight.mend_of(None, SimpleNamespace(last_words="sqlite3.OperationalError: database is locked"))


def test_a_start_that_returns_no_state_is_told_what_to_return():
    ended, given = SimpleNamespace(last_words="KeyError: None", stderr=""), shipped_texts()["__main__.py"]
    assert "return the state" in preflight.mend_of(SimpleNamespace(sources={"__main__.py": given}), ended)
    assert preflight.mend_of(SimpleNamespace(sources={"__main__.py": f"{given}\n"}), ended) is None


def test_the_bench_says_each_kind_as_it_ends(monkeypatch, capsys):
    said = []

    def sweep(ground, kind, ticket):
        said.append(capsys.readouterr().out)
        return [Result(kind, outcomes=[Outcome("a point", {})] * 30, seconds=2.0)]
    monkeypatch.setattr(bench, "proving_ground", lambda *_: nullcontext(SimpleNamespace(staged=SimpleNamespace(name="a flow"))))
    monkeypatch.setattr(bench, "preflight", lambda *_: None)
    monkeypatch.setattr(bench, "sweep", sweep)
    monkeypatch.setattr(bench, "plain_loop", lambda *_: (6, 4.0))
    assert bench.show_bench("a flow") == 0
    rows = [text.splitlines()[-1].split() for text in said]
    assert rows[0] == ["kind", "points", "seconds", "points/s", "plain", "loop", "of", "them", "gain"]
    assert rows[1:] == [[kind, "30", "2.0", "15.0", "1.5/s", "6", "10.0×"] for kind in KINDS[:-1]]


def test_what_does_not_run_is_not_measured_either(tmp_path):
    (tmp_path / "__main__.py").write_text("raise SystemExit(7)")
    done = labs("bench", str(tmp_path))
    assert done.returncode == 2 and "does not finish undisturbed" in done.stderr and "line" not in done.stdout


def test_by_the_rules_of_lab_05_things_fail_as_in_its_checks():
    checks = (KIT / "labs/05/hidden/test_killed_anywhere.py").read_text()
    for kind, name in ((LINE, "LINE"), (CALL, "CALL")):
        failing = scenarios_of(kind, "05")[2:]
        assert failing == FAILING_IN[kind] and f"sweep({name}, {', '.join({FAILING: 'FAILING', DOWN: 'DOWN'}[one] for one in failing)})" in checks
        assert scenarios_of(kind, "03") == (START, RESUME) and scenarios_of(kind, "02") == (START,)


def test_where_system_calls_cannot_be_watched_it_says_so_and_passes_nothing():
    # Under a watcher of our own: the kernel allows one.
    with ForkServer() as forks:
        outer = Kept(forks, {"command": [sys.executable, "-m", "labs", "sweep", "solutions/05", "--kind", "syscall", "--kind", "power", "--kind", "race", "--json"],
                             "arguments": [], "folder": str(KIT), "environment": dict(os.environ), "calls": True})
        outer.stdin.close()
        said, complaint = outer.stdout.read(), outer.stderr.read()
        outer.wait()
        outer.stdout.close(), outer.stderr.close()
    assert outer.report["trouble"] is None and outer.report["code"] == 3, complaint.decode()
    for kind in json.loads(said)["kinds"].values():
        assert kind["verdict"] == "could not check" and kind["bad"] == 0 and "another watcher is there already" in kind["reason"], kind


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_sweep_leaves_no_process_behind(number):
    process = subprocess.Popen([sys.executable, "-m", "labs", "sweep", "solutions/05", "--kind", "line"], cwd=KIT, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}, start_new_session=True)
    process.stdout.readline()   # it has begun
    me = psutil.Process(process.pid)
    while not (below := me.children(recursive=True)) or not any(child.children() for child in below):
        assert process.poll() is None, process.stderr.read()
    process.send_signal(number)
    _, complaint = process.communicate(timeout=60)
    _, alive = psutil.wait_procs(below, timeout=20)
    assert not alive, [child.cmdline() for child in alive]
    if number == signal.SIGINT:
        assert process.returncode == 130 and complaint.startswith("interrupted: "), complaint
