"""One support ticket, three steps: triage it with the model, refund, reply. A LangGraph graph that records before it acts."""

import os
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from . import alone, conversation, outside, record, retry
from .exits import Refused


def merged(one, other):
    return {**one, **other}


class Run(TypedDict, total=False):
    """What a checkpoint holds. What a node returns is laid over it."""

    task: dict
    results: Annotated[dict, merged]
    keys: Annotated[dict, merged]       # of each effect that was begun
    attempts: Annotated[dict, merged]
    failures: Annotated[dict, merged]   # of each step a list: what OutsideError is made of, for each failure
    gave_up: str                        # the reason


def start(ticket, run_id=None):
    """Write the run down, then work on it. Returns the state that the run ended in."""
    run_id = run_id or os.urandom(16).hex()
    with alone.claim(run_id), record.checkpoints() as saver:
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
    with alone.claim(run_id), record.checkpoints() as saver:
        return work(saver, run_id)


def status(run_id):
    return record.read(run_id)


def runs(state=None):
    return record.every(state)


def work(saver, run_id):
    run = record.find(saver, run_id)
    if run["state"] in ("running", "waiting"):
        go_on = Command(resume=True) if run["state"] == "waiting" else None
        graph.compile(checkpointer=saver).invoke(go_on, record.of(run_id), durability="sync")
        run = record.find(saver, run_id)
        if run["state"] == "done":
            remember(run)
    return run["state"]


def begin(step):
    """A node that records that a step is about to act, and the key that it acts under: the same for every attempt.

    What failed is in the last checkpoint, so here is the place to wait: a kill in the wait loses no failure.
    """
    def node(run):
        if failures := run.get("failures", {}).get(step):
            retry.pause(len(failures), outside.OutsideError(*failures[-1]))
        key = run.get("keys", {}).get(step) or os.urandom(16).hex()
        return {"keys": {step: key} if step in EFFECTS else {}, "attempts": {step: run.get("attempts", {}).get(step, 0) + 1}}
    return node


def attempt(step, function):
    """A node that acts once. A failure is an outcome like any other, and is checkpointed: so failures count over restarts."""
    def node(run):
        try:
            return {"results": {step: function(run)}}
        except outside.OutsideError as error:
            failures = [*run.get("failures", {}).get(step, []), [str(error), error.status, error.retry_after]]
            if retry.is_final(error) or len(failures) == retry.MOST_FAILURES:
                return {"gave_up": f"{step} failed after {retry.times(len(failures))}; the last answer: {error}"}
            return {"failures": {step: failures}}
    return node


def triage(run):
    return outside.triage(run["task"]["text"], conversation.turns(run["task"].get("conversation")))


def refund(run):
    found = run["results"]["triage"]
    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"], run["keys"]["refund"])}


def reply(run):
    # A node that was killed runs again from its first line. The mail service knows no keys, so it is asked first.
    ticket, message_id = run["task"], run["keys"]["reply"]
    if not was_sent(message_id):
        try:
            outside.send_mail(message_id, ticket["customer"], f"Your ticket {ticket['ticket_id']}", text_of(run))
        except outside.OutsideError as error:
            if not retry.may_have_acted(error) or not was_sent(message_id):
                raise
    return {"message_id": message_id}


def was_sent(message_id):
    while True:
        try:
            return outside.mail_was_sent(message_id)
        except outside.OutsideError as error:
            # The first time this ends the process's work, and the run waits; a resume goes on here, and looks again.
            interrupt(f"reply: the mail may have been sent, and looking it up failed: {error}")


def text_of(run):
    return f"{run['results']['triage']['draft_text']}\n\nYour refund: {run['results']['refund']['refund_id']}"


def remember(run):
    """Add a run that is done to its conversation's memory. After a kill just before this it is lost: it is only memory."""
    if "conversation" in run["task"]:
        conversation.remember(run["task"]["conversation"], run["task"]["text"], text_of(run))


def after(step, following):
    """Where the graph goes when an attempt has ended."""
    return lambda run: END if run.get("gave_up") else following if step in run.get("results", {}) else f"begin {step}"


EFFECTS = {"refund", "reply"}
graph = StateGraph(Run)
graph.add_edge(START, "begin triage")
for step, function, following in (("triage", triage, "begin refund"), ("refund", refund, "begin reply"), ("reply", reply, END)):
    graph.add_node(f"begin {step}", begin(step))
    graph.add_node(step, attempt(step, function))
    graph.add_edge(f"begin {step}", step)
    graph.add_conditional_edges(step, after(step, following))
