"""One SQLite file in LAB_HOME, and what has to be done to it so that a commit survives a power cut."""

import os
import sqlite3
from contextlib import contextmanager

from .exits import Unreadable


def in_home(name):
    """The path of a file in LAB_HOME. The folder is made on first use, each new directory entry synced."""
    home = os.path.abspath(os.environ.get("LAB_HOME", ".lab"))
    if not os.path.isdir(home):
        _make(home)
    return os.path.join(home, name)


def _make(folder):
    above = os.path.dirname(folder)
    if not os.path.isdir(above):
        _make(above)
    os.makedirs(folder, exist_ok=True)
    entries = os.open(above, os.O_RDONLY)
    os.fsync(entries)
    os.close(entries)


@contextmanager
def transaction(kind="IMMEDIATE"):
    """One transaction: what is done in it is on disk when it ends, or after a kill nothing of it. Raises Unreadable.

    To read, a transaction of the kind `DEFERRED` waits for no other process.
    """
    try:
        database = sqlite3.connect(in_home("flow.sqlite3"), timeout=10, isolation_level=None)
        try:
            # A commit ends with the deletion of the journal. The default, FULL, does not sync that deletion:
            # after a power cut the journal may be back, and the commit is undone. EXTRA syncs the directory too.
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute(f"BEGIN {kind}")
            yield database
            database.execute("COMMIT")
        finally:
            database.close()  # without a COMMIT this undoes it all
    except (sqlite3.Error, OSError, ValueError) as error:
        raise Unreadable(f"the record in {os.environ.get('LAB_HOME', '.lab')} cannot be read or written ({error}); "
                         "mend that, or name another LAB_HOME") from None
