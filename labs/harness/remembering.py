"""The judge of memory: whether what is kept of a conversation, and what the model is sent of it, is what it should be."""

from .outside.model import tokens
from .processes import ProgramFault
from .story import counted

CUT = "[cut]"
BESIDES = 200  # tokens of a prompt that are neither memory nor ticket


class Policy:
    """The policy that a program states: `max_turns`, `max_tokens`, `eviction`. Raises ProgramFault for one that is none."""

    def __init__(self, memory):
        policy = memory.get("policy")
        policy = policy if isinstance(policy, dict) else {}
        self.max_turns, self.max_tokens, self.eviction = (policy.get(name) for name in ("max_turns", "max_tokens", "eviction"))
        for name in ("max_turns", "max_tokens"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ProgramFault(f"policy.{name} should be a whole number above 0, it is {value!r}")
        if self.eviction not in ("turns", "tokens", "summary"):
            raise ProgramFault(f"policy.eviction should be turns, tokens or summary, it is {self.eviction!r}")


def turns_of(memory):
    """The turns of what `memory` printed. Raises ProgramFault where they have another shape."""
    turns = memory.get("turns")
    if not isinstance(turns, list) or not all(
            isinstance(turn, dict) and turn.get("role") in ("user", "assistant", "system") and isinstance(turn.get("content"), str)
            for turn in turns):
        raise ProgramFault(f"memory's `turns` should be a list of roles and contents, it is {str(turns)[:160]}")
    return turns


def bounded(memory, conversation):
    """Judge what `memory` printed against all turns of the conversation so far. Raises AssertionError.

    Returns the turns, without a summary in front.
    """
    policy, turns = Policy(memory), turns_of(memory)
    size = tokens(turns)
    assert len(turns) <= policy.max_turns, f"memory holds {counted(len(turns), 'turn')}, its policy allows {policy.max_turns}"
    assert size <= policy.max_tokens, f"memory holds {counted(size, 'token')}, its policy allows {policy.max_tokens}"
    assert memory.get("tokens") == size, f"memory says that it holds {memory.get('tokens')} tokens, its turns have {size}"
    kept = _without_summary(turns, policy)
    assert kept or not conversation, "memory is empty, the newest turn should always be kept"
    _is_the_end(kept, conversation, policy, "memory")
    return kept


def prompted(request, conversation, policy):
    """Judge the prompt of a chat's turn, the last of `conversation`, by what the model was sent. Raises AssertionError."""
    messages = request.body["messages"]
    assert request.tokens <= policy.max_tokens + BESIDES, (
        f"a prompt had {counted(request.tokens, 'token')}; the policy allows {policy.max_tokens} of memory and {BESIDES} besides")
    said = [message for message in messages if message["role"] != "system"]
    assert len(said) <= policy.max_turns, f"a prompt held {counted(len(said), 'turn')}, the policy allows {policy.max_turns}"
    _is_the_end(said, conversation, policy, "a prompt")
    previous = conversation[-3:]
    if len(previous) == 3 and policy.max_turns > 3 and tokens(previous) <= policy.max_tokens // 2:
        assert len(said) >= 3 or all(holds(messages, turn) for turn in previous), "a prompt held nothing of the exchange before, though there was room for it"


def holds(messages, turn):
    """Whether a turn stands somewhere in these messages: as one of them, or within the text of one, like a system message that tells the conversation."""
    words = " ".join(turn["content"].split())
    return any(words in " ".join(message["content"].split()) for message in messages)


def _without_summary(turns, policy):
    if turns and turns[0]["role"] == "system":
        assert policy.eviction == "summary", f"memory begins with a summary, its policy says eviction by {policy.eviction}"
        turns = turns[1:]
    assert not any(turn["role"] == "system" for turn in turns), "a system turn stands in the middle of memory"
    return turns


def _is_the_end(kept, conversation, policy, where):
    """Whether `kept` is the end of the conversation, with no hole, beginning with a user turn."""
    assert not kept or kept[0]["role"] == "user", f"{where} begins with a reply whose question is gone"
    end = conversation[len(conversation) - len(kept):] if len(kept) <= len(conversation) else []
    for have, said in zip(kept, end or conversation):
        assert have["role"] == said["role"] and _same(have["content"], said["content"]), (
            f"{where} should be the end of the conversation with no hole in it; where {_quoted(said, have)} was said it has "
            f"{_quoted(have, said)}")
    assert len(kept) <= len(conversation), f"{where} holds {counted(len(kept), 'turn')}, the conversation had {len(conversation)}"


def _quoted(turn, other):
    """Who said what, from a little before the first word that differs from the other turn."""
    words, others = turn["content"].split(), other["content"].split()
    same = next((number for number, pair in enumerate(zip(words, others)) if pair[0] != pair[1]), min(len(words), len(others)))
    first = max(0, same - 4) if turn["role"] == other["role"] else 0
    return f"{turn['role']}: “{'… ' if first else ''}{' '.join(words[first:])[:60]}”"


def _same(have, said):
    have, said = have.split(), said.split()
    return have == said or have[-1:] == [CUT] and have[:-1] == said[:len(have) - 1] and len(have) <= len(said)
