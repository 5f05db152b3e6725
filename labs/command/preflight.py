"""Before a sweep: one run from its start to its end, killed by nobody. A program that fails it cannot be judged by kills."""

import json
import re
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from labs.harness.evidence import Evidence
from labs.harness.processes import Late, ProgramFault
from labs.harness.staging import shipped_texts
from labs.harness.story import SAID, tell, wrapped
from labs.harness.sweeps.trial import RUN

from .kit import EVIDENCE, shown

CONNECTS = re.compile(r"connect|socket|url|http|host|address|unix", re.I)   # words of a client that reached nobody
NOT_THERE = re.compile(r"can.t open file|can.t find '__main__'|cannot open|cannot find module", re.I)   # words of an interpreter whose file is elsewhere


@dataclass(frozen=True)
class Unfit:
    """A program that does not run: `why`, to be put after its name; the lines of the story; the Program itself."""

    why: str
    lines: tuple
    program: object


def preflight(ground, ticket):
    """Run the program of `ground` once, undisturbed. Returns None where it came to its end as the contract says, else an Unfit."""
    program, late = ground.program("undisturbed"), None
    try:
        process = program.start(ticket, RUN).wait()
    except ProgramFault as fault:   # it hangs, or says too much
        process, late = program.processes[-1], str(fault)
        late += f"; it hung{where}" if isinstance(fault, Late) and (where := process.where()) else ""
    first, line, _ = process.stdout.partition("\n")
    if trouble := process.report and process.report["trouble"]:
        why, advice = f"cannot be run: {trouble}", ["the command line is run in a copy of DIR: it begins with a program on PATH, or with the path from "
                                                    "there to a file that may be executed"]
    elif late or process.code != 0:
        why, advice = f"does not finish undisturbed: {late or f'{process} {process.end}'}", _advice(ground, program, process)
        why += f"{SAID}{process.complaint}" if process.complaint else "; it said nothing on stderr" if process.hung is None else ""
    elif not line or first.removesuffix("\r") != RUN:
        why = f"does not print its run id: the first line on stdout of {process} should be {RUN} alone, it is {first[:160]!r}"
        advice = ["print the id on a line of its own, before all else, and flush it: so whoever started a run learns that it is recorded"]
    else:
        ground.discard(program)
        return None
    return Unfit(why, (*tell(program), *(line for one in advice for line in wrapped("mend", one))), program)


def _advice(ground, program, process):
    """What may be behind it, in sentences."""
    staged = ground.staged
    if advice := mend_of(staged, process):
        return [advice]
    if process.hung:   # in a line of its own, which is told
        return []
    if not staged.module and NOT_THERE.search(process.last_words):
        return ["the command line is run in a copy of DIR, where DIR itself is not: name files by their path from there, like --command 'python3 .'"]
    if not program.outside.requests and (CONNECTS.search(process.stderr) or process.stdout.startswith(RUN)):
        return [f"no request of it arrived; OUTSIDE was {ground.server.address}, a Unix socket: its HTTP client has to connect to that path"]
    return []


def mend_of(staged, process):
    """What to do about what ended a process, in a sentence; None where its own words say that well enough."""
    if "database is locked" in process.last_words:
        return ("somebody holds a transaction open on that file, most likely this program itself, here or before: an INSERT, an UPDATE or a BEGIN opens one, "
                "and it lasts until COMMIT")
    if process.last_words.startswith("KeyError: None") and staged.sources.get("__main__.py") == shipped_texts()["__main__.py"]:
        return "`start` and `resume` in flow.py return the state that the run ended in, like \"done\": `return run[\"state\"]`"
    return _on_missing_module(staged, process)


def _on_missing_module(staged, process):
    missing = re.search(r"No module named '(\w+)", process.last_words)
    if not missing or staged.module in (None, missing[1]):
        return None
    name = missing[1]
    if any((staged.folder / staged.module / path).exists() for path in (name, f"{name}.py")):
        return (f"the folder is run as a package, like `python -m {staged.module}`: write `from . import {name}`, or start it with "
                "--command 'python3 .', which finds what is beside __main__.py")
    return (f"it is run by {sys.executable}: install {name} there, or name another Python with --command, which copies all of DIR; "
            f"where {name} is to be a file of its own, write it, and `from . import {name}`")


def refuse(name, unfit, about, as_json=False):
    """Say that a program was not swept, and why; keep the evidence. Returns the exit code."""
    evidence, title = Evidence(EVIDENCE), f"{name}, undisturbed"
    evidence.about(about)
    kept = evidence.keep("undisturbed", [title, *wrapped("why", unfit.why), *unfit.lines], unfit.program, title, unfit.why)
    look = [f"look  {shown(EVIDENCE.parent / kept)}"] if kept else []
    if as_json:
        print(json.dumps({"program": name, "seed": about["seed"], "lab": about["lab"], "evidence": [str(EVIDENCE.parent / kept)] if kept else [],
                          "kinds": {}, "reason": unfit.why, "story": list(unfit.lines)}))
    console, end = Console(highlight=False, stderr=True), "Nothing was swept; labs/CONTRACT.md says how a program is started, and what it has to do then."
    for line in (f"labs: {name} {unfit.why}. {end}", *unfit.lines, *look):
        console.print(Text(line), soft_wrap=True)
    return 2
