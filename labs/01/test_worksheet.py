"""Lab 01, the worksheet: what its author believes about the flow's state, held against what the next process still knows."""

import json
import tomllib

from labs.harness.judge import effect_of, results_of
from labs.harness.kills.boundary import held_at
from labs.harness.processes import ProgramFault
from labs.harness.staging import GIVEN


LIVES = ("record", "memory", "process")


def test_the_worksheet_says_what_survives_a_kill(program, outside, ticket, not_applicable):
    sheet = worksheet(program, not_applicable)
    program.begin("chat", "C-1", stdin=b"hello, where is my parcel?\n").wait()
    run, _ = held_at(program, "mail", "before", lambda: program.start({**ticket, "conversation": "C-1"}))
    program.kill(run)

    record = answer_of(lambda: program.status(run.line()))
    memory = answer_of(lambda: program.memory("C-1"))
    lives_in = {name: "record" if known else "process" for name, known in pieces_of(record).items()}
    lives_in["conversation"] = "memory" if memory.get("turns") else "process"

    # All that is wrong with it at once: looking again takes a run.
    empty = [name for name, entry in sheet.items() if isinstance(entry, dict) and "?" in entry.values()]
    wrong = [f"the worksheet starter/state.toml is not filled in yet: {', '.join(empty)}"] if empty else []
    wrong += [fault for name, lives in lives_in.items() if name not in empty for fault in faults_of(name, sheet.get(name), lives)]
    if more := sorted(set(sheet) - set(lives_in)):
        wrong.append(f"the worksheet has pieces that nobody asked for: {', '.join(more)}")
    assert not wrong, "; ".join(wrong)


def faults_of(name, entry, lives):
    """What the worksheet says wrong of one piece, which `lives` there: a sentence each."""
    if not isinstance(entry, dict):
        yield f"the worksheet starter/state.toml lacks the piece [{name}]"
        return
    survives, said = lives != "process", entry.get("survives")
    if said is not survives:
        in_quotes = ", a text: write true or false without quotes" if isinstance(said, str) else ""
        yield (f"after the kill the next process {'knows' if survives else 'does not know'} of {name}; the worksheet says "
               f"survives = {json.dumps(said, default=str)}{in_quotes}")
    if entry.get("lives") not in LIVES:
        yield f"the worksheet says that {name} lives in {entry.get('lives')!r}: write one of {', '.join(map(json.dumps, LIVES))}"
    elif entry["lives"] != lives:
        yield f"{name} lives in the {lives}; the worksheet says {entry['lives']!r}"


def pieces_of(record):
    """What a record holds of each piece, None where it does not know of it."""
    results = results_of(record) if record else {}
    return {
        "run_id": record.get("id"), "ticket": record.get("task"), "step": record.get("step"),
        "triage": results.get("triage"), "refund": results.get("refund"), "attempts": record.get("attempts"),
        "refund_key": record and effect_of(record, "refund")[0], "reply_key": record and effect_of(record, "reply")[0]}


def answer_of(question):
    try:
        return question()
    except ProgramFault:
        return {}  # a flow that cannot answer knows nothing


def worksheet(program, not_applicable):
    folder = program.staged.folder / "starter"
    path = folder / "state.toml"
    if not path.is_file():
        derived = sum((folder / name).is_file() for name in GIVEN) > 2
        assert not derived, "the worksheet starter/state.toml is gone; it came with the starter"
        not_applicable("this program does not derive from the starter and has no worksheet")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProgramFault(f"the worksheet starter/state.toml is no TOML: {error}; after = it has true or false, in lower case, "
                           'or a word in double quotes, like "record"') from None

