"""What is remembered of each conversation: a list that only grows."""

from . import outside

_turns = {}


def turns(conversation):
    """The turns of a conversation so far, oldest first, as {"role", "content"}."""
    return _turns.setdefault(conversation, [])


def remember(conversation, role, content):
    turns(conversation).append({"role": role, "content": content})


def chat(conversation, lines):
    """Answer each line of `lines`; yields the model's replies."""
    for line in lines:
        remember(conversation, "user", line)
        reply = outside.ask(turns(conversation))
        remember(conversation, "assistant", reply)
        yield reply
