"""One support ticket, three steps: triage it with the model, refund, reply. Each effect is recorded before it is made."""

import os

from . import conversation, outside, record
from .exits import Refused


def start(ticket, run_id=None):
    """Write the run down, then handle its ticket. Returns the state that the run ended in."""
    run_id = run_id or os.urandom(16).hex()
    created = record.create(run_id, ticket)
    run = record.read(run_id)
    if run["task"] != ticket:
        raise Refused(f"run {run_id} is about another ticket; choose another id")
    if not created and run["state"] != "done":
        raise Refused(f"run {run_id} was begun, and this flow cannot go on with a run yet; choose another id")
    print(run_id, flush=True)
    return work(run) if created else run["state"]


def status(run_id):
    return record.read(run_id)


def runs(state=None):
    return record.every(state)


def work(run):
    for step, function in STEPS.items():
        run["step"] = step
        run["attempts"][step] = run["attempts"].get(step, 0) + 1
        if step in EFFECTS:
            run["effects"][step] = {"key": os.urandom(16).hex(), "state": "started"}
        record.save(run)
        run["results"][step] = function(run)
        if step in EFFECTS:
            run["effects"][step]["state"] = "done"
    run["step"], run["state"] = None, "done"
    record.save(run)
    remember(run)
    return run["state"]


def triage(run):
    return outside.triage(run["task"]["text"], conversation.turns(run["task"].get("conversation")))


def refund(run):
    found = run["results"]["triage"]
    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"], run["effects"]["refund"]["key"])}


def reply(run):
    ticket = run["task"]
    outside.send_mail(run["effects"]["reply"]["key"], ticket["customer"], f"Your ticket {ticket['ticket_id']}", text_of(run))
    return {"message_id": run["effects"]["reply"]["key"]}


def text_of(run):
    return f"{run['results']['triage']['draft_text']}\n\nYour refund: {run['results']['refund']['refund_id']}"


def remember(run):
    """Add a run that is done to its conversation's memory. After a kill just before this it is lost: it is only memory."""
    if "conversation" in run["task"]:
        conversation.remember(run["task"]["conversation"], run["task"]["text"], text_of(run))


STEPS = {"triage": triage, "refund": refund, "reply": reply}
EFFECTS = {"refund", "reply"}
