"""A home as it is when all is done."""

import json
import sqlite3


def make(program):
    for folder in (program / ".lab", program / "seed"):
        folder.mkdir()
        database = sqlite3.connect(folder / "flow.sqlite3")
        database.execute("CREATE TABLE runs (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, record TEXT NOT NULL)")
        run = {"id": "seeded", "task": {}, "step": None, "results": {
            "triage": {"order_id": "A-1", "classification": "refund", "amount_cents": 4200, "draft_text": "Done."},
            "refund": {"refund_id": "R-1"}, "reply": {"message_id": "M-1"}},
            "effects": {"refund": {"key": "k1", "state": "done"}, "reply": {"key": "k2", "state": "done"}},
            "attempts": {"triage": 1, "refund": 1, "reply": 1}, "state": "done", "reason": None, "updated_at": "2026-01-01T00:00:00.000000+00:00"}
        database.execute("INSERT INTO runs (id, record) VALUES ('seeded', ?)", (json.dumps(run),))
        database.commit()
        database.close()
