"""Runs the checks on one program, in sessions of the trusted pytest, and watches them from outside.

Each check that begins and each that ends is a line of the records file (labs/harness/records.py). So a session that is killed, by us or
with us, is gone on with where it was.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from labs.harness.records import append, began, collected, ended, mend, read, under_way, waiting
from labs.harness.staging import KIT

CHECK_SECONDS = 300        # for one check; pytest-timeout's signal ends it then
GRACE_SECONDS = 60         # more, and the whole session dies
SUBMISSION_SECONDS = 1800  # for all checks of a submission
SESSIONS = 4               # that may end before their time with no check ended in them
_LOG_BYTES = 1 << 20


@dataclass(frozen=True)
class Options:
    """How every submission of a batch is graded. `isolation` is like bubblewrap/view; `workers` how many programs run side by side."""

    labs: tuple[str, ...]
    seed: int = 1
    sample: int = 1
    isolation: str = "bubblewrap/view"
    workers: int | None = None
    check_seconds: float = CHECK_SECONDS
    submission_seconds: float = SUBMISSION_SECONDS
    checks: dict[str, list[str]] = field(default_factory=dict)   # of these submissions: such alone, like 02/test_effects.py::test_x

    def judged_by(self):
        """Those of them that a score depends on."""
        return {"labs": list(self.labs), "seed": self.seed, "sample": self.sample, **({"checks": self.checks} if self.checks else {})}


class Stopped(Exception):
    """The grader is to end; what was recorded stays."""


class Sessions:
    """The sessions that run now, so that all can be ended at once."""

    def __init__(self):
        self._lock, self._running, self.stopped = threading.Lock(), set(), False

    def begin(self, command, **options):
        with self._lock:
            if self.stopped:
                raise Stopped
            process = subprocess.Popen(command, **options)
            self._running.add(process)
            return process

    def end(self, process):
        """SIGKILL a session with all that it started, and forget it."""
        with self._lock:
            _kill(process)
            self._running.discard(process)
        process.wait()

    def stop(self):
        """End all of them; none begins any more."""
        with self._lock:
            self.stopped = True
            for process in self._running:
                _kill(process)


def _kill(process):
    # Its group: the outside and the checks. The sandbox dies with it, and the sandbox's first process with all that is in it.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_checks(program, records, evidence, options, sessions, checks=()):
    """Run what `records` has no end of yet, until everything has ended or cannot be. Raises Stopped.

    All checks of the labs, or only some `checks`. `program` is a folder with a `__main__.py`, `records` a file, `evidence` a folder; both are made.
    """
    records.parent.mkdir(parents=True, exist_ok=True)
    records.touch()
    mend(records)
    if (known := read(records)) and collected(known) and not waiting(known):
        return   # killed between the last check and the result
    already = Counter(map(tuple, began(known)))   # those that our own deaths interrupted are not the checks' doing
    until = time.monotonic() + options.submission_seconds
    broken = 0
    while broken < SESSIONS:
        before = len(ended(read(records)))
        code = _session(program, records, evidence, options, sessions, checks, until)
        mend(records)   # it may have been killed in the middle of a line
        found = read(records)
        if code in (0, 1) and not waiting(found):
            return
        if code in (2, 3, 4, 5):   # pytest's own words for: interrupted, broken, misused, nothing collected
            append(records, {"trouble": f"pytest ended with exit code {code}: {_last_line(records.with_suffix('.log'))}"})
            return
        if time.monotonic() > until:
            for lab, check, item in waiting(found):
                append(records, _timeout(lab, check, item, f"all checks together may take {options.submission_seconds:g} seconds"))
            return
        late = under_way(found)
        if late and (code == "late" or (Counter(map(tuple, began(found))) - already)[late] > 1):
            lab, check, item = late
            append(records, _timeout(lab, check, item, f"the check did not end within {options.check_seconds:g} seconds") if code == "late" else
                  {"lab": lab, "check": check, "item": item, "status": "error", "seconds": 0, "why": f"the session died in it, twice ({code})",
                   "story": None, "kind": None, "evidence": None})
        broken = 0 if len(ended(read(records))) > before else broken + 1
    append(records, {"trouble": f"{SESSIONS} sessions ended before a check did: {_last_line(records.with_suffix('.log'))}"})


def _session(program, records, evidence, options, sessions, checks, until):
    """One session. Returns its exit code, or "late" where it was ended for taking too long."""
    reading, writing = os.pipe()
    command = [sys.executable, "-I", "-B", str(KIT / "grader" / "trusted.py"), str(reading), str(records), "-c", str(KIT / "grader" / "trusted.ini"),
               "--rootdir", str(KIT), "--confcutdir", str(KIT / "labs"), "-p", "pytest_timeout", "--timeout", f"{options.check_seconds:g}",
               *(str(KIT / "labs" / what) for what in checks or options.labs), "--program", str(program), "--lab-seed", str(options.seed),
               "--lab-sample", str(options.sample), "--lab-isolation", options.isolation, "--lab-results", str(records), "--lab-continue",
               "--lab-evidence", str(evidence), *(["--lab-workers", str(options.workers)] if options.workers else [])]
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    with open(records.with_suffix(".log"), "ab") as log:
        try:
            process = sessions.begin(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=KIT, pass_fds=[reading],
                                     start_new_session=True, env={**kept, "LANG": "C.UTF-8", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                                                                  "PYTHONDONTWRITEBYTECODE": "1"})
        finally:
            os.close(reading)
        try:
            size, since = -1, time.monotonic()
            while True:
                try:
                    code = process.wait(0.5)
                    if sessions.stopped:
                        raise Stopped
                    return code
                except subprocess.TimeoutExpired:
                    pass
                now, grown = time.monotonic(), records.stat().st_size
                if grown != size:
                    size, since = grown, now
                if now > min(until, since + options.check_seconds + GRACE_SECONDS):
                    return "late"
        finally:
            os.close(writing)
            sessions.end(process)
            _cut(records.with_suffix(".log"))


def _timeout(lab, check, item, why):
    return {"lab": lab, "check": check, "item": item, "status": "failed", "kind": "timeout", "seconds": 0, "why": why, "story": None, "evidence": None}


def _last_line(log):
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:300] if lines else "it said nothing"


def _cut(log):
    if log.stat().st_size > _LOG_BYTES:
        data = log.read_bytes()
        log.write_bytes(data[:_LOG_BYTES // 2] + b"\n[...]\n" + data[-_LOG_BYTES // 2:])
