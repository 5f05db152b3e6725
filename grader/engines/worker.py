"""One process at the queue: it takes jobs through DBOS, says that it lives, and gives back the jobs of those that do not.

DBOS (3.4) keeps the jobs, claims each for one worker, and hands a worker only those of its own version. It leaves open: what is to
happen with the jobs of a worker that died (they stay PENDING; its own answer is a paid service), how many jobs this very process
takes at once (a queue has one number for all), and whether a worker that has been replaced may still write. That is done here.
"""

import json
import os
import secrets
import socket
import threading
import time
from pathlib import Path

import psycopg
from dbos import DBOS, DBOSPortableJSONSerializer, SetWorkflowID
from dbos._context import get_local_dbos_context
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from labs.command.refused import Refused
from labs.harness.story import counted

from .postgres import GRADE, SCHEMA, LeaseLost, first_line

ATTEMPTS = 3     # of a job, over all workers
ACTIVE = ("ENQUEUED", "PENDING")
GONE = ("GONE", None, "a `grader grade` of another version has taken this batch over")
PATIENCE = 60    # seconds that a database may be away


class Worker:
    """A context manager. Within it jobs of `version` on the queue `self.queue` are graded, at most `jobs` at once.

    `open_batch(path)` is the Batch of a report's folder. `timeout`: seconds after which a silent worker counts as dead. `poll`: seconds
    between two looks at the queue. `say(line)` is told of what a person at the terminal should know. Raises Refused.
    """

    def __init__(self, database, version, jobs, open_batch, timeout, poll, say):
        self.database, self.version, self.jobs, self.open_batch = database, version, jobs, open_batch
        self.timeout, self.poll, self.say = timeout, poll, say
        # Another one for each process that ever was: of two with the same, each would go on with the other's jobs.
        self.executor = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.queue = None
        self.graded = lambda name: None      # called as a job of this worker ends well
        self.changed = threading.Event()     # a job ended, or something is wrong
        self.stopping = threading.Event()
        self._open, self._running, self._lock = set(), set(), threading.Condition()
        self._silent_since = self._refusal = None
        self._heart = threading.Thread(target=self._live, daemon=True)

    def __enter__(self):
        self.database.prepare()
        self._dbos = dbos = DBOS(config={
            "name": SCHEMA, "system_database_url": self.database.url, "dbos_system_schema": SCHEMA, "sys_db_pool_size": self.jobs + 4,
            "application_version": self.version, "executor_id": self.executor, "log_level": "CRITICAL",
            # Not pickle, its default: who may write to the database may not therefore run code here.
            "serializer": DBOSPortableJSONSerializer()})
        try:
            self._workflow = DBOS.workflow(name=GRADE, max_recovery_attempts=None)(lambda job: self._grade(*json.loads(job)))
            DBOS.listen_queues([])
            self.database.beat(self.executor, self.version)
            DBOS.launch()
            queue_of = dbos._sys_db.get_queue
            dbos._sys_db.get_queue = lambda name, **options: self._mine(queue_of(name, **options))
        except (SQLAlchemyError, psycopg.Error) as error:
            DBOS.destroy(destroy_registry=True)
            raise Refused(f"no queue at {self.database.name}: {first_line(getattr(error, 'orig', None) or error)}") from None
        except BaseException:
            DBOS.destroy(destroy_registry=True)
            raise
        self._heart.start()
        return self

    def _mine(self, queue):
        """How many jobs at once is this process's own affair: in the database every queue says 0."""
        if queue and queue.name == self.queue:
            # DBOS takes off what runs, and would not know of what it has claimed but whose thread has not come that far.
            queue._worker_concurrency = self.jobs - len(self.database.held(self.executor) - set(self._dbos._active_workflows_set.activeList()))
        return queue

    def take(self, queue):
        """Take jobs of this queue from now on, and of no other."""
        DBOS.register_queue(queue, worker_concurrency=0, polling_interval_sec=self.poll, on_conflict="always_update")
        self.queue = queue
        self._dbos._listening_queues = [queue]

    def enqueue(self, queue, jobs):
        """Put jobs, {id: (report, name)}, on a queue; those that are there already, of this version, are left as they are."""
        known = self.database.states(queue)
        # What ended in an earlier batch, or was left there by another version, is begun anew. Whoever still has it has lost it with that.
        DBOS.delete_workflows([job for job, (status, version, _) in known.items()
                               if version != self.version or (job in jobs and status not in ACTIVE)])
        for job, (report, name) in jobs.items():
            with SetWorkflowID(job):
                DBOS.enqueue_workflow(queue, self._workflow, json.dumps([str(report), name]))   # escaped: any name that a file can have

    def ended(self, queue, jobs):
        """{job: (status, what went wrong or None)} of those of `jobs` that nobody will work on any more; none while the database is away."""
        try:
            known = self.database.states(queue)
        except psycopg.OperationalError:
            return {}
        found = {job: known[job] if job in known and known[job][1] == self.version else GONE for job in jobs}
        return {job: (status, why) for job, (status, _, why) in found.items() if status not in ACTIVE}

    def look(self, told):
        """Turn to the oldest batch that has jobs for this version once the present one has none. Returns whether there are none anywhere.
        Says once for each other version (those in `told`) that its jobs are not for this worker."""
        try:
            waiting = self.database.waiting()
            ours = [queue for version, queue, _ in waiting if version == self.version]
            if ours and self.queue not in ours and not self._running:
                self.take(ours[0])
            empty = not ours and not self.database.at_work(self.version)
        except (psycopg.OperationalError, OperationalError):
            return False
        for version, _, count in waiting:
            if version != self.version and version not in told:
                told.add(version)
                self.say(f"{counted(count, 'job')} wait{'s' if count == 1 else ''} for version {version}, and this worker is of {self.version}: it leaves them alone; "
                         "install the kit there that `grader grade` was started with")
        return empty

    def __exit__(self, *_):
        """Take no more jobs, and give back those that are not done. Ends when the last of them has ended."""
        self.stopping.set()
        self._heart.join()
        self._dbos._sys_db._retry_connection_errors = False
        DBOS.destroy(destroy_registry=True)
        try:
            self.database.hand_back(self.executor, self.database.held(self.executor))
            self.database.leave(self.executor)
        except psycopg.OperationalError:
            self.say(f"{self.database.name} does not answer; the jobs begun here go back to the queue {self.timeout:g} s after it does")
        for batch in list(self._open):
            batch.stop()
        with self._lock:
            self._lock.wait_for(lambda: not self._running)

    def check(self):
        """Raises Refused where this worker cannot go on."""
        if self._refusal:
            raise self._refusal
        if self._silent_since and time.monotonic() - self._silent_since > PATIENCE:
            raise Refused(f"{self.database.name} has not answered for {PATIENCE} s; nothing is lost, the same command goes on when it does")

    # ---- the job

    def _grade(self, report, name):
        job, token = DBOS.workflow_id, get_local_dbos_context().owner_xid
        with self._lock:
            self._running.add((job, token))
        try:
            self._try(job, token, Path(report), name)
        finally:
            with self._lock:
                self._running.discard((job, token))
                self._lock.notify_all()
            self.changed.set()

    def _try(self, job, token, report, name):
        attempt = self.database.attempt(job, token, self.stopping)
        if attempt > ATTEMPTS:
            raise RuntimeError(f"begun {ATTEMPTS} times; the last worker that had it died")
        batch = self._batch(report)
        try:
            if not batch.is_graded(name):
                batch.grade(name, self.executor, lambda: self.database.lease(job, token, self.stopping))
            if not batch.is_graded(name):
                raise RuntimeError("the grader ended without a result")
            self.graded(name)
        except LeaseLost:
            if not self.stopping.is_set():
                self.say(f"{name}: another worker took this job over; what was found out here is dropped")
            raise
        except Exception as error:
            if self.stopping.is_set():
                raise LeaseLost from None   # it is back in the queue already
            why = f"{type(error).__name__}: {error}".replace("\0", "").encode("ascii", "backslashreplace").decode()[:500]
            self.say(f"{name}: attempt {attempt} of {ATTEMPTS} failed: {first_line(why)}")
            if attempt < ATTEMPTS:
                self.database.put_back(job, token, self.stopping)
                raise LeaseLost from None
            raise RuntimeError(why) from None
        finally:
            with self._lock:
                self._open.discard(batch)

    def _batch(self, report):
        """The Batch of a folder, anew for each job: what there is to grade, and how, may have changed.

        Where there is none the fault is not the job's: it stays uncounted, and this worker ends.
        """
        try:
            batch = self.open_batch(report)
            if batch.version != self.version:
                raise Refused(f"{report} is a batch of another version of the kit than this worker's, {self.version}")
        except Exception as error:
            self._refusal = error if isinstance(error, Refused) else Refused(
                f"this worker cannot read {report}, a folder that every worker has to share: {error}")
            self.changed.set()
            raise LeaseLost from None
        with self._lock:
            self._open.add(batch)
        if self.stopping.is_set():
            batch.stop()
        return batch

    # ---- alive

    def _live(self):
        """Beat; and once the database was heard all the time that others have had to beat too, give back what the dead had."""
        steady, last, stray = time.monotonic(), time.monotonic(), set()
        while not self.stopping.wait(self.timeout / 5):
            try:
                self.database.beat(self.executor, self.version)
                if time.monotonic() - last > self.timeout / 2:   # it, or this process, was away; so may the others have been
                    steady = time.monotonic()
                last, self._silent_since = time.monotonic(), None
                if last - steady >= self.timeout:
                    for job, worker in self.database.reap(self.timeout):
                        self.say(f"{job}: its worker {worker} is gone; it goes back to the queue")
                stray = self._strays(stray)
            except psycopg.OperationalError:
                self._silent_since = self._silent_since or time.monotonic()
            except psycopg.Error as error:
                self._refusal = Refused(f"the queue at {self.database.name} is not what it was: {first_line(error)}")
                self.changed.set()

    def _strays(self, before):
        """The jobs that are this worker's by the record and that no thread of it runs. What was one `before` too goes back: a claim whose
        answer was lost, or an end that could not be recorded."""
        with self._lock:
            running = {job for job, _ in self._running}
        now = self.database.held(self.executor) - running
        if now & before:
            self.database.hand_back(self.executor, now & before)
        return now - before
