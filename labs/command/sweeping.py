"""Any program that keeps the contract, put through the sweeps: a conformance test for durable flows."""

import json
import shlex
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from labs.harness import descendants, killmap
from labs.harness.evidence import Evidence
from labs.harness.ground import Ground
from labs.harness.outside import Outside
from labs.harness.scratch import scratch
from labs.harness.staging import KIT, NoProgram, stage
from labs.harness.story import WIDTH, wrapped
from labs.harness.sweeps import CALL, DOUBLE, KINDS, LINE, RACE, RESUME, START, sweep
from labs.harness.sweeps.result import Result
from labs.harness.sweeps.rules import OF_LAB
from labs.harness.sweeps.trial import DOWN, FAILING
from labs.harness.tickets import make_ticket

from .kit import EVIDENCE, shown
from .mapped import bad_lines
from .preflight import preflight, refuse
from .preload import checked
from .refused import Refused
from .show import fitted

NAMES = {"line": "at every line", "syscall": "before every system call", "double": "twice", "race": "in races", "power": "by power cut"}
PASSED, FAILED, COULD_NOT, NOT_APPLICABLE = "passed", "failed", "could not check", "not applicable"
SIGNS = {PASSED: ("✓", "green"), FAILED: ("✗", "bold red"), COULD_NOT: ("?", "yellow"), NOT_APPLICABLE: ("–", "dim")}
FIRST_RESUME, FAILURES = "03", "05"   # labs
#: What the outside does to a program from lab FAILURES on, by kind of sweep: the same as in the checks of that lab.
FAILING_IN = {LINE: (FAILING,), CALL: (FAILING, DOWN)}
EXIT_CODES = {PASSED: 0, NOT_APPLICABLE: 0, FAILED: 1, COULD_NOT: 3}


@contextmanager
def proving_ground(program, command, seed, preload=(), make=Ground):
    """A Ground for what `program` names, as `make` makes it; `preload` as in checked(). Raises Refused."""
    descendants.adopt_orphans()
    with scratch() as folder:
        try:
            staged = replace(stage(Path(program), folder / "staged", command), preload=checked(preload))
        except NoProgram as error:
            raise Refused(error) from None
        with Outside(folder / "outside.sock", seed=seed) as server, make(staged, server, folder, seed) as ground:
            yield ground
            if server.errors:
                raise server.errors[0]   # the outside is broken: nothing that it saw says anything about the program


def show_sweep(program, kinds=KINDS, seed=1, as_json=False, command=None, lab="05", preload=()):
    """Sweep a program by these kinds and say what was found.

    Returns an exit code: 0, 1 for bad points, 2 for a program that does not even run undisturbed, 3 where something could not be checked, or
    nothing was.
    """
    console = Console(highlight=False, stderr=as_json)
    results, ticket, began = {}, make_ticket(f"{seed} sweep"), time.strftime("%Y-%m-%d %H:%M:%S")
    try:
        with proving_ground(program, command, seed, preload) as ground:
            about = {"began": began, "program": str(program), "seed": seed, "what": "sweep", "lab": lab}
            with console.status("one run that nobody kills"):
                unfit = preflight(ground, ticket)
            if unfit:
                return refuse(ground.staged.name, unfit, about, as_json)
            if not as_json:
                console.print(f"[bold]{ground.staged.name}[/], killed{' and finished' * (lab >= FIRST_RESUME)}, judged by the rules of lab {lab}; seed {seed}", soft_wrap=True)
                console.print(Text(_not_tried(program, command, lab, preload), "dim"), soft_wrap=True)
            for kind in kinds:
                if lab < FIRST_RESUME and kind in (DOUBLE, RACE):
                    results[kind] = [Result(kind, not_applicable=f"a program resumes from lab {FIRST_RESUME} on")]
                else:
                    results[kind] = [result.under(OF_LAB[lab]) for result in _watched(console, ground, kind, ticket, scenarios_of(kind, lab))]
                if not as_json:
                    _say(console, kind, results[kind])
            struck = [struck for found in results.values() for result in found for struck in result.struck]
            sources, evidence = ground.staged.sources, Evidence(EVIDENCE)
            evidence.about(about)
            kept = _keep(evidence, ground, results)
            if any(point.outcome in killmap.BAD for point in struck):
                kept.append(evidence.keep_page("killmap.html", killmap.page(
                    sources, struck, f"{ground.staged.name}, killed", f"By the rules of lab {lab}; seed {seed}.")))
            kept = [str(EVIDENCE.parent / path) for path in kept if path]
    except KeyboardInterrupt:
        print("interrupted: what was under way has been ended, without a verdict", file=sys.stderr)
        return 130
    if as_json:
        print(json.dumps({"program": ground.staged.name, "seed": seed, "lab": lab, "evidence": kept,
                          "kinds": {kind: _as_json(found) for kind, found in results.items()}}))
    elif kept:
        if kept[-1].endswith(".html"):
            console.print()
            console.print(bad_lines(sources, struck))
        console.print()
        for path in kept:
            console.print(f"look  {shown(path)}", soft_wrap=True)
    verdicts = {_verdict(found) for found in results.values()}
    if verdicts == {NOT_APPLICABLE}:
        print("nothing was tested: no kind that was asked for can be tried on this program", file=sys.stderr)
        return EXIT_CODES[COULD_NOT]
    return EXIT_CODES[FAILED] if FAILED in verdicts else max(EXIT_CODES[verdict] for verdict in verdicts)


