"""The programs on engines: what was measured is of the programs as they are, the mended ones keep the contract, the others break just what they are said to."""

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from types import SimpleNamespace

import psutil
import pytest

from grader.suites import failed_checks, run_suites
from grader.tests.lacking import lacking
from labs.command import preload, sweeping
from labs.command.engines import FIGURES, FOLDER, installed, lines_of, programs
from labs.command.refused import Refused
from labs.command.sweeping import proving_ground
from labs.harness.kills.boundary import held_at
from labs.harness.outside import Fault
from labs.harness.staging import AS_IS, KIT
from labs.harness.sweeps import KINDS
from labs.harness.sweeps.rules import judged
from labs.harness.sweeps.trial import RESUME, RUN, Trial
from labs.harness.tickets import make_ticket
from labs.session import failures

PROGRAMS = {program.name: program for program in programs()}
MENDED = [name for name, program in PROGRAMS.items() if not program.as_is]
SUITES = ("labs/01/test_record.py", "labs/02/test_effects.py", "labs/03/test_resume.py", "labs/05/test_stopping.py")
CLOSELY = ("labs/01/hidden/test_record_closely.py", "labs/02/hidden/test_keys.py", "labs/03/hidden/test_resume_closely.py",
           "labs/05/hidden/test_stopping_closely.py", "labs/01/test_worksheet.py", "labs/04")
#: The checks of SUITES that a program as it is fails, whatever its engine: no effect is recorded before it is sent, nothing is looked up, nobody claims a run.
BROKEN_AS_IS = {
    "01/test_record.py::test_a_finished_run_is_done_with_three_results",   # nothing says how often a step was begun
    "02/test_effects.py::test_an_effect_is_recorded_before_the_outside_sees_it",
    "02/test_effects.py::test_a_killed_effect_stays_started",
    "02/test_effects.py::test_an_answered_effect_is_done",
    "02/test_effects.py::test_every_run_and_step_has_a_key_of_its_own",
    "03/test_resume.py::test_a_killed_run_is_finished",
    "03/test_resume.py::test_two_processes_do_not_work_on_one_run",
    "05/test_stopping.py::test_payments_that_stay_down_fail_the_run_after_five_attempts",
    "05/test_stopping.py::test_what_passes_after_two_failures_is_done",
    "05/test_stopping.py::test_a_mail_whose_answer_was_lost_is_looked_up",
}


@pytest.fixture(scope="module")
def figures():
    return json.loads(FIGURES.read_text())


def needs(name):
    if missing := [package for package in PROGRAMS[name].needs if not installed(package)]:
        lacking(f"no {missing[0]}: pip install -e '.[engines]'")


def program(name):
    """The words that have the checks start a program, its engine loaded once."""
    return ["--program", f"solutions/engines/{name}", *(word for module in PROGRAMS[name].preload for word in ("--lab-preload", module))]


