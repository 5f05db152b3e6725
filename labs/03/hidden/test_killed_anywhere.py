"""Lab 03, killed anywhere: at every line of a resume, before every system call, twice, in races, by power cut."""

import pytest

from labs.harness.sweeps import CALL, DOUBLE, LINE, POWER, RACE, RESUME, START

pytestmark = pytest.mark.timeout(900)  # a sweep kills hundreds of times


@pytest.mark.sweep(LINE, RESUME)
def test_a_resume_killed_at_any_line_is_finished(swept):
    swept()


@pytest.mark.sweep(CALL, START, RESUME)
def test_a_run_killed_before_any_system_call_is_finished(swept):
    swept()


@pytest.mark.sweep(DOUBLE)
def test_a_run_killed_twice_is_finished(swept):
    swept()


@pytest.mark.sweep(RACE)
def test_two_processes_at_any_moment_are_one(swept):
    swept()


@pytest.mark.sweep(POWER)
def test_a_run_is_finished_after_a_power_cut(swept):
    swept()
