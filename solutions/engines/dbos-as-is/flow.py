"""One support ticket, three steps: triage it with the model, refund, reply. A DBOS workflow as its tutorial has it."""

import os

from dbos import DBOS, SetWorkflowID

from . import conversation, outside, record, retry
from .exits import Refused

RETRIED = {"retries_allowed": True, "max_attempts": retry.MOST_FAILURES, "interval_seconds": float(os.environ.get("LAB_RETRY_DELAY", "1")),
           "should_retry": lambda error: not retry.is_final(error)}


def start(ticket, run_id=None):
    """Write the run down, then work on it. Returns the state that the run ended in."""
    run_id = run_id or os.urandom(16).hex()
    known = record.find(run_id)
    if known and known["task"] != ticket:
        raise Refused(f"run {run_id} is about another ticket; choose another id")
    if known:
        print(run_id, flush=True)
    return work(run_id, ticket)


def resume(run_id):
    """Go on with a run from its last recorded step. Returns the state that it ended in."""
    return work(run_id, record.read(run_id)["task"])


def status(run_id):
    return record.read(run_id)


def runs(state=None):
    return record.every(state)


def work(run_id, ticket):
    known = record.find(run_id)
    if known and known["state"] in ("done", "failed"):
        return known["state"]
    DBOS(config={"name": "support", "system_database_url": record.url(), "application_version": "1", "log_level": "CRITICAL"})
    DBOS.launch()
    with SetWorkflowID(run_id):
        workflow_handle = DBOS.retrieve_workflow(run_id) if known else DBOS.start_workflow(handle, ticket)
    try:
        state = state_of(workflow_handle)
    finally:
        DBOS.destroy()
    if state == "done":
        remember(record.read(run_id))
    return state


def state_of(workflow_handle):
    """The state that the run ended in. Raises Unreadable where it did not end."""
    try:
        workflow_handle.get_result(polling_interval_sec=0.05)
        return "done"
    except Exception as error:
        return record.state_after(error, workflow_handle.workflow_id)


@DBOS.workflow()
def handle(ticket):
    print(DBOS.workflow_id, flush=True)
    found = triage(ticket)
    refunded = refund(found)
    return reply(ticket, found, refunded)


@DBOS.step(name="triage", **RETRIED)
def triage(ticket):
    return outside.triage(ticket["text"], conversation.turns(ticket.get("conversation")))


@DBOS.step(name="refund", **RETRIED)
def refund(found):
    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"])}


@DBOS.step(name="reply", **RETRIED)
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
