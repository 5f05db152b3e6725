"""One account: its services, its ledger, its faults. Everything that a judge may ask about the outside."""

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from . import model
from .answer import Answer, error
from .faults import Plan
from .mail import Mail
from .model import Model
from .payments import Payments

KIND_OF = {("POST", "/v1/chat/completions"): "model", ("POST", "/v1/refunds"): "refund", ("POST", "/v1/mails"): "mail",
           ("GET", "/v1/refunds"): "refund_lookup", ("GET", "/v1/mails"): "mail_lookup"}


@dataclass
class Request:
    """One whole request and what became of it.

    `number` counts all requests of the account from 1. `kind` is one of faults.KINDS, `malformed` for a body that is
    no JSON, or `unknown` for what is not there. `key` is what
    identifies the effect: the Idempotency-Key of a refund, the message_id of a mail. `client` is the process that
    sent it and `group` its process group, None where the socket does not tell. `tokens` is the size of a prompt. `effect` is what this
    very request did; a refund that was only replayed has none. `nth` says the how many-th it was of what a customer
    should get once: a refund of one order, a mail of one subject to one address; 0 without an effect. `made` is the answer that the service made when it
    acted, None where it did not; `sent` the one that went out. Times are time.monotonic() seconds.
    """

    number: int
    kind: str
    method: str
    path: str
    query: dict
    body: object
    key: str | None
    group: int | None
    received: float
    client: int | None = None
    tokens: int | None = None
    effect: dict | None = None
    nth: int = 0
    made: Answer | None = None
    sent: Answer | None = None
    status: str = "received"   # received, held before, acted, held after, answered, unanswered, dropped
    verdict: str | None = field(default=None, repr=False)  # for one that is or was held: release or drop

    @property
    def acted(self):
        """Whether a service worked on it: it cannot be taken back from then on."""
        return self.made is not None

    @property
    def answered_well(self):
        """Whether an answer went out that its sender can go on with."""
        return self.status == "answered" and self.sent.status < 400 and not isinstance(self.sent.body, str)


@dataclass(frozen=True)
class Event:
    """One line of the ledger. `what` is a status of a request; `at` is time.monotonic() seconds."""

    at: float
    what: str
    request: Request


class Account:
    """What belongs to one bearer key. All methods may be called from any thread.

    `changed` is notified at every event; whoever has news for those who wait here (a process that ended, say)
    notifies it too.
    """

    def __init__(self, key, seed, watch=None):
        self.key = key
        self.changed = threading.Condition(threading.RLock())
        self.requests = []
        self.events = []
        self._watch = watch
        self._plan = Plan()
        self._model = Model(Random(f"{seed} model"))
        self._payments = Payments(Random(f"{seed} payments"))
        self._mail = Mail()
        self._times = Counter()

    # ---- what a judge asks

    @property
    def refunds(self):
        """Every refund made, as {"refund_id", "order_id", "amount_cents"}, in order."""
        return list(self._payments.refunds)

    @property
    def mails(self):
        """Every mail sent, as {"message_id", "to", "subject", "body"}, in order."""
        return list(self._mail.mails)

    def of(self, *kinds):
        """The requests of these kinds, in order."""
        with self.changed:
            return [request for request in self.requests if request.kind in kinds]

    def readings(self):
        """What the model read from tickets, one dict for each call that it worked on, in order."""
        found = []
        for request in self.of("model"):
            if request.made and request.made.status == 200:
                try:
                    found.append(json.loads(request.made.body["choices"][0]["message"]["content"]))
                except ValueError:
                    pass
        return found

    # ---- what a check arranges

    def plan(self, *faults):
        """From now on these faults, and no others, strike; each counts the requests from now."""
        with self.changed:
            self._plan = Plan(faults)

    def held(self):
        """The requests that are held now."""
        with self.changed:
            return [request for request in self.requests if request.status.startswith("held") and not request.verdict]

    def release(self):
        """Let every held request go on."""
        self._decide("release")

    def drop(self, requests=None):
        """Drop held requests (all of them by default): what has not acted never will, what has is never answered."""
        self._decide("drop", requests)

    def _decide(self, verdict, requests=None):
        with self.changed:
            for request in self.held() if requests is None else requests:
                request.verdict = request.verdict or verdict
            self.changed.notify_all()

    def repeat(self, requests):
        """Let requests that another account saw arrive here too, be acted on where they were, and end as they did.

        An account whose seed is the same then says and makes the same.
        """
        with self.changed:
            for request in requests:
                mine, _ = self.receive(request.method, request.path, request.query, request.body, request.kind == "malformed",
                                       request.key, request.group, request.client)
                if request.acted:
                    self.act(mine)
                answered = request.status == "answered"
                self.end(mine, "answered" if answered else "unanswered" if request.acted else "dropped", request.sent if answered else None)

    # ---- what the server calls

    def receive(self, method, path, query, body, malformed, key, group=None, client=None):
        """Write a whole request into the ledger. Returns it, and the fault that strikes it or None."""
        kind = KIND_OF.get((method, path), "unknown")
        if kind == "mail" and isinstance(body, dict) and isinstance(body.get("message_id"), str):
            key = body["message_id"]
        with self.changed:
            request = Request(len(self.requests) + 1, kind, method, path, query, body, key, group, time.monotonic(), client)
            if malformed and kind != "unknown":
                request.kind = "malformed"
            elif kind == "model" and isinstance(body, dict):
                try:
                    request.tokens = model.tokens(body["messages"])
                except (KeyError, TypeError, AttributeError):
                    pass
            self.requests.append(request)
            fault = self._plan.next(request.kind)
            self._note(request, "received")
        return request, fault

    def hold(self, request, when):
        """Wait until somebody decides about the request. Returns whether it may go on."""
        with self.changed:
            self._note(request, f"held {when}")
            self.changed.wait_for(lambda: request.verdict)
            if request.verdict == "drop":
                self._note(request, "unanswered" if when == "after" else "dropped")
            return request.verdict == "release"

    def act(self, request, fault=None):
        """Let the service work on the request. From here on it has happened."""
        with self.changed:
            if request.kind == "model":
                deed = fault.deed if fault else None
                answer = self._model.complete(request.body, garble=deed == "garble", repeat=deed == "repeat")
            elif request.kind == "refund":
                answer = self._payments.refund(request.body, request.key)
            elif request.kind == "mail":
                answer = self._mail.send(request.body)
            elif request.kind == "refund_lookup":
                answer = self._payments.lookup(request.query)
            elif request.kind == "mail_lookup":
                answer = self._mail.lookup(request.query)
            elif request.kind == "malformed":
                answer = error(400, "malformed", "the body is no JSON")
            else:
                answer = error(404, "not_found", f"there is no {request.method} {request.path}")
            request.made, request.effect = answer, answer.effect
            if answer.effect:
                same = ("order_id",) if request.kind == "refund" else ("to", "subject")
                same = (request.kind, *(answer.effect[name] for name in same))
                self._times[same] += 1
                request.nth = self._times[same]
            self._note(request, "acted")

    def end(self, request, status, sent=None):
        """Note how a request ended: `answered` (with what), `unanswered` or `dropped`."""
        with self.changed:
            request.sent = sent
            self._note(request, status)

    def _note(self, request, what):
        request.status = what
        event = Event(time.monotonic(), what, request)
        self.events.append(event)
        if self._watch:
            self._watch(self, event)
        self.changed.notify_all()
