"""Lab 03, the closer look: a twin's refund, a mail service that cannot be asked, a record that cannot be read."""

import pytest

from labs.harness.clock import next_second
from labs.harness.judge import handled_once, refused, results_of
from labs.harness.kills.boundary import killed_at
from labs.harness.outside import Fault


def test_a_refund_of_the_same_order_is_not_taken_for_its_own(program, outside, ticket):
    outside.plan(Fault("model", "repeat", times=None), Fault("refund", "hold_before", nth=2))
    program.start(ticket).wait()
    next_second()
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
    for deed in ("answer", "garbage"):   # no, and no sense: neither says that there is no mail
        outside.plan(Fault("mail_lookup", deed, times=None), Fault("mail", "hold_before", times=None))
        resumed = program.resume(run.line())
        program.until(resumed, lambda: not resumed.running or outside.held(), "end")
        assert not outside.held(), "the mail may have been sent, nobody could be asked about it, and it is being sent again"
        assert resumed.code == 4, f"{resumed} {resumed.end}; the run cannot know about its mail: it should be exit code 4"
        record = program.status(run.line())
        assert record.get("state") == "waiting", f"the run should be `waiting`, it is {record.get('state')!r}"
        assert isinstance(record.get("reason"), str) and record["reason"].strip(), "a waiting run should give a `reason`"
    outside.plan()
    if when == "before":   # what was true of the mail once need not be true any more
        killed_at(program, "mail", "after", lambda: program.resume(run.line()))
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
