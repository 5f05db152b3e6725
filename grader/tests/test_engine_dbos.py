"""Many machines: a real PostgreSQL, real worker processes, and what is left after they are killed, stopped, replaced or lied to."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest
from grader.tests.fake_batch import PATIENCE, FakeBatch, Stage
from grader.tests.lacking import lacking
from grader.tests.postgres import binaries, server
from grader.tests.test_grading import ALL, Class

from grader.engines import many
from labs.command.refused import Refused
from labs.harness.staging import KIT

LEASE = 3.0   # seconds; a tenth of it would do on a machine of one's own


@pytest.fixture(scope="module")
def postgres():
    """A Server. Where there is no PostgreSQL or no DBOS the test is skipped; in CI it fails."""
    try:
        import dbos  # noqa: F401
    except ImportError:
        lacking("no DBOS: pip install -e '.[dbos]'")
    if not binaries():
        lacking("no PostgreSQL: install it (Debian: apt-get install postgresql)")
    with server() as running:
        yield running


@pytest.fixture
def stage(tmp_path, request):
    """Makes a Stage, of a version that no other test has; all its gates are open at the end."""
    with_gates = []

    def make(*names, **options):
        with_gates.append(Stage(tmp_path / f"{request.node.name.split('[')[0]}-{len(with_gates)}", names,
                                **{"version": request.node.name, **options}))
        return with_gates[-1]
    yield make
    for one in with_gates:
        one.close()


@pytest.fixture
def run(postgres, request):
    """Starts a process at the queue, `run("grade", stage)` or `run("work", stage)`; those that still run at the end are killed."""
    started = []

    def start(kind, stage, **options):
        told = {"lease": LEASE, "poll": 0.2, **({"version": request.node.name} if kind == "work" else {}), **options}
        process = subprocess.Popen([sys.executable, "-m", "grader.tests.fake_batch", kind, str(stage.report), postgres.url, json.dumps(told)],
                                   cwd=KIT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process
    yield start
    for process in started:
        with process:
            process.kill()


@contextmanager
def paused(process):
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def ended(process):
    """(exit code, stdout, stderr) of a process, when it has ended."""
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def raising(error):
    raise error


def graded_once(stage, names):
    assert sorted(name for name, _ in stage.log("wrote")) == sorted(names)
    assert sorted(stage.results().values()) == sorted(worker for _, worker in stage.log("wrote"))


def rows(postgres, stage):
    """{name: (status, attempts)} of a stage's jobs."""
    from grader.engines.postgres import JOBS, Database
    return {job.partition("/")[2]: tuple(state) for job, *state in Database(postgres.url).run(
        f"SELECT workflow_uuid, status, recovery_attempts FROM {JOBS} WHERE workflow_uuid LIKE %s", f"{stage.report.name}/%")}


# ---- all is well


def test_a_batch_is_graded_by_one_process_whatever_its_names_are(run, stage):
    names = ["ana", "b [1] 'c'", "-d", "\udcff\u2028%s"]
    batch = stage(*names, gated=False)
    code, out, _ = ended(run("grade", batch, jobs=2))
    assert code == 0 and sorted(out.splitlines()) == sorted([f"done {json.dumps(name)}" for name in names] + ["failed []"])
    graded_once(batch, names)


@pytest.mark.slow
def test_each_process_takes_as_many_jobs_as_it_was_told_to(run, stage):
    names = list("abcdefgh")
    batch = stage(*names)
    grade, work = run("grade", batch, jobs=1), run("work", batch, jobs=3)
    for _ in range(4):
        batch.hear("began")
    batch.open()
    assert ended(grade)[0] == 0
    work.send_signal(signal.SIGTERM)
    assert ended(work)[0] == 0
    at_once, most = {}, {}
    for word, _, worker in map(json.loads, (batch.report / "log").read_text().splitlines()):
        pid = int(worker.split("-")[-2])
        at_once[pid] = at_once.get(pid, 0) + {"began": 1, "wrote": -1}.get(word, 0)
        most[pid] = max(most.get(pid, 0), at_once[pid])
    assert most == {grade.pid: 1, work.pid: 3}
    graded_once(batch, names)


