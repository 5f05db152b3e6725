"""One support ticket, three steps: triage it with the model, refund, reply. A LangGraph graph as its tutorial has it."""

import os
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy

from . import conversation, outside, record, retry
from .exits import Refused


def merged(one, other):
    return {**one, **other}


class Run(TypedDict, total=False):
    """What a checkpoint holds. What a node returns is laid over it."""

    task: dict
    results: Annotated[dict, merged]
    gave_up: str                        # the reason


def start(ticket, run_id=None):
    """Write the run down, then work on it. Returns the state that the run ended in."""
    run_id = run_id or os.urandom(16).hex()
    with record.checkpoints() as saver:
        known = record.find(saver, run_id)
        if known and known["task"] != ticket:
            raise Refused(f"run {run_id} is about another ticket; choose another id")
        if not known:
            graph.compile(checkpointer=saver).update_state(record.of(run_id), {"task": ticket}, as_node=START)
        print(run_id, flush=True)
        return work(saver, run_id)


def resume(run_id):
    """Go on with a run from its last checkpoint. Returns the state that it ended in."""
    record.read(run_id)
    with record.checkpoints() as saver:
        return work(saver, run_id)


def status(run_id):
    return record.read(run_id)


def runs(state=None):
    return record.every(state)


def work(saver, run_id):
    run = record.find(saver, run_id)
    if run["state"] == "running":
        app = graph.compile(checkpointer=saver)
        try:
            app.invoke(None, record.of(run_id), durability="sync")
        except outside.OutsideError as error:
            app.update_state(record.of(run_id), {"gave_up": str(error)})
        run = record.find(saver, run_id)
        if run["state"] == "done":
            remember(run)
    return run["state"]


def triage(run):
    return {"results": {"triage": outside.triage(run["task"]["text"], conversation.turns(run["task"].get("conversation")))}}


def refund(run):
    found = run["results"]["triage"]
    return {"results": {"refund": {"refund_id": outside.refund(found["order_id"], found["amount_cents"])}}}


def reply(run):
    ticket, message_id = run["task"], os.urandom(16).hex()
    outside.send_mail(message_id, ticket["customer"], f"Your ticket {ticket['ticket_id']}", text_of(run))
    return {"results": {"reply": {"message_id": message_id}}}


def text_of(run):
    return f"{run['results']['triage']['draft_text']}\n\nYour refund: {run['results']['refund']['refund_id']}"


def remember(run):
    """Add a run that is done to its conversation's memory. After a kill just before this it is lost: it is only memory."""
    if "conversation" in run["task"]:
        conversation.remember(run["task"]["conversation"], run["task"]["text"], text_of(run))


delay = float(os.environ.get("LAB_RETRY_DELAY", "1"))
retried = RetryPolicy(max_attempts=retry.MOST_FAILURES, initial_interval=delay, jitter=False,
                      retry_on=lambda error: isinstance(error, outside.OutsideError) and not retry.is_final(error))
graph = StateGraph(Run)
graph.add_edge(START, "triage")
for step, function, following in (("triage", triage, "refund"), ("refund", refund, "reply"), ("reply", reply, END)):
    graph.add_node(step, function, retry_policy=retried)
    graph.add_edge(step, following)
