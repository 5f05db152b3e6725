"""The record, read from the latest checkpoint that LangGraph keeps of each run; a run is a thread."""

import os
import sqlite3
from contextlib import contextmanager

from langgraph.checkpoint.sqlite import SqliteSaver

from .exits import Refused, Unreadable
from .storage import in_home

STEPS = ("triage", "refund", "reply")


def of(run_id):
    """The config that names a run to LangGraph."""
    return {"configurable": {"thread_id": run_id}}


@contextmanager
def checkpoints():
    """LangGraph's store of checkpoints. Raises Unreadable."""
    try:
        with SqliteSaver.from_conn_string(in_home("langgraph.sqlite3")) as saver:
            saver.conn.execute("PRAGMA busy_timeout = 10000")
            yield saver
    except sqlite3.Error as error:
        raise Unreadable(f"LangGraph's checkpoints in LAB_HOME cannot be read or written ({error}); mend that, or name another LAB_HOME") from None


def find(saver, run_id):
    """The record of one run, None where it is unknown."""
    if not os.path.getsize(in_home("langgraph.sqlite3")):
        return None   # nothing was ever written; to look must not write either
    latest = saver.get_tuple(of(run_id))
    return _record(latest) if latest else None


def read(run_id):
    """The record of one run. Raises Refused for an unknown one."""
    with checkpoints() as saver:
        run = find(saver, run_id)
    if run is None:
        raise Refused(f"unknown run {run_id}: `python -m starter runs` lists those that are known")
    return run


def every(state=None):
    """The records of all runs, or of those in `state`, oldest first."""
    with checkpoints() as saver:
        if not os.path.getsize(in_home("langgraph.sqlite3")):
            return []
        # Newest first is how it lists checkpoints, of all threads: the last one of each thread that comes by is its first.
        ids = list(dict.fromkeys(one.config["configurable"]["thread_id"] for one in reversed(list(saver.list(None)))))
        return [run for run in (find(saver, run_id) for run_id in ids) if state in (None, run["state"])]


def _record(latest):
    values = latest.checkpoint["channel_values"]
    results, doubt = values.get("results", {}), next((value for _, channel, value in latest.pending_writes if channel == "__interrupt__"), None)
    state = "done" if set(results) == set(STEPS) else "failed" if values.get("gave_up") else "waiting" if doubt else "running"
    return {"id": latest.config["configurable"]["thread_id"], "task": values["task"],
            "step": next((step for step in STEPS if step not in results), None), "results": results,
            "effects": {step: {"key": key, "state": "done" if step in results else "started"} for step, key in values.get("keys", {}).items()},
            "attempts": values.get("attempts", {}), "state": state,
            "reason": doubt[0].value if state == "waiting" else values.get("gave_up"), "updated_at": latest.checkpoint["ts"]}
