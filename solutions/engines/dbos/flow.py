"""One support ticket, three steps: triage it with the model, refund, reply. A DBOS workflow that records before it acts."""

import os
import queue
import sys
import threading

from dbos import DBOS, SetWorkflowID
from sqlalchemy import Engine, event

from . import alone, conversation, outside, record, retry
from .exits import Exit, Refused

YEAR = 365 * 24 * 3600  # seconds
words = queue.SimpleQueue()  # what the workflow's thread tells the main one
new_doubt = threading.Event()


@event.listens_for(Engine, "connect")
def survive_a_power_cut(connection, _):
    # SQLite's default does not sync the deletion of the journal, which is what ends a commit: see storage.py.
    connection.execute("PRAGMA synchronous = EXTRA")


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
    with alone.claim(run_id):
        known = record.find(run_id)
        if known and known["state"] in ("done", "failed"):
            return known["state"]
        # As an executor of its own for each run: launch() goes on with all workflows of its executor that did not end.
        DBOS(config={"name": "support", "system_database_url": record.url(), "application_version": "1", "executor_id": run_id,
                     "log_level": "CRITICAL", "notification_listener_polling_interval_sec": 0.05})
        DBOS.launch()
        if known and known["state"] == "waiting":
            DBOS.send(run_id, "look again", topic="doubt")
        with SetWorkflowID(run_id):
            workflow_handle = DBOS.retrieve_workflow(run_id) if known else DBOS.start_workflow(handle, ticket)
        threading.Thread(target=watch, args=[workflow_handle], daemon=True).start()
        word = words.get()
        if word == "done":
            remember(record.read(run_id))
        if isinstance(word, Exit):
            print(" ".join(str(word).split()), file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(word.code if isinstance(word, Exit) else {"done": 0, "failed": 3, "waiting": 4}[word])


def watch(workflow_handle):
    """Tell the main thread the state that the run ended in, or the Exit because of which that is not known."""
    try:
        words.put(state_of(workflow_handle))
    except Exit as error:
        words.put(error)


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
    found = attempt(triage, ticket)
    refunded = attempt(refund, found)
    return attempt(reply, ticket, found, refunded)


def attempt(step, *arguments):
    """Begin a step until it ends well. Every attempt is recorded before it acts, its failure too: so they count over restarts."""
    key, failures = None, 0
    while True:
        key = begin(step.__name__, key)["key"]
        try:
            return step(key, *arguments)
        except CannotKnow as error:
            doubt(str(error))
            if new_doubt.is_set():   # and not one that was read from the record, on the way back to where it was
                words.put("waiting")
            DBOS.recv("doubt", timeout_seconds=YEAR)
        except outside.OutsideError as error:
            failures += 1
            if retry.is_final(error) or failures == retry.MOST_FAILURES:
                raise Failed(f"{step.__name__} failed after {retry.times(failures)}; the last answer: {error}") from None
            pause(failures, error)


@DBOS.step(name="begin")
def begin(step, key):
    """Record that a step is about to act, and the key that it acts under: the same for every attempt."""
    return {"step": step, "key": key or os.urandom(16).hex()}


@DBOS.step(name="pause")
def pause(failures, error):
    """Wait before the next attempt: a step, so that nobody waits again who only comes by here on the way back."""
    retry.pause(failures, error)


@DBOS.step(name="doubt")
def doubt(reason):
    """Record that nobody can know now."""
    new_doubt.set()
    return reason


class CannotKnow(Exception):
    """An effect may or may not have happened, and nobody can be asked now."""


class Failed(Exception):
    """A step gave up."""


@DBOS.step(name="triage")
def triage(key, ticket):
    return outside.triage(ticket["text"], conversation.turns(ticket.get("conversation")))


@DBOS.step(name="refund")
def refund(key, found):
    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"], key)}


@DBOS.step(name="reply")
def reply(key, ticket, found, refunded):
    # A step may run again although it acted: DBOS says "at least once". The mail service knows no keys, so it is asked first.
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
