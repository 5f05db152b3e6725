"""What happened, told in a few lines: what the program did, what the outside saw, what that means."""

import itertools
import re
import textwrap
from collections import Counter

WIDTH = 110
NAMES = {"model": "model", "refund": "refund", "mail": "mail", "refund_lookup": "refund look-up",
         "mail_lookup": "mail look-up", "malformed": "a body that is no JSON", "unknown": "an unknown path"}
SHOWN = 4     # starts of the program; of more, the first and the last ones
KINDS = 3     # of other failures that are told beside the first one
SAID = "; it said last: "   # between why a check failed and the last words of a program that crashed
OTHERS = ". The others: "      # between the first failure of several and those of another kind
EXCEPTION = re.compile(r"“?((?:\w+\.)*\w*(?:Error|Exception)\w*)")
LONGEST = 900  # characters under one label; of more, the beginning and the end


def tell(program, gone_on_with=True):
    """The story of all that `program` did, as lines; where not `gone_on_with`, in a word of that which judged() leaves out."""
    processes = judged(program, gone_on_with)
    sent = {process: [] for process in processes}
    for request in list(program.outside.requests):
        if (process := process_of(program, request)) in sent:
            sent[process].append(request)
    # A question that was answered, and that nothing came of, is no part of the story unless it is its end.
    told = [(process, requests) for process, requests in sent.items()
            if requests or process.killed or process.code != 0 or process is processes[-1]]
    left_out = len(told) - SHOWN
    lines, first = [], True
    for place, (process, requests) in enumerate(told):
        if left_out > 0 and place == SHOWN // 2:
            lines += wrapped("…", f"{counted(left_out, 'more start')}, in the evidence")
        if left_out > 0 and SHOWN // 2 <= place < SHOWN // 2 + left_out:
            continue
        lines += wrapped("your program" if first else "then", _deeds(process, requests))
        first = False
        seen = [text for request in requests if (text := effect_line(request))]
        if seen:
            lines += wrapped("the outside", "; ".join(seen))
    for process in program.processes:
        if process not in processes:
            lines += wrapped("then", f"{str(process).strip('`')}, which is not judged before lab 03")
    return lines


def judged(program, gone_on_with=True):
    """The processes of `program`; where not `gone_on_with`, without the last one that went on with a run. That one is kept if it left a process behind."""
    if gone_on_with:
        return list(program.processes)
    working = [process for process in program.processes if process.arguments[0] in ("start", "resume")]
    left = working[-1] if len(working) > 1 and not working[-1].outlived else None
    return [process for process in program.processes if process is not left]


def labelled(label, text):
    """A line of the story that is not wrapped: a path or a command, to be copied."""
    return f"  {label:<13}  {printable(text)}"


