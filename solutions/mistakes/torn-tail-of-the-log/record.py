"""The record: what is written down about each run, one line for each change."""

import fcntl
import json
import os
from datetime import datetime, timezone

from .exits import Busy, Refused, Unreadable
from .storage import in_home


def _stamped(run):
    run["updated_at"] = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    return json.dumps(run)


def create(run_id, task):
    """Write a new run down and return True, or return False where that run is known already."""
    run = {"id": run_id, "task": task, "step": "triage", "results": {}, "effects": {}, "attempts": {},
           "state": "running", "reason": None}
    with open(in_home("lock"), "ab") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if run_id in _runs():
            return False
        save(run)
        return True


def save(run):
    """Write the run's new state down: all of it, or after a kill nothing of it."""
    with open(in_home("log.jsonl"), "a", encoding="utf-8") as file:
        file.write(_stamped(run) + "\n")
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(in_home(""), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _runs():
    """The last line of each run, by the run's id, in the order of their first lines."""
    found = {}
    try:
        with open(in_home("log.jsonl"), encoding="utf-8") as file:
            for line in file:
                run = json.loads(line)
                found[run["id"]] = run
    except FileNotFoundError:
        pass
    except ValueError as error:
        raise Unreadable(f"the log cannot be read ({error}); mend that, or name another LAB_HOME") from None
    return found


def read(run_id):
    """The record of one run. Raises Refused for an unknown one."""
    if run_id not in (found := _runs()):
        raise Refused(f"unknown run {run_id}: `python -m starter runs` lists those that are known")
    return found[run_id]


def claim(run_id):
    """Work on a run alone until the returned file is closed. Raises Busy where another process works on it.

    The kernel drops it when its holder dies, however it dies:
    there is nothing to clean up, and nothing that a dead process leaves behind can stand in the way.
    """
    read(run_id)
    locks = open(in_home(f"{run_id}.lock"), "ab")
    try:
        fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        locks.close()
        raise Busy(f"another process works on run {run_id}; `python -m starter status {run_id}` shows how far it is") from None
    return locks


def every(state=None):
    """The records of all runs, or of those in `state`, oldest first."""
    return [run for run in _runs().values() if state in (None, run["state"])]
