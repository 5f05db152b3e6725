"""The record: what is written down about each run, one file a run."""

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
    run["begun_at"] = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    try:
        save(run, mode="x")
    except FileExistsError:
        return False
    return True


def save(run, mode="w"):
    """Write the run's new state down: all of it, or after a kill nothing of it."""
    with open(_file(run["id"]), mode, encoding="utf-8") as file:
        file.write(_stamped(run))
        file.flush()
        os.fsync(file.fileno())
    _sync_folder()


def _sync_folder():
    folder = os.open(in_home(""), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _file(run_id):
    return in_home(f"{run_id}.json")


def read(run_id):
    """The record of one run. Raises Refused for an unknown one."""
    try:
        with open(_file(run_id), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        raise Refused(f"unknown run {run_id}: `python -m starter runs` lists those that are known") from None
    except ValueError as error:
        raise Unreadable(f"the record of run {run_id} cannot be read ({error}); mend that, or name another LAB_HOME") from None


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
    found = [read(name[:-5]) for name in os.listdir(in_home("")) if name.endswith(".json")]
    return [run for run in sorted(found, key=lambda run: run["begun_at"]) if state in (None, run["state"])]