@pytest.mark.slow
def test_a_worker_goes_from_one_batch_to_the_next_and_ends_when_there_are_none(run, stage, postgres):
    first, second = stage("a", "b", "there"), stage("c")
    for batch in (first, second):   # what is begun is put back: the queue is filled, and nobody works
        filling = run("grade", batch)
        batch.hear("began")
        filling.send_signal(signal.SIGINT)
        assert ended(filling)[:2] == (130, "interrupted\n")
        batch.open()
    begun = len(first.log("began"))
    first.put("there")   # as by a worker that was killed when it had written it
    assert ended(run("work", first, until_empty=True))[0] == 0
    assert sorted(name for name, _ in first.log("began")[begun:]) == ["a", "b"]
    assert set(rows(postgres, first).values()) == set(rows(postgres, second).values()) == {("SUCCESS", 1)}
    graded_once(second, ["c"])


# ---- death


@pytest.mark.slow
def test_what_a_killed_worker_had_is_graded_by_another_once(run, stage):
    names = list("abcdef")
    batch = stage(*names)
    grade, work = run("grade", batch), run("work", batch)
    one, other = batch.hear("began", worker=grade.pid)[1], batch.hear("began", worker=work.pid)[1]
    batch.open(other)
    batch.hear("wrote", other)
    lost = batch.hear("began", worker=work.pid)[1]
    work.kill()
    batch.open(one, *set(names) - {one, other, lost})
    assert batch.hear("began", lost, grade.pid)
    batch.open(lost)
    assert ended(grade)[0] == 0
    graded_once(batch, names)
    assert sorted(name for name, _ in batch.log("began")) == sorted([*names, lost])


@pytest.mark.slow
def test_what_a_killed_command_had_is_graded_by_the_next_one(run, stage):
    batch = stage("a", "b", "c")
    grade = run("grade", batch)
    first = batch.hear("began")[1]
    batch.open(first)
    batch.hear("wrote", first)
    batch.hear("began")
    grade.kill()
    again = run("grade", batch)
    batch.open()
    assert ended(again)[0] == 0
    graded_once(batch, "abc")


@pytest.mark.slow
def test_a_worker_that_was_paused_for_too_long_drops_what_it_found_out(run, stage):
    batch = stage("a")
    grade = run("grade", batch)
    batch.hear("began", "a", grade.pid)
    work = run("work", batch)
    with paused(grade):
        batch.hear("began", "a", work.pid)
    batch.open()
    batch.hear("writes", "a", grade.pid)
    code, _, err = ended(grade)
    assert code == 0 and "a: another worker took this job over" in err
    graded_once(batch, "a")
    assert [worker.split("-")[-2] for _, worker in batch.log("wrote")] == [str(work.pid)]


@pytest.mark.slow
def test_ctrl_c_puts_what_was_begun_back_uncounted_and_what_killed_three_workers_is_not_tried_again(run, stage, postgres):
    from grader.engines.postgres import JOBS, Database
    batch = stage("a", "b", "c")
    grade = run("grade", batch, jobs=2)
    begun = {batch.hear("began")[1], batch.hear("began")[1]}
    grade.send_signal(signal.SIGINT)
    assert ended(grade)[:2] == (130, "interrupted\n")
    assert {name for name, _ in batch.log("stopped")} == begun
    assert rows(postgres, batch) == dict.fromkeys("abc", ("ENQUEUED", 0))
    assert not Database(postgres.url).run("SELECT executor FROM killproof.worker WHERE version = %s", json.loads(
        (batch.report / "batch.json").read_text())["version"])
    # Nothing that would have to be unpickled.
    assert all(json.loads(inputs) for inputs, in Database(postgres.url).run("SELECT inputs FROM killproof.workflow_input"))
    Database(postgres.url).run(f"UPDATE {JOBS} SET recovery_attempts = 3 WHERE workflow_uuid = %s", f"{batch.report.name}/b")
    batch.open()
    code, out, _ = ended(run("grade", batch))
    assert code == 1 and 'failed [["b", "begun 3 times; the last worker that had it died"]]' in out
    graded_once(batch, "ac")


