"""What goes wrong outside: a plan per account, as data."""

from dataclasses import dataclass

#: The kinds of request. `any` in a fault stands for every request, also one that no service knows.
KINDS = ("model", "refund", "mail", "refund_lookup", "mail_lookup")

DEEDS = (
    "hold_before",   # keep the request waiting, not acted on, until it is released or dropped
    "hold_after",    # act, then keep the answer back until it is released or dropped
    "answer",        # do not act; answer with `status` (and `retry_after`)
    "close",         # act, then close the connection without an answer
    "hang",          # act, and never answer
    "fail_after",    # act, then answer 500, or another status that says nothing of it
    "garbage",       # act, then answer with a text that is no JSON
    "garble",        # model only: a proper answer whose content is no JSON
    "repeat",        # model only: the same answer as the last time
)

#: The error code that goes with a status which a fault answers; `out_of_order` with any other.
CODES = {402: "card_declined", 403: "forbidden", 409: "conflict", 422: "not_refundable", 429: "too_many_requests",
         503: "unavailable"}


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    It strikes from the `nth` request of `kind` (1 is the first) that arrives after it was planned, `times` times;
    None is for ever. `status` belongs to the deeds `answer` (None: 503) and `fail_after` (None: 500), `retry_after` (seconds) to `answer`.
    """

    kind: str
    deed: str
    nth: int = 1
    times: int | None = 1
    status: int | None = None
    retry_after: int | None = None

    def __post_init__(self):
        if self.kind not in (*KINDS, "any"):
            raise ValueError(f"no kind of request is called {self.kind!r}; there are {', '.join(KINDS)} and any")
        if self.deed not in DEEDS:
            raise ValueError(f"no fault is called {self.deed!r}; there are {', '.join(DEEDS)}")

    def strikes(self, count):
        """Whether it strikes the `count`-th request of its kind."""
        return count >= self.nth and (self.times is None or count < self.nth + self.times)


class Plan:
    """The faults of one account, each with its own count of the requests that it has seen."""

    def __init__(self, faults=()):
        self._faults = [[fault, 0] for fault in faults]

    def next(self, kind):
        """The fault that strikes this request of `kind`, or None. Every call counts as one request."""
        struck = None
        for entry in self._faults:
            fault = entry[0]
            if fault.kind in (kind, "any"):
                entry[1] += 1
                if struck is None and fault.strikes(entry[1]):
                    struck = fault
        return struck
