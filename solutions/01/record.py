"""The record: what is written down about each run, in one SQLite file in LAB_HOME."""

import json
import os
import sqlite3
from datetime import datetime, timezone

from .exits import Refused, Unreadable

FIRST_STEP = "triage"


def in_home(name):
    """The path of a file in LAB_HOME. The folder is made on first use, each new directory entry synced."""
    home = os.path.abspath(os.environ.get("LAB_HOME", ".lab"))
    missing, folder = [], home
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        os.makedirs(folder, exist_ok=True)
        parent = os.open(os.path.dirname(folder), os.O_RDONLY)
        os.fsync(parent)
        os.close(parent)
    return os.path.join(home, name)


def _query(statement, values=()):
    """Run one statement as one transaction, on disk when this returns. Returns the rows."""
    try:
        database = sqlite3.connect(in_home("runs.sqlite3"), timeout=10, isolation_level=None)
        try:
            # A commit ends with the deletion of the journal. The default, FULL, does not sync that deletion:
            # after a power cut the journal may be back, and the commit is undone. EXTRA syncs the directory too.
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("CREATE TABLE IF NOT EXISTS runs "
                             "(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, record TEXT NOT NULL)")
            return database.execute(statement, values).fetchall()
        finally:
            database.close()
    except (sqlite3.Error, OSError) as error:
        raise Unreadable(f"the record in {os.environ.get('LAB_HOME', '.lab')} cannot be read ({error}); "
                         "put it back from a copy, or name another LAB_HOME") from None


def _parse(text):
    try:
        return json.loads(text)
    except ValueError:
        raise Unreadable("a run's record is no JSON; put runs.sqlite3 back from a copy") from None


def _stamp(run):
    run["updated_at"] = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    return json.dumps(run)


def create(run_id, task):
    """Write a new run down and return True, or return False where that run is known already."""
    run = {"id": run_id, "task": task, "step": FIRST_STEP, "results": {}, "effects": {}, "attempts": {},
           "state": "running", "reason": None}
    return bool(_query("INSERT INTO runs (id, record) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING number",
                       (run_id, _stamp(run))))


def read(run_id):
    """The record of one run. Raises Refused for an unknown one."""
    rows = _query("SELECT record FROM runs WHERE id = ?", (run_id,))
    if not rows:
        raise Refused(f"unknown run {run_id}: `python -m starter runs` lists those that are known")
    return _parse(rows[0][0])


def save(run):
    """Write the run's new state down: all of it, or after a kill nothing of it."""
    _query("UPDATE runs SET record = ? WHERE id = ?", (_stamp(run), run["id"]))


def every(state=None):
    """The records of all runs, or of those in `state`, oldest first."""
    records = [_parse(text) for text, in _query("SELECT record FROM runs ORDER BY number")]
    return [record for record in records if state in (None, record["state"])]
