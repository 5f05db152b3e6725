"""What happened, told in a few lines: what the program did, what the outside saw, what that means."""

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
        seen = [text for request in requests if (text := _seen(request, program))]
        if seen:
            lines += wrapped("the outside", "; ".join(seen))
    return lines


def labelled(label, text):
    """A line of the story that is not wrapped: a path or a command, to be copied."""
    return f"  {label:<13}  {text}"


def wrapped(label, text):
    """A line of the story, on as many lines as it needs."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {label:<13}  ", subsequent_indent=" " * 17, break_long_words=True)


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
            parts.append(f"{name} ✓" if request.sent.status < 400 else f"{name} {request.sent.status}")
        else:
            parts.append(name)
    last = requests[-1] if requests else None
    if process.killed and last is not None and last.status != "answered":
        when = "acted on, unanswered" if last.acted else "not acted on"
        parts[-1] += f" ✂ killed (SIGKILL), the request {when}"
    elif process.killed:
        parts.append("✂ killed (SIGKILL)")
    else:
        parts.append(process.end)
    return " → ".join(parts)


def _seen(request, program):
    if request.effect and request.kind == "refund":
        refund = request.effect
        others = [other for other in program.outside.of("refund") if other.effect and other.number < request.number]
        nth = "" if not others else ", ONE MORE"
        return (f"refund {refund['refund_id']} of ${refund['amount_cents'] // 100}.{refund['amount_cents'] % 100:02} "
                f"for {refund['order_id']}, {_key(request)}{nth}")
    if request.effect and request.kind == "mail":
        others = [other for other in program.outside.of("mail") if other.effect and other.number < request.number]
        nth = "" if not others else ", ONE MORE"
        return f"mail to {request.effect['to']}, {_key(request)}{nth}"
    if request.kind == "refund" and request.acted and request.made.status == 200:
        return f"the same refund asked for again, {_key(request)}: no second one"
    return None


def _key(request):
    if request.key is None:
        return "no key"
    return f"key {request.key if len(request.key) <= 20 else request.key[:12] + '…' + request.key[-7:]}"
