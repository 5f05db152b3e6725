"""What durable-execution engines give for free, and what they cost: the programs in solutions/engines, swept and measured into figures.json."""

import ast
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import resource
import sqlite3
import statistics
import time
import tokenize
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rich.console import Console

from labs.harness.ground import Ground
from labs.harness.kills.boundary import killed_at
from labs.harness.staging import AS_IS, KIT
from labs.harness.sweeps import DOUBLE, KINDS, sweep
from labs.harness.sweeps.double import PAIRS
from labs.harness.sweeps.trial import RUN
from labs.harness.tickets import make_ticket

from .preflight import preflight
from .refused import Refused
from .sweeping import proving_ground, scenarios_of

FOLDER = KIT / "solutions" / "engines"
FIGURES = FOLDER / "figures.json"
LAB = "05"             # by whose rules they are judged
SAME_IN_ALL = {"__main__", "conversation", "exits", "outside"}   # modules of which no program has its own: they say nothing of what an engine takes


@dataclass(frozen=True)
class EngineProgram:
    """A program in solutions/engines: `needs` are the distributions that its engine is installed as, `preload` the modules that a sweep loads once."""

    name: str
    title: str
    needs: tuple
    preload: tuple

    @property
    def as_is(self):
        """Whether it is the program as one writes it first."""
        return self.name.endswith(AS_IS)

    @property
    def layers(self):
        """The folders that it is made of, above the finished program of the labs."""
        return [FOLDER / name for name in dict.fromkeys((self.name.removesuffix(AS_IS), self.name))]

    @property
    def fingerprint(self):
        """A hash of its own files: figures of another one are not its figures."""
        files = sorted(path for layer in self.layers for path in layer.glob("*.py"))
        return hashlib.sha256(b"".join(path.relative_to(FOLDER).as_posix().encode() + path.read_bytes() for path in files)).hexdigest()[:16]


def programs():
    """Every EngineProgram, in the order of their names; as it is first and then mended."""
    names = sorted(path.parent.name for path in FOLDER.glob("*/engine.toml"))
    settings = {name: tomllib.loads((FOLDER / name / "engine.toml").read_text()) for name in names}
    return [EngineProgram(whole, settings[name]["title"], tuple(settings[name]["needs"]), tuple(settings[name]["preload"]))
            for name in names for whole in (name + AS_IS, name)]


def make_figures(points=40, runs=5, seed=1, only=None, kinds=None, as_json=False):
    """Sweep and measure the programs, or those whose names are in `only`, and write FIGURES. Returns an exit code.

    Of each kind's scenarios about `points` points are tried, evenly spread. Times are medians of `runs`. With `kinds` only these kinds of sweep are
    renewed in what there is of the same program. Raises Refused.
    """
    if not FOLDER.is_dir():
        raise Refused("this kit has no solutions/: whoever gave it to you has them")
    chosen = [program for program in programs() if not only or program.name in only]
    if unknown := set(only or ()) - {program.name for program in chosen}:
        raise Refused(f"there is no program {unknown.pop()} in solutions/engines; there are {', '.join(program.name for program in programs())}")
    lacking = [name for program in chosen for name in program.needs if not installed(name)]
    if lacking:
        raise Refused(f"{lacking[0]} is not installed: pip install -e '.[engines]' -c .ci/constraints.txt")
    console, figures = Console(stderr=True, highlight=False), {}
    for program in chosen:
        figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        known = figures.get(program.name, {})
        if kinds and known.get("fingerprint") != program.fingerprint:
            raise Refused(f"there are no figures of {program.name} as it is now; measure all of it, without --kind")
        figures[program.name] = _figures(program, points, runs, seed, console, kinds or KINDS, known if kinds else None)
        FIGURES.write_text(json.dumps(dict(sorted(figures.items())), indent=1) + "\n")
    if as_json:
        print(json.dumps({program.name: figures[program.name] for program in chosen}))
    return 0


def installed(name):
    """Whether there is a distribution of this name."""
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


class Sampled(Ground):
    """A ground on which of many points `most` are tried, evenly spread; where they begin comes from the seed. `offered` counts all."""

    def __init__(self, *arguments, most, **options):
        super().__init__(*arguments, **options)
        self.most, self.offered = most, 0

    def sample(self, points):
        self.offered += len(points)
        if len(points) <= self.most:
            return points
        first = Random(f"{self.seed} sample").random()
        return [points[int((number + first) * len(points) / self.most)] for number in range(self.most)]


