"""What is remembered of each conversation: a list that only grows."""

from . import outside

_turns = {}


def turns(conversation):
    """The turns of a conversation so far, oldest first, as {"role", "content"}. None is no conversation."""
    return _turns.get(conversation, [])


def remember(conversation, question, answer):
    """Add one exchange: what the user said and what was answered."""
    exchange = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    _turns.setdefault(conversation, []).extend(exchange)


def chat(conversation, lines):
    """Answer each line of `lines`; yields the model's replies."""
    for line in lines:
        reply = outside.ask([*turns(conversation), {"role": "user", "content": line}])
        remember(conversation, line, reply)
        yield reply
