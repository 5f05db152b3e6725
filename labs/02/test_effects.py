"""Lab 02, record before you act: the record knows of an effect before the outside does."""

import pytest

from labs.harness.clock import next_second
from labs.harness.judge import effect_of, handled_once, results_of
from labs.harness.kills.boundary import held_at, killed_at

EFFECTS = pytest.mark.parametrize("kind, step", [("refund", "refund"), ("mail", "reply")], ids=["refund", "reply"])


@EFFECTS
def test_an_effect_is_recorded_before_the_outside_sees_it(program, ticket, kind, step):
    run, request = held_at(program, kind, "before", lambda: program.start(ticket))
    key, state = effect_of(program.status(run.line()), step)
    assert state == "started", f"the {kind} request is out, and in the record effects.{step} is {state or 'absent'}, not `started`"
    assert key == request.key, f"the request went out with the key {request.key}, the record says {key}"


@EFFECTS
def test_a_killed_effect_stays_started(program, outside, ticket, kind, step):
    run, request = killed_at(program, kind, "after", lambda: program.start(ticket))
    record = program.status(run.line())
    key, state = effect_of(record, step)
    assert state == "started", (f"the {kind} was made and the program killed before it heard of it; effects.{step} should be "
                                f"`started`, it is {state or 'absent'}")
    assert key == request.key, f"the request went out with the key {request.key}, the record says {key}"
    assert step not in results_of(record), f"results.{step} is there, though no answer ever came"


def test_an_answered_effect_is_done(program, outside, ticket):
    run, _ = held_at(program, "mail", "before", lambda: program.start(ticket))
    _, state = effect_of(program.status(run.line()), "refund")
    assert state == "done", f"the refund was answered and the mail is under way; effects.refund is {state or 'absent'}, not `done`"
    outside.release()
    run.wait()
    record = handled_once(program, run.line(), ticket)
    for step, sent in [("refund", outside.of("refund")[0].key), ("reply", outside.mails[0]["message_id"])]:
        key, state = effect_of(record, step)
        assert (key, state) == (sent, "done"), f"effects.{step} should be {sent}, done; it is {key}, {state}"


def test_every_run_and_step_has_a_key_of_its_own(program, outside, ticket):
    program.start(ticket).wait()
    next_second()
    program.start(ticket).wait()
    keys = [request.key for request in outside.of("refund", "mail")]
    assert None not in keys, "a refund request went out without an Idempotency-Key"
    assert len(set(keys)) == 4, f"two runs of one ticket have two effects each, and these keys: {', '.join(keys)}"
