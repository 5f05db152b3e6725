"""The proof of a learner's kit: what a learner does first, done with a clone of it in a fresh virtual environment."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from labs.command.kit import all_labs
from labs.command.results import Tally
from labs.command.shipped import files_of
from labs.harness import records

from .leaks import leaks

PATIENCE = 900   # seconds for a command
NOT_HANDED_ON = ("PYTHON", "PYTEST_", "GIT_", "VIRTUAL_ENV", "COV_")   # of the environment: what would let a clone use this kit


class Unproven(Exception):
    """The kit is not what it should be, or nobody can say; the message says why and how to mend it."""


def prove_clone(folder, done, doing=lambda what: None):
    """Clone the kit in `folder`, install it and run its checks, calling `done(sentence)` after each step. Raises Unproven."""
    with tempfile.TemporaryDirectory(prefix="killproof-release-") as temporary:
        clone = Path(temporary, "kit")
        if (folder / ".git").is_dir():
            _run(["git", "clone", "--quiet", "--no-hardlinks", str(folder.resolve()), str(clone)], temporary, "a clone cannot be made")
            shutil.rmtree(clone / ".git")
        else:
            shutil.copytree(folder, clone)
        if found := leaks(files_of(clone)):
            raise Unproven(f"a clone has what learners should not find: {found[0]}")

        python = clone / ".venv" / "bin" / "python"
        doing("a clone is installed into a fresh virtual environment")
        _run([sys.executable, "-m", "venv", str(python.parents[1])], clone, "a virtual environment cannot be made; on Debian and Ubuntu "
             "`apt-get install python3-venv` mends that")
        _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", "."], clone,
             "pip cannot install the clone; it needs a package index, by network or PIP_INDEX_URL")
        _run([python.with_name("labs"), "demo"], clone, "the clone's `labs demo` fails")
        done("a fresh clone installs into a fresh virtual environment, and its `labs` command works")
        doing("the clone's checks run on its starter")
        done(_checked(clone, python, Path(temporary, "results.jsonl")))


def _checked(clone, python, results):
    """Run all checks of the clone, and say in a sentence that they end as announced. Raises Unproven."""
    tallies = [Tally.of_public(lab) for lab in all_labs()]
    paths = [f"labs/{tally.lab.number}" for tally in tallies]
    ended = _run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--lab-results", str(results), *paths], clone,
                 "the clone's checks cannot be run", expected=(1,))
    for entry in records.outcomes(records.read(results)):
        for tally in tallies:
            if tally.lab.number == entry["lab"]:
                tally.add(entry)
    for tally in tallies:
        if further := set(tally.statuses) - {check.test for check in tally.checks}:
            raise Unproven(f"lab {tally.lab.number} of the clone runs a check that learners should not have: {further.pop()}")
        for check in tally.checks:
            verdict, meant = tally.verdict(check), "passed" if check.passes_on_starter else "failed"
            if verdict == "could not check":
                raise Unproven(f"{tally.lab.number}/{check.test} could not be made on this machine, `grader doctor` says why; or it is broken: "
                               f"{_last(ended)}")
            if verdict != meant:
                raise Unproven(f"{tally.lab.number}/{check.test} should be {meant} on the starter, it is {verdict}")
    checks = [check for tally in tallies for check in tally.checks]
    green = sum(check.passes_on_starter for check in checks)
    return f"on its starter {len(checks) - green} checks are red and {green} green, as announced"


def _run(command, folder, otherwise, expected=(0,)):
    """Run a command to its end; returns all that it said. Raises Unproven, which begins with `otherwise`, where it does not end as expected."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(NOT_HANDED_ON)}
    try:
        ended = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise Unproven(f"{otherwise}: it was ended after {PATIENCE} seconds") from None
    except OSError as error:
        raise Unproven(f"{otherwise}: {error.strerror}") from None
    if ended.returncode not in expected:
        raise Unproven(f"{otherwise}: exit code {ended.returncode}, “{_last(ended.stdout)}”")
    return ended.stdout


def _last(output):
    return (output.strip().splitlines() or ["nothing"])[-1].strip("= ")[:300]
