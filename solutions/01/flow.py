"""One support ticket, three steps: triage it with the model, refund, reply. Each finished step is written down."""

from uuid import uuid4

from . import conversation, outside, record
from .exits import Refused


def start(ticket, run_id=None):
    """Write the run down, then handle its ticket. Returns the state that the run ended in."""
    run_id = run_id or uuid4().hex
    if not record.create(run_id, ticket):
        raise Refused(f"run {run_id} exists, and this flow cannot go on with a run yet; choose another id")
    print(run_id, flush=True)
    return work(record.read(run_id))


def status(run_id):
    return record.read(run_id)


def runs(state=None):
    return record.every(state)


def work(run):
    for step, function in STEPS.items():
        run["step"] = step
        run["attempts"][step] = run["attempts"].get(step, 0) + 1
        record.save(run)
        run["results"][step] = function(run)
    run["step"], run["state"] = None, "done"
    record.save(run)
    return run["state"]


def triage(run):
    ticket = run["task"]
    memory = conversation.turns(ticket["conversation"]) if "conversation" in ticket else []
    return outside.triage(ticket["text"], memory)


def refund(run):
    found = run["results"]["triage"]
    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"])}


def reply(run):
    ticket, results = run["task"], run["results"]
    text = f"{results['triage']['draft_text']}\n\nYour refund: {results['refund']['refund_id']}"
    message_id = outside.send_mail(uuid4().hex, ticket["customer"], f"Your ticket {ticket['ticket_id']}", text)
    if "conversation" in ticket:
        conversation.remember(ticket["conversation"], "user", ticket["text"])
        conversation.remember(ticket["conversation"], "assistant", text)
    return {"message_id": message_id}


STEPS = {"triage": triage, "refund": refund, "reply": reply}
