"""Runs the labs' suites as a learner does, in a process of their own, and reads what they recorded."""

import subprocess
import sys
from collections import defaultdict

from labs.harness import manifest, records, verdict
from labs.harness.staging import KIT

LABS = {folder.name: manifest.read(folder) for folder in manifest.folders()}
MISTAKES = manifest.mistakes()


def run_suites(*arguments, results):
    """Run `pytest *arguments` in the kit. Returns its exit code, its output, and its results.

    The results are {lab: {check: {item: status}}}; `results` is a file that is written for that, one JSON line per item.
    """
    done = subprocess.run([sys.executable, "-m", "pytest", *arguments, "--lab-results", str(results), "-p", "no:cacheprovider"],
                          cwd=KIT, capture_output=True, text=True, timeout=900)
    found = defaultdict(lambda: defaultdict(dict))
    for entry in records.outcomes(records.read(results)):
        found[entry["lab"]][entry["check"]][entry["item"]] = entry["status"]
    return done.returncode, done.stdout + done.stderr, found


def passed(items):
    """Whether a check passed, from the statuses of its items."""
    return verdict.of_check(items.values()) == "passed"


def failed_checks(results):
    """The checks that did not pass, like `02/test_effects.py::test_x`. A check that broke is no failure: raises AssertionError."""
    broken = [(check, items) for checks in results.values() for check, items in checks.items()
              if not set(items.values()) <= {"passed", "failed", "not applicable"}]
    assert not broken, broken
    return {f"{lab}/{check}" for lab, checks in results.items() for check, items in checks.items() if not passed(items)}


def named_checks(name, results, *options):
    """What run_suites() says of a mistake of the bank, on the checks that it names."""
    checks = (f"labs/{check}" for check in MISTAKES[name].caught_by)
    return run_suites(*checks, "--program", f"solutions/mistakes/{name}", *options, results=results)


def red_by_right(lab):
    """The checks of a lab that have to fail on the starter."""
    return {check.test for check in LABS[lab].checks if not check.passes_on_starter}
