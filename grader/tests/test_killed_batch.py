"""The grader keeps its own contract: a batch of real programs, killed five times, ends with the same results as one that was left alone."""

import signal
import subprocess
import sys
from random import Random

import pytest

from grader import results
from grader.battery import attacks, submit
from grader.diff import differences
from labs.harness.staging import KIT

PROGRAMS = ("finished", "pre-seeded-home", "path-escape", "state-in-other-folders")


def grade(folder, report):
    return subprocess.Popen([sys.executable, "-m", "grader", "grade", str(folder), "--out", str(report), "--labs", "1-2", "--sample", "30", "--jobs", "2"],
                            cwd=KIT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def recorded(report):
    """How many lines the records have."""
    return sum(path.read_bytes().count(b"\n") for path in report.glob("records/*.jsonl"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_batch_killed_five_times_ends_with_the_same_results(tmp_path):
    for name in PROGRAMS:
        submit(name, attacks().get(name), tmp_path / "class" / name)
    undisturbed = grade(tmp_path / "class", tmp_path / "undisturbed")
    said, _ = undisturbed.communicate(timeout=600)
    assert undisturbed.returncode == 0, said
    of_all = recorded(tmp_path / "undisturbed")

    report, random = tmp_path / "killed", Random(7)
    for lines in sorted(random.sample(range(1, of_all), 5)):
        killed = grade(tmp_path / "class", report)
        while killed.poll() is None and recorded(report) < lines:
            try:
                killed.wait(0.05)
            except subprocess.TimeoutExpired:
                pass   # look again
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    last = grade(tmp_path / "class", report)
    said, _ = last.communicate(timeout=600)
    assert last.returncode == 0, said
    for path in sorted((tmp_path / "undisturbed" / "results").iterdir()):
        before, after = results.read(path), results.read(report / "results" / path.name)
        assert not list(differences(before, after)), before.name
        assert (before.outcome, before.figures.kills, before.figures.duplicated) == (after.outcome, after.figures.kills, after.figures.duplicated)
