"""Lab 05, the closer look: attempts over restarts, answers that make no sense, waits, and refunds nobody answers for."""

import pytest

from labs.harness.judge import handled_once, refused, times
from labs.harness.kills.boundary import killed_at
from labs.harness.outside import Fault
from labs.harness.remembering import bounded


def test_attempts_count_over_restarts(program, outside, ticket):
    """Killed while the third, then the second, then the first attempt of each process is held; down between."""
    run_id, kills = None, 0
    for nth in (3, 2, 1):
        outside.plan(Fault("refund", "answer", times=nth - 1), Fault("refund", "hold_before", nth=nth))
        process = program.resume(run_id) if run_id else program.start(ticket)
        program.until(process, lambda: outside.held() or not process.running, "send a refund request")
        run_id = run_id or process.line()
        if not process.running:
            break
        program.kill(process)
        kills += 1
    outside.plan(Fault("refund", "answer", times=None))
    last = program.resume(run_id)
    last.wait_until(lambda: not last.running or len(outside.of("refund")) > 5 + kills, "end")
    sent = len(outside.of("refund"))
    assert sent <= 5 + kills, f"{kills} kills in the step allow {5 + kills} refund requests, {sent} were sent"
    assert last.wait().code == 3, f"payments were down over several restarts, and {last} {last.end}; it should be exit code 3"
    assert program.status(run_id).get("state") == "failed", "payments were down over several restarts; the run should be `failed`"


def test_failures_and_kills_below_the_bound_still_end_well(program, outside, ticket):
    run, _ = killed_at(program, "refund", "before", lambda: program.start(ticket))
    killed_at(program, "refund", "after", lambda: program.resume(run.line()))
    outside.plan(Fault("refund", "answer", times=2))
    last = program.resume(run.line()).wait()
    assert last.code == 0, f"killed twice and down twice, then all was well, and {last} {last.end}"
    handled_once(program, run.line(), ticket)


@pytest.mark.parametrize("deed", ["garble", "garbage"])
def test_a_model_that_talks_nonsense_fails_the_run(program, outside, ticket, deed):
    outside.plan(Fault("model", deed, times=None))
    run = program.start(ticket)
    run.wait_until(lambda: not run.running or len(outside.of("model")) > 5, "end")
    sent = len(outside.of("model"))
    assert sent == 5, f"a step that failed five times has failed, and the model was asked {times(sent) if sent < 6 else 'more often'}"
    assert run.wait().code == 3, f"the model never gave an answer of use, and {run} {run.end}; it should be exit code 3"
    record = program.status(run.line())
    assert (record.get("state"), record.get("step")) == ("failed", "triage"), \
        f"the run should be `failed` at triage, it is {record.get('state')!r} at {record.get('step')!r}"


def test_a_chat_gives_up_on_a_turn_and_keeps_its_memory(program, outside):
    conversation = program.converse("C-1", ["hello, is anybody there?"])
    outside.plan(Fault("model", "answer", times=None))
    chat = program.begin("chat", "C-1", stdin=b"and now?\n").wait()
    refused(chat, code=3)
    asked = len(outside.of("model")) - 1
    assert asked == 5, f"a turn that failed five times is given up, and the model was asked {times(asked)}"
    memory = program.memory("C-1")
    unanswered = memory["turns"][-1:] == [{"role": "user", "content": "and now?"}]
    bounded(memory, conversation + memory["turns"][-1:] if unanswered else conversation)


@pytest.mark.parametrize("deed", ["close", "hang"])
def test_a_refund_nobody_answers_for_is_made_once(programs, ticket, deed):
    program = programs(timeout=0.5)
    program.outside.plan(Fault("refund", deed, times=None))
    run = program.start(ticket)
    run.wait_until(lambda: not run.running or len(program.outside.of("refund")) > 5, "end")
    made, sent = len(program.outside.refunds), len(program.outside.of("refund"))
    assert made <= 1, f"no refund was ever answered, and {made} were made"
    assert sent <= 5, "a step that failed five times has failed; more than 5 refund requests were sent"
    assert run.wait().code in (0, 3, 4), f"no refund was ever answered, and {run} {run.end}; it should say done, failed or waiting"
    state = program.status(run.line()).get("state")
    assert state == {0: "done", 3: "failed", 4: "waiting"}[run.code], f"{run} {run.end}, and the record says {state!r}"


def test_waits_grow_and_keep_to_what_the_service_asks_for(programs, ticket):
    program = programs(retry_delay=0.2)
    program.outside.plan(Fault("refund", "answer"), Fault("refund", "answer", nth=2), Fault("refund", "answer", nth=3),
                         Fault("refund", "answer", nth=4, status=429, retry_after=3))
    run = program.start(ticket).wait()
    assert run.code == 0, f"the service was down four times, then up again, and {run} {run.end}"
    times = [request.received for request in program.outside.of("refund")]
    assert len(times) == 5, f"the service was down for four requests, and the fifth was to be answered; {len(times)} refund requests came"
    gaps = [later - earlier for earlier, later in zip(times, times[1:])]
    shown = ", ".join(f"{gap:.2f}" for gap in gaps)
    assert gaps[0] >= 0.18, f"LAB_RETRY_DELAY is 0.2 seconds, and between attempts passed {shown}"
    assert gaps[2] > gaps[0], f"waits should grow from attempt to attempt, between them passed {shown} seconds"
    assert gaps[3] >= 2.9, f"the service asked for 3 seconds (Retry-After), and between attempts passed {shown}"
