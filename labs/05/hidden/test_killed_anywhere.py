"""Lab 05, killed anywhere while things fail outside: the bound on attempts holds over all kills, and effects stay single."""

import pytest

from labs.harness.sweeps import CALL, LINE
from labs.harness.sweeps.trial import DOWN, FAILING

pytestmark = pytest.mark.timeout(900)  # a sweep kills hundreds of times


@pytest.mark.sweep(LINE, FAILING)
def test_a_run_that_meets_failures_is_finished_wherever_it_is_killed_by_line(swept):
    swept()


@pytest.mark.sweep(CALL, FAILING, DOWN)
def test_a_run_that_meets_failures_is_finished_wherever_it_is_killed_by_system_call(swept):
    swept()
