"""What a kill of notebook 07's agent makes somebody pay twice: counted by what the model service and the payment service saw."""

import json
from dataclasses import dataclass

from programs import killed, running   # before labs: it is what makes sure that this kit's own is found

from labs.harness.outside import Fault


@dataclass(frozen=True)
class Twice:
    """What was had twice for a run that was killed: tokens charged in vain, refunds of an order that had one. `refused`: it did not end well."""

    tokens: int
    refunds: int
    refused: bool


def killed_after(agent, rule, calls, *keyed):
    """Kill a run after each of these calls (1 is the first), and start it again. Returns the Twice of each."""
    return _killed(agent, rule, keyed, [(call, Fault("any", "hold_before", nth=call + 1)) for call in calls])


def killed_in(agent, rule, calls, *keyed):
    """Kill a run in each of these calls, once the outside has acted, and start it again. Returns the Twice of each."""
    return _killed(agent, rule, keyed, [(call, Fault("any", "hold_after", nth=call)) for call in calls])


def killed_often(agent, rule, call, times):
    """Kill a run before this call, again and again, and let it end. Returns the tokens that the model service charged, and those in its record."""
    with _checkpointing(agent, rule) as one:
        done = 0
        for _ in range(times):
            killed(one, "run", fault=Fault("any", "hold_before", nth=call - done))
            done = _record(one, "run").get("call", 0)
        one.program.ask("run")
        return _charged(one.outside.requests), _record(one, "run")["spent"]


def fates(one, again):
    """What becomes of each order in the process that `again()` runs: `read`, `asked`, `done` or `twice`, in the order in which they were first asked for."""
    before = len(one.outside.requests)
    again()
    found = {}
    for request in one.outside.of("refund"):
        later = request.number > before
        word = "read" if not later else "asked" if request.effect is None else "done" if request.nth == 1 else "twice"
        found[request.body["order_id"]] = word
    return list(found.values())


def _killed(agent, rule, keyed, places):
    found = []
    with _checkpointing(agent, rule) as one:
        for call, fault in places:
            run, before = f"run-{call}", len(one.outside.requests)
            killed(one, run, *keyed, fault=fault)
            process = one.program.ask(run, *keyed)
            requests = one.outside.requests[before:]
            refunds = [request.body["order_id"] for request in requests if request.kind == "refund" and request.effect]
            # What the record counts is what led to the messages in it; whatever else was charged, was charged in vain.
            in_vain = _charged(requests) - _record(one, run).get("spent", 0)
            found.append(Twice(in_vain, len(refunds) - len(set(refunds)), process.code != 0))
    return found


def _checkpointing(agent, rule):
    return running(agent, policy=f"def is_due(kind, last):\n    return {rule}\n")


def _charged(requests):
    return sum(request.made.body["usage"]["total_tokens"] for request in requests if request.kind == "model" and request.acted)


def _record(one, run):
    path = one.program.home / run
    return json.loads(path.read_text()) if path.exists() else {}
