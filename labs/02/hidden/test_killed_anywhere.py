"""Lab 02, killed anywhere: whatever the outside has seen is recorded, at every line, every system call, after every power cut."""

import pytest

from labs.harness.sweeps import CALL, LINE, POWER, START

pytestmark = pytest.mark.timeout(900)  # a sweep kills hundreds of times


@pytest.mark.sweep(LINE, START)
def test_an_effect_is_recorded_wherever_the_run_is_killed_by_line(swept):
    swept()


@pytest.mark.sweep(CALL, START)
def test_an_effect_is_recorded_wherever_the_run_is_killed_by_system_call(swept):
    swept()


@pytest.mark.sweep(POWER)
def test_an_effect_is_recorded_after_a_power_cut(swept):
    swept()
