"""`grader selftest`: whether the grader can be believed. The laws of the kit, and a class of attacks graded like any other."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from labs.harness import scratch
from labs.harness.sandbox import USERS
from labs.harness.staging import SHIPPED
from labs.harness.story import counted

from . import battery, isolation, results
from .grade import grade
from .suites import LABS, MISTAKES, failed_checks, named_checks, passed, red_by_right, run_suites

SAMPLE = 8             # the starter and the solutions meet each 8th point of a sweep; the mistakes each one
ATTACKS_SAMPLE = 20    # and the attacks each 20th
KEY = 0x6B70           # of the System V objects that the attacks try to make
NEIGHBOUR = ["01/test_record.py::test_a_bad_ticket_is_refused", "01/test_record.py::test_a_killed_run_shows_its_step_and_the_finished_results",
             "03/test_resume.py::test_a_killed_run_is_finished", "03/test_killed_at_every_line.py::test_a_run_killed_at_any_line_is_finished"]


def run_selftest(jobs, quick=False):
    """Try it all, `jobs` at once, print a line for each, and return an exit code: 0 where all is as it has to be, else 1.

    `quick` leaves the mistakes out.
    """
    console, began = Console(highlight=False), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="grader-selftest-") as folder:
        bad = _laws(Path(folder), jobs, quick, console) + _attacks(jobs, console)
    console.print(Text(f"{bad or 'nothing'} is not as it has to be; {time.monotonic() - began:.0f} s", "bold red" if bad else "bold green"))
    return 1 if bad else 0


def tell(console, name, what, wrong):
    """Print a line of the self-test and what is `wrong`, in sentences. Returns whether there was any."""
    console.print(Text.assemble(("✗ ", "red") if wrong else ("✓ ", "green"), (name, "bold"), f"  {what}"), soft_wrap=True)
    for sentence in wrong:
        console.print(Text(f"    {sentence}", "red"), soft_wrap=True)
    return bool(wrong)


# ---- the laws

def _laws(folder, jobs, quick, console):
    """Try the laws; returns how many do not hold."""
    laws = {"starter": ("fails every check but those that say so", _starter),
            **{f"solution {lab}": (f"passes lab {lab}", partial(_solution, lab)) for lab in LABS},
            **({} if quick else {f"mistake {name}": (f"is caught by the {counted(len(mistake.caught_by), 'check')} that it names", partial(_mistake, name))
                                 for name, mistake in MISTAKES.items()})}
    bad = 0
    with _progress(console) as progress, ThreadPoolExecutor(jobs) as pool:
        task = progress.add_task("laws", total=len(laws))
        running = {pool.submit(law, folder / f"{name}.jsonl"): (name, what) for name, (what, law) in laws.items()}
        for done in as_completed(running):
            try:
                wrong = done.result()
            except (AssertionError, subprocess.TimeoutExpired) as error:
                wrong = [f"a check broke: {error}"]
            bad += tell(progress.console, *running[done], wrong)
            progress.advance(task)
    return bad


def _starter(path):
    _, output, found = run_suites(*(f"labs/{lab}" for lab in LABS), "--program", str(SHIPPED), "--lab-sample", str(SAMPLE), results=path)
    failed = failed_checks(found)
    wanted = {f"{lab}/{check}" for lab in LABS for check in red_by_right(lab)}
    return _difference(failed, wanted) if found else [output[-300:]]


def _solution(lab, path):
    _, output, found = run_suites(f"labs/{lab}", "--program", f"solutions/{lab}", "--lab-sample", str(SAMPLE), results=path)
    missing = [check.test for check in LABS[lab].checks if not passed(found[lab][check.test])]
    return [f"{check} does not pass" for check in missing]


def _mistake(name, path):
    _, output, found = named_checks(name, path)
    return _difference(failed_checks(found), set(MISTAKES[name].caught_by)) if found else [output[-300:]]


def _difference(failed, wanted):
    return [*(f"{check} fails" for check in sorted(failed - wanted)), *(f"{check} does not fail" for check in sorted(wanted - failed))]


# ---- the attacks

def _attacks(jobs, console):
    rung, found, reasons = isolation.strongest()
    if rung not in isolation.STRONG:
        return tell(console, "attacks", "are for the full isolation", [f"here it is {found.detail}: {'; '.join(reasons)}. See `grader doctor`"])
    bad = 0
    for name, what, wrong in graded(battery.attacks(), jobs, console):
        bad += tell(console, name, what, wrong)
    return bad


def graded(attacks, jobs, console=None):
    """Grade attacks as one batch, with an honest neighbour. Yields for each, for that one and for the machine: its name, what it is about, and what
    is wrong with how it ended, in sentences.
    """
    report, before = Path(tempfile.mkdtemp(prefix="grader-selftest-report-")), _machine()
    with tempfile.TemporaryDirectory(prefix="grader-selftest-class-") as folder:
        for name, attack in (*attacks.items(), (battery.HONEST, None)):
            battery.submit(name, attack, Path(folder, name))
        checks = {**{name: attack.checks for name, attack in attacks.items()}, battery.HONEST: NEIGHBOUR}
        labs = sorted({check[:2] for some in checks.values() for check in some})
        grade(folder, report, jobs=jobs, labs=",".join(labs), sample=ATTACKS_SAMPLE, quiet=console is None, checks=checks)
    wrong_at_all = False
    for name, attack in (*attacks.items(), (battery.HONEST, None)):
        path = report / "results" / f"{results.file_name(name)}.json"
        wrong = battery.wrong(attack, results.read(path) if path.exists() else None)
        wrong_at_all = wrong_at_all or bool(wrong)
        yield name, attack.attack if attack else "Is graded among them, and has every point.", wrong
    left = sorted(_machine() - before)
    yield "the machine", "is as it was: no process, mount, folder or segment is left.", [f"left behind: {what}" for what in left]
    if wrong_at_all:
        yield "the report", "has the stories of what went wrong.", [str(report / "index.html")]
    else:
        shutil.rmtree(report)


def _machine():
    """What an attack could have left on this machine, in words. What other graders use at this moment is not meant."""
    found = set()
    for base in ("/dev/shm", tempfile.gettempdir(), "/tmp", "/var/tmp"):
        for path in Path(base).glob("*") if os.path.isdir(base) else ():
            if path.name.startswith(("kept", "killproof-escaped")) or path.name.startswith(scratch.PREFIX) and (path / "lock").exists() \
                    and not _in_use(path / "lock"):
                found.add(f"folder {path}")
    for process in psutil.process_iter(["cmdline", "uids"]):
        try:
            words = [word for word in (process.info["cmdline"] or []) if f"/{scratch.PREFIX}" in word] + [process.environ().get("LAB_HOME", "")]
        except psutil.Error:
            continue
        session = next((word[:word.index("/", word.index(scratch.PREFIX))] for word in words if f"/{scratch.PREFIX}" in word
                        and "/" in word[word.index(scratch.PREFIX):]), None)
        if session and not os.path.exists(session):
            found.add(f"process {process.pid} {words}")
    if os.path.exists("/proc/self/mounts"):
        found.update(f"mount {line.split()[1]}" for line in Path("/proc/self/mounts").read_text().splitlines() if scratch.PREFIX in line)
    for kind in ("shm", "sem", "msg"):
        if os.path.exists(f"/proc/sysvipc/{kind}"):
            names, *lines = map(str.split, Path(f"/proc/sysvipc/{kind}").read_text().splitlines())
            found.update(f"System V {kind} {line[1]}" for line in lines if int(line[0]) == KEY or int(line[names.index("uid")]) >= USERS[0])
    return found


def _in_use(lock):
    """Whether a session holds the lock of its folder."""
    try:
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True   # or it has just ended, and is gone
    return False


def _progress(console):
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console, transient=True)
