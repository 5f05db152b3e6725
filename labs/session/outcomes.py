"""How each check ends: a line of the records, and a line for each lab at the end of the session."""

from collections import Counter

import pytest

from labs.harness import manifest, records, verdict
from labs.harness.staging import KIT
from labs.harness.story import counted

from .failures import Shown, Told
from .items import CouldNotCheck, NotApplicable, known_as, lab_folder
from .shared import SESSION


def pytest_collection_modifyitems(config, items):
    if strangers := [item.nodeid.partition("::")[0] for item in items if not lab_folder(item)]:
        raise pytest.UsageError(f"the checks of the labs run by themselves: leave out {strangers[0]}, or run it by itself")
    # In the chapter's order: what a learner sees comes first, and the sweeps after what is simple.
    ranks = {(lab.number, check.test): rank for lab in map(manifest.read, {lab_folder(item) for item in items}) for rank, check in enumerate(lab.checks)}
    items.sort(key=lambda item: (lab_folder(item).name, item.path.parent.name == "hidden", ranks.get(known_as(item)[:2], len(ranks))))
    config.stash[SESSION].write({"collected": list(map(known_as, items))})
    if config.getoption("--lab-continue"):
        ended = records.ended(records.read(config.getoption("--lab-results")))
        left_out = [item for item in items if known_as(item) in ended]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    session.config.stash[SESSION].items_of.update(known_as(item)[:2] for item in session.items)   # those that were selected


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    lab, check, name = known_as(item)
    item.config.stash[SESSION].write({"began": name, "in": check, "of": lab})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, Told):
        report.longrepr = Shown(error)
    if call.when == "call" or report.failed or call.when == "setup" and report.skipped:
        lab, check, name = known_as(item)
        entry = {"lab": lab, "check": check, "item": name, "status": _status(report, error),
                 "seconds": round(call.duration, 3), "why": getattr(error, "reason", str(error) if error else None),
                 "story": str(error) if isinstance(error, Told) else None, "kind": getattr(error, "kind", None),
                 "evidence": getattr(error, "evidence", None)}
        session = item.config.stash[SESSION]
        if isinstance(error, CouldNotCheck):
            session.could_not.add(str(error))
        session.results.setdefault(lab, {}).setdefault(check, []).append(entry["status"])
        session.evidence.record(entry, session.about)
        session.write(entry)


def _status(report, error):
    """One of verdict.WORST_FIRST."""
    if report.passed:
        return "passed"
    for kind, status in ((Told, "failed"), (CouldNotCheck, "could not check"), (NotApplicable, "not applicable")):
        if isinstance(error, kind):
            return status
    return "skipped" if report.skipped else "error"


def pytest_terminal_summary(terminalreporter, config):
    session = config.stash[SESSION]
    for number, checks in sorted(session.results.items()):
        lab = manifest.read(KIT / "labs" / number)
        verdicts = {check.test: verdict.of_check(checks.get(check.test, ())) for check in lab.checks}
        # One that failed in a part of it has failed, whatever the rest would say.
        unfinished = {check.test for check in lab.checks if len(checks.get(check.test, ())) < session.items_of[number, check.test]
                      and verdicts[check.test] != "failed"}
        ran = [check for check in lab.checks if verdicts[check.test] not in ("not run", "not applicable") and check.test not in unfinished]
        passed, unknown = ([check for check in ran if verdicts[check.test] == wanted] for wanted in ("passed", "could not check"))
        terminalreporter.write_line(
            f"lab {number} · {lab.title}: {len(passed)} of {len(ran)} checks passed, "
            f"{sum(check.points for check in passed)} of {sum(check.points for check in ran)} points; "
            f"program {session.staged.name if session.staged else '?'}, seed {session.seed}"
            + (f"; {counted(len(unfinished), 'check')} not run to the end" if unfinished else "")
            + (f"; a sample, each {session.every}th point of a sweep" if session.every > 1 else ""))
        if unknown:
            terminalreporter.write_line(f"lab {number}: {len(unknown)} checks, of {sum(check.points for check in unknown)} points, could not be made, "
                                        f"neither passed nor failed: {'; '.join(sorted(session.could_not))} (`python -m labs doctor`)")
