"""The checks, tried on programs that somebody wrote to get past them: wrong ones that look right, right ones that look odd."""

import os
import pty
import re
import shutil
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from grader.suites import LABS, passed, run_suites
from labs.harness import manifest, records
from labs.harness.remembering import holds
from labs.harness.side_by_side import side_by_side
from labs.harness.staging import KIT

LOCK = """    locks = open(in_home("locks"), "ab")
    try:
        fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
    except (BlockingIOError, PermissionError):
        locks.close()
        raise Busy(f"another process works on run {run_id}; `python -m starter status {run_id}` shows how far it is") from None
    return locks
"""
PID_FILE = """    import contextlib, os
    path = in_home(f"{number}.pid")
    try:
        os.kill(int(open(path).read()), 0)
        raise Busy("another process works on it")
    except (FileNotFoundError, ProcessLookupError):
        pass
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    return contextlib.ExitStack()
"""
REFUND = '    return {"refund_id": outside.refund('
LOOKED_UP_BY_ORDER = """    if begun_before:
        known = outside.call("GET", "/v1/refunds", query={"order_id": found["order_id"]})["refunds"]
        if known:
            return {"refund_id": known[-1]["refund_id"]}
"""
REFUSED_ONCE_BEGUN = """    if record.read(run_id)["results"]:
        raise Refused(f"run {run_id} was begun; choose another id")
    print(run_id, flush=True)
"""

#: What is wrong: the file, the text in it and what replaces it, and the check that must fail.
WRONG = {
    "whoever holds the lock is told by a process id":
        ("record.py", LOCK, PID_FILE, "03/test_resume.py::test_the_next_takes_over_at_once"),
    "another run's refund of the same order is taken for its own":
        ("flow.py", REFUND, LOOKED_UP_BY_ORDER + REFUND,
         "03/hidden/test_resume_closely.py::test_a_refund_of_the_same_order_is_not_taken_for_its_own"),
    "a mail that was waited for is taken for sent":
        ("flow.py", '        run["state"], run["reason"] = "running", None\n',
         '        waited = run["state"] == "waiting"\n        run["state"], run["reason"] = "running", None\n'
         '        STEPS["reply"] = (lambda run, _: {"message_id": run["effects"]["reply"]["key"]}) if waited else reply\n',
         "03/hidden/test_resume_closely.py::test_a_mail_that_cannot_be_looked_up_is_waited_for"),
    "start does not go on with a run that was begun":
        ("flow.py", "    print(run_id, flush=True)\n", REFUSED_ONCE_BEGUN,
         "03/test_resume.py::test_killed_between_two_and_three_it_goes_on_at_three"),
    "whoever starts gives up the runs that others left":
        ("record.py", "        made = database.execute(",
         "        database.execute(\"UPDATE runs SET record = json_set(record, '$.state', 'failed') WHERE record ->> '$.state' = 'running'\")\n"
         "        made = database.execute(",
         "01/hidden/test_record_closely.py::test_printed_runs_stay_known_through_24_kills"),
    "the id that somebody chose is not printed":
        ("flow.py", "    print(run_id, flush=True)\n", '    print(ticket["ticket_id"], flush=True)\n',
         "02/hidden/test_keys.py::test_a_finished_run_is_not_begun_again"),
    "the id is printed before the run is written down":
        ("flow.py", "    run_id = run_id or os.urandom(16).hex()\n", "    run_id = run_id or os.urandom(16).hex()\n    print(run_id, flush=True)\n",
         "01/hidden/test_killed_anywhere.py::test_a_printed_run_is_known_wherever_it_is_killed_by_system_call"),
    "local time is called UTC":
        ("record.py", "datetime.now(timezone.utc).isoformat(timespec=\"microseconds\")", 'datetime.now().isoformat() + "+00:00"',
         "01/hidden/test_record_closely.py::test_updated_at_is_utc_and_advances"),
    "runs are listed by their ids":
        ("record.py", "ORDER BY number", "ORDER BY id", "01/test_record.py::test_runs_lists_every_run_oldest_first"),
    "runs are listed by their last change":
        ("record.py", "ORDER BY number", "ORDER BY json_extract(record, '$.updated_at')",
         "01/test_record.py::test_runs_lists_every_run_oldest_first"),
    "no attempt is counted":
        ("flow.py", '        run["attempts"][step] = run["attempts"].get(step, 0) + 1\n', "",
         "01/test_record.py::test_a_finished_run_is_done_with_three_results"),
    "the run id is printed and not flushed":
        ("flow.py", "print(run_id, flush=True)", "print(run_id)", "01/test_record.py::test_a_printed_run_is_known_before_its_first_step"),
    "a ticket cannot come from standard input":
        ("__main__.py", 'if path == "-":', 'if path == "--":', "01/test_record.py::test_a_finished_run_is_done_with_three_results"),
}
#: Programs that checks broke on: the text in front of `__main__.py`.
ODD = {
    "dies of a signal without a name": "import os; os.kill(os.getpid(), 40)",
    "prints a record of nothing": "import sys; print('run-7' if sys.argv[1] == 'start' else '{}'); sys.exit(0)",
    "prints an id that is no argument": "import os; os.write(1, b'run\\0seven\\n'); raise SystemExit(0)",
    "prints half a character": "import os, sys; os.write(1, b'\\xed\\xa0\\x80\\n'); os.write(2, b'\\x1b[2J\\xff'); sys.exit(1)",
    "digs a hole that is deeper than Python goes":
        "import os; os.chdir(os.environ['LAB_HOME'])\nfor _ in range(1200): os.makedirs('d' * 9, exist_ok=True); os.chdir('d' * 9)\nraise SystemExit(1)",
    "lists no runs": "import sys; sys.argv[1:] == ['runs'] and sys.exit(0)",
}
NOTHING = ["pass", "this is no Python", "raise SystemExit(2)"]


