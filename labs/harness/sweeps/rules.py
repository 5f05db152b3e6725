"""What the contract's rules say of a trial."""

from ..judge import STEPS, consistent, effect_of, handled_once, results_of, times
from ..processes import ProgramFault
from .trial import POSTS, RUN


class Bad(AssertionError):
    """A rule was broken. `outcome` says how, in a word of killmap.MARKS; the message says what happened."""

    def __init__(self, outcome, why):
        super().__init__(why)
        self.outcome = outcome


def a_printed_run_is_known(trial):
    """Rule 1: a run id that was printed is a run that `status` knows, and its record says nothing impossible."""
    for seen in trial.kills:
        if seen.printed:
            if seen.unreadable:
                unknown = seen.asked.code == 2
                raise Bad("lost" if unknown else "broken", "the run id had been printed, and "
                          + ("`status` knows no such run" if unknown else seen.unreadable))
            _or_broken(consistent, seen.record, RUN)


def effects_are_recorded_before_they_are_sent(trial):
    """Rule 2: the record says that an effect is `started` before the outside sees the request."""
    for seen in trial.kills:
        for step in ("refund", "reply"):
            for request in seen.sent:
                if request.kind != POSTS[step]:
                    continue
                if seen.record is None:
                    raise Bad("lost" if seen.asked.code == 2 else "broken",
                              f"the outside saw the {request.kind} request, and `status` {seen.asked.end}")
                key, state = _or_broken(effect_of, seen.record, step)
                if state is None:
                    raise Bad("lost", f"the outside saw the {request.kind} request, and the record does not say that it was started")
                if key != request.key:
                    raise Bad("lost", f"the {request.kind} request went out under another key than the recorded one")


def the_run_is_finished_and_nothing_happens_twice(trial):
    """Rules 3 to 5: started again it comes to its end, and every effect happened once, as recorded."""
    outside = trial.program.outside
    for count, what in ((len(outside.refunds), "was refunded"), (len(outside.mails), "got the mail")):
        if count > 1:
            raise Bad("repeated", f"the customer {what} {times(count)}")
    if trial.scenario.ends == "failed":
        _is_failed(trial)
        return
    if trial.last.code != 0:
        said = f": {trial.last.complaint}" if trial.last.complaint else ""
        raise Bad("broken" if trial.last.code == 6 else "lost", f"{_again(trial)}{trial.last.end}{said}; it should finish the run")
    try:
        handled_once(trial.program, RUN, trial.ticket, _model_calls(trial))
    except ProgramFault as fault:
        raise Bad("broken", str(fault)) from None
    except AssertionError as error:
        raise Bad("repeated" if "the model was asked" in str(error) else "lost", str(error)) from None


def attempts_are_bounded(trial):
    """Rule 7: at most five requests of a step, and one more for each kill."""
    for step in STEPS:
        sent = len(trial.program.outside.of(POSTS[step]))
        if sent > 5 + len(trial.kills):
            raise Bad("repeated", f"{step}: {sent} requests were sent, with {times(len(trial.kills))} killed at most {5 + len(trial.kills)} may be")


def nothing_goes_on(trial):
    """Rule 8: no process outlives the kill."""
    for process in trial.program.processes:
        for words in process.outlived:
            raise Bad("outlived", f"{words.partition(' (')[2].removesuffix(')') or 'a process'} outlived the program")


#: The contract's rules that a trial can be judged by, under their numbers. The third stands for 3 to 5.
RULES = {1: a_printed_run_is_known, 2: effects_are_recorded_before_they_are_sent, 3: the_run_is_finished_and_nothing_happens_twice,
         7: attempts_are_bounded, 8: nothing_goes_on}
RESUMED = 3   # the rule by which it is judged how a run is gone on with
#: Those that a program has to keep after each lab.
OF_LAB = {"01": (1, 8), "02": (1, 2, 8), "03": (1, 2, 3, 8), "05": tuple(RULES)}


def judged(trial, rules=tuple(RULES)):
    """The rules that a trial broke: {number: (an outcome of killmap.MARKS, a sentence)}."""
    broken = {}
    for number in rules:
        try:
            RULES[number](trial)
        except Bad as bad:
            broken[number] = bad.outcome, str(bad)
    return broken


def aftermath(trial):
    """What came of a run that was killed: (whether the next process ended well and asked for no finished step again, whether an effect
    happened twice, whether both happened, the seconds that the next process took). None where nothing was killed, or gone on with.
    """
    if not trial.kills or trial.last is None or trial.scenario.ends == "failed":
        return None
    outside, last = trial.program.outside, trial.last
    asked = sum(request.kind == "model" for request in outside.requests)
    return (last.code == 0 and asked <= _model_calls(trial), len(outside.refunds) > 1 or len(outside.mails) > 1,
            bool(outside.refunds and outside.mails), last.ended - last.begun)


def _model_calls(trial):
    """How many calls to the model are right: those up to the last kill, and where triage was not finished yet, more."""
    if not trial.kills:
        return 1 + sum(fault.kind == "model" for fault in trial.scenario.faults)
    for seen in trial.kills:
        if seen.record is not None and results_of(seen.record).get("triage"):
            return sum(request.kind == "model" for request in seen.sent)
    sent = sum(request.kind == "model" for request in trial.kills[-1].sent)
    return sent + 1 + sum(fault.kind == "model" for fault in trial.scenario.faults)


def _is_failed(trial):
    if trial.last.code != 3:
        raise Bad("broken" if trial.last.code == 6 else "lost", f"{_again(trial)}{trial.last.end}; payments stay down, and it should end with exit code 3")
    record = _or_broken(trial.program.status, RUN)
    if record.get("state") != "failed" or record.get("step") != "refund":
        raise Bad("lost", f"payments stay down: the run should be `failed` at refund, it is {record.get('state')!r} at {record.get('step')!r}")
    if trial.program.outside.mails:
        raise Bad("lost", "the refund failed, and the mail was sent")


def _again(trial):
    return f"{'started again, ' if trial.kills else ''}`{trial.last.arguments[0]}` "


def _or_broken(judge, *arguments):
    try:
        return judge(*arguments)
    except AssertionError as error:
        raise Bad("broken", str(error)) from None
