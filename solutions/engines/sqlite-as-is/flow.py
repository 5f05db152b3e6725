"""One support ticket, three steps: triage it with the model, refund, reply. Durable execution in plain SQLite, as one writes it first."""

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
    run = record.read(run_id)
    if run["state"] == "running":
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
    """The result of a step, None where the run stops."""
    return engine.step(step.__name__, act, step, *arguments).get("result")


def act(step, *arguments):
    """What came of a step that is tried until it ends well: a result, or the reason why it was given up."""
    failures = 0
    while True:
        try:
            return {"result": step(*arguments)}
        except outside.OutsideError as error:
            failures += 1
            if retry.is_final(error) or failures == retry.MOST_FAILURES:
                return {"gave_up": f"{step.__name__} failed after {retry.times(failures)}; the last answer: {error}"}
            retry.pause(failures, error)


def triage(ticket):
    return outside.triage(ticket["text"], conversation.turns(ticket.get("conversation")))


def refund(found):
    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"])}


def reply(ticket, found, refunded):
    message_id = os.urandom(16).hex()
    outside.send_mail(message_id, ticket["customer"], f"Your ticket {ticket['ticket_id']}", text_of(found, refunded))
    return {"message_id": message_id}


def text_of(found, refunded):
    return f"{found['draft_text']}\n\nYour refund: {refunded['refund_id']}"


def remember(run):
    """Add a run that is done to its conversation's memory. After a kill just before this it is lost: it is only memory."""
    ticket, results = run["task"], run["results"]
    if "conversation" in ticket:
        conversation.remember(ticket["conversation"], ticket["text"], text_of(results["triage"], results["refund"]))
