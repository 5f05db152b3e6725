"""The events: all that happened to one program, as dicts that JSON can hold; how they are made, read back, and put into words.

Every event has `at`, in seconds since the program was first started, `lane`, whose it is, and `what` happened. Of a
process (lane `process 1` is the first start, `process 2` the second) there are

    started           `process` (its number), `pid`, `verb`, `arguments`
    ended             `process`, `code` (the exit code, -9 after a SIGKILL), `killed` (by the check), `end` (in words)

and of a request (lane `model`, `payments`, `mail`, or `elsewhere` for a path that no service has), each with `request`
(its number, from 1), `kind` (as in outside.faults), `process` (the number of the one that sent it, null where nobody
knows) and `key` (what identifies the effect)

    received          `method`, `path`, `query`, `body`, `tokens` (of a prompt), `group` (the client's process group)
    held before       it waits, and is not acted on
    acted             `status` and `made` (the answer), `effect` (what the customer would notice, or null), `nth` (2: one
                      more refund of this order, or one more of this mail; 0: no effect)
    held after        it was acted on, and the answer waits
    answered          `status` (the HTTP status that went out), `nonsense` (whether what went out is no JSON)
    unanswered        whatever it did, nobody heard of it
    dropped           it will never be acted on

Where there were more than REQUESTS requests, the middle ones are replaced by one event for each lane: `left out`, with
`requests` and `effects` (how many) and `nth` (the highest of them). A value of over VALUE characters is replaced by a sentence that says so.
"""

import json
from dataclasses import dataclass

from .story import counted, money, process_of, short

REQUESTS = 1000       # of one program, the first and the last ones
VALUE = 8000          # characters of one value of an event
LANES = {"/v1/chat/completions": "model", "/v1/refunds": "payments", "/v1/mails": "mail"}
CODES = {2: "refused", 3: "failed", 4: "waiting", 5: "busy", 6: "unreadable"}  # of the contract


def events_of(program):
    """All that happened, as dicts, in order of time; see the top of this file."""
    if not program.processes:
        return []
    zero = program.processes[0].begun
    number_of = {process: number for number, process in enumerate(program.processes, 1)}
    events = [*_of_processes(number_of), *_of_requests(program, number_of)]
    return [{**event, "at": round(event["at"] - zero, 6)} for event in sorted(events, key=lambda event: event["at"])]


def _of_processes(number_of):
    for process, number in number_of.items():
        shared = {"lane": f"process {number}", "process": number}
        yield {"at": process.begun, "what": "started", **shared, "pid": process.pid,
               "verb": process.arguments[0] if process.arguments else None, "arguments": list(process.arguments)}
        if process.ended:
            yield {"at": process.ended, "what": "ended", **shared, "code": process.code, "killed": process.killed, "end": process.end}


def _of_requests(program, number_of):
    ledger, last, left_out = list(program.outside.events), len(program.outside.requests), {}
    for event in ledger:
        request, lane = event.request, LANES.get(event.request.path, "elsewhere")
        if REQUESTS // 2 < request.number <= last - REQUESTS // 2:
            so_far = left_out.setdefault(lane, {"at": event.at, "lane": lane, "what": "left out", "requests": 0, "effects": 0, "nth": 0})
            so_far["requests"] += event.what == "received"
            so_far["effects"] += event.what == "acted" and request.nth > 0
            so_far["nth"] = max(so_far["nth"], request.nth)
            continue
        yield {"at": event.at, "lane": lane, "what": event.what, "request": request.number, "kind": request.kind,
               "process": number_of.get(process_of(program, request)), "key": _bounded(request.key), **_more(event)}
    yield from left_out.values()


def _more(event):
    request = event.request
    if event.what == "received":
        found = {"method": request.method, "path": request.path, "query": request.query, "body": request.body,
                 "tokens": request.tokens, "group": request.group}
    elif event.what == "acted":
        effect = request.effect and {name: _bounded(value) for name, value in request.effect.items()}
        return {"status": request.made.status, "made": _bounded(request.made.body), "effect": effect, "nth": request.nth}
    elif event.what == "answered":
        found = {"status": request.sent.status, "nonsense": isinstance(request.sent.body, str)}
    else:
        found = {}
    return {name: _bounded(value) for name, value in found.items()}


def _bounded(value):
    try:
        size = len(json.dumps(value, allow_nan=False))
    except (ValueError, RecursionError):
        return "left out: this is nothing that every reader of JSON understands"
    return value if size <= VALUE else f"left out: {size} characters of JSON"


# ---- read back: events become processes and requests


@dataclass(eq=False)
class Start:
    """One process, from its start to its end, in seconds."""

    number: int
    words: str
    at: float
    until: float | None = None
    code: int | None = None
    killed: bool = False
    end: str = "still runs"

    @property
    def name(self):
        return f"process {self.number}"

    @property
    def mark(self):
        """Its end in two or three words; with scissors where it was killed."""
        if self.killed or self.code == -9:
            return "✂ killed (SIGKILL)" if self.killed else "✂ died of SIGKILL"
        if self.code is None or self.code < 0:
            return self.end
        return f"exit {self.code}" + (f": {CODES.get(self.code, 'crash')}" if self.code else "")


