"""Lab 01, the closer look: two runs at once, reading while another process writes, time stamps, 24 kills."""

from datetime import datetime, timedelta, timezone
from random import Random

from labs.harness.clock import next_second
from labs.harness.judge import consistent, handled_once, refused, results_of
from labs.harness.kills.boundary import BOUNDARIES, held_at, killed_at
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


def test_printed_runs_stay_known_through_24_kills(each, lab_session, ticket):
    """Each of four homes sees a kill at every boundary, in an order of its own: no run may harm those that died before it.

    The starts in a home are a second apart: what two runs of one moment are called is judged elsewhere.
    """
    def killed_six_times(program, home):
        boundaries = Random(f"{lab_session.seed} {home}").sample(BOUNDARIES, len(BOUNDARIES))
        tickets, finished = {}, {}
        for number, (kind, when) in enumerate(boundaries, 1):
            its_ticket = make_ticket(f"{ticket['ticket_id']} {home} {number}")
            next_second()
            run, _ = killed_at(program, kind, when, lambda: program.start(its_ticket))
            tickets[run.line()] = its_ticket
            for begun, (run_id, its_ticket) in enumerate(tickets.items(), 1):
                record = program.status(run_id)
                consistent(record, run_id)
                assert record.get("task") == its_ticket, f"the record of {run_id} has not its own ticket, after {number} runs were killed"
                results = results_of(record)
                assert finished.get(run_id, {}).items() <= results.items(), f"the record of {run_id} has lost a result, after {number} runs were killed"
                finished[run_id] = results
                # A program may go on with all runs at each start, and count each kill as an attempt: five of them are its end.
                assert record["state"] != "failed" or number - begun > 3, f"{run_id} was killed, and no step of it failed; its record says `failed`"
        listed = [record.get("id") for record in program.runs()]
        assert listed == list(tickets), f"`runs` should list the six runs that were killed in the order of their starts, {', '.join(tickets)}; it lists {', '.join(map(str, listed))}"

    each([f"home {number}" for number in range(1, 5)], killed_six_times)
