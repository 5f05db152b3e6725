"""Lab 01, the closer look: two runs at once, reading while another process writes, time stamps, 25 kills."""

import threading
import time
from datetime import datetime, timedelta, timezone
from random import Random

from labs.harness.judge import consistent, handled_once, refused, results_of
from labs.harness.kills.boundary import held_at
from labs.harness.outside import Fault
from labs.harness.tickets import make_ticket


def test_two_runs_of_one_moment_stay_apart(program, outside, ticket):
    other_ticket = make_ticket(f"{ticket['ticket_id']} other")
    outside.plan(Fault("refund", "hold_before", times=2))
    next_second()
    runs = [(program.start(ticket), ticket), (program.start(other_ticket), other_ticket)]
    for run, _ in runs:
        program.until(run, lambda: len(outside.held()) == 2, "send a refund request")
    ids = [run.line() for run, _ in runs]
    assert ids[0] != ids[1], f"two runs have the same id, {ids[0]}"

    for run, its_ticket in runs:
        record = program.status(run.line())
        consistent(record, run.line())
        assert record.get("task") == its_ticket, f"the record of {run.line()} has the other run's ticket"
        order = its_ticket["text"].split()[1]
        found = results_of(record).get("triage", {}).get("order_id")
        assert found == order, f"the record of {run.line()} is about {found}, its ticket is about {order}"
    outside.release()
    for run, _ in runs:
        assert run.wait().code == 0, f"{run} {run.end}; two runs at once should not disturb each other"
    listed = {record.get("id") for record in program.runs("done")}
    assert listed == set(ids), f"`runs --state done` should list both runs, it lists {sorted(map(str, listed))}"


def test_reading_the_record_changes_nothing_and_does_not_wait(program, outside, ticket):
    run, _ = held_at(program, "refund", "before", lambda: program.start(ticket))
    first, listed, second = program.status(run.line()), program.runs(), program.status(run.line())
    assert [first] == [second] == listed, "the record changed though nothing happened between two looks at it"
    outside.release()
    assert run.wait().code == 0, f"{run} {run.end}; being looked at should not disturb it"
    handled_once(program, run.line(), ticket)


def test_updated_at_is_utc_and_advances(program, outside, ticket):
    began = datetime.now(timezone.utc)
    stamps = []
    run, _ = held_at(program, "model", "before", lambda: program.start(ticket))
    stamps.append(_stamp(program.status(run.line())))
    next_second()  # a program may count in whole seconds
    outside.plan(Fault("mail", "hold_before"))
    outside.release()
    program.until_held(run, "send a mail request")
    stamps.append(_stamp(program.status(run.line())))
    outside.release()
    assert run.wait().code == 0, f"{run} {run.end}; it should end with exit code 0"
    stamps.append(_stamp(program.status(run.line())))

    assert stamps[0] < stamps[1] <= stamps[2], \
        f"`updated_at` should advance with the run, it was {', '.join(str(stamp) for stamp in stamps)}"
    second = timedelta(seconds=1)
    assert began - second <= stamps[0] and stamps[2] <= datetime.now(timezone.utc) + second, \
        f"`updated_at` is {stamps[0]}, the run began at {began}"


def next_second():
    """Wait until the clock shows another second: it is the program's clock that is looked at here."""
    threading.Event().wait(1 - time.time() % 1)


def _stamp(record):
    text = record.get("updated_at")
    try:
        stamp = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        stamp = None
    assert stamp and stamp.utcoffset() == timedelta(0), f"`updated_at` should be a time in UTC with its offset, it is {text!r}"
    return stamp


def test_what_was_refused_is_not_written_down(program, ticket):
    refused(program.ask("start", ticket=b'{"ticket_id": "T-1"}'))
    refused(program.ask("start", "--run-id", "refused", ticket=b"{}"))
    refused(program.ask("start", str(program.home / "no-such-ticket.json")))
    assert program.runs() == [], "a refused ticket left a run behind"
    refused(program.ask("status", "refused"))


def test_a_record_that_cannot_be_read_is_no_unknown_run(program, outside, ticket):
    run = program.start(ticket).wait()
    program.status(run.line())
    program.spoil_home()
    for question in (["status", run.line()], ["runs"]):
        refused(program.ask(*question), code=6)


def test_a_printed_run_is_known_after_each_of_25_kills(each, lab_session, ticket):
    random = Random(f"{lab_session.seed} kills")
    points = [f"kill {number}, as its id is printed" for number in range(1, 11)]
    points += [f"kill {number}, after {random.randrange(10)} events outside" for number in range(11, 26)]

    def killed_after(program, point):
        run = program.start(ticket)
        if "printed" in point:
            run.line()
        else:
            events = int(point.split()[3])
            run.wait_until(lambda: len(program.outside.events) >= events or not run.running, f"make {events} events")
        program.kill(run)
        if "\n" in run.stdout:
            consistent(program.status(run.line()), run.line())
        else:
            for record in program.runs():
                consistent(record, record.get("id"))

    each(points, killed_after)
