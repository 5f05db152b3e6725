"""One batch on many machines: `grader grade … --engine dbos` and any number of `grader worker` share a queue in PostgreSQL.

They share the report's folder too, and the version of the kit. A job is one submission, and what comes of it is its result file.
"""

import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from grader.results import file_name
from labs.command.refused import Refused

LEASE = 15.0   # seconds after which a worker that was not heard of counts as dead
POLL = 1.0     # seconds between two looks at the queue


class Batch(Protocol):
    """The submissions that one report is made of, as an engine sees them."""

    id: str             # the same for every process that works on this report; of letters that PostgreSQL can keep
    report: Path        # the report's folder, by a path that is right on every machine
    version: str        # of all that judges: hash of the suite, version of the grader
    names: list[str]    # the submissions still to be graded

    def grade(self, name: str, worker: str, lease: Callable[[], AbstractContextManager]) -> None:
        """Grade one and write its result, within `with lease():` and nowhere else; that raises LeaseLost where the result is another worker's
        to write. May run in several threads and processes at once, for the same name too. Any Exception: the grader failed."""

    def is_graded(self, name: str) -> bool:
        """Whether its result is there, of this submission, these options and this version."""

    def stop(self) -> None:
        """Every grade() in this process, running or begun later, raises soon. Harmless where none runs."""


def grade_on_queue(batch: Batch, database: str, jobs: int, progress: Callable[[str], None], *, lease=LEASE, poll=POLL, say=None):
    """Put the submissions of `batch` on the queue and work there too, `jobs` at once, until all are graded.

    Calls `progress(name)` as each is done, and `say(line)` with what else is worth knowing (default: stderr). Returns [(name, why)] of those that
    could not be graded. Raises Refused where there is no queue. KeyboardInterrupt passes, when the jobs begun here are back in the queue.
    """
    Database, Worker = _parts()
    queue, failed = f"grade-{batch.id}", []
    waiting = {f"{batch.id}/{file_name(name)}": name for name in batch.names}
    with Worker(Database(database), batch.version, jobs, lambda report: batch, lease, poll, say or _say) as worker:
        worker.take(queue)
        worker.enqueue(queue, {job: (batch.report, name) for job, name in waiting.items()})
        unseen = {}
        while waiting:
            worker.changed.clear()
            worker.check()
            for job, (status, why) in worker.ended(queue, waiting).items():
                name = waiting[job]
                if not batch.is_graded(name):
                    if status == "SUCCESS":
                        # A shared file system may show it later. One that never does is not shared.
                        if time.monotonic() - unseen.setdefault(job, time.monotonic()) < lease:
                            continue
                        why = f"another worker has graded it, but there is no result in {batch.report}: do all workers share that folder?"
                    failed.append((name, why or f"its job was {status.lower()} in the database"))
                del waiting[job]
                progress(name)
            if waiting:
                worker.changed.wait(poll)
    return failed


def work(database: str, jobs: int, version: str, open_batch: Callable[[Path], Batch], *, until_empty=False, lease=LEASE, poll=POLL, say=None) -> int:
    """Take jobs of any batch of this version, `jobs` at once, until Ctrl-C or SIGTERM, or with `until_empty` until there are none left,
    neither waiting nor with another worker. Returns an exit code. Raises Refused. For the main thread."""
    Database, Worker = _parts()
    ended, say = threading.Event(), say or _say
    before = {number: signal.signal(number, lambda *_: _end(ended)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Worker(Database(database), version, jobs, open_batch, lease, poll, say) as worker:
            say(f"{worker.executor} takes jobs for version {version} from {worker.database.name}; Ctrl-C ends it, and loses nothing")
            worker.graded = lambda name: say(f"{name}: graded")
            told = set()
            while not ended.is_set():
                worker.check()
                if worker.look(told) and until_empty:
                    break
                ended.wait(poll)
        say("ended")
        return 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(ended):
    if ended.is_set():   # the second time: at once, whatever it leaves behind
        raise KeyboardInterrupt
    ended.set()


def _parts():
    try:
        from .postgres import Database
        from .worker import Worker
    except ImportError as error:
        raise Refused(f"--engine dbos needs DBOS and psycopg ({error}): pip install 'killproof[dbos]'") from None
    return Database, Worker


def _say(line):
    print(line, file=sys.stderr, flush=True)
