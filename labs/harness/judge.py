"""The judge: what must hold once a run has ended, read from the outside's ledger and from the record."""

from .processes import ProgramFault
from .story import money

STEPS = ("triage", "refund", "reply")
STATES = ("running", "waiting", "done", "failed")
FIELDS = {"triage": {"order_id": str, "classification": str, "amount_cents": int, "draft_text": str},
          "refund": {"refund_id": str}, "reply": {"message_id": str}}


def results_of(record):
    """The results of a record by step, each checked for the fields of the contract. Raises ProgramFault."""
    results = record.get("results")
    if not isinstance(results, dict):
        raise ProgramFault(f"the record's `results` should be an object, it is {results!r}")
    found = {step: results[step] for step in STEPS if step in results}
    for step, result in found.items():
        for name, kind in FIELDS[step].items():
            value = result.get(name) if isinstance(result, dict) else None
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ProgramFault(f"results.{step} should have a field `{name}` ({kind.__name__}), it is {str(result)[:160]}")
    return found


def effect_of(record, step):
    """The record's effect of a step as (key, state); (None, None) where there is none. Raises ProgramFault."""
    effects = record.get("effects")
    if not isinstance(effects, dict):
        raise ProgramFault(f"the record's `effects` should be an object, it is {effects!r}")
    if step not in effects:
        return None, None
    effect = effects[step]
    if not isinstance(effect, dict) or not isinstance(effect.get("key"), str) or effect.get("state") not in ("started", "done"):
        raise ProgramFault(f"effects.{step} should have a `key` and a `state`, started or done; it is {effect!r}")
    return effect["key"], effect["state"]


def attempts_of(record):
    """How often each step that was begun was begun, by step. Raises ProgramFault."""
    attempts = record.get("attempts")
    if not isinstance(attempts, dict):
        raise ProgramFault(f"the record's `attempts` should be an object, it is {attempts!r}")
    return {step: attempts[step] for step in STEPS if step in attempts}


def consistent(record, run_id):
    """Judge that a record, read at any moment, says nothing impossible. Raises AssertionError."""
    assert record.get("id") == run_id, f"the record of {run_id} has the id {record.get('id')!r}"
    state, step, results = record.get("state"), record.get("step"), results_of(record)
    assert state in STATES, f"the record's state should be one of {', '.join(STATES)}, it is {state!r}"
    if state == "done":
        assert set(results) == set(STEPS), f"the run is `done` and has only these results: {', '.join(results) or 'none'}"
    else:
        assert step in STEPS, f"the record's step should be one of {', '.join(STEPS)}, it is {step!r}"
        before = STEPS[:STEPS.index(step)]
        assert tuple(results) == before, (f"on step {step} there should be results of {' and '.join(before) or 'no step'}, "
                                          f"there are some of {' and '.join(results) or 'no step'}")


def refused(process, code=2):
    """Judge that a process ended with this exit code and one line on stderr. Raises AssertionError."""
    assert process.code == code, f"{process} {process.end}; it should end with exit code {code}"
    lines = process.stderr.strip().splitlines()
    assert len(lines) == 1, f"{process} should say in one line on stderr what is wrong, it printed {len(lines)} lines"


def handled_once(program, run_id, ticket, model_calls=1):
    """Judge that a run is done, that its effects happened once, and that the record says what happened.

    `model_calls` is how many calls to the model are allowed: one, and one more for each kill that took an answer.
    Returns the record. Raises AssertionError with the reason.
    """
    outside = program.outside
    # What the customer noticed first: it matters more than what the record says about it.
    refunds, mails = outside.refunds, outside.mails
    assert len(refunds) < 2, f"the customer was refunded {times(len(refunds))}"
    assert len(mails) < 2, f"the customer got the mail {times(len(mails))}"
    asked = len(outside.of("model"))
    assert asked <= model_calls, (f"the model was asked {times(asked)}, {times(model_calls)} would do: "
                                  "a finished step's result is read, not asked for again")

    record = program.status(run_id)
    state = record.get("state")
    assert state == "done", f"the run should be `done`, its state is {state!r} at step {record.get('step')!r}"
    assert record.get("step") is None, f"a done run is on no step (null), the record says {record.get('step')!r}"
    results = results_of(record)
    assert set(results) == set(STEPS), f"a done run has three results, the record has {', '.join(results) or 'none'}"
    assert refunds, "the run is `done`, and no refund was made"
    assert mails, "the run is `done`, and no mail was sent"

    found, refund, mail = results["triage"], refunds[0], mails[0]
    assert {name: found[name] for name in FIELDS["triage"]} in outside.readings(), \
        "the recorded triage is none of the answers that the model gave"
    assert refund["amount_cents"] == found["amount_cents"], (
        f"{money(refund['amount_cents'])} were refunded, the record says {money(found['amount_cents'])}")
    assert refund["order_id"] == found["order_id"], f"order {refund['order_id']} was refunded, the record says {found['order_id']}"
    assert refund["refund_id"] == results["refund"]["refund_id"], (
        f"the refund is {refund['refund_id']}, the record says {results['refund']['refund_id']}")
    assert mail["message_id"] == results["reply"]["message_id"], (
        f"the mail is {mail['message_id']}, the record says {results['reply']['message_id']}")
    assert mail["to"] == ticket["customer"], f"the mail went to {mail['to']}, the customer is {ticket['customer']}"
    assert found["draft_text"] in mail["body"], "the mail does not contain the recorded draft"
    assert refund["refund_id"] in mail["body"], f"the mail does not contain the refund's id, {refund['refund_id']}"
    return record


def times(count):
    """A number of times in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")

