"""Programs that fail, for notebook 05: under kills, killed in the same place at each start, and refused in many ways."""

import re

from experiment import TICKET, trial
from gaps import KILL, planted, statements
from labs.harness.outside import Fault
from plots import BAD, GOOD, MUTED, plot

STARTS = 7   # of a program that is killed at each; one that counts its attempts to five has ended by the sixth


def down(one, kind="refund", **how):
    """Let this kind of request fail for ever, with 503 where nothing else is said."""
    one.outside.plan(Fault(kind, "answer", times=None, **how))


def under_kills(flow, nth=3, starts=8):
    """Payments are down, and each process is killed while its `nth` refund request is held, then the run is resumed.

    Returns a list for each process: for each of its requests the number of failures that it counted, None for the one it was
    killed in. It ends where a process ends by itself, or after this many `starts`.
    """
    counted = []
    with trial(flow) as one:
        run = None
        for _ in range(starts):
            one.outside.plan(Fault("refund", "answer", times=nth - 1), Fault("refund", "hold_before", nth=nth))
            process = one.program.resume(run) if run else one.program.start(TICKET)
            process.wait_until(lambda: one.outside.held() or not process.running, "send a refund request, or end")
            if ended := not process.running:
                process.wait()
            else:
                one.program.kill(process)
            run = run or process.line()
            counted.append([*map(int, re.findall(r"^failure (\d+)$", process.stdout, re.M)), *([] if ended else [None])])
            if ended:
                break
    return counted


def attempts_over_time(title, found, limit):
    """A Picture of what each program counts at each of its requests. `found` are {name: (what under_kills() returned, whether it is right)}."""
    def draw(axes):
        for (name, (processes, good)), style in zip(found.items(), ("--", "-")):
            color, places, counts = GOOD if good else BAD, [], []
            for counted in processes:
                for count in counted:
                    places.append(len(places) + 1)
                    counts.append(count if count is not None else counts[-1] if counts else 0)
                    axes.plot(places[-1], counts[-1], "x" if count is None else "o", color=color, markersize=9 if count is None else 5)
            axes.plot(places, counts, style, color=color, linewidth=1)
            axes.annotate(name, (places[-1], counts[-1]), (8, 5), textcoords="offset points", color=color)
        axes.axhline(limit, color=MUTED, linewidth=1, linestyle="-.")
        axes.annotate(f"the limit: {limit}", (1, limit), (0, 4), textcoords="offset points", color=MUTED)
        axes.set_xlabel("request (o: answered with an error, x: the program was killed in it)")
        axes.set_ylabel("failures counted")
        axes.set_xlim(0, 1.25 * max(sum(map(len, processes)) for processes, _ in found.values()))
        axes.set_ylim(0, limit + 1)

    return plot(title, "\n".join(f"{name}: {in_words(processes)}" for name, (processes, _) in found.items()), draw)


def in_words(processes):
    """What under_kills() returned, as a text: each process in brackets."""
    return " ".join(f"[{' '.join('killed' if count is None else str(count) for count in counted)}]" for counted in processes)


def killed_at_each_start(flow, function):
    """Payments are down, and the program dies in the same gap of a function at each of STARTS starts, or until it ends by itself.

    Returns for each gap whether that came to an end or sent nothing, and what was sent and what the record says, in words.
    """
    found = []
    for gap in range(len(statements(flow, function))):
        with trial(planted(flow, function, KILL, [gap])) as one:
            down(one)
            process = one.program.start(TICKET).wait()
            run, starts = process.line(), 1
            while process.code == -9 and starts < STARTS:
                process, starts = one.program.resume(run).wait(), starts + 1
            if process.code not in (-9, 0, 3):
                raise RuntimeError(f"in gap {gap} the flow failed by itself: {process} {one.blank(process.end)}: {process.last_words}")
            record, sent = one.program.status(run), len(one.outside.of("refund"))
            found.append((record["state"] != "running" or not sent,
                          f"{starts} starts, {sent} requests; count {record['count']}, {record['state']}"))
    return found


def killed_in_first_attempts(flow, kills):
    """The program is killed in each of its first attempts, before payments act, then it is left alone, and all is well. In words, what came of it."""
    with trial(flow) as one:
        run = None
        for _ in range(kills):
            one.outside.plan(Fault("refund", "hold_before"))
            process = one.program.resume(run) if run else one.program.start(TICKET)
            one.program.until_held(process)
            one.program.kill(process)
            run = run or process.line()
        one.outside.plan()
        one.program.resume(run).wait()
        return came_of(one, run)