def wrapped(label, text):
    """A line of the story, on as many lines as it needs."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST // 2]} … {text[-LONGEST // 2:]}"
    return textwrap.wrap(printable(" ".join(text.split())), WIDTH, initial_indent=f"  {label:<13}  ",
                         subsequent_indent=" " * 17, break_long_words=True)


def printable(text):
    """The text with a mark in place of whatever a program may have put in it that a terminal, a file or XML cannot show."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def counted(number, one, more=None):
    """A number with its noun, like 1 check, 1,024 checks; `more` is the plural where an s does not make it."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def process_of(program, request):
    """The process that sent a request, or None: by its process group where the socket told it, else by the time."""
    begun = [process for process in reversed(program.processes) if process.begun <= request.received]
    by_group = (process for process in begun if process.pid == request.group)
    by_time = (process for process in begun if process.ended is None or request.received <= process.ended)
    return next(by_group, None) or next(by_time, None)


def _deeds(process, requests):
    parts, last = [str(process).strip("`")], requests[-1] if requests else None
    for request in requests:
        name = NAMES[request.kind]
        if request.status == "answered":
            nonsense = isinstance(request.sent.body, str)
            parts.append(f"{name} {request.sent.status}" if request.sent.status >= 400 else
                         f"{name}, answered with nonsense" if nonsense else f"{name} ✓{_found(request)}")
        elif request.status == "unanswered" and not (process.killed and request is last):
            parts.append(f"{name}, {'acted on and' if request.acted else 'not acted on,'} unanswered")
        else:
            parts.append(name)
    if process.killed and last is not None and last.status != "answered":
        when = "acted on, unanswered" if last.acted else "not acted on"
        parts[-1] += f" ✂ killed (SIGKILL), the request {when}"
    elif process.killed:
        parts.append("✂ killed (SIGKILL)")
    else:
        parts.append(process.end + (f": {process.complaint}" if process.code and process.complaint else ""))
    runs = [(part, len(list(same))) for part, same in itertools.groupby(parts)]
    return " → ".join(part if count == 1 else f"{part} ×{count}" for part, count in runs)


def _found(request):
    if request.kind not in ("refund_lookup", "mail_lookup") or not request.made or request.made.status != 200:
        return ""
    found, = request.made.body.values()
    return f" ({len(found) or 'none'} there)"


def event_line(event):
    """One event of the ledger in words, or None for one that is not worth a line. For a person who watches."""
    request = event.request
    if event.what == "received":
        return f"request{_asks(request)}"
    if event.what == "acted":
        if request.kind == "model" and request.made.status == 200:
            return f"answer made: {request.made.body['choices'][0]['message']['content']}"
        if request.made.status >= 400:
            return f"refused: {request.made.status} {request.made.body['error']['message']}"
        return effect_line(request) or (f"looked up:{_found(request)}" if _found(request) else None)
    return {"held before": "held: not acted on yet", "held after": "held: acted on, the answer is kept back",
            "answered": f"answered {request.sent.status}" if request.sent else None,
            "unanswered": "the answer reached nobody", "dropped": "dropped: the client is gone, nothing was done"}[event.what]


def _asks(request):
    body = request.body if isinstance(request.body, dict) else {}
    if request.kind == "model":
        return "" if request.tokens is None else f", {counted(request.tokens, 'token')}"
    if request.kind == "refund":
        amount = body.get("amount_cents")
        return f" for {body.get('order_id')}, {money(amount) if isinstance(amount, int) else amount}, {_key(request)}"
    if request.kind == "mail":
        return f" to {body.get('to')}, {_key(request)}"
    return f" for {', '.join(request.query.values())}" if request.query else ""


def effect_line(request):
    """What a request did that a customer would notice, in words; None where it did nothing of the kind."""
    if request.effect and request.kind == "refund":
        return (f"refund {request.effect['refund_id']} of {money(request.effect['amount_cents'])} for "
                f"{request.effect['order_id']}, {_key(request)}{', ONE MORE for this order' if request.nth > 1 else ''}")
    if request.effect and request.kind == "mail":
        return f"mail to {request.effect['to']}, {_key(request)}{', ONE MORE of the same' if request.nth > 1 else ''}"
    if request.kind == "refund" and request.acted and request.made.status == 200:
        return f"the same refund asked for again, {_key(request)}: no second one"
    return None


def more_like(whys):
    """How many of several failures are like the first, and what the others are: two texts, "" where all are like it.

    `whys` is a sentence for each. Those that begin alike, up to a colon, and name the same exception behind it, are of one kind: what else
    follows is a line, an id, a quotation.
    """
    (_, alike), *others = Counter(map(_kind, whys)).items()
    others.sort(key=lambda entry: -entry[1])
    shown, left = others[:KINDS], sum(number for _, number in others[KINDS:])
    said = [f"{number:,} × {kind}" for kind, number in shown] + [f"{left:,} × something else"] * bool(left)
    return (f", {alike:,} of them so", f"{OTHERS}{'; '.join(said)}") if others else ("", "")


def _kind(why):
    begins, _, rest = why.partition("\n")[0].partition(": ")
    exception = EXCEPTION.match(rest)
    return textwrap.shorten(begins + (f": {exception[1]}" if exception else ""), 100, placeholder=" …") or "without a word"


def money(cents):
    return f"${cents // 100}.{cents % 100:02}"


def short(identifier):
    """An id that is long enough to be unreadable, cut to what tells it from others."""
    return identifier if len(identifier) <= 12 else f"{identifier[:8]}…"


def _key(request):
    return "no key" if request.key is None else f"key {short(request.key)}"
