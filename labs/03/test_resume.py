"""Lab 03, resume: killed anywhere, the run goes on from its record, and nothing happens twice."""

import pytest

from labs.harness.judge import handled_once
from labs.harness.kills.boundary import BOUNDARIES, IDS, held_at, killed_at


@pytest.mark.parametrize("verb", ["resume", "start"])
def test_killed_between_two_and_three_it_goes_on_at_three(program, outside, ticket, verb):
    run, _ = killed_at(program, "mail", "before", lambda: program.start(ticket))
    resumed = (program.resume(run.line()) if verb == "resume" else program.start(ticket, run.line())).wait()
    assert resumed.code == 0, f"{resumed} {resumed.end}; it should finish the run and end with exit code 0"
    handled_once(program, run.line(), ticket)
    assert len(outside.of("refund")) == 1, "the refund was finished and recorded, and it was asked for again"


@pytest.mark.parametrize("kind, when", BOUNDARIES, ids=IDS)
def test_a_killed_run_is_finished(program, ticket, kind, when):
    run, _ = killed_at(program, kind, when, lambda: program.start(ticket))
    resumed = program.resume(run.line()).wait()
    assert resumed.code == 0, f"{resumed} {resumed.end}; it should finish the run and end with exit code 0"
    handled_once(program, run.line(), ticket, model_calls=2 if kind == "model" else 1)


def test_a_done_run_is_left_alone(program, outside, ticket):
    run = program.start(ticket).wait()
    before, sent = program.status(run.line()), len(outside.requests)
    resumed = program.resume(run.line()).wait()
    assert resumed.code == 0, f"{resumed} of a done run {resumed.end}; it should end with exit code 0"
    assert len(outside.requests) == sent, f"the run was done, and {resumed} sent {len(outside.requests) - sent} requests"
    assert program.status(run.line()) == before, "the record of a done run changed"


def test_two_processes_do_not_work_on_one_run(program, outside, ticket):
    first, _ = held_at(program, "refund", "before", lambda: program.start(ticket))
    sent = len(outside.requests)
    second = program.resume(first.line())
    # It may end at once, with exit code 5, or wait for the first one. What it may not do is send anything.
    with outside.changed:
        outside.changed.wait_for(lambda: not second.running or len(outside.requests) > sent, timeout=3)
    assert len(outside.requests) == sent, f"{second} sent a request while the first process still worked on the run"
    if not second.running:
        assert second.code == 5, f"{second} {second.end}; while another process works on the run it should be exit code 5"
    outside.release()
    assert first.wait().code == 0, f"{first} {first.end}; it should finish its run"
    assert second.wait().code in (5, 0), f"{second} {second.end}; having waited it should end with the run's own code, 0"
    handled_once(program, first.line(), ticket)


def test_the_next_takes_over_at_once(program, outside, ticket):
    first, _ = held_at(program, "mail", "before", lambda: program.start(ticket))
    second = program.resume(first.line())
    with outside.changed:
        outside.changed.wait_for(lambda: not second.running, timeout=3)
    # Nobody has buried them yet: their process ids are taken, and say nothing about who is alive.
    program.kill(first, second, bury=False)
    third = program.resume(first.line()).wait()
    assert third.code == 0, f"the process that worked on the run is dead, though its process id is still taken, and {third} {third.end}"
    handled_once(program, first.line(), ticket)
