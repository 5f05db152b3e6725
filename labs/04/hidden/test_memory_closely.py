"""Lab 04, the closer look: three thousand exchanges, turns that are too long, what makes room, and other people's orders."""

import pytest

from labs.harness.judge import handled_once
from labs.harness.outside.model import WINDOW
from labs.harness.remembering import BESIDES, CUT, Policy, bounded, holds, prompted, turns_of


@pytest.mark.timeout(300)
def test_nothing_grows_over_3000_exchanges(program, outside):
    chat = program.chat("C-1")
    lines = [f"turn {number}: is there any news of parcel P-{number * 7919}, of which I know nothing, " + "really nothing, " * 10 + "at all"
             for number in range(1, 3001)]
    conversation, first = [], None
    for said in range(0, 3000, 250):
        conversation += program.say(chat, lines[said:said + 250], said)
        if said + 250 == 1500:
            first = chat.resident, program.home_size
        elif first:
            resident, size = chat.resident - first[0], program.home_size - first[1]
            assert resident <= 1 << 20, f"since exchange 1,500 the process grew by {resident >> 10} KiB, in {said - 1250} exchanges"
            assert size <= 256 << 10, f"since exchange 1,500 LAB_HOME grew by {size >> 10} KiB, in {said - 1250} exchanges"
    chat.close_stdin()
    chat.wait()
    memory = program.memory("C-1")
    bounded(memory, conversation)
    for number, request in enumerate(outside.of("model")):
        prompted(request, conversation[:2 * number + 1], Policy(memory))


def test_a_turn_over_the_budget_is_cut_and_says_so(program, outside):
    program.converse("C-1", ["hello"])
    policy = Policy(program.memory("C-1"))
    for number, size in enumerate((policy.max_tokens + 1, 3 * policy.max_tokens)):
        name = f"C-{number + 2}"
        conversation = program.converse(name, [" ".join(f"w{word}" for word in range(size))])
        prompted(outside.of("model")[-1], conversation[:1], policy)
        kept = bounded(program.memory(name), conversation)
        assert kept[0]["content"].split()[-1] == CUT, f"a turn of {size} tokens is over the budget; it should end with {CUT}"
        assert len(kept) == 2, "of an exchange whose question is too long both turns should be kept, the question cut"


def test_what_is_said_to_make_room_makes_room(program):
    program.converse("C-1", ["hello"])
    policy = Policy(program.memory("C-1"))
    # By turns: many short ones; by tokens or summary: ones of a fifth of the budget.
    words = 1 if policy.eviction == "turns" else max(1, policy.max_tokens // 5)
    count = policy.max_turns // 2 + 3 if policy.eviction == "turns" else 8
    conversation = program.converse("C-2", [" ".join([f"w{number}"] * words) for number in range(count)])
    memory = program.memory("C-2")
    kept = bounded(memory, conversation)
    if policy.eviction == "turns":
        assert len(kept) > policy.max_turns - 2, f"eviction is by turns, and of {policy.max_turns} turns only {len(kept)} are kept"
    elif policy.eviction == "tokens":
        more = sum(len(turn["content"].split()) for turn in conversation[-len(kept) - 2:])
        assert more > policy.max_tokens, "eviction is by tokens, and an exchange was dropped that would have fitted"
    else:
        assert turns_of(memory)[0]["role"] == "system", "eviction is by summary, and memory begins with none"


def test_the_flow_takes_nothing_from_memory(program, outside, ticket):
    ticket["conversation"] = "C-1"
    other = [f"I also have order A-{number}, paid ${number}.00, and nobody answers me" for number in range(11, 61)]
    conversation = program.converse("C-1", other)
    policy = Policy(program.memory("C-1"))
    run = program.start(ticket).wait()
    record = handled_once(program, run.line(), ticket, model_calls=len(other) + 1)
    order = ticket["text"].split()[1]
    found = record["results"]["triage"]["order_id"]
    assert found == order, f"the ticket is about order {order}, the run is about {found}"
    prompt = outside.of("model")[-1]
    allowed = policy.max_tokens + len(ticket["text"].split()) + BESIDES
    assert prompt.tokens <= min(allowed, WINDOW), f"the ticket's prompt had {prompt.tokens} tokens, {allowed} are allowed"
    assert any(holds(prompt.body["messages"], turn) for turn in conversation[-2:]), "the model was asked without the conversation's memory"