def _figures(program, points, runs, seed, console, kinds, known):
    console.print(f"[bold]{program.name}[/]", soft_wrap=True)
    measured = {"date": time.strftime("%Y-%m-%d"), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version,
                "kernel": f"{platform.system()} {platform.release().split('-')[0]}", "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1),
                "engine": {name: importlib.metadata.version(name) for name in program.needs}, "seed": seed, "lab": LAB}
    found = {"title": program.title, "as_is": program.as_is, "fingerprint": program.fingerprint, "measured": measured,
             "lines": lines_of(program), "packages": packages_of(program.needs)}
    ticket = make_ticket(f"{seed} sweep")
    with proving_ground(FOLDER / program.name, None, seed, program.preload, partial(Sampled, most=points)) as ground:
        if unfit := preflight(ground, ticket):
            raise Refused(f"{program.name} {unfit.why}")
        found["kinds"] = dict(known["kinds"]) if known else {}
        for kind in kinds:
            with console.status(kind):
                found["kinds"][kind] = _swept(ground, kind, ticket)
            console.print(f"  {kind:<8} {json.dumps(found['kinds'][kind])[:200]}", soft_wrap=True, style="dim")
        if known:
            return {**found, "measured": {**measured, "load": known["measured"]["load"]}, "times": known["times"]}
        with console.status("times"):
            found["times"] = {"runs": runs, "start": _timed(ground, ticket, runs), "resume": _timed(ground, ticket, runs, killed=True)}
    console.print(f"  {json.dumps(found['times'])}", soft_wrap=True, style="dim")
    return found


def _swept(ground, kind, ticket):
    """What a kind of sweep found: how many points there were, how many were tried, how many were bad, and by what rule and how."""
    # Pairs are drawn, and not taken from a list of all: there it is the ground's `every` that says how many.
    ground.offered, ground.every = (PAIRS, max(1, PAIRS // ground.most)) if kind == DOUBLE else (0, 1)
    began = time.monotonic()
    outcomes, why, could_not = [], {}, None
    for result in sweep(ground, kind, ticket, scenarios=scenarios_of(kind, LAB)):
        outcomes += result.outcomes
        could_not = could_not or result.could_not
    how = Counter()
    for outcome in outcomes:
        for rule, (mark, sentence) in sorted(outcome.broken.items()):
            how[f"{rule} {mark}"] += 1
            why.setdefault(f"{rule} {mark}", f"{outcome.point}: {sentence}")
    return {"points": max(ground.offered, len(outcomes)), "tried": len(outcomes), "bad": sum(bool(outcome.broken) for outcome in outcomes),
            "repeated": sum(any(mark == "repeated" for mark, _ in outcome.broken.values()) for outcome in outcomes),
            "not_reached": sum(not outcome.reached for outcome in outcomes), "how": dict(how), "first": why, "could_not": could_not,
            "seconds": round(time.monotonic() - began, 1)}


def _timed(ground, ticket, runs, killed=False):
    """The medians, in seconds, of what one process takes in a new interpreter: by the clock, and of processor time; of a `start`, or of a `resume`."""
    clock, processor = [], []
    for number in range(runs):
        program = ground.program(f"timed {number}", forked=False)
        if killed:
            killed_at(program, "refund", "after", lambda: program.start(ticket, RUN))
        before = _children()
        process = (program.resume(RUN) if killed else program.start(ticket, RUN)).wait()
        ground.discard(program)
        clock.append(process.ended - process.begun)
        processor.append(_children() - before)
        if process.code:
            raise Refused(f"{process} {process.end}, where nobody disturbed it")
    return {"seconds": round(statistics.median(clock), 3), "processor_seconds": round(statistics.median(processor), 3)}


def _children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lines_of(program):
    """Lines of code, without blank ones, comments and docstrings, of each module that its flow needs, but for SAME_IN_ALL: {file: lines}."""
    folders = [*reversed(program.layers), *sorted((KIT / "solutions").glob("[0-9][0-9]"), reverse=True)]
    found, wanted = {}, ["flow"]
    while wanted:
        name = wanted.pop()
        if name in SAME_IN_ALL or f"{name}.py" in found:
            continue
        text = next(folder / f"{name}.py" for folder in folders if (folder / f"{name}.py").exists()).read_text()
        found[f"{name}.py"] = _lines_of_code(text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                wanted += [node.module] if node.module else [alias.name for alias in node.names]
    return dict(sorted(found.items()))


def _lines_of_code(text):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node.body[0] for node in ast.walk(ast.parse(text)) if isinstance(node, documented) and ast.get_docstring(node)]
    left_out = {number for node in nodes for number in range(node.lineno, node.end_lineno + 1)}
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return len({number for token in tokens if token.type not in nothing for number in range(token.start[0], token.end[0] + 1)} - left_out)


def packages_of(needs):
    """The distributions that these and all that they need are: how many, and their installed size in MB (millions of bytes)."""
    found, wanted = {}, [Requirement(name) for name in needs]
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        key = name, frozenset(requirement.extras)
        if key in found:
            continue
        distribution = importlib.metadata.distribution(name)
        found[key] = sum(path.stat().st_size for file in distribution.files or () if (path := Path(distribution.locate_file(file))).is_file())
        for text in distribution.requires or ():
            needed = Requirement(text)
            if not needed.marker or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)):
                wanted.append(needed)
    sizes = {name: size for (name, _), size in found.items()}
    return {"count": len(sizes), "megabytes": round(sum(sizes.values()) / 1e6, 1)}