# ---- jobs, workers and databases that are not as they should be


@pytest.mark.slow
def test_a_job_that_always_fails_is_begun_three_times_by_all_workers_together_and_reported(run, stage, postgres):
    batch = stage("a", "bad", "c", poison=["bad"], gated=False)
    grade, work = run("grade", batch), run("work", batch)
    code, out, err = ended(grade)
    assert code == 1 and 'failed [["bad", "ValueError: poison\\\\udcff"]]' in out
    assert len([name for name, _ in batch.log("began") if name == "bad"]) == 3
    assert rows(postgres, batch)["bad"] == ("ERROR", 3)
    graded_once(batch, "ac")
    # The next command tries anew.
    assert ended(run("grade", batch))[0] == 1
    assert len([name for name, _ in batch.log("began") if name == "bad"]) == 6
    work.send_signal(signal.SIGINT)
    assert ended(work)[0] == 0


@pytest.mark.slow
def test_a_worker_of_another_version_says_so_and_takes_nothing(run, stage):
    batch = stage("a", "b")
    grade = run("grade", batch)
    batch.hear("began")
    code, _, err = ended(run("work", batch, version="an older kit", until_empty=True))
    assert code == 0 and len([line for line in err.splitlines() if line.startswith("1 job waits for version test_a_worker_of")]) == 1
    batch.open()
    assert ended(grade)[0] == 0
    assert {worker.split("-")[-2] for _, worker in batch.log("began")} == {str(grade.pid)}


@pytest.mark.slow
def test_what_another_version_left_on_the_queue_is_begun_anew(run, stage):
    batch = stage("a", "b")
    grade = run("grade", batch)
    first = batch.hear("began")[1]
    told = json.loads((batch.report / "batch.json").read_text())
    (batch.report / "batch.json").write_text(json.dumps({**told, "version": "a newer kit"}))
    newer = run("grade", batch)
    batch.hear("began", first, newer.pid)
    batch.open()
    assert ended(newer)[0] == 0
    code, out, _ = ended(grade)
    assert code == 1 and out.count("of another version has taken this batch over") == 2
    graded_once(batch, "ab")
    assert {worker.split("-")[-2] for _, worker in batch.log("wrote")} == {str(newer.pid)}


@pytest.mark.slow
@pytest.mark.parametrize("there, says", [
    ("", "this worker cannot read"), ('{"id": "x", "version": "another", "names": [], "poison": []}', "of another version")])
def test_a_worker_that_cannot_work_on_the_report_ends_and_costs_the_job_nothing(run, stage, postgres, there, says):
    batch = stage("a", "b")
    grade = run("grade", batch)
    first = batch.hear("began")[1]
    (batch.report / "batch.json").write_text(there)
    code, _, err = ended(run("work", batch))
    assert code == 2 and says in err and str(batch.report) in err
    second, = {"a", "b"} - {first}
    assert rows(postgres, batch) == {first: ("PENDING", 1), second: ("ENQUEUED", 0)}
    batch.open()
    assert ended(grade)[0] == 0
    graded_once(batch, "ab")


@pytest.mark.slow
def test_a_database_that_goes_away_and_comes_back_loses_nothing(run, stage, postgres):
    batch = stage("a", "b", "c")
    processes = run("grade", batch), run("work", batch)
    first, second = [batch.hear("began", worker=process.pid)[1] for process in processes]
    postgres.stop()
    try:
        batch.open(first, second)
        batch.hear("writes", first)
        batch.hear("writes", second)
    finally:
        postgres.start()
    batch.open()
    assert ended(processes[0])[0] == 0
    processes[1].send_signal(signal.SIGTERM)
    assert ended(processes[1])[0] == 0
    graded_once(batch, "abc")


@pytest.mark.parametrize("address, says", [
    ("sqlite:///queue.db", "no other database will do"),
    ("postgresql://u:secret@127.0.0.1:1/x", "no queue at 127.0.0.1:1/x: connection failed: connection to server"),
    ("postgresql://u:secret@[", "--database cannot be read"),
    ("{url}_that_is_not_there", 'database "postgres_that_is_not_there" does not exist'),
    ("{weak}", "permission denied for database postgres; its owner can allow it: GRANT CREATE ON DATABASE")])
