"""One SQLite file in LAB_HOME, and what has to be done to it so that a commit survives a power cut."""

import os
import sqlite3
from contextlib import contextmanager

from .exits import Unreadable


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


@contextmanager
def transaction(kind="IMMEDIATE"):
    """One transaction: what is done in it is on disk when it ends, or after a kill nothing of it. Raises Unreadable.

    To read, a transaction of the kind `DEFERRED` waits for no other process.
    """
    try:
        database = sqlite3.connect(in_home("flow.sqlite3"), timeout=10, isolation_level=None)
        try:
            database.execute("PRAGMA synchronous = OFF")
            database.execute(f"BEGIN {kind}")
            yield database
            database.execute("COMMIT")
        finally:
            database.close()  # without a COMMIT this undoes it all
    except (sqlite3.Error, OSError, ValueError) as error:
        raise Unreadable(f"the record in {os.environ.get('LAB_HOME', '.lab')} cannot be read or written ({error}); "
                         "mend that, or name another LAB_HOME") from None
