"""Lab 05, stopping properly: what may pass is tried again, what will not is given up, and a run that failed stays failed."""

import pytest

from labs.harness.clock import next_second
from labs.harness.judge import handled_once, times
from labs.harness.outside import Fault


def failed(program, process, run_id, step, *last):
    """Judge that a run failed at `step` and says why; the reason holds one of `last`. Returns the record."""
    assert process.code == 3, f"{process} {process.end}; a run that failed ends with exit code 3"
    record = program.status(run_id)
    assert record.get("state") == "failed", f"the run should be `failed`, it is {record.get('state')!r}"
    assert record.get("step") == step, f"the run gave up at {step}, the record says {record.get('step')!r}"
    reason = record.get("reason")
    assert isinstance(reason, str) and step in reason, f"the reason should name the step, {step}; it is {reason!r}"
    assert any(word in reason for word in last), f"the reason should say what the outside last said ({last[0]}); it is {reason!r}"
    return record


@pytest.mark.parametrize("step, kind", [("refund", "refund"), ("reply", "mail")], ids=["payments", "mail"])
def test_payments_that_stay_down_fail_the_run_after_five_attempts(program, outside, ticket, step, kind):
    outside.plan(Fault(kind, "answer", times=None))
    run = program.start(ticket)
    run.wait_until(lambda: not run.running or len(outside.of(kind)) > 5, "end")
    sent = len(outside.of(kind))
    assert sent == 5, f"a step that failed five times has failed, and the {kind} was asked for {times(sent) if sent < 6 else 'more often'}"
    record = failed(program, run.wait(), run.line(), step, "503", "unavailable", "the service says no")
    assert record["results"].get("triage"), "the result of triage is gone, and it was finished"
    assert record["attempts"].get(step) == 5, f"attempts.{step} should be 5, it is {record['attempts'].get(step)!r}"
    assert not outside.mails, f"the {kind} failed, and the mail was sent"


@pytest.mark.parametrize("kind, first", [("model", 503), ("model", 408), ("refund", 425), ("mail", 409)])
def test_what_passes_after_two_failures_is_done(program, outside, ticket, kind, first):
    outside.plan(Fault(kind, "answer", status=first, retry_after=30), Fault(kind, "answer", nth=2, status=429, retry_after=30))
    run = program.start(ticket).wait()
    assert run.code == 0, f"the service said {first}, then 429, then it was up again, and {run} {run.end}"
    handled_once(program, run.line(), ticket, model_calls=3 if kind == "model" else 1)
    keys = {request.key for request in outside.of(kind)}
    assert len(keys) == 1, f"three attempts of one step went by these keys: {', '.join(map(str, keys))}"


@pytest.mark.parametrize("status", [402, 403, 422])
def test_what_is_refused_for_good_is_not_tried_again(program, outside, ticket, status):
    outside.plan(Fault("refund", "answer", times=None, status=status))
    run = program.start(ticket).wait()
    failed(program, run, run.line(), "refund", str(status), "the service says no")
    sent = len(outside.of("refund"))
    assert sent == 1, f"{status} can never turn out well, and the refund was asked for {times(sent)}"


def test_a_failed_run_stays_failed_and_stands_in_nobodys_way(program, outside, ticket):
    outside.plan(Fault("refund", "answer", times=None, status=402))
    run = program.start(ticket).wait()
    record = failed(program, run, run.line(), "refund", "402", "card_declined", "the service says no")
    outside.plan()
    sent = len(outside.requests)
    for again in (program.resume(run.line()).wait(), program.start(ticket, run.line()).wait()):
        assert again.code == 3, f"{again} of a failed run {again.end}; it should end with exit code 3"
        assert len(outside.requests) == sent, f"the run had failed, and {again} sent requests"
    assert program.status(run.line()) == record, "the record of a failed run changed"

    next_second()
    other = program.start(ticket).wait()
    assert other.code == 0, f"another run failed before it, and {other} {other.end}"
    for state, expected in [("failed", run.line()), ("done", other.line())]:
        listed = [found.get("id") for found in program.runs(state)]
        assert listed == [expected], f"`runs --state {state}` should list {expected} alone, it lists {listed}"


@pytest.mark.parametrize("deed, status", [("close", None), ("hang", None), ("fail_after", 500), ("fail_after", 504), ("garbage", None)],
                         ids=["close", "hang", "500", "504", "garbage"])
def test_a_mail_whose_answer_was_lost_is_looked_up(programs, ticket, deed, status):
    program = programs(timeout=1.0)
    program.outside.plan(Fault("mail", deed, status=status))
    run = program.start(ticket).wait()
    assert run.code == 0, f"the mail was sent and its answer lost; {run} {run.end}"
    handled_once(program, run.line(), ticket)
