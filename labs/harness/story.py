"""What happened, told in a few lines: what the program did, what the outside saw, what that means."""

import itertools
import textwrap

WIDTH = 110
NAMES = {"model": "model", "refund": "refund", "mail": "mail", "refund_lookup": "refund look-up",
         "mail_lookup": "mail look-up", "malformed": "a body that is no JSON", "unknown": "an unknown path"}
SHOWN = 4  # starts of the program; of more, the first and the last ones


def tell(program):
    """The story of all that `program` did, as lines."""
    told = [(index, process, _requests_of(program, process)) for index, process in enumerate(program.processes)]
    # A question that was answered, and that nothing came of, is no part of the story unless it is its end.
    told = [(index, process, requests) for index, process, requests in told
            if requests or process.killed or process.code != 0 or index == len(program.processes) - 1]
    left_out = len(told) - SHOWN
    lines, first = [], True
    for place, (_, process, requests) in enumerate(told):
        if left_out > 0 and place == SHOWN // 2:
            lines += wrapped("…", f"{left_out} more starts, in the evidence")
        if left_out > 0 and SHOWN // 2 <= place < SHOWN // 2 + left_out:
            continue
        lines += wrapped("your program" if first else "then", _deeds(process, requests))
        first = False
        seen = [text for request in requests if (text := effect_line(program.outside, request))]
        if seen:
            lines += wrapped("the outside", "; ".join(seen))
    return lines


def labelled(label, text):
    """A line of the story that is not wrapped: a path or a command, to be copied."""
    return f"  {label:<13}  {text}"


def wrapped(label, text):
    """A line of the story, on as many lines as it needs."""
    return textwrap.wrap(_printable(text), WIDTH, initial_indent=f"  {label:<13}  ", subsequent_indent=" " * 17, break_long_words=True)


def _printable(text):
    """The text without what a terminal would obey and what no file can hold: control characters, lone surrogates."""
    return "".join(char if char.isprintable() or char in "\t\n\r" else repr(char)[1:-1] for char in text)


def _requests_of(program, process):
    """The requests of one process: by its process group where the socket told it, else by the time."""
    groups = {other.pid for other in program.processes}
    found = []
    for request in list(program.outside.requests):
        if request.group in groups:
            mine = request.group == process.pid
        else:
            mine = process.begun <= request.received <= (process.ended or request.received)
        if mine:
            found.append(request)
    return found


def _deeds(process, requests):
    parts = [str(process).strip("`")]
    for request in requests:
        name = NAMES[request.kind]
        if request.status == "answered":
            nonsense = isinstance(request.sent.body, str)
            parts.append(f"{name} {request.sent.status}" if request.sent.status >= 400 else
                         f"{name}, answered with nonsense" if nonsense else f"{name} ✓{_found(request)}")
        else:
            parts.append(name)
    last = requests[-1] if requests else None
    if process.killed and last is not None and last.status != "answered":
        when = "acted on, unanswered" if last.acted else "not acted on"
        parts[-1] += f" ✂ killed (SIGKILL), the request {when}"
    elif process.killed:
        parts.append("✂ killed (SIGKILL)")
    else:
        parts.append(process.end + (f": “{process.last_words[:160]}”" if process.code and process.last_words else ""))
    runs = [(part, len(list(same))) for part, same in itertools.groupby(parts)]
    return " → ".join(part if count == 1 else f"{part} ×{count}" for part, count in runs)


def _found(request):
    if request.kind not in ("refund_lookup", "mail_lookup") or not request.made or request.made.status != 200:
        return ""
    found, = request.made.body.values()
    return f" ({len(found) or 'none'} there)"


def event_line(account, event):
    """One event of the ledger in words, or None for one that is not worth a line. For a person who watches."""
    request = event.request
    if event.what == "received":
        return f"request{_asks(request)}"
    if event.what == "acted":
        if request.kind == "model" and request.made.status == 200:
            return f"answer made: {request.made.body['choices'][0]['message']['content']}"
        if request.made.status >= 400:
            return f"refused: {request.made.status} {request.made.body['error']['message']}"
        return effect_line(account, request) or (f"looked up:{_found(request)}" if _found(request) else None)
    return {"held before": "held: not acted on yet", "held after": "held: acted on, the answer is kept back",
            "answered": f"answered {request.sent.status}" if request.sent else None,
            "unanswered": "the answer reached nobody", "dropped": "dropped: the client is gone, nothing was done"}[event.what]


def _asks(request):
    body = request.body if isinstance(request.body, dict) else {}
    if request.kind == "model":
        return "" if request.tokens is None else f", {request.tokens} tokens"
    if request.kind == "refund":
        amount = body.get("amount_cents")
        return f" for {body.get('order_id')}, {money(amount) if isinstance(amount, int) else amount}, {_key(request)}"
    if request.kind == "mail":
        return f" to {body.get('to')}, {_key(request)}"
    return f" for {', '.join(request.query.values())}" if request.query else ""


def effect_line(account, request):
    """What a request did that a customer would notice, in words; None where it did nothing of the kind."""
    earlier = [other.effect for other in account.of(request.kind) if other.effect and other.number < request.number]
    if request.effect and request.kind == "refund":
        again = any(other["order_id"] == request.effect["order_id"] for other in earlier)
        return (f"refund {request.effect['refund_id']} of {money(request.effect['amount_cents'])} for "
                f"{request.effect['order_id']}, {_key(request)}{', ONE MORE for this order' if again else ''}")
    if request.effect and request.kind == "mail":
        again = any((other["to"], other["subject"]) == (request.effect["to"], request.effect["subject"]) for other in earlier)
        return f"mail to {request.effect['to']}, {_key(request)}{', ONE MORE of the same' if again else ''}"
    if request.kind == "refund" and request.acted and request.made.status == 200:
        return f"the same refund asked for again, {_key(request)}: no second one"
    return None


def money(cents):
    return f"${cents // 100}.{cents % 100:02}"


def short(identifier):
    """An id that is long enough to be unreadable, cut to what tells it from others."""
    return identifier if len(identifier) <= 12 else f"{identifier[:8]}…"


def _key(request):
    return "no key" if request.key is None else f"key {short(request.key)}"
