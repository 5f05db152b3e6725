"""Lab 04, bounded conversation memory: it keeps its stated policy, and the record does without it."""

import pytest

from labs.harness.judge import handled_once
from labs.harness.kills.boundary import killed_at
from labs.harness.remembering import Policy, bounded, prompted, turns_of


def lines(count, first=1):
    return [f"turn {number}: is there any news of parcel P-{number * 7919}" for number in range(first, first + count)]


@pytest.mark.parametrize("count", [50, 600])
def test_memory_stays_within_its_policy(program, outside, count):
    conversation = program.converse("C-1", lines(count))
    memory = program.memory("C-1")
    bounded(memory, conversation)
    for number, request in enumerate(outside.of("model")):
        prompted(request, conversation[:2 * number + 1], Policy(memory))


def test_memory_survives_a_restart(program, outside):
    conversation = program.converse("C-1", lines(3))
    before = program.memory("C-1")
    conversation += program.converse("C-1", lines(1, first=4))
    prompted(outside.of("model")[-1], conversation[:-1], Policy(before))
    bounded(program.memory("C-1"), conversation)


def test_memory_survives_a_kill_in_the_middle_of_an_exchange(program):
    conversation = program.converse("C-1", lines(1))

    def chat():
        process = program.chat("C-1")
        conversation.extend(program.say(process, lines(2, first=2)))   # of these, nothing but the process's own end could still be to come
        process.write(f"{lines(1, first=4)[0]}\n".encode())
        return process

    killed_at(program, "model", "after", chat, nth=3)
    memory = program.memory("C-1")
    # The turn in progress may be lost, or it is there without its answer.
    unanswered = turns_of(memory)[-1:] == [{"role": "user", "content": lines(1, first=4)[0]}]
    bounded(memory, conversation + turns_of(memory)[-1:] if unanswered else conversation)


def test_two_conversations_stay_apart(program):
    first = program.converse("C-1", lines(3))
    second = program.converse("C-2", lines(3, first=100))
    bounded(program.memory("C-1"), first)
    bounded(program.memory("C-2"), second)
    assert program.forget("C-1").code == 0, "`forget` should end with exit code 0"
    assert turns_of(program.memory("C-1")) == [], "C-1 was forgotten, and memory still has turns of it"
    bounded(program.memory("C-2"), second)


def test_the_record_keeps_what_memory_has_forgotten(program, outside, ticket):
    ticket["conversation"] = "C-1"
    run = program.start(ticket).wait()
    record = handled_once(program, run.line(), ticket)
    exchange = [{"role": "user", "content": ticket["text"]}, {"role": "assistant", "content": outside.mails[0]["body"]}]
    memory = program.memory("C-1")
    assert bounded(memory, exchange), "after the run memory should have the ticket's text and the sent text"

    refund = record["results"]["refund"]["refund_id"]
    program.converse("C-1", lines(Policy(memory).max_turns + 1))
    left = [turn["content"] for turn in turns_of(program.memory("C-1")) if turn["role"] != "system"]
    assert not any(refund in content for content in left), f"memory should be full of newer turns, it still has {refund}"
    assert program.status(run.line()) == record, "the record of the refund changed when memory forgot about it"


def test_a_half_done_run_is_finished_after_its_memory_was_forgotten(program, ticket):
    ticket["conversation"] = "C-1"
    program.converse("C-1", lines(3))
    run, _ = killed_at(program, "mail", "before", lambda: program.start(ticket))
    assert program.forget("C-1").code == 0, "`forget` should end with exit code 0"
    resumed = program.resume(run.line()).wait()
    assert resumed.code == 0, f"{resumed} {resumed.end}; the record does not depend on memory: it should finish the run"
    handled_once(program, run.line(), ticket, model_calls=3 + 1)
