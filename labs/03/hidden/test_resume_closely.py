"""Lab 03, the closer look: killed twice, started twice, a twin's refund, and a mail service that cannot be asked."""

import pytest

from labs.harness.judge import handled_once, refused, results_of
from labs.harness.kills.boundary import IDS, killed_at
from labs.harness.outside import Fault


def test_a_run_killed_again_in_its_resume_is_finished(each, ticket):
    requests = {}

    def resumed(program, first):
        """Kill once and resume undisturbed: this tells how many requests there are to be killed at again."""
        kind, when = first.split("-")
        run, _ = killed_at(program, kind, when, lambda: program.start(ticket))
        sent = len(program.outside.requests)
        once = program.resume(run.line()).wait()
        assert once.code == 0, f"{once} {once.end}; it should finish the run and end with exit code 0"
        requests[first] = len(program.outside.requests) - sent

    def killed_again(program, point):
        first, _, _, nth, _, _, _, moment, *_ = point.split()
        kind, when = first.rstrip(",").split("-")
        run, one = killed_at(program, kind, when, lambda: program.start(ticket))
        _, two = killed_at(program, "any", moment, lambda: program.resume(run.line()), int(nth))
        last = program.resume(run.line()).wait()
        assert last.code == 0, f"{last} {last.end}; it should finish the run and end with exit code 0"
        handled_once(program, run.line(), ticket, model_calls=1 + [one.kind, two.kind].count("model"))

    each(IDS, resumed)
    each([f"{first}, then request {nth} of the resume, {moment} it acted" for first in IDS
          for nth in range(1, requests[first] + 1) for moment in ("before", "after")], killed_again)


@pytest.mark.parametrize("verb", ["start", "resume"])
def test_two_at_once_are_one(each, ticket, verb):
    def two_at_once(program, point):
        if verb == "resume":
            killed_at(program, "refund", "before", lambda: program.start(ticket, "run-7"))
        begin = (lambda: program.start(ticket, "run-7")) if verb == "start" else (lambda: program.resume("run-7"))
        pair = [begin(), begin()]
        codes = sorted(process.wait().code for process in pair)
        assert codes in ([0, 0], [0, 5]), (f"of two processes on one run one should end with exit code 0, the other with 5 "
                                           f"(or wait, then 0); they ended with {codes[0]} and {codes[1]}")
        handled_once(program, "run-7", ticket)

    each([f"try {number}" for number in range(1, 5)], two_at_once)


def test_a_refund_of_the_same_order_is_not_taken_for_its_own(program, outside, ticket):
    outside.plan(Fault("model", "repeat", times=None), Fault("refund", "hold_before", nth=2))
    program.start(ticket).wait()
    second = program.start(ticket)
    program.until_held(second, "send a refund request")
    program.kill(second)
    outside.plan()
    resumed = program.resume(second.line()).wait()
    assert resumed.code == 0, f"{resumed} {resumed.end}; it should finish the run and end with exit code 0"
    assert len(outside.refunds) == 2, f"two runs of one ticket are two refunds, {len(outside.refunds)} was made"
    found, made = results_of(program.status(second.line())).get("refund"), outside.refunds[1]["refund_id"]
    assert found and found["refund_id"] == made, f"the second run's refund is {made}, its record says {found}"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_mail_that_cannot_be_looked_up_is_waited_for(program, outside, ticket, when):
    run, _ = killed_at(program, "mail", when, lambda: program.start(ticket))
    outside.plan(Fault("mail_lookup", "answer", times=None), Fault("mail", "hold_before", times=None))
    resumed = program.resume(run.line())
    program.until(resumed, lambda: not resumed.running or outside.held(), "end")
    assert not outside.held(), "the mail may have been sent, nobody could be asked about it, and it is being sent again"
    assert resumed.code == 4, f"{resumed} {resumed.end}; the run cannot know about its mail: it should be exit code 4"
    record = program.status(run.line())
    assert record.get("state") == "waiting", f"the run should be `waiting`, it is {record.get('state')!r}"
    assert isinstance(record.get("reason"), str) and record["reason"].strip(), "a waiting run should give a `reason`"
    outside.plan()
    resumed = program.resume(run.line()).wait()
    assert resumed.code == 0, f"the mail service can be asked again, and {resumed} {resumed.end}"
    handled_once(program, run.line(), ticket)


def test_a_record_that_cannot_be_read_is_not_begun_anew(program, outside, ticket):
    killed_at(program, "refund", "after", lambda: program.start(ticket, "run-7"))
    program.spoil_home()
    sent = len(outside.requests)
    refused(program.resume("run-7").wait(), code=6)
    refused(program.start(ticket, "run-7").wait(), code=6)
    assert len(outside.requests) == sent, "the record cannot be read, and requests were sent all the same"
