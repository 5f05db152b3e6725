"""What is remembered of each conversation: its end, within a fixed budget of turns and of tokens.

Memory is what the model is reminded of. It is not the record: nothing here is needed to finish a run.
"""

import json

from . import outside, retry
from .exits import Exit
from .storage import transaction

MAX_TURNS, MAX_TOKENS = 20, 600  # tokens: white-space separated words
CUT = "[cut]"
SCHEMA = "CREATE TABLE IF NOT EXISTS memory (conversation TEXT PRIMARY KEY, turns TEXT NOT NULL)"


def _size(turns):
    return sum(len(turn["content"].split()) for turn in turns)


def bounded(turns):
    """The end of a conversation that fits the budget. It begins with a user turn; the newest turn is always in it."""
    starts = [index for index, turn in enumerate(turns) if turn["role"] == "user"]
    while len(starts) > 1 and (len(turns) - starts[0] > MAX_TURNS or _size(turns[starts[0]:]) > MAX_TOKENS):
        starts.pop(0)
    turns = turns[starts[0]:]
    if _size(turns) > MAX_TOKENS:
        # The newest exchange alone is too long: a turn may have its equal share, and what the shorter one leaves.
        share = MAX_TOKENS // len(turns)
        spare = sum(max(0, share - _size([turn])) for turn in turns)
        turns = [_cut(turn, share + spare) if _size([turn]) > share else turn for turn in turns]
    return turns


def _cut(turn, size):
    words = turn["content"].split()
    return turn if len(words) <= size else {**turn, "content": " ".join([*words[:size - 1], CUT])}


def _read(database, conversation):
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'memory'").fetchone():
        return []
    rows = database.execute("SELECT turns FROM memory WHERE conversation = ?", (conversation,)).fetchall()
    return json.loads(rows[0][0]) if rows else []


def turns(conversation):
    """What is remembered of a conversation, oldest turn first, as {"role", "content"}. None is no conversation."""
    with transaction("DEFERRED") as database:
        return _read(database, conversation)


def remember(conversation, question, answer):
    """Add one exchange, and forget from the oldest end what no longer fits, in the same transaction."""
    exchange = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    with transaction() as database:
        database.execute(SCHEMA)
        kept = bounded([*_read(database, conversation), *exchange])
        database.execute("INSERT OR REPLACE INTO memory VALUES (?, ?)", (conversation, json.dumps(kept)))


def memory(conversation):
    """The answer to the verb `memory`."""
    kept = turns(conversation)
    policy = {"max_turns": MAX_TURNS, "max_tokens": MAX_TOKENS, "eviction": "turns"}
    return {"conversation": conversation, "policy": policy, "turns": kept, "tokens": _size(kept)}


def forget(conversation):
    with transaction() as database:
        database.execute(SCHEMA)
        database.execute("DELETE FROM memory WHERE conversation = ?", (conversation,))


class GaveUp(Exit):
    code = 3


def chat(conversation, lines):
    """Answer each line of `lines`; yields the model's replies. Raises GaveUp where the model fails too often for one."""
    kept = turns(conversation)
    try:
        for line in lines:
            reply = _ask(bounded([*kept, {"role": "user", "content": line}]))
            kept = bounded([*kept, {"role": "user", "content": line}, {"role": "assistant", "content": reply}])
            yield reply
    finally:
        with transaction() as database:
            database.execute(SCHEMA)
            database.execute("INSERT OR REPLACE INTO memory VALUES (?, ?)", (conversation, json.dumps(kept)))


def _ask(messages):
    for failures in range(1, retry.MOST_FAILURES + 1):
        try:
            return outside.ask(messages)
        except outside.OutsideError as error:
            if retry.is_final(error) or failures == retry.MOST_FAILURES:
                raise GaveUp(f"the model gave no answer in {retry.times(failures)}; the last one: {error}") from None
            retry.pause(failures, error)
