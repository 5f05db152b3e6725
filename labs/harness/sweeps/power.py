"""Power cuts: the states of the home that one may leave at any moment of a run, and what the program makes of each."""

import base64
import time

from ..kills.power import WHOLE, Disk, spread
from ..side_by_side import each_done, side_by_side
from .points import CouldNot, at_point
from .result import Result, Stories
from .rules import judged
from .trial import RUN, START, Seen, Trial, files_of, unspoiled

_NAME = "power"
MOST = 1500   # states that are tried; of more, all of the four kinds that say most and evenly spread ones of the rest


def sweep_power(ground, ticket, progress=lambda done, total: None):
    """Record a run, build the states that a power cut may leave before each of its syncs and of its words to others, go on from each.

    Returns a Result. What had been acknowledged must hold: a printed run id, what the outside had been asked.
    """
    began, result, stories = time.monotonic(), Result("power"), Stories(ground)
    try:
        program, process, log = _recorded(ground, ticket)
    except CouldNot as error:
        result.could_not = str(error)
        return result
    if process.code or not process.stdout.startswith(RUN):
        result.blind = f"while it was recorded, and nothing was cut, {process} {process.end}" + (
            ": what is not done does not pass" if process.code else ", and its first line was not the run id: what is not begun does not pass")
    every = list(_cuts(log, program))
    cuts = ground.sample(_at_most(MOST, every))
    result.left_out = len(every) - len(cuts)
    ground.discard(program)

    side_by_side(lambda cut: _gone_on(ground, ticket, stories, process, *cut), cuts, stories.taking(each_done(progress, len(cuts))), ground.threads)
    result.outcomes = stories.outcomes
    result.seconds = time.monotonic() - began
    return result


def _recorded(ground, ticket):
    def recorded():
        program = ground.program(_NAME, like=_NAME)
        process = program.start(ticket, RUN, calls=True, writes=True).wait()
        return program, process.code == START.code, process

    program, _, process = unspoiled(ground, recorded)
    report = process.report
    trouble = report["trouble"] or next((f"the program makes a call that cannot be followed: {entry[2]}"
                                         for entry in report["writes"] if entry[1] == "unknown"), None)
    log = [[at, what, *operands[:-1], base64.b64decode(operands[-1])] if what == "write" else [at, what, *operands]
           for at, what, *operands in report["writes"]]
    if not trouble:
        disk = Disk()
        for _, *entry in log:
            disk.do(*entry)
        # What cannot be read is the program's own doing: names that are too long, for one.
        if _without_shared_memory(next(disk.states())[0]) != _without_shared_memory(files_of(program.home)):
            trouble = "what the program wrote is not what its calls say; perhaps it writes into memory that it shares with a file"
    if trouble:
        ground.discard(program)
        raise CouldNot(trouble)
    return program, process, log


def _at_most(most, cuts):
    told, rest = [], []
    for number, cut in enumerate(cuts):
        (told if cut[0].endswith(WHOLE) else rest).append((number, cut))
    return [cut for _, cut in sorted(told + spread(rest, max(0, most - len(told))), key=lambda pair: pair[0])]


def _without_shared_memory(files):
    """Without what SQLite keeps beside a write-ahead log to be read by others; it makes it anew."""
    return {path: content for path, content in files.items() if not path.endswith("-shm")}


def _cuts(log, program):
    """Each different state once: (point in words, files, whether the id was out, the requests that had been sent)."""
    disk, printed, seen, requests = Disk(), False, set(), program.outside.requests
    sends = [(at, number) for number, (at, what, *_) in enumerate(log) if what == "send"]
    # A request was sent by the last call before it arrived.
    sent_by = [max((number for at, number in sends if at <= request.received), default=-1) for request in requests]
    for number, (_, *entry) in enumerate([*log, [0.0, "the end"]]):
        if entry[0] in ("sync", "syncall", "say", "send", "the end"):
            sent = [request for request, by in zip(requests, sent_by) if by < number]
            for files, how in disk.states():
                state = frozenset(files.items()), printed, len(sent)
                if state not in seen:
                    seen.add(state)
                    yield f"a power cut before {_named(entry)}; {how}", files, printed, sent
        disk.do(*entry)
        printed = printed or entry[0] == "say"


def _named(entry):
    return {"sync": "the sync of {}", "say": "a word on stdout", "send": "a request", "syncall": "the sync of all"}.get(
        entry[0], "anything more happened").format(*("LAB_HOME" if name == "." else name for name in entry[1:2]))


class PowerCut:
    """The recorded process as it was when the power was cut: what a story and the events need of it."""

    code, killed, running, buried, folder, outlived, complaint = None, False, False, True, None, (), ""
    end = "✂ the power was cut"

    def __init__(self, process, printed):
        self.arguments, self.pid, self.begun, self.ended = process.arguments, process.pid, process.begun, process.ended
        self.stdout, self.stderr = process.stdout if printed else "", ""

    def discard(self):
        return False

    def left_behind(self):
        return []

    def __str__(self):
        return f"`{' '.join(self.arguments)}`"


def _gone_on(ground, ticket, stories, process, point, files, printed, sent):
    program = ground.program(_NAME, like=_NAME)
    _write(program.home, files)
    program.give_home()
    program.outside.repeat(sent)
    cut_off = PowerCut(process, printed)
    program.processes.append(cut_off)
    trial = Trial(program, START, ticket, begun=True)
    trial.kills.append(Seen(cut_off, printed, list(program.outside.requests)))
    with at_point(point, program):
        trial.look(trial.kills[0])
        trial.finish()
        broken = judged(trial)
    if trial.last.code == 6 and not printed and not sent:
        broken = {}   # nobody had been told anything: that the record cannot be read loses nothing
    return stories.outcome(point, program, broken)


def _write(home, files):
    for path, content in files.items():
        target = home / path
        if content is None:
            target.mkdir()
        elif isinstance(content, tuple):
            target.symlink_to(content[0])
        else:
            target.write_bytes(content)
