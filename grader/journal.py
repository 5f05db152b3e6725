"""The batch's journal: an SQLite file in the report's folder, in the pattern that the labs teach.

A submission is recorded as started before anything is done about it, and as done when its result is on the disk. One process at
a time writes to a journal, the one that began or goes on with the batch: it holds a lock that the kernel drops with it. Whether a
submission has been graded is not said here but by its result, which is there whole or not at all.
"""

import fcntl
import json
import os
import sqlite3
import threading
from contextlib import contextmanager
from datetime import UTC, datetime

_TABLES = """
CREATE TABLE IF NOT EXISTS batch (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS submissions (name TEXT PRIMARY KEY, state TEXT NOT NULL, begun INTEGER NOT NULL DEFAULT 0,
  worker TEXT, updated_at TEXT NOT NULL);
"""


class Busy(Exception):
    """Another live process works on this journal."""


class Journal:
    """The journal in the file `path`. Usable from any thread."""

    def __init__(self, path):
        self.path, self._lock = path, threading.Lock()
        self._connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=DELETE")
        self._connection.execute("PRAGMA synchronous=EXTRA")
        self._connection.executescript(_TABLES)

    def close(self):
        self._connection.close()

    def about(self):
        """What was recorded of the batch, a dict; empty for a new one."""
        return {name: json.loads(value) for name, value in self._do("SELECT name, value FROM batch")}

    def set_about(self, **values):
        with self._transaction():
            for name, value in values.items():
                self._connection.execute("INSERT OR REPLACE INTO batch VALUES (?, ?)", (name, json.dumps(value)))

    def submissions(self):
        """{name: (state, how often it was begun)}; states are started and done."""
        return {name: (state, begun) for name, state, begun in self._do("SELECT name, state, begun FROM submissions")}

    def start(self, name, worker):
        """Record that a submission is about to be graded."""
        self._do("INSERT INTO submissions VALUES (?, 'started', 1, ?, ?) ON CONFLICT (name) DO UPDATE SET state = 'started', "
                 "begun = begun + 1, worker = excluded.worker, updated_at = excluded.updated_at", name, worker, _now())

    def done(self, name):
        """Record that its result is on the disk."""
        self._do("UPDATE submissions SET state = 'done', updated_at = ? WHERE name = ?", _now(), name)

    def _do(self, statement, *values):
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self):
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise


def _now():
    return datetime.now(UTC).isoformat()


@contextmanager
def held(path):
    """Hold the lock in the file `path`, which the kernel drops with us. Raises Busy."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy from None
        yield
    finally:
        os.close(descriptor)
