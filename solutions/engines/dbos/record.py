"""The record, read from what DBOS keeps of each workflow: its input, its status, and one row for each step that has ended."""

import logging
import os
from contextlib import contextmanager
from datetime import datetime, timezone

from dbos import DBOSClient
from sqlalchemy.exc import SQLAlchemyError

from .exits import Refused, Unreadable
from .storage import in_home

STEPS = ("triage", "refund", "reply")
EFFECTS = ("refund", "reply")
STATES = {"SUCCESS": "done", "ERROR": "failed"}
logging.getLogger("dbos").setLevel(logging.CRITICAL)  # what is wrong is said in one line, and that is ours


def path():
    return in_home("dbos.sqlite3")


def url():
    return f"sqlite:///{path()}"


@contextmanager
def _client():
    """A client of DBOS's database, or None where there is none yet. Raises Unreadable."""
    if not os.path.exists(path()):
        yield None
        return
    try:
        client = DBOSClient(system_database_url=url(), retry_connection_errors=False)
        try:
            yield client
        finally:
            client.destroy()
    except (SQLAlchemyError, ValueError) as error:
        if "no such table" in str(error):   # killed before the tables were made: nobody was told of any run
            raise Refused("unknown run: nothing has been written down in this home yet") from None
        raise Unreadable(f"DBOS's database in LAB_HOME cannot be read ({type(error).__name__}); mend it, or name another LAB_HOME") from None


def find(run_id):
    """The record of one run, None where it is unknown."""
    try:
        with _client() as client:
            found = client.list_workflows(workflow_ids=[run_id]) if client else []
            return _record(client, found[0]) if found else None
    except Refused:
        return None


def read(run_id):
    """The record of one run. Raises Refused for an unknown one."""
    if (run := find(run_id)) is None:
        raise Refused(f"unknown run {run_id}: `python -m starter runs` lists those that are known")
    return run


def every(state=None):
    """The records of all runs, or of those in `state`, oldest first."""
    try:
        with _client() as client:
            found = client.list_workflows() if client else []
            return [run for run in (_record(client, workflow) for workflow in found) if state in (None, run["state"])]
    except Refused:
        return []


def state_after(error, run_id):
    """The state that a run ended in whose workflow gave `error` instead of a result. Raises Unreadable where it did not end: then its database failed."""
    if (state := read(run_id)["state"]) == "running":
        raise Unreadable(f"DBOS's database in LAB_HOME failed while run {run_id} was worked on ({type(error).__name__}); when it is mended, resume the run")
    return state


def _record(client, workflow):
    results, effects, attempts, doubt, ended = {}, {}, {}, None, workflow.updated_at
    for one in client.list_workflow_steps(workflow.workflow_id):
        name, ended = one["function_name"], max(ended, one["completed_at_epoch_ms"] or 0)
        if name == "doubt":
            doubt = one["output"]
        elif name == "begin":
            doubt = None
            step = one["output"]["step"]
            attempts[step] = attempts.get(step, 0) + 1
            if step in EFFECTS:
                effects[step] = {"key": one["output"]["key"], "state": "started"}
        elif name in STEPS and one["error"] is None:
            results[name] = one["output"]
            if name in effects:
                effects[name]["state"] = "done"
    state = STATES.get(workflow.status, "running")
    if state == "running" and doubt:
        state = "waiting"
    if state == "running" and len(results) == len(STEPS):
        # The last step has ended, and the workflow not yet: until then the run is still on that step.
        del results["reply"]
        effects.update({"reply": {**effects["reply"], "state": "started"}} if "reply" in effects else {})
    return {"id": workflow.workflow_id, "task": workflow.input["args"][0],
            "step": next((step for step in STEPS if step not in results), None), "results": results, "effects": effects,
            "attempts": attempts, "state": state,
            "reason": doubt if state == "waiting" else str(workflow.error) if state == "failed" else None,
            "updated_at": datetime.fromtimestamp(ended / 1000, timezone.utc).isoformat(timespec="microseconds")}