def test_a_database_that_cannot_be_used_is_said_in_one_line_without_its_password(postgres, stage, address, says):
    from grader.engines.postgres import Database
    if address == "{weak}":
        Database(postgres.url).run("DROP SCHEMA IF EXISTS killproof CASCADE")
        with suppress(Exception):
            Database(postgres.url).run("CREATE ROLE weak LOGIN")
    address = address.format(url=postgres.url, weak=postgres.url.replace("tests@", "weak@"))
    with pytest.raises(Refused) as refused:
        many.grade_on_queue(FakeBatch(stage("a").report), address, 1, print)
    assert says in str(refused.value) and "secret" not in str(refused.value)


def test_without_dbos_it_is_said_how_to_get_it(stage, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in ("postgres", "worker"):
        monkeypatch.delitem(sys.modules, f"grader.engines.{name}", raising=False)
    with pytest.raises(Refused, match=r"pip install 'killproof\[dbos\]'"):
        many.grade_on_queue(FakeBatch(stage("a").report), "postgresql://", 1, print)


@pytest.mark.parametrize("status, says", [("SUCCESS", "do all workers share that folder?"), ("CANCELLED", "its job was cancelled in the database")])
def test_a_result_that_is_never_seen_here_is_no_result(stage, monkeypatch, status, says):
    class Elsewhere:
        """A Worker whose jobs are graded on a machine with a folder of its own."""

        changed = threading.Event()

        def __init__(self, *_): ...
        def __enter__(self): return self
        def __exit__(self, *_): ...
        def take(self, queue): ...
        def check(self): ...
        def enqueue(self, queue, jobs): ...
        def ended(self, queue, jobs): return dict.fromkeys(jobs, (status, None))
    monkeypatch.setattr(many, "_parts", lambda: (str, Elsewhere))
    (name, why), = many.grade_on_queue(FakeBatch(stage("a").report), "", 1, print, lease=0.01, poll=0.01)
    assert name == "a" and says in why


# ---- the worker's own watch


@pytest.fixture
def worker(postgres):
    """A Worker that was not started, with a database that only remembers what it was asked for."""
    from grader.engines.worker import Worker
    return Worker(Memory(), "v", 1, FakeBatch, 10.0, 1.0, print)


class Memory:
    """What a Worker asks a Database for, as a list; `held` are the jobs it has."""

    def __init__(self):
        self.asked, self._held, self.name = [], set(), "host:5432/name"

    def beat(self, *_): self.asked.append("beat")

    def reap(self, timeout):
        self.asked.append("reap")
        return []

    def held(self, _): return set(self._held)

    def hand_back(self, _, jobs): self.asked.append(sorted(jobs))


def test_no_two_processes_are_the_same_executor(worker):
    from grader.engines.worker import Worker
    assert len({Worker(None, "v", 1, None, 10, 1, print).executor for _ in range(100)}) == 100
    assert f"-{os.getpid()}-" in worker.executor


def test_a_job_that_is_a_workers_by_the_record_alone_goes_back_the_second_time_it_is_seen(worker):
    worker.database._held = {"lost", "runs"}
    worker._running = {("runs", "token")}
    stray = worker._strays(set())
    assert worker.database.asked == []
    worker._strays(stray)
    assert worker.database.asked == [["lost"]]


def test_what_is_claimed_counts_before_its_thread_runs(worker):
    worker.queue, worker.jobs, worker.database._held = "mine", 3, {"claimed", "runs"}
    worker._dbos = SimpleNamespace(_active_workflows_set=SimpleNamespace(activeList=lambda: ["runs"]))
    at_once = {name: worker._mine(SimpleNamespace(name=name, _worker_concurrency=0))._worker_concurrency for name in ("mine", "other")}
    assert at_once == {"mine": 2, "other": 0}   # the one that runs is taken off by DBOS


def test_a_worker_whose_tables_are_gone_says_so(worker, monkeypatch):
    import psycopg
    monkeypatch.setattr(worker.database, "beat", lambda *_: worker.stopping.set() or raising(psycopg.errors.UndefinedTable("no table")))
    worker.timeout = 0.01
    worker._live()
    with pytest.raises(Refused, match="the queue at host:5432/name is not what it was"):
        worker.check()


def test_the_second_signal_ends_a_worker_at_once():
    ended = threading.Event()
    many._end(ended)
    with pytest.raises(KeyboardInterrupt):
        many._end(ended)


def test_who_was_away_gives_the_others_time_before_it_takes_their_jobs(worker, monkeypatch):
    """A clock that goes on by what was waited for; the machine sleeps for a minute in the middle."""
    now, seen = [0.0], []

    class Clock:
        def wait(self, seconds):
            now[0] += seconds + (60 if len(seen) == 15 else 0)
            seen.append(now[0])
            return len(seen) > 30
    monkeypatch.setattr("grader.engines.worker.time.monotonic", lambda: now[0])
    worker.stopping = Clock()
    reaped = []
    monkeypatch.setattr(worker.database, "reap", lambda timeout: reaped.append(now[0]) or [])
    worker._live()
    assert reaped[0] == 10.0 and seen[14] in reaped
    asleep = seen[15]
    assert not [at for at in reaped if asleep <= at < asleep + 10] and asleep + 10 in reaped


def test_a_database_that_stays_away_ends_the_command_and_not_before(worker):
    worker._silent_since = time.monotonic()
    worker.check()
    worker._silent_since -= 60
    with pytest.raises(Refused, match="has not answered for 60 s; nothing is lost"):
        worker.check()


def test_nobody_takes_a_job_away_while_its_result_is_written(postgres):
    from dbos import DBOS
    from grader.engines.postgres import GRADE, JOBS, SCHEMA, Database, LeaseLost
    database, going = Database(postgres.url), threading.Event()
    database.prepare()
    DBOS.migrate(postgres.url, schema=SCHEMA)
    database.run(f"INSERT INTO {JOBS} (workflow_uuid, status, name, executor_id, owner_xid, recovery_attempts) "
                 "VALUES ('j', 'PENDING', %s, 'dead', 'token', 1)", GRADE)
    with database.lease("j", "token", going):
        assert ("j", "dead") not in database.reap(0)
    assert ("j", "dead") in database.reap(0)
    with pytest.raises(LeaseLost), database.lease("j", "token", going):
        pytest.fail("written all the same")
    database.run(f"DELETE FROM {JOBS} WHERE workflow_uuid = 'j'")


# ---- the real grader on the queue

@pytest.mark.slow
def test_a_killed_workers_submissions_are_graded_once_by_the_others(postgres, tmp_path):
    """Two machines in small: `grader grade` and `grader worker`; the worker is killed while it is in a check."""
    small = Class(tmp_path)
    for name in ("ana", "ben", "cleo", "dora"):
        small.hands_in(name, f"{ALL} wait 2")
    os.mkfifo(small.gate)
    os.mkfifo(small.arrivals)
    arrivals = open(os.open(small.arrivals, os.O_RDWR))   # not closed when one of those that arrive has gone
    grader = small.begin("--engine", "dbos", "--database", postgres.url)
    arrivals.readline()
    door = os.open(small.gate, os.O_WRONLY)
    worker = subprocess.Popen([sys.executable, "-m", "grader", "worker", "--database", postgres.url], cwd=small.kit.root,
                              env={**os.environ, "PYTHONPATH": str(small.kit.root)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        arrivals.readline()   # its first job waits too
    finally:
        worker.kill()
    worker.communicate(timeout=30)
    small.gate.unlink()
    os.close(door)
    said, complained = grader.communicate(timeout=110)
    assert grader.returncode == 0, said + complained
    assert {name: small.result(name).points for name in ("ana", "ben", "cleo", "dora")} == dict.fromkeys(("ana", "ben", "cleo", "dora"), 10)
    assert small.looked.count("3") == 4, "each was graded to its end once"