def test_each_engine_has_a_program_as_it_is_and_a_mended_one(figures):
    assert {name.removesuffix(AS_IS) for name in PROGRAMS} == set(MENDED) == {"sqlite", "dbos", "langgraph"}
    assert set(figures) == set(PROGRAMS)
    assert {path.parent.name for path in FOLDER.glob("*/flow.py")} == set(PROGRAMS)
    assert all(sorted(path.name for path in (FOLDER / name).iterdir() if path.is_file()) == ["flow.py"] for name in PROGRAMS if name.endswith(AS_IS))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_figures_are_of_the_program_as_it_is_now(figures, name):
    found = figures[name]
    assert found["fingerprint"] == PROGRAMS[name].fingerprint, f"measure it anew: labs engines --only {name}"
    assert found["lines"] == lines_of(PROGRAMS[name]) and found["as_is"] == PROGRAMS[name].as_is
    assert set(found["measured"]["engine"]) == set(PROGRAMS[name].needs) and found["measured"]["date"] and found["measured"]["python"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_kind_of_kill_was_tried(figures, name):
    kinds = figures[name]["kinds"]
    assert tuple(kinds) == KINDS
    for kind in kinds.values():
        assert 0 < kind["tried"] <= kind["points"] and not kind["could_not"] and kind["not_reached"] <= kind["tried"] / 10
        assert kind["bad"] <= sum(kind["how"].values()) and set(kind["how"]) == set(kind["first"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_mended_none_is_bad_and_as_they_are_each_repeats_an_effect(figures, name):
    kinds = figures[name]["kinds"].values()
    bad, repeated = sum(kind["bad"] for kind in kinds), sum(kind["repeated"] for kind in kinds)
    assert (bad, repeated) == (0, 0) if not PROGRAMS[name].as_is else bad >= repeated > 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_killed_between_the_refund_and_its_answer_only_a_mended_program_refunds_once(name):
    """One kill, so that every program really runs here: all the checks are in the slow tests."""
    needs(name)
    with proving_ground(FOLDER / name, None, 1, PROGRAMS[name].preload) as ground:
        trial = Trial.prepared(ground, "killed", RESUME, make_ticket("engines"))
        trial.finish()
        assert trial.last.code == 0 and len(trial.program.outside.of("model")) == 1
        assert set(judged(trial)) == ({2, 3} if PROGRAMS[name].as_is else set())
        assert len(trial.program.outside.refunds) == (2 if PROGRAMS[name].as_is else 1)


@pytest.mark.parametrize("name", MENDED)
def test_killed_in_the_wait_after_a_failure_a_mended_program_has_counted_it(name):
    """While it waits for a minute the record changes; then it is killed, and what is in its home goes on without waits."""
    needs(name)
    with proving_ground(FOLDER / name, None, 1, PROGRAMS[name].preload) as ground:
        waiting, going_on = ground.program("waiting", retry_delay=60), ground.program("going on")
        process, _ = held_at(waiting, "refund", "before", lambda: waiting.start(make_ticket("engines"), RUN))
        before, late = waiting.status(RUN), time.monotonic() + 10
        waiting.outside.drop()
        while waiting.status(RUN)["updated_at"] == before["updated_at"]:
            assert time.monotonic() < late, "the attempt failed, and the record does not say so while the program waits for the next one"
        waiting.kill(process)
        assert len(waiting.outside.of("refund")) == 1
        shutil.copytree(waiting.home, going_on.home, dirs_exist_ok=True)
        going_on.outside.plan(Fault("refund", "answer", times=None))
        assert going_on.resume(RUN).wait().code == 3
        assert len(going_on.outside.of("refund")) == 4, "five failures are the end, and the first was before the kill"


@pytest.mark.parametrize("name", ["dbos-as-is", "dbos"])
def test_a_database_that_fails_on_the_way_is_no_failed_run(name):
    needs(name)
    with proving_ground(FOLDER / name, None, 1, PROGRAMS[name].preload) as ground:
        program = ground.program("spoiled")
        process, _ = held_at(program, "refund", "before", lambda: program.start(make_ticket("engines"), RUN))
        with sqlite3.connect(program.home / "dbos.sqlite3") as database:
            for number, deed in enumerate(("INSERT ON operation_outputs", "UPDATE ON workflow_status")):
                database.execute(f"CREATE TRIGGER no_more_{number} BEFORE {deed} BEGIN SELECT RAISE(ABORT, 'no more'); END")
        database.close()
        program.outside.release()
        assert process.wait().code == 6 and len(process.stderr.splitlines()) == 1, process.stderr
        assert "failed while run" in process.stderr and program.status(RUN)["state"] == "running"


def test_checks_load_an_engine_once(tmp_path):
    """That of lab 03 starts it again and again, and passes: the processes are forked from one that has the engine, and none outlives it."""
    needs("langgraph")
    check = "labs/03/test_resume.py::test_killed_between_two_and_three_it_goes_on_at_three"
    code, output, results = run_suites(check, *program("langgraph"), results=tmp_path / "results.jsonl")
    assert code == 0 and results and not failed_checks(results), output
    code, output, _ = run_suites(check, *program("sqlite"), "--lab-preload", "no_such_module", results=tmp_path / "others.jsonl")
    assert code == pytest.ExitCode.USAGE_ERROR and "no_such_module cannot be loaded beforehand" in output


def test_a_command_that_a_reader_is_told_to_give_loads_the_same_modules():
    options = SimpleNamespace(lab_seed=1, program="flow", lab_isolation=None, command=None, lab_preload=["dbos", "langgraph.graph"])
    item = SimpleNamespace(path=KIT / "labs/03/test_resume.py", name="test_x",
                           config=SimpleNamespace(option=options, invocation_params=SimpleNamespace(dir=KIT)))
    for said in (failures._again(item), sweeping._not_tried("flow", None, "05", ["dbos", "langgraph.graph"])):
        assert said.endswith("--program flow --lab-preload dbos --lab-preload langgraph.graph"), said


@pytest.mark.parametrize("name", ["sqlite-as-is", *(pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS if name != "sqlite-as-is")])
@pytest.mark.timeout(900)
def test_a_program_keeps_the_contract_or_breaks_what_is_said_of_it(name, tmp_path):
    needs(name)
    suites = SUITES if PROGRAMS[name].as_is else SUITES + CLOSELY
    _, output, results = run_suites(*suites, *program(name), results=tmp_path / "results.jsonl")
    assert set(results) >= {"01", "02", "03", "05"}, output
    assert failed_checks(results) == (BROKEN_AS_IS if PROGRAMS[name].as_is else set()), output


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", MENDED)
def test_a_mended_program_is_finished_at_every_fortieth_line(name, tmp_path):
    needs(name)
    _, output, results = run_suites("labs/03/test_killed_at_every_line.py", *program(name), "--lab-sample", "40", results=tmp_path / "results.jsonl")
    assert results and not failed_checks(results), output


@pytest.mark.parametrize("arguments, said", [
    (("engines", "--only", "temporal"), "there is no program temporal in solutions/engines; there are dbos-as-is, dbos, langgraph-as-is"),
    (("sweep", "solutions/engines/sqlite", "--preload", "no_such_module"), "no_such_module cannot be loaded beforehand: ModuleNotFoundError"),
    (("engines", "--kind", "flood"), "there is no kind of sweep called flood"),
])
def test_what_cannot_be_measured_is_one_line(arguments, said):
    ended = subprocess.run([sys.executable, "-m", "labs", *arguments], cwd=KIT, capture_output=True, text=True)
    assert ended.returncode == 2 and said in ended.stderr and len(ended.stderr.splitlines()) == 1, ended.stderr


def test_a_module_that_starts_a_thread_is_not_loaded_beforehand(tmp_path, monkeypatch):
    """A thread does not come along into a fork: what it holds would be held for ever."""
    (tmp_path / "restless.py").write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n")
    (tmp_path / "quiet.py").write_text("")
    monkeypatch.setattr(preload, "_ALONE", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{preload._ALONE}")
    with pytest.raises(Refused, match="restless cannot be loaded beforehand: it starts 1 thread when"):
        preload.checked(["quiet", "restless"])
    assert preload.checked(["quiet"]) == ("quiet",)


def test_a_module_that_starts_a_process_is_not_loaded_beforehand(tmp_path, monkeypatch):
    """And what it started is ended, though it holds all that it was given open."""
    (tmp_path / "forking.py").write_text(f"import os, time\nif not os.fork():\n    open({str(tmp_path / 'child')!r}, 'w').write(str(os.getpid()))\n    time.sleep(600)\n"
                                         f"while not os.path.exists({str(tmp_path / 'child')!r}) or not open({str(tmp_path / 'child')!r}).read(): pass\n")
    monkeypatch.setattr(preload, "_ALONE", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{preload._ALONE}")
    with pytest.raises(Refused, match="forking cannot be loaded beforehand: it starts a process when it is imported"):
        preload.checked(["forking"])
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int((tmp_path / "child").read_text())).wait(20)


def test_a_module_whose_import_does_not_end_is_one_line(monkeypatch):
    monkeypatch.setattr(preload, "_ALONE", "import threading\nthreading.Event().wait()")
    monkeypatch.setattr(preload, "LONGEST", 0.5)
    with pytest.raises(Refused, match="endless cannot be loaded beforehand: its import did not end within 0.5 seconds"):
        preload.checked(["endless"])
