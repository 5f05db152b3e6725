"""The laws of the labs: red on the starter, green on the solutions, and the same every time."""

import os
import re

import pytest
from grader.suites import LABS, passed, red_by_right, run_suites

from labs.harness.side_by_side import side_by_side

pytestmark = pytest.mark.timeout(900)  # whole suites run in one test
SUITES = [f"labs/{lab}" for lab in LABS]
SAMPLE = ("--lab-sample", "8")  # of the points of a sweep; all of them are tried where the pages' commands are run, test_pages.py


FINISHED = f"solutions/{max(LABS)}"
#: The suites that each program is put through: all, or those of its own lab.
RUNS = {"starter": SUITES, FINISHED: SUITES, **{f"solutions/{lab}": [f"labs/{lab}"] for lab in sorted(LABS)[:-1]}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """For each program of RUNS what run_suites() says of it."""
    folder = tmp_path_factory.mktemp("runs")

    def run(program):
        return run_suites(*RUNS[program], "--program", program, *SAMPLE, results=folder / f"{program.replace('/', '-')}.jsonl")
    return dict(zip(RUNS, side_by_side(run, RUNS, threads=os.cpu_count())))


@pytest.fixture(scope="module")
def on_the_starter(runs):
    return runs["starter"]


@pytest.fixture(scope="module")
def on_the_finished_solution(runs):
    return runs[FINISHED]


@pytest.mark.parametrize("lab", LABS)
def test_every_check_fails_on_the_starter_but_those_that_say_so(on_the_starter, lab):
    code, output, results = on_the_starter
    assert code == 1, output
    statuses = {status for items in results[lab].values() for status in items.values()}
    assert statuses <= {"passed", "failed"}, f"a check broke instead of failing: {statuses}\n{output}"
    red = {check.test for check in LABS[lab].checks if not passed(results[lab][check.test])}
    assert red == red_by_right(lab)


def test_a_failure_on_the_starter_is_a_short_story(on_the_starter):
    _, output, results = on_the_starter
    assert "Traceback" not in output and "labs/harness" not in output
    stories = re.split(r"\n_+ .* _+\n", output.split("= FAILURES =")[1].split("\nlab 01 · write the plan down: ")[0])[1:]
    failed = [item for lab in results.values() for items in lab.values() for item in items.values() if item == "failed"]
    assert len(stories) == len(failed) > 20
    for story in stories:
        story = re.sub(r"(\n  hint  .*)\n\n[^ ].*", r"\1", story, flags=re.S)   # without the kill map that may follow
        lines = story.strip().splitlines()
        labels = [line[2:15].strip() for line in lines[1:] if line[2:15].strip()]
        assert lines[0].startswith("lab ") and lines[0].endswith("FAIL"), story
        assert {"this check", "your program", "why", "look", "again", "hint"} <= set(labels), story
        assert len(lines) <= 20 and len(labels) <= 12, story


@pytest.mark.parametrize("lab", LABS)
def test_the_finished_solution_passes_every_check(on_the_finished_solution, lab):
    code, output, results = on_the_finished_solution
    assert code == 0, output
    assert {check.test for check in LABS[lab].checks if passed(results[lab][check.test])} == {check.test for check in LABS[lab].checks}


# The last lab's solution is the finished one.
@pytest.mark.parametrize("lab", sorted(LABS)[:-1])
def test_a_lab_passes_with_its_predecessors_solutions_alone(runs, lab):
    code, output, results = runs[f"solutions/{lab}"]
    assert code == 0, output
    assert all(passed(results[lab][check.test]) for check in LABS[lab].checks)


@pytest.mark.parametrize("lab", LABS)
def test_the_manifest_lists_every_check_and_no_other(on_the_finished_solution, lab):
    _, _, results = on_the_finished_solution
    assert set(results[lab]) == {check.test for check in LABS[lab].checks}


def test_a_selection_of_nothing_is_an_error(tmp_path):
    code, output, results = run_suites("labs/01", "-k", "no_such_check", results=tmp_path / "results.jsonl")
    assert code != 0 and not results, output


@pytest.mark.parametrize("option, value, told", [
    ("--program", "no/such/folder", "there is no folder"), ("--program", "starter/__main__.py", "__main__.py is a file: name the folder that it is in"),
    ("--lab-isolation", "nonsense", "there is no isolation called 'nonsense'")])
def test_an_unusable_option_is_one_line_and_no_verdict(tmp_path, option, value, told):
    code, output, results = run_suites("labs/01", option, value, results=tmp_path / "results.jsonl")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: " in output and told in output and "Traceback" not in output and not results


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("program", ["starter", FINISHED])
def test_results_are_the_same_three_times_in_a_row_and_in_reverse_order(program, tmp_path):
    def results(number, *arguments):
        _, output, found = run_suites(*arguments, "--program", program, *SAMPLE, results=tmp_path / f"{number}.jsonl")
        assert found, output
        return found
    backwards = [f"labs/{lab}/{check.test}" for lab in reversed(LABS) for check in reversed(LABS[lab].checks)]
    runs = side_by_side(lambda number: results(number, *(SUITES if number < 3 else backwards)), range(4), threads=2)
    assert runs[0] == runs[1] == runs[2] == runs[3]
