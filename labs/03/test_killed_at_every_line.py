"""Lab 03, killed at every line: whatever line was about to run, the run is finished, and nothing happens twice."""

import pytest

from labs.harness.sweeps import LINE, START


@pytest.mark.timeout(900)  # it is killed at hundreds of lines
@pytest.mark.sweep(LINE, START)
def test_a_run_killed_at_any_line_is_finished(swept):
    swept()