@pytest.fixture
def finished(tmp_path):
    """The program after lab 3, to be spoiled; its folder holds starter/."""
    for layer in ("starter", "solutions/01", "solutions/02", "solutions/03"):
        shutil.copytree(KIT / layer, tmp_path / "program" / "starter", dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "program"


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_does_not_slip_through(finished, tmp_path, name):
    file, old, new, check = WRONG[name]
    path = finished / "starter" / file
    text = path.read_text()
    assert text.count(old) == 1, f"{file} has changed: {old}"
    path.write_text(text.replace(old, new))
    _, output, results = run_suites(f"labs/{check}", "--program", str(finished), results=tmp_path / "results.jsonl")
    lab, test = check.split("/", 1)
    assert "failed" in results[lab][test].values() and set(results[lab][test].values()) <= {"passed", "failed"}, output


@pytest.mark.parametrize("old, new, told", [
    ("survives = true", 'survives = "true"', 'survives = "true", a text: write true or false without quotes'),
    ("survives = true", "survives = True", "no TOML: Invalid value (at line 9, column 12); after = it has true or false, in lower case"),
    ('lives = "record"', 'lives = "disk"', """run_id lives in 'disk': write one of "record", "memory", "process\""""),
], ids=["a text", "as in Python", "another word"])
def test_what_is_wrong_with_a_worksheet_is_told_with_what_to_write(finished, tmp_path, old, new, told):
    path = finished / "starter" / "state.toml"
    path.write_text(path.read_text().replace(old, new))
    _, output, _ = run_suites("labs/01/test_worksheet.py", "--program", str(finished), results=tmp_path / "results.jsonl")
    assert told in " ".join(output.split())


def test_all_that_is_wrong_with_a_worksheet_is_told_at_once(finished, tmp_path):
    path = finished / "starter" / "state.toml"
    path.write_text(path.read_text().replace("survives = true", "survives = false"))
    _, output, _ = run_suites("labs/01/test_worksheet.py", "--program", str(finished), results=tmp_path / "results.jsonl")
    for piece in ("run_id", "ticket", "refund_key"):
        assert f"the next process knows of {piece}; the worksheet says survives = false" in " ".join(output.split())


@pytest.mark.parametrize("there, told", [(True, "write `from . import nosuch`"), (False, "where nosuch is to be a file of its own, write it")])
def test_a_module_that_is_not_found_comes_with_what_to_write(finished, tmp_path, there, told):
    path = finished / "starter" / "flow.py"
    path.write_text(f"from nosuch import create\n{path.read_text()}")
    if there:
        (finished / "starter" / "nosuch.py").write_text("create = None\n")
    _, output, _ = run_suites("labs/01/test_record.py", "-k", "unknown_run", "--program", str(finished), results=tmp_path / "results.jsonl")
    assert told in " ".join(output.split()).partition("mend ")[2]


def test_checks_come_in_the_order_of_the_chapter():
    listed = subprocess.run([sys.executable, "-m", "pytest", "labs/03", "--collect-only", "-q"], cwd=KIT, capture_output=True, text=True, timeout=60).stdout
    names = list(dict.fromkeys(re.findall(r"^labs/03/(\S+?)(?:\[.*)?$", listed, re.M)))
    assert names == [check.test for check in manifest.read(KIT / "labs" / "03").checks]


def test_a_story_is_as_wide_as_its_terminal(tmp_path):
    wide = run_at_width(200, tmp_path)
    narrow = run_at_width(60, tmp_path)
    story = narrow.partition("lab 03")[2].partition("look  ")[0]
    assert max(map(len, story.splitlines())) < 60 < max(map(len, wide.partition("lab 03")[2].partition("look  ")[0].splitlines()))
    assert " ".join(story.split()) == " ".join(wide.partition("lab 03")[2].partition("look  ")[0].split())
    assert re.search(r"FAILED \S+ - `status ID…` ended with exit code 2", wide), "the summary says why"


def run_at_width(columns, folder):
    """What pytest writes on a terminal of that width of a check of lab 03 that the starter fails."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")} | {"COLUMNS": str(columns), "TERM": "xterm"}
    with subprocess.Popen([sys.executable, "-m", "pytest", "labs/03", "-k", "done_run", "--lab-evidence", str(folder)], cwd=KIT, env=environment,
                          stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        written = b""
        with suppress(OSError):   # the terminal is gone with whoever wrote on it
            while chunk := os.read(ours, 65536):
                written += chunk
    os.close(ours)
    assert run.returncode == 1
    return re.sub(r"[0-9a-f]{8}…", "ID…", re.sub(r"\x1b\[[\d;]*m|\r", "", written.decode()))


def test_what_a_program_said_that_crashed_goes_with_the_reason(finished, tmp_path):
    path = finished / "starter" / "flow.py"
    path.write_text("def start(:\n")
    run_suites("labs/01", "-k", "unknown_run or printed_run_is_known_before", "--program", str(finished), results=tmp_path / "results.jsonl")
    whys = [entry["why"] for entry in records.outcomes(records.read(tmp_path / "results.jsonl"))]
    assert len(whys) > 1 and all(why.endswith("; it said last: “SyntaxError: invalid syntax” (starter/flow.py, line 1)") for why in whys), whys


@pytest.mark.parametrize("way, told", [
    (("labs/01", "--program", "solutions/01", "-x", "--lab-sample", "20"), ""), (("labs/01", "-x"), "; 15 checks not run to the end"),
    (("labs/01", "-x", "-k", "finished_run_is_done"), ""),
    (("labs/01", "--program", "solutions/01", "-k", "worksheet"), "")], ids=["to the end", "stopped", "stopped within a check that has failed", "a selection"])
def test_a_session_says_what_it_did_not_run(tmp_path, way, told):
    _, output, _ = run_suites(*way, results=tmp_path / "results.jsonl")
    line, = [line for line in output.splitlines() if line.startswith("lab 01 ·") and "checks passed" in line]
    assert line.partition(", seed 1")[2].partition("; a sample")[0] == told


def test_labs_are_not_run_along_with_other_tests(tmp_path):
    code, output, _ = run_suites("labs/01", "grader/tests/test_house.py", results=tmp_path / "results.jsonl")
    assert code == pytest.ExitCode.USAGE_ERROR and "leave out grader/tests/test_house.py" in output


def test_checks_run_though_a_file_beside_them_cannot_be_collected(tmp_path):
    (tmp_path / "test_broken.py").write_text("import no_such_module")
    _, _, results = run_suites("labs/01/test_worksheet.py", str(tmp_path), "--continue-on-collection-errors", "--program", "solutions/01",
                               results=tmp_path / "results.jsonl")
    assert [status for items in results["01"].values() for status in items.values()] == ["passed"]


@pytest.mark.parametrize("name", ODD)
def test_an_odd_program_fails_and_breaks_nothing(finished, tmp_path, name):
    path = finished / "starter" / "__main__.py"
    path.write_text(ODD[name] + "\n" + path.read_text())
    suites = ["labs/01/hidden/test_record_closely.py", "labs/02/test_effects.py", "labs/02/hidden/test_keys.py"]
    _, output, results = run_suites(*suites, "--program", str(finished), "-k", "not kills", results=tmp_path / "results.jsonl")
    statuses = {status for lab in results.values() for items in lab.values() for status in items.values()}
    assert "failed" in statuses and statuses <= {"passed", "failed", "not applicable"}, output
    assert "Traceback" not in output and "\x1b" not in output


def test_a_folder_without_init_is_the_program_that_is_tested(tmp_path):
    program = tmp_path / "program"
    program.mkdir()
    (program / "__main__.py").write_text("raise SystemExit('this very program')")
    _, output, results = run_suites("labs/01/test_record.py::test_a_finished_run_is_done_with_three_results",
                                    "--program", str(program), results=tmp_path / "results.jsonl")
    assert results and "this very program" in output


def test_what_a_killed_session_left_behind_is_gone_after_the_next(finished, tmp_path):
    os.mkfifo(tmp_path / "here")
    (finished / "starter" / "__main__.py").write_text(
        f"import os, time\n"
        f"with open({str(tmp_path / 'here')!r}, 'w') as here: here.write(str(os.getpid()) + ' ' + os.environ['LAB_HOME'])\n"
        f"time.sleep(1000)\n")
    session = subprocess.Popen([sys.executable, "-m", "pytest", "labs/01/test_record.py", "--program", str(finished),
                                "-p", "no:cacheprovider", "-k", "known_before"], cwd=KIT, stdout=subprocess.DEVNULL)
    pid, home = (tmp_path / "here").read_text().split(" ", 1)
    session.kill()
    session.wait()
    assert psutil.pid_exists(int(pid)) and os.path.exists(home)
    run_suites("labs/01/test_record.py", "-k", "unknown_run", results=tmp_path / "results.jsonl")
    assert not os.path.exists(home)
    assert not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE


@pytest.fixture(scope="module")
def of_nothing(tmp_path_factory):
    """For each program that does nothing what run_suites() says of it, on every core."""
    folder = tmp_path_factory.mktemp("nothing")

    def run(number):
        (program := folder / str(number)).mkdir()
        (program / "__main__.py").write_text(NOTHING[number] + "\n")
        return run_suites(*(f"labs/{lab}" for lab in LABS), "--program", str(program), "--lab-sample", "25", results=folder / f"{number}.jsonl")
    return dict(zip(NOTHING, side_by_side(run, range(len(NOTHING)), threads=os.cpu_count())))


@pytest.mark.timeout(300)   # the first waits for all three
@pytest.mark.parametrize("text", NOTHING)
def test_a_program_that_does_nothing_passes_nothing_and_breaks_no_check(of_nothing, text):
    _, output, found = of_nothing[text]
    ended = {(lab, check, status) for lab, checks in found.items() for check, items in checks.items() for status in items.values()}
    assert not [entry for entry in ended if entry[2] not in ("failed", "not applicable", "passed")], output
    assert not [f"{lab}/{check}" for lab, checks in found.items() for check, items in checks.items() if passed(items)]


def test_memory_that_is_told_in_one_message_is_memory():
    turn = {"role": "user", "content": "where is  my parcel P-1"}
    assert holds([{"role": "system", "content": "The conversation so far: user: where is my\nparcel P-1; assistant: Soon."}], turn)
    assert holds([turn], turn) and not holds([{"role": "system", "content": "They asked about parcel P-1."}], turn)
