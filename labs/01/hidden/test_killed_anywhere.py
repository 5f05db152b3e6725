"""Lab 01, killed anywhere: at every line, before every system call, by power cut. A printed run id stays known."""

import pytest

from labs.harness.sweeps import CALL, LINE, POWER, START

pytestmark = pytest.mark.timeout(900)  # a sweep kills hundreds of times


@pytest.mark.sweep(LINE, START)
def test_a_printed_run_is_known_wherever_it_is_killed_by_line(swept):
    swept()


@pytest.mark.sweep(CALL, START)
def test_a_printed_run_is_known_wherever_it_is_killed_by_system_call(swept):
    swept()


@pytest.mark.sweep(POWER)
def test_a_printed_run_is_known_after_a_power_cut(swept):
    swept()