def never_killed(flow):
    """Payments are down, and nobody kills the program. In words, what came of it."""
    with trial(flow) as one:
        down(one)
        return came_of(one, one.program.start(TICKET).wait().line())


def came_of(one, run):
    """How many refund requests were sent, and what the record says, in words."""
    sent, state = len(one.outside.of("refund")), one.program.status(run)["state"]
    return f"{sent} sent, {state}"


# {an answer of payments: (the deed of a Fault, its status, whether it passes)}
ANSWERS = {
    "402": ("answer", 402, False), "422": ("answer", 422, False), "409": ("answer", 409, True), "425": ("answer", 425, True),
    "429": ("answer", 429, True), "500": ("fail_after", 500, True), "503": ("answer", 503, True), "no answer": ("close", 503, True)}


def meets_each_answer(flow):
    """The flow meets each of ANSWERS, those that pass twice, others for ever. Returns for each what came of it, in words, and whether it is right."""
    found = []
    for deed, status, passes in ANSWERS.values():
        with trial(flow) as one:
            one.outside.plan(Fault("refund", deed, times=2 if passes else None, status=status))
            process = one.program.start(TICKET).wait()
            came = came_of(one, process.line())
            found.append(f"{'✓' if came == ('3 sent, done' if passes else '1 sent, failed') else '✗'} {came}")
    return found


def mail_lost(flow):
    """The first mail's answer is lost; the same, and every look-up fails; then all is well, and it is resumed. Returns what came of each."""
    lost, no_look = Fault("mail", "close"), Fault("mail_lookup", "answer", times=None)
    with trial(flow) as one:
        one.outside.plan(lost)
        found = [mails(one, one.program.start(TICKET).wait().line())]
    with trial(flow) as one:
        one.outside.plan(lost, no_look)
        run = one.program.start(TICKET).wait().line()
        found.append(mails(one, run))
        one.outside.plan()
        one.program.resume(run).wait()
        found.append(mails(one, run))
    return found


def mails(one, run):
    """How many mails the customer has, and what the record says, in words. Right is one mail, and no word that it failed."""
    count, state = len(one.outside.mails), one.program.status(run)["state"]
    return f"{'✓' if count == 1 and state != 'failed' else '✗'} {count} mail{'' if count == 1 else 's'}, {state}"


def resumed_afterwards(flow, *faults):
    """A run meets these faults; then all is well, and it is resumed. Returns exit code, requests of that resume, its state then; and the reason."""
    with trial(flow) as one:
        one.outside.plan(*faults)
        process = one.program.start(TICKET).wait()
        run, before, reason = process.line(), len(one.outside.requests), one.program.status(process.line())["reason"]
        one.outside.plan()
        one.program.resume(run).wait()
        return [str(process.code), str(len(one.outside.requests) - before), one.program.status(run)["state"]], reason


def planned_waits(flow, retry_after=None):
    """Payments fail for ever. Returns the waits that the flow plans, in seconds; nobody waits. The third answer asks for `retry_after` seconds."""
    with trial(flow) as one:
        one.outside.plan(*([Fault("refund", "answer", nth=3, status=429, retry_after=retry_after)] if retry_after else []),
                         Fault("refund", "answer", times=None))
        process = one.program.start(TICKET).wait()
        return [int(seconds) for seconds in re.findall(r"^wait (\d+) s$", process.stdout, re.M)]


def waits_over_time(title, found):
    """A Picture of when attempts are made, in planned seconds from the first one. `found` are {name: waits in seconds}."""
    def draw(axes):
        for row, (name, waits) in enumerate(found.items()):
            times = [sum(waits[:number]) for number in range(len(waits) + 1)]
            axes.plot(times, [row] * len(times), "o-", color=MUTED, markerfacecolor=GOOD, markeredgecolor=GOOD)
            axes.annotate(" + ".join(map(str, waits)) + f" = {times[-1]} s", (times[-1], row), (10, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(found)), list(found))
        axes.set_ylim(len(found) - 0.5, -0.5)
        axes.set_xlim(-0.5, 1.4 * max(map(sum, found.values())))
        axes.set_xlabel("seconds since the first attempt, as planned (o: an attempt)")

    return plot(title, "\n".join(f"{name}: waits {', '.join(map(str, waits))} s" for name, waits in found.items()), draw, height=240)
