"""A Batch that grades nothing: each of its jobs says that it began, waits for its gate to open, and writes a result.

The gates and the telling are named pipes, so that nobody waits by the clock: a gate is open when its pipe is gone.
As a program it is one process at the queue: `python -m grader.tests.fake_batch grade|work REPORT DATABASE JSON`.
"""

import json
import os
import select
import sys
import time
from pathlib import Path

from grader.engines.many import grade_on_queue, work
from grader.results import file_name, write_durably
from labs.command.refused import Refused

PATIENCE = 60   # seconds after which a test gives up


class FakeBatch:
    """What is in REPORT/batch.json, and what happens in REPORT."""

    def __init__(self, report):
        self.report = Path(report)
        told = json.loads((self.report / "batch.json").read_text())
        self.id, self.version, self._all, self._poison = told["id"], told["version"], told["names"], told["poison"]
        self._stop, self._stopper = os.pipe()

    @property
    def names(self):
        return [name for name in self._all if not self.is_graded(name)]

    def result(self, name):
        return self.report / f"{file_name(name)}.json"

    def is_graded(self, name):
        return self.result(name).exists() and self.result(name).read_text().split("\n")[1] == self.version

    def grade(self, name, worker, lease):
        tell(self.report, "began", name, worker)
        if not self._wait(name):
            tell(self.report, "stopped", name, worker)
            raise RuntimeError("stopped")
        if name in self._poison:
            raise ValueError("poison\0\udcff")
        tell(self.report, "writes", name, worker)
        with lease():
            tell(self.report, "wrote", name, worker)
            write_durably(self.result(name), f"{worker}\n{self.version}")

    def _wait(self, name):
        try:
            gate = os.open(gate_of(self.report, name), os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return True
        try:
            return self._stop not in select.select([gate, self._stop], [], [])[0]
        finally:
            os.close(gate)

    def stop(self):
        os.write(self._stopper, b"x")


def gate_of(report, name):
    return report / f"{file_name(name)}.gate"


def tell(report, *words):
    """One line in the log of all processes, and the same for the test that listens. Lines this short arrive whole."""
    line = json.dumps(words).encode() + b"\n"
    for path in ("log", "told"):
        file = os.open(report / path, os.O_WRONLY | os.O_APPEND)
        os.write(file, line)
        os.close(file)


class Stage:
    """The test's side of a report: it makes it, opens gates, and listens."""

    def __init__(self, report, names, version="v1", poison=(), gated=True):
        self.report = report
        report.mkdir()
        (report / "log").touch()
        os.mkfifo(report / "told")
        self._told, self._buffer, self._past = os.open(report / "told", os.O_RDWR | os.O_NONBLOCK), b"", []
        (report / "batch.json").write_text(json.dumps({"id": report.name, "names": names, "version": version, "poison": list(poison)}))
        self._gates = {}
        for name in names if gated else ():
            os.mkfifo(gate_of(report, name))
            self._gates[name] = os.open(gate_of(report, name), os.O_RDWR)

    def open(self, *names):
        """Let these jobs go on, now and whenever they are begun again; without names, all."""
        for name in names or list(self._gates):
            gate_of(self.report, name).unlink()
            os.close(self._gates.pop(name))

    def hear(self, word, name=None, worker=None):
        """Wait for the next such line. Returns [word, name, worker]. `worker`: how the executor's id begins."""
        ends = time.monotonic() + PATIENCE
        while True:
            *lines, self._buffer = self._buffer.split(b"\n")
            self._past += map(json.loads, lines)
            for line in self._past:
                if line[0] == word and name in (None, line[1]) and (worker is None or line[2].split("-")[-2] == str(worker)):
                    self._past.remove(line)
                    return line
            assert select.select([self._told], [], [], max(0, ends - time.monotonic()))[0], f"waited for {word} {name} {worker}; {self._past}"
            self._buffer += os.read(self._told, 65536)

    def log(self, word):
        """[(name, worker)] of all lines that begin with a word."""
        return [tuple(line[1:]) for line in map(json.loads, (self.report / "log").read_text().splitlines()) if line[0] == word]

    def results(self):
        return {path.stem: path.read_text().split("\n")[0] for path in self.report.glob("*.json") if path.name != "batch.json"}

    def put(self, name):
        """A result, from nowhere."""
        batch = FakeBatch(self.report)
        write_durably(batch.result(name), f"nobody\n{batch.version}")

    def close(self):
        self.open()
        os.close(self._told)


def main(kind, report, database, options):
    options = json.loads(options)
    jobs = options.pop("jobs", 1)
    try:
        if kind == "work":
            return work(database, jobs, options.pop("version", "v1"), FakeBatch, **options)
        failed = grade_on_queue(FakeBatch(report), database, jobs, lambda name: print("done", json.dumps(name), flush=True), **options)
        print("failed", json.dumps(failed), flush=True)
        return 1 if failed else 0
    except Refused as refused:
        print(refused, file=sys.stderr)
        return refused.code
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        return 130


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
