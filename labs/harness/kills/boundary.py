"""Death at a boundary: the outside holds a request, before or after it acts, and the program is killed meanwhile.

Nothing in the program can dodge it, it needs nothing of the system but SIGKILL, and it hits the same place every time.
"""

from ..outside import Fault

BOUNDARIES = [(kind, when) for kind in ("model", "refund", "mail") for when in ("before", "after")]
IDS = [f"{kind}-{when}" for kind, when in BOUNDARIES]


def killed_at(program, kind, when, begin, nth=1):
    """Kill the process that `begin()` starts while its `nth` request of `kind` is held, `before` or `after` it acts.

    Returns the Process and the Request. Raises ProgramFault where the process ends without getting there.
    """
    process, request = held_at(program, kind, when, begin, nth)
    program.kill(process)
    program.outside.plan()
    return process, request


def held_at(program, kind, when, begin, nth=1):
    """Start a process with `begin()` and wait until its `nth` request of `kind` is held. Returns both."""
    program.outside.plan(Fault(kind, f"hold_{when}", nth))
    process = begin()
    which = "a request" if kind == "any" else f"a {kind} request" if nth == 1 else f"{nth} {kind} requests"
    return process, program.until_held(process, f"send {which}")
