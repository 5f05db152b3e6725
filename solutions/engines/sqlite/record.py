"""The record: one row for each run, and one for each thing that was written down about it, in order. An engine in two functions."""

import fcntl
import json
from datetime import datetime, timezone

from .exits import Busy, Refused
from .storage import in_home, transaction

STEPS = ("triage", "refund", "reply")
EFFECTS = ("refund", "reply")
SCHEMA = ("CREATE TABLE IF NOT EXISTS runs (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, task TEXT NOT NULL, at TEXT NOT NULL)",
          "CREATE TABLE IF NOT EXISTS outcomes (run TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, outcome TEXT NOT NULL, at TEXT NOT NULL, "
          "PRIMARY KEY (run, number))")


def _now():
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def create(run_id, task):
    """Write a new run down, unless it is known already."""
    with transaction() as database:
        for table in SCHEMA:
            database.execute(table)
        database.execute("INSERT OR IGNORE INTO runs (id, task, at) VALUES (?, ?, ?)", (run_id, json.dumps(task), _now()))


class Engine:
    """Runs the steps of one run: each that has an outcome is answered with it, each other one is done, and its outcome written down."""

    def __init__(self, run_id):
        self.run_id, self.number = run_id, 0
        with transaction("DEFERRED") as database:
            rows = database.execute("SELECT name, outcome FROM outcomes WHERE run = ? ORDER BY number", (run_id,)).fetchall()
        self.recorded = [(name, json.loads(outcome)) for name, outcome in rows]

    def step(self, name, function, *arguments):
        """The outcome of `function(*arguments)`, a JSON value; of the run's n-th call of this it is only ever asked for once."""
        if self.number < len(self.recorded):
            recorded, outcome = self.recorded[self.number]
            if recorded != name:
                raise Refused(f"run {self.run_id} was begun by another version of this flow: its next step was {recorded}, now it is {name}")
        else:
            outcome = function(*arguments)
            with transaction() as database:
                database.execute("INSERT INTO outcomes VALUES (?, ?, ?, ?, ?)", (self.run_id, self.number, name, json.dumps(outcome), _now()))
        self.number += 1
        return outcome


def _select(where="", values=()):
    with transaction("DEFERRED") as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return []
        return [(number, _record(run_id, task, at, database.execute(
            "SELECT name, outcome, at FROM outcomes WHERE run = ? ORDER BY number", (run_id,)).fetchall()))
            for number, run_id, task, at in database.execute(f"SELECT number, id, task, at FROM runs {where} ORDER BY number", values).fetchall()]


def _record(run_id, task, at, rows):
    run = {"id": run_id, "task": json.loads(task), "step": "triage", "results": {}, "effects": {}, "attempts": {}, "state": "running",
           "reason": None, "updated_at": rows[-1][2] if rows else at}
    for name, text, _ in rows:
        outcome = json.loads(text)
        run["state"], run["reason"] = "running", None
        if name == "begin":
            step = outcome["step"]
            run["attempts"][step] = run["attempts"].get(step, 0) + 1
            if step in EFFECTS:
                run["effects"][step] = {"key": outcome["key"], "state": "started"}
        elif "result" in outcome:
            run["results"][name] = outcome["result"]
            if name in run["effects"]:
                run["effects"][name]["state"] = "done"
        elif "doubt" in outcome:
            run["state"], run["reason"] = "waiting", outcome["doubt"]
        elif "gave_up" in outcome:
            run["state"], run["reason"] = "failed", outcome["gave_up"]
    run["step"] = next((step for step in STEPS if step not in run["results"]), None)
    return run if run["step"] else {**run, "state": "done"}


def _find(run_id):
    for number, run in _select("WHERE id = ?", (run_id,)):
        return number, run
    raise Refused(f"unknown run {run_id}: `python -m starter runs` lists those that are known")


def read(run_id):
    """The record of one run. Raises Refused for an unknown one."""
    return _find(run_id)[1]


def every(state=None):
    """The records of all runs, or of those in `state`, oldest first."""
    return [run for _, run in _select() if state in (None, run["state"])]


def claim(run_id):
    """Work on a run alone until the returned file is closed. Raises Busy. The kernel drops the lock when its holder dies."""
    number, _ = _find(run_id)
    locks = open(in_home("locks"), "ab")
    try:
        fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
    except (BlockingIOError, PermissionError):
        locks.close()
        raise Busy(f"another process works on run {run_id}; `python -m starter status {run_id}` shows how far it is") from None
    return locks
