"""One support ticket, three steps: triage it with the model, refund, reply. Durable execution in plain SQLite: it records before it acts."""

import os

from . import conversation, outside, record, retry
from .exits import Refused


def start(ticket, run_id=None):
    """Write the run down, then work on it. Returns the state that the run ended in."""
    run_id = run_id or os.urandom(16).hex()
    record.create(run_id, ticket)
    if record.read(run_id)["task"] != ticket:
        raise Refused(f"run {run_id} is about another ticket; choose another id")
    print(run_id, flush=True)
    return resume(run_id)


def resume(run_id):
    """Go on with a run from its last recorded outcome. Returns the state that it ended in."""
    with record.claim(run_id):
        run = record.read(run_id)
        if run["state"] in ("running", "waiting"):
            handle(record.Engine(run_id), run["task"])
            run = record.read(run_id)
            if run["state"] == "done":
                remember(run)
        return run["state"]


def status(run_id):
    return record.read(run_id)


def runs(state=None):
    return record.every(state)


def handle(engine, ticket):
    if (found := attempt(engine, triage, ticket)) and (refunded := attempt(engine, refund, found)):
        attempt(engine, reply, ticket, found, refunded)


def attempt(engine, step, *arguments):
    """The result of a step that is begun until it ends well, None where the run stops. Every attempt is recorded before it acts, its failure too."""
    key, failures = None, []
    while True:
        key = engine.step("begin", begin, step.__name__, key, failures)["key"]
        replayed = engine.number < len(engine.recorded)
        outcome = engine.step(step.__name__, act, step, key, failures, *arguments)
        if "result" in outcome:
            return outcome["result"]
        if "gave_up" in outcome or "doubt" in outcome and not replayed:
            return None
        if "failed" in outcome:
            failures = [*failures, outcome["failed"]]


def begin(step, key, failures):
    """Record that a step is about to act, and the key that it acts under: the same for every attempt.

    What failed is on disk by now, so here is the place to wait: a kill in the wait loses no failure.
    """
    if failures:
        retry.pause(len(failures), outside.OutsideError(*failures[-1]))
    return {"step": step, "key": key or os.urandom(16).hex()}


def act(step, key, failures, *arguments):
    """What came of one attempt: a result, a doubt, one failure more, or the last one. A failure is what OutsideError is made of."""
    try:
        return {"result": step(key, *arguments)}
    except CannotKnow as error:
        return {"doubt": str(error)}
    except outside.OutsideError as error:
        count = len(failures) + 1
        if retry.is_final(error) or count == retry.MOST_FAILURES:
            return {"gave_up": f"{step.__name__} failed after {retry.times(count)}; the last answer: {error}"}
        return {"failed": [str(error), error.status, error.retry_after]}


class CannotKnow(Exception):
    """An effect may or may not have happened, and nobody can be asked now."""


def triage(key, ticket):
    return outside.triage(ticket["text"], conversation.turns(ticket.get("conversation")))


def refund(key, found):
    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"], key)}


def reply(key, ticket, found, refunded):
    # A step whose outcome was not written down runs again although it acted. The mail service knows no keys, so it is asked first.
    if not was_sent(key):
        try:
            outside.send_mail(key, ticket["customer"], f"Your ticket {ticket['ticket_id']}", text_of(found, refunded))
        except outside.OutsideError as error:
            if not retry.may_have_acted(error) or not was_sent(key):
                raise
    return {"message_id": key}


def was_sent(message_id):
    try:
        return outside.mail_was_sent(message_id)
    except outside.OutsideError as error:
        raise CannotKnow(f"reply: the mail may have been sent, and looking it up failed: {error}") from None


def text_of(found, refunded):
    return f"{found['draft_text']}\n\nYour refund: {refunded['refund_id']}"


def remember(run):
    """Add a run that is done to its conversation's memory. After a kill just before this it is lost: it is only memory."""
    ticket, results = run["task"], run["results"]
    if "conversation" in ticket:
        conversation.remember(ticket["conversation"], ticket["text"], text_of(results["triage"], results["refund"]))
