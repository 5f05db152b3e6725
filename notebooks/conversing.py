"""Chats for notebook 04: what is asked, what the model is sent, what is kept, and what is wrong with what is kept."""

import json

import experiment   # noqa: F401 - it says which kit `labs` is of
from labs.harness.outside.model import tokens

from pictures import grid
from plots import BAD, GOOD, MUTED, plot

CONVERSATION = "C-7"


def questions(count, first=1):
    """`count` questions of a customer who wants news, of 9 tokens each; the model answers each with 4."""
    return [f"turn {number}: is there any news of parcel P-{number * 7919}" for number in range(first, first + count)]


def chat(one, lines):
    """Chat through these lines in a process of its own, to its end. Returns the Process. Prints how many were answered, and how it ended."""
    process = one.program.ask("chat", CONVERSATION, stdin="".join(f"{line}\n" for line in lines).encode())
    print(f"$ python -m starter chat {CONVERSATION}     asked {len(lines)}, answered {process.stdout.count(chr(10))}")
    if process.code:
        print(f"{process.last_words}\nexit code {process.code}")
    return process


def sent(one):
    """How many tokens the model was sent with each question of all chats so far, the refused ones too."""
    return [request.tokens for request in one.outside.of("model")]


def bytes_kept(one, count):
    """Chat through `count` questions, one at a time. Returns how many bytes LAB_HOME holds after each reply."""
    process, kept = one.program.chat(CONVERSATION), []
    for number, line in enumerate(questions(count)):
        one.program.say(process, [line], number)
        kept.append(one.program.home_size)
    process.close_stdin()
    process.wait()
    return kept


def entries_kept(one):
    """How many turns the file of the conversation holds in LAB_HOME."""
    return len(json.loads((one.program.home / f"memory-{CONVERSATION}").read_text()))


def memory_against_turns(title, unit, lines, bound=None):
    """A Picture of one number per turn. `lines` are {name: (values, whether that is all right)}, `bound` is (name, value)."""
    def draw(axes):
        for (name, (values, good)), style in zip(lines.items(), ("-", "--", ":")):
            turns = range(1, len(values) + 1)
            axes.plot(turns, values, style, color=GOOD if good else BAD, linewidth=2)
            axes.annotate(name, (turns[-1], values[-1]), (-4, 8), textcoords="offset points", ha="right", color=GOOD if good else BAD)
        if bound:
            axes.axhline(bound[1], color=MUTED, linewidth=1, linestyle="-.")
            axes.annotate(f"{bound[0]}: {bound[1]:,}", (0.28, bound[1]), (0, 4), xycoords=axes.get_yaxis_transform(),
                          textcoords="offset points", color=MUTED)
        axes.set_xlabel("turn")
        axes.set_ylabel(unit)
        axes.set_ylim(0, max(bound[1] if bound else 0, *(max(values) for values, _ in lines.values())) * 1.12)
        axes.yaxis.set_major_formatter("{x:,.0f}")

    told = [f"{name}: {values[0]:,} {unit} at turn 1, {values[len(values) // 2 - 1]:,} at turn {len(values) // 2}, "
            f"{values[-1]:,} at turn {len(values)}" for name, (values, _) in lines.items()]
    return plot(title, "\n".join([*told, *([f"{bound[0]}: {bound[1]:,}"] if bound else [])]), draw)


def kept_and_said(one, lines):
    """Chat through the lines. Returns the turns that `memory` prints afterwards, and all turns that were said."""
    said = one.program.converse(CONVERSATION, lines)
    return one.program.memory(CONVERSATION)["turns"], said


def what_is_left(title, found):
    """A Picture of which turns are kept. `found` are {name: (kept, said)}, all of conversations of one length."""
    rows, count = {}, 0
    for name, (kept, said) in found.items():
        rows[name], count = ["disk" if turn in kept else "" for turn in said], len(said)
    return grid(title, [f"{'qa'[place % 2]}{place // 2 + 1}" for place in range(count)], rows)


def what_is_wrong(kept, said, budget):
    """What is wrong with the turns that are kept of a conversation, in a sentence for each; nothing where nothing is.

    A turn may be cut: its last word is then `[cut]`.
    """
    size, places = tokens(kept), _places(kept, said)
    if size > budget:
        yield f"it holds {size} tokens, and the budget is {budget}"
    if not kept:
        yield "nothing is kept"
        return
    if kept[0]["role"] != "user":
        yield "it begins with a reply whose question is gone"
    if not _same(kept[-1], said[-1]):
        yield "what was said last is gone"
    if len(places) < len(kept):
        yield "it has a turn that nobody said like that, or not in this order"
    if any(later != place + 1 for place, later in zip(places, places[1:])):
        yield "it has a hole: what now stands side by side was not said side by side"


def _places(kept, said):
    """Where in the conversation the turns that are kept were said, in order; found from the end. Without those that nobody said."""
    places, end = [], len(said)
    for turn in reversed(kept):
        found = [place for place in range(end) if _same(turn, said[place])]
        if found:
            places, end = [found[-1], *places], found[-1]
    return places


def _same(kept, said):
    words, others = kept["content"].split(), said["content"].split()
    return kept["role"] == said["role"] and (words == others or words[-1:] == ["[cut]"] and words[:-1] == others[:len(words) - 1])


def tell_what_is_wrong(found, budget):
    """Print for each of {name: (kept, said)} its size, and what is wrong with it."""
    for name, (kept, said) in found.items():
        wrong = list(what_is_wrong(kept, said, budget))
        print(f"{'✗' if wrong else '✓'}  {name}: {len(kept)} turns, {tokens(kept)} tokens; {'; '.join(wrong) or 'the end of the conversation'}")


def orders(one, resumed, due):
    """Which orders were refunded, in words, and whether order `due` is among them and none is twice; `resumed` is the last Process."""
    made = [refund["order_id"] for refund in one.outside.refunds]
    sign = "✓" if due in made and len(set(made)) == len(made) else "✗"
    return f"{sign} {', '.join(made) or 'none'}" + (f": {resumed.last_words}" if resumed.code else "")