@dataclass(eq=False)
class Call:
    """One request, from its arrival to its end, in seconds."""

    number: int
    sender: str
    lane: str
    kind: str
    path: str
    tokens: int | None
    at: float
    until: float | None = None
    held: bool = False
    made: int | None = None     # the status that the service made, None where it did not act
    found: int | None = None    # by a look-up
    effect: dict | None = None
    nth: int = 0
    end: str | None = None      # answered, unanswered, dropped
    status: int | None = None   # that went out
    nonsense: bool = False

    @property
    def deed(self):
        """What was asked for, or what was done."""
        if self.effect:
            what = f"refund {_amount(self.effect)}" if self.kind == "refund" else "mail sent"
            return f"{_ordinal(self.nth)} {what}" if self.nth > 1 else what
        if self.kind == "model":
            return "asked" if self.tokens is None else counted(self.tokens, "token")
        if self.kind == "refund" and self.made == 200:
            return "refund again, no second one"
        if self.kind in ("refund_lookup", "mail_lookup"):
            return "look-up" if self.found is None else f"look-up, {self.found or 'none'} there"
        return {"refund": "refund", "mail": "mail", "malformed": "no JSON"}.get(self.kind, self.path)

    @property
    def went_well(self):
        """Whether its sender got an answer to go on with."""
        return self.end == "answered" and self.status < 400 and not self.nonsense

    @property
    def outcome(self):
        """What became of it."""
        acted = self.made is not None
        if self.end == "answered":
            held = "held, " if self.held else ""
            if not acted or self.made >= 400:
                return f"{held}refused {self.status}"
            if self.status != self.made:
                return f"{held}acted, answered {self.status}"
            return f"{held}acted, answer no JSON" if self.nonsense else f"{held}answered {self.status}"
        if self.end == "unanswered":
            return "acted, unanswered" if acted else "unanswered, not acted on"
        if self.end == "dropped":
            return "dropped, not acted on"
        return "acted, answer held" if acted else "held, not acted on" if self.held else "under way"


@dataclass(eq=False)
class Hidden:
    """Requests to one lane that are not shown."""

    lane: str
    at: float
    requests: int = 0
    effects: int = 0
    nth: int = 0    # the highest of them

    @property
    def deed(self):
        return f"… {self.requests} more"

    @property
    def outcome(self):
        effect = {"payments": "refund", "mail": "mail"}.get(self.lane, "effect")
        return "" if not self.effects else f"{self.effects} {effect}{'s' * (self.effects > 1)}" + (f", up to the {_ordinal(self.nth)}" if self.nth > 1 else "")


def read(events):
    """The Starts, the Calls and what the events leave out (Hidden), each in order of time."""
    starts, calls, more = {}, {}, []
    for event in events:
        what, at = event.get("what"), event.get("at")
        start, call = starts.get(event.get("process")), calls.get(event.get("request"))
        if what == "started":
            starts[event["process"]] = Start(event["process"], " ".join(map(short, event["arguments"])), at)
        elif what == "ended" and start:
            start.until, start.code, start.killed, start.end = at, event["code"], event["killed"], event["end"]
        elif what == "received":
            sender = f"process {event['process']}" if event["process"] else "nobody known"
            calls[event["request"]] = Call(event["request"], sender, event["lane"], event["kind"], event["path"], event["tokens"], at)
        elif what == "left out":
            more.append(Hidden(event["lane"], at, event["requests"], event["effects"], event["nth"]))
        elif call and what in ("held before", "held after"):
            call.held = call.held or what == "held before"
        elif call and what == "acted":
            call.made, call.effect, call.nth = event["status"], event["effect"], event["nth"]
            call.found = _found(event["made"])
        elif call and what in ("answered", "unanswered", "dropped"):
            call.until, call.end = at, what
            call.status, call.nonsense = event.get("status"), event.get("nonsense", False)
    return list(starts.values()), list(calls.values()), more


def _found(made):
    lists = [value for value in made.values() if isinstance(value, list)] if isinstance(made, dict) else []
    return len(lists[0]) if len(lists) == 1 else None


def _amount(effect):
    return money(effect["amount_cents"]) if isinstance(effect.get("amount_cents"), int) else "?"


def _ordinal(number):
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def seconds(at):
    return f"{at:.3f} s" if at < 100 else f"{at:.0f} s"


def sentences(events):
    """The same in words: a list with a sentence for every process and every request, in order of time."""
    starts, calls, more = read(events)
    told = [(start.at, f"{start.name}, {start.words}: from {seconds(start.at)}, {start.end}"
             + (f" at {seconds(start.until)}." if start.until is not None else ".")) for start in starts]
    for call in calls:
        until = f" to {seconds(call.until)}" if call.until is not None else ""
        told.append((call.at, f"request {call.number} of {call.sender} to {call.lane}, {seconds(call.at)}{until}: "
                     + "; ".join(filter(None, (call.deed, call.outcome))) + "."))
    told += [(some.at, f"{some.requests} more requests to {some.lane}" + (f", {some.outcome}." if some.outcome else "."))
             for some in more]
    return [text for _, text in sorted(told, key=lambda entry: entry[0])]
