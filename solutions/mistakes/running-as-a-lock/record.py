"""The record: what is written down about each run, one row a run."""

import json
from contextlib import nullcontext
from datetime import datetime, timezone

from .exits import Busy, Refused
from .storage import transaction

SCHEMA = ("CREATE TABLE IF NOT EXISTS runs "
          "(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, record TEXT NOT NULL)")


def _stamped(run):
    run["updated_at"] = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    return json.dumps(run)


def create(run_id, task):
    """Write a new run down and return True, or return False where that run is known already."""
    run = {"id": run_id, "task": task, "step": "triage", "results": {}, "effects": {}, "attempts": {},
           "state": "running", "reason": None}
    with transaction() as database:
        database.execute(SCHEMA)
        made = database.execute("INSERT OR IGNORE INTO runs (id, record) VALUES (?, ?)", (run_id, _stamped(run)))
        return made.rowcount == 1


def save(run):
    """Write the run's new state down: all of it, or after a kill nothing of it."""
    with transaction() as database:
        database.execute("UPDATE runs SET record = ? WHERE id = ?", (_stamped(run), run["id"]))


def _select(where="", values=()):
    with transaction("DEFERRED") as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return []
        rows = database.execute(f"SELECT number, record FROM runs {where} ORDER BY number", values).fetchall()
        return [(number, json.loads(text)) for number, text in rows]


def _find(run_id):
    for number, run in _select("WHERE id = ?", (run_id,)):
        return number, run
    raise Refused(f"unknown run {run_id}: `python -m starter runs` lists those that are known")


def read(run_id):
    """The record of one run. Raises Refused for an unknown one."""
    return _find(run_id)[1]


def claim(run_id):
    """Work on a run alone. Raises Busy where another process works on it."""
    run = read(run_id)
    if run["state"] == "running" and run["attempts"]:
        raise Busy(f"another process works on run {run_id}; `python -m starter status {run_id}` shows how far it is")
    return nullcontext()


def every(state=None):
    """The records of all runs, or of those in `state`, oldest first."""
    return [run for _, run in _select() if state in (None, run["state"])]
