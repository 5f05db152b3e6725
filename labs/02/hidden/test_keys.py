"""Lab 02, keys: what they must not depend on, and what a run id stands for."""

from labs.harness.clock import next_second
from labs.harness.judge import effect_of, handled_once, refused
from labs.harness.kills.boundary import killed_at
from labs.harness.outside import Fault
from labs.harness.tickets import make_ticket


def test_a_key_is_not_made_of_what_is_asked_for(program, outside, ticket):
    outside.plan(Fault("model", "repeat", times=None))
    program.start(ticket).wait()
    next_second()
    program.start(ticket).wait()
    keys = [request.key for request in outside.of("refund")]
    assert len(keys) == 2, f"two runs should send two refund requests, they sent {len(keys)}"
    first, second = keys
    assert first and first != second, f"the model said the same for two runs, and both refunds have the key {first}"
    assert len(outside.refunds) == 2, "two runs of one ticket are two refunds, the payment service took them for one"


def test_a_key_is_the_same_at_every_attempt(program, outside, ticket):
    run, request = killed_at(program, "refund", "before", lambda: program.start(ticket))
    recorded = effect_of(program.status(run.line()), "refund")
    assert recorded == (request.key, "started"), f"the request had the key {request.key}, the record says {recorded}"
    # A flow that cannot resume yet may refuse to. What it sends, it sends under the recorded key.
    program.resume(run.line()).wait()
    program.ask("start", "--run-id", run.line(), ticket=ticket)
    key, _ = effect_of(program.status(run.line()), "refund")
    sent = {request.key for request in outside.of("refund")} | {key}
    assert sent == {request.key}, f"one refund of one run went by these keys: {', '.join(map(str, sent))}"


def test_a_finished_run_is_not_begun_again(program, outside, ticket):
    first = program.start(ticket, "run-7").wait()
    assert first.line() == "run-7", f"{first} should print its run id, run-7, alone on the first line; it printed {first.line()!r}"
    before = handled_once(program, "run-7", ticket)
    sent = len(outside.requests)
    again = program.start(ticket, "run-7").wait()
    assert again.code == 0, f"{again} of a done run {again.end}; it should end with exit code 0"
    assert len(outside.requests) == sent, f"the run was done, and {again} sent {len(outside.requests) - sent} more requests"
    assert handled_once(program, "run-7", ticket) == before, "the record of a done run changed"


def test_a_run_id_belongs_to_one_ticket(program, outside, ticket):
    program.start(ticket, "run-7").wait()
    sent = len(outside.requests)
    refused(program.start(make_ticket(f"{ticket['ticket_id']} other"), "run-7").wait())
    assert len(outside.requests) == sent, "the second ticket under the same run id made requests"
    handled_once(program, "run-7", ticket)