def _not_tried(program, command, lab, preload):
    folders = [KIT / "labs"] if lab >= FAILURES else [KIT / "labs" / number for number in ("01", "02", "03") if number <= lab]
    words = ["pytest", *map(shown, folders), "--program", str(program)]
    words += ["--command", command] if command else []
    words += [word for module in preload for word in ("--lab-preload", module)]
    return f"no sweep tries memory, `runs`, bad tickets, nonsense or silence of the outside: {shlex.join(words)}"


def scenarios_of(kind, lab):
    """The Scenarios that a program is killed in, judged by the rules of `lab`."""
    failing = FAILING_IN.get(kind, ()) if lab >= FAILURES else ()
    return START, *([RESUME] if lab >= FIRST_RESUME else []), *failing


def _watched(console, ground, kind, ticket, scenarios):
    """The Results of a sweep, with a bar while it runs."""
    columns = (SpinnerColumn(), TextColumn(f"{kind:<8}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task, began, last = progress.add_task(kind, total=None, rate=""), time.monotonic(), 0

        def count(done, total):
            nonlocal task, began, last
            if done < last:   # another scenario begins
                progress.remove_task(task)
                task, began = progress.add_task(kind, total=None, rate=""), time.monotonic()
            last = done
            progress.update(task, completed=done, total=total, rate=f"{done / max(time.monotonic() - began, 0.1):.0f} points/s")
        return sweep(ground, kind, ticket, count, scenarios)


def _verdict(found):
    if any(result.fault for result in found):
        return FAILED
    if any(result.could_not for result in found):
        return COULD_NOT
    return NOT_APPLICABLE if all(result.not_applicable for result in found) else PASSED


def _say(console, kind, found):
    verdict = _verdict(found)
    sign, style = SIGNS[verdict]
    points, bad, seconds = _sums(found)
    what = f"{points:>5,} points  {bad:>5,} bad  {points / max(seconds, 0.001):>4.0f}/s  {seconds:>5.1f} s" \
        if verdict in (PASSED, FAILED) else f"{verdict}: {_reason(found)}"
    console.print(Text.assemble((f" {sign} ", style), f"{kind:<8}", (f" {NAMES[kind]:<26}", "dim"), what), soft_wrap=True)
    if left_out := sum(result.left_out for result in found):
        console.print(f"   of very many points {left_out:,} were left out, evenly", style="yellow")
    for result in found:
        if verdict == FAILED and result.fault:
            story = result.bad[0][0].told(result.rules) if result.bad else ()
            scenario = f"{result.scenario}, " if result.scenario else ""
            for line in fitted("\n".join((*wrapped("why", f"{scenario}{result.fault}"), *story)), console.width if console.is_terminal else WIDTH):
                console.print(Text(line, "red" if line.startswith("  why") else ""), soft_wrap=True)
    faults = {result.scenario for result in found if result.fault}
    if verdict == FAILED and faults <= {scenario.name for failing in FAILING_IN.values() for scenario in failing}:
        console.print(f"   only where things fail outside, which is of lab {FAILURES}: --lab {FIRST_RESUME} leaves that out", style="yellow", soft_wrap=True)


def _reason(found):
    return next(reason for result in found for reason in (result.could_not, result.not_applicable) if reason)


def _sums(found):
    return sum(len(result.outcomes) for result in found), sum(len(result.bad) for result in found), sum(result.seconds for result in found)


def _keep(evidence, ground, results):
    """Leave the evidence of the first bad point of each kind. Returns what to look at, as Evidence.keep() does."""
    kept = []
    for kind, found in results.items():
        for result in found:
            if result.bad:
                program = next((outcome.program for outcome, _, _ in result.bad if outcome.program), None)
                title = f"{ground.staged.name}, killed {NAMES[kind]}"
                name = "-".join((kind, *result.scenario.replace(",", "").split()))
                lines = [title, *wrapped("why", result.fault), *result.bad[0][0].told(result.rules)]
                kept.append(evidence.keep(name, lines, program, title, result.fault))
    return kept


def _as_json(found):
    points, bad, seconds = _sums(found)
    verdict = _verdict(found)
    return {"verdict": verdict, "points": points, "bad": bad, "not_reached": sum(result.missed for result in found), "seconds": round(seconds, 3),
            "reason": _reason(found) if verdict in (COULD_NOT, NOT_APPLICABLE) else next((result.fault for result in found if result.fault), None),
            "faults": [{"scenario": result.scenario, "point": outcome.point, "outcome": mark, "why": why, "story": list(outcome.told(result.rules))}
                       for result in found for outcome, mark, why in result.bad]}
