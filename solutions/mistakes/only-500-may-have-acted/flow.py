"""One support ticket, three steps: triage it with the model, refund, reply. It goes on from its record, or stops for good."""

import os

from . import conversation, outside, record, retry
from .exits import Refused


def start(ticket, run_id=None):
    """Write the run down, then work on it. Returns the state that the run ended in."""
    run_id = run_id or os.urandom(16).hex()
    if not record.create(run_id, ticket) and record.read(run_id)["task"] != ticket:
        raise Refused(f"run {run_id} is about another ticket; choose another id")
    print(run_id, flush=True)
    return resume(run_id)


def resume(run_id):
    """Go on with a run from its recorded step. Returns the state that it ended in."""
    with record.claim(run_id):
        # Read it now and not before: whoever held the claim until a moment ago may have gone on with it.
        return work(record.read(run_id))


def status(run_id):
    return record.read(run_id)


def runs(state=None):
    return record.every(state)


def work(run):
    while run["state"] in ("running", "waiting"):
        step = run["step"]
        begun_before = step in run["effects"]
        run["state"], run["reason"] = "running", None
        run["attempts"][step] = run["attempts"].get(step, 0) + 1
        if step in EFFECTS and not begun_before:
            run["effects"][step] = {"key": os.urandom(16).hex(), "state": "started"}
        record.save(run)

        try:
            result = STEPS[step](run, begun_before)
        except CannotKnow as doubt:
            run["state"], run["reason"] = "waiting", str(doubt)
            record.save(run)
            break
        except outside.OutsideError as error:
            failed(run, step, error)
            continue

        # The result, the effect's end and the next step are one commit: no kill comes between them.
        run["results"][step] = result
        if step in EFFECTS:
            run["effects"][step]["state"] = "done"
        run["step"] = NEXT[step]
        run["state"] = "running" if run["step"] else "done"
        record.save(run)
        if run["state"] == "done":
            remember(run)
    return run["state"]


def failed(run, step, error):
    """Write down that an attempt failed. After the last one the run is `failed`; before it, wait for the next.

    Failures have a count of their own, which a restart reads: an attempt that was killed is none.
    """
    failures = run.setdefault("failures", {})
    failures[step] = failures.get(step, 0) + 1
    if retry.is_final(error) or failures[step] >= retry.MOST_FAILURES:
        run["state"] = "failed"
        run["reason"] = f"{step} failed after {retry.times(failures[step])}; the last answer: {error}"
    record.save(run)
    if run["state"] == "running":
        retry.pause(failures[step], error)


class CannotKnow(Exception):
    """An effect may or may not have happened, and nobody can be asked now."""


def triage(run, begun_before):
    return outside.triage(run["task"]["text"], conversation.turns(run["task"].get("conversation")))


def refund(run, begun_before):
    # The payment service knows the key: sending it again is how one asks what became of the first request.
    found = run["results"]["triage"]
    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"], run["effects"]["refund"]["key"])}


def reply(run, begun_before):
    ticket, message_id = run["task"], run["effects"]["reply"]["key"]
    # The mail service knows no keys. Whatever was begun must be looked up before it is sent again.
    if not (begun_before and not run.pop("not_sent", False) and was_sent(message_id)):
        try:
            outside.send_mail(message_id, ticket["customer"], f"Your ticket {ticket['ticket_id']}", text_of(run))
        except outside.OutsideError as error:
            # A lost reply is no failure to act: even after the last attempt, look before anybody calls it one.
            run["not_sent"] = not retry.may_have_acted(error)
            if run["not_sent"] or not was_sent(message_id):
                raise
    return {"message_id": message_id}


def was_sent(message_id):
    try:
        return outside.mail_was_sent(message_id)
    except outside.OutsideError as error:
        raise CannotKnow(f"reply: the mail may have been sent, and looking it up failed: {error}") from None


def text_of(run):
    return f"{run['results']['triage']['draft_text']}\n\nYour refund: {run['results']['refund']['refund_id']}"


def remember(run):
    """Add a run that is done to its conversation's memory. After a kill just before this it is lost: it is only memory."""
    if "conversation" in run["task"]:
        conversation.remember(run["task"]["conversation"], run["task"]["text"], text_of(run))


STEPS = {"triage": triage, "refund": refund, "reply": reply}
NEXT = {"triage": "refund", "refund": "reply", "reply": None}
EFFECTS = {"refund", "reply"}
