"""Lab 01, write the plan down: a run leaves a record that another process can read, at any moment."""

import json

import pytest

from labs.harness.judge import STEPS, attempts_of, consistent, handled_once, refused, results_of
from labs.harness.kills.boundary import held_at, killed_at
from labs.harness.processes import Late, ProgramFault

PROMPTLY = 5.0   # seconds until a word that is out has come here; a program that still holds it gives up its request after 10, and ends


def test_a_printed_run_is_known_before_its_first_step(program, ticket):
    ticket["priority"] = "high"
    run, _ = held_at(program, "model", "before", lambda: program.start(ticket))
    try:
        run.line(deadline=PROMPTLY)
    except Late:
        raise ProgramFault("the first request is out, and the run id is not: print it before the first step, and flush it (flush=True)") from None
    record = program.status(run.line())

    consistent(record, run.line())
    assert record.get("step") == "triage", f"the run is on its first step, triage; the record says {record.get('step')!r}"
    assert record.get("state") == "running", f"the run is `running`, the record says {record['state']!r}"
    assert record.get("task") == ticket, "`task` should be the ticket as it came, unknown keys included"


@pytest.mark.parametrize("kind, step, finished", [("refund", "refund", ["triage"]), ("mail", "reply", ["triage", "refund"])],
                         ids=["refund", "reply"])
def test_a_killed_run_shows_its_step_and_the_finished_results(program, outside, ticket, kind, step, finished):
    run, _ = killed_at(program, kind, "before", lambda: program.start(ticket))
    record = program.status(run.line())

    consistent(record, run.line())
    assert record.get("step") == step, f"it was killed in step {step}, the record says {record.get('step')!r}"
    results = results_of(record)
    assert list(results) == finished, f"finished are {' and '.join(finished)}, the record has {' and '.join(results) or 'none'}"
    assert outside.readings(), "the model was not asked what the ticket says"
    for name, value in outside.readings()[-1].items():
        assert results["triage"][name] == value, f"results.triage.{name} should be what the model said, {value!r}"


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_a_finished_run_is_done_with_three_results(program, ticket, source):
    run = program.start(ticket) if source == "file" else program.begin("start", "-", stdin=json.dumps(ticket).encode())
    run.wait()
    assert run.code == 0, f"{run} {run.end}; a run that is done ends with exit code 0"
    record = handled_once(program, run.line(), ticket)
    begun = attempts_of(record)
    assert begun == dict.fromkeys(STEPS, 1), f"each step was begun once, the record's `attempts` say {begun}"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"ticket_id": "T-1", "customer": "ana@example.com"}',
                                     b'{"ticket_id": 1, "customer": "ana@example.com", "text": "Order A-1, $1.00"}'],
                         ids=["empty", "no-json", "no-object", "no-text", "id-is-no-string"])
def test_a_bad_ticket_is_refused(program, outside, content):
    refused(program.ask("start", ticket=content))
    assert not outside.requests, "a bad ticket was sent to the outside"


def test_an_unknown_run_is_refused(program, outside, ticket):
    program.start(ticket).wait()
    sent = len(outside.requests)
    for verb in ("status", "resume"):
        refused(program.ask(verb, "no-such-run"))
    assert len(outside.requests) == sent, "an unknown run made requests to the outside"


def test_runs_lists_every_run_oldest_first(program, outside, ticket):
    # The oldest is neither the first by name nor the one that was left alone the longest.
    oldest, _ = held_at(program, "mail", "before", lambda: program.start(ticket, "run-2"))
    program.start(ticket, "run-3").wait()
    outside.release()
    oldest.wait()
    killed_at(program, "refund", "before", lambda: program.start(ticket, "run-1"))

    for state, expected in [(None, ["run-2", "run-3", "run-1"]), ("done", ["run-2", "run-3"]), ("running", ["run-1"]), ("failed", [])]:
        listed = [record.get("id") for record in program.runs(state)]
        assert listed == expected, f"`runs{f' --state {state}' if state else ''}` should list {expected}, in the order in which they were started; it lists {listed}"
