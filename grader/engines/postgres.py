"""What the machines share: one schema in PostgreSQL, with DBOS's record of each job, and who of the workers is alive.

A job's row (DBOS's `workflow_status`) carries the lease: `executor_id` is the worker that has it, `owner_xid` a token that each
claim makes anew, `recovery_attempts` how often it was begun. Whoever takes a job away from a worker takes the token away, in one
statement, and a worker writes a result only while it holds the row locked with its own token in it.
"""

import json
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict

from labs.command.refused import Refused

SCHEMA = "killproof"
JOBS = f"{SCHEMA}.workflow_status"
OURS = "workflow_uuid = %s AND owner_xid = %s AND status = 'PENDING'"
GRADE = "grade"     # the name of DBOS's workflow, one run of which is one job
# A lock on a row is not held for longer by a process that no longer moves, nor waited for from a machine that is gone.
SETTINGS = {"connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
            "application_name": "killproof", "options": "-c idle_in_transaction_session_timeout=60s"}
TABLE = f"CREATE TABLE {SCHEMA}.worker (executor text PRIMARY KEY, version text NOT NULL, beat timestamptz NOT NULL)"
BACK = ("status = 'ENQUEUED', owner_xid = NULL, started_at_epoch_ms = NULL, "
        "updated_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
# A row that is locked belongs to a worker that writes its result at this moment.
REAP = f"""UPDATE {JOBS} SET {BACK} WHERE workflow_uuid IN (
    SELECT workflow_uuid FROM {JOBS} WHERE name = %s AND status = 'PENDING' AND executor_id NOT IN (
        SELECT executor FROM {SCHEMA}.worker WHERE beat > clock_timestamp() - %s * interval '1 second')
    FOR UPDATE SKIP LOCKED) RETURNING workflow_uuid, executor_id"""


class LeaseLost(BaseException):
    """The job is no longer this worker's, and what was found out is not to be written. No Exception: no grader's fault, nobody's to catch."""


class Database:
    """The PostgreSQL at a URL. Methods raise psycopg.OperationalError while it does not answer, where nothing else is said."""

    def __init__(self, url):
        """Raises Refused unless `url` is one of PostgreSQL."""
        if not url.startswith(("postgresql://", "postgres://")):
            raise Refused("--database is an address like postgresql://USER:PASSWORD@HOST/NAME; no other database will do")
        self.url = "postgresql" + url[url.index("://"):]
        try:
            parts = conninfo_to_dict(self.url)
        except psycopg.Error:   # whose message would repeat the password
            raise Refused("--database cannot be read: it is an address like postgresql://USER:PASSWORD@HOST/NAME") from None
        # As it may be shown: without user and password.
        self.name = f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"

    def connect(self, **options):
        return psycopg.connect(self.url, **SETTINGS, **options)

    def prepare(self):
        """Make the schema and the table of workers, unless they are there. Raises Refused, with what PostgreSQL said, where that cannot be."""
        try:
            with self.connect() as connection:
                connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [SCHEMA])   # IF NOT EXISTS alone fails when two are at it
                # Only where it has to be made is the right to make one needed.
                if connection.execute("SELECT to_regnamespace(%s) IS NULL", [SCHEMA]).fetchone()[0]:
                    connection.execute(f"CREATE SCHEMA {SCHEMA}")
                if connection.execute("SELECT to_regclass(%s) IS NULL", [f"{SCHEMA}.worker"]).fetchone()[0]:
                    connection.execute(TABLE)
        except psycopg.errors.InsufficientPrivilege as error:
            raise Refused(f"{self.name}: {first_line(error)}; its owner can allow it: GRANT CREATE ON DATABASE … TO …") from None
        except psycopg.Error as error:
            raise Refused(f"no queue at {self.name}: {first_line(error)}; nothing is lost, the same command goes on when it answers") from None

    def run(self, statement, *values):
        """The rows of one statement, which is a transaction of its own."""
        with self.connect(autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    # ---- workers

    def beat(self, executor, version):
        """Say that a worker is alive."""
        self.run(f"INSERT INTO {SCHEMA}.worker VALUES (%s, %s, clock_timestamp()) "
                 "ON CONFLICT (executor) DO UPDATE SET beat = clock_timestamp()", executor, version)

    def reap(self, timeout):
        """Give the jobs of workers that have not been heard of for `timeout` seconds back to the queue: [(job, worker)]."""
        return self.run(REAP, GRADE, timeout)

    def held(self, executor):
        """The ids of the jobs that a worker has."""
        return {job for job, in self.run(f"SELECT workflow_uuid FROM {JOBS} WHERE executor_id = %s AND status = 'PENDING'", executor)}

    def hand_back(self, executor, jobs):
        """Give some of a worker's jobs back to the queue, as if it had never had them."""
        self.run(f"UPDATE {JOBS} SET {BACK}, recovery_attempts = recovery_attempts - 1 "
                 "WHERE executor_id = %s AND status = 'PENDING' AND workflow_uuid = ANY(%s)", executor, list(jobs))

    def leave(self, executor):
        """Say that a worker has ended; those who could not say so are forgotten after a day."""
        self.run(f"DELETE FROM {SCHEMA}.worker WHERE executor = %s OR beat < clock_timestamp() - interval '1 day'", executor)

    # ---- jobs

    @contextmanager
    def lease(self, job, token, stopping):
        """While this lasts nobody can take the job away. Raises LeaseLost where somebody has."""
        connection = patiently(stopping, lambda: self._locked(job, token))
        try:
            yield
        finally:
            connection.close()   # it has changed nothing, so there is nothing to commit

    def _locked(self, job, token):
        connection = self.connect()
        try:
            if not connection.execute(f"SELECT 1 FROM {JOBS} WHERE {OURS} FOR NO KEY UPDATE", [job, token]).fetchone():
                raise LeaseLost
        except BaseException:
            connection.close()
            raise
        return connection

    def attempt(self, job, token, stopping):
        """How often the job was begun, this time included. Raises LeaseLost."""
        rows = patiently(stopping, lambda: self.run(f"SELECT recovery_attempts FROM {JOBS} WHERE {OURS}", job, token))
        if not rows:
            raise LeaseLost
        return rows[0][0]

    def put_back(self, job, token, stopping):
        """Give a job that failed back to the queue; it stays counted."""
        patiently(stopping, lambda: self.run(f"UPDATE {JOBS} SET {BACK} WHERE {OURS}", job, token))

    def states(self, queue):
        """{job: (status, version, what went wrong or None)} of a queue."""
        return {job: (status, version, json.loads(error)["message"] if error else None) for job, status, version, error in self.run(
            f"SELECT workflow_uuid, status, application_version, o.error FROM {JOBS} LEFT JOIN {SCHEMA}.workflow_output o USING (workflow_uuid) "
            "WHERE name = %s AND queue_name = %s", GRADE, queue)}

    def waiting(self):
        """The jobs that no worker has: [(version, queue, how many)], the oldest first."""
        return self.run(f"SELECT application_version, queue_name, count(*) FROM {JOBS} WHERE name = %s AND status = 'ENQUEUED' "
                        "GROUP BY 1, 2 ORDER BY min(created_at)", GRADE)

    def at_work(self, version):
        """How many jobs of a version workers have."""
        return self.run(f"SELECT count(*) FROM {JOBS} WHERE name = %s AND status = 'PENDING' AND application_version = %s", GRADE, version)[0][0]


def patiently(stopping, do):
    """`do()`, tried again each second until the database answers. Raises LeaseLost once `stopping` is set."""
    while True:
        try:
            return do()
        except psycopg.OperationalError:
            if stopping.wait(1):
                raise LeaseLost from None


def first_line(error):
    """What PostgreSQL said, in a line."""
    return " ".join(str(error).split("\n")[0].split()) or type(error).__name__
