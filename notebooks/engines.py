"""Experiments on the programs of solutions/engines: as one writes them first, with a few lines changed, and what was measured of them."""

import difflib
import json
from contextlib import contextmanager
from dataclasses import replace

from experiment import TICKET, Trial   # first: it finds the kit

from labs.command.engines import FIGURES, FOLDER, programs
from labs.harness import processes
from labs.harness.ground import Ground
from labs.harness.kills.boundary import killed_at
from labs.harness.outside import Outside
from labs.harness.scratch import scratch
from labs.harness.staging import AS_IS, stage

NAMES = ("sqlite", "dbos", "langgraph")
TITLES = {program.name: program.title for program in programs()}


def source(name, file="flow.py"):
    """The text of a file of a program in solutions/engines, wherever in its layers it is."""
    layers = [FOLDER / name, FOLDER / name.removesuffix(AS_IS)]
    return next(layer / file for layer in layers if (layer / file).exists()).read_text()


def changed(name, changes):
    """The text of the program's flow with each (old, new) of `changes` replaced. Raises LookupError where an old one is not there once."""
    text = source(name)
    for old, new in changes:
        if text.count(old) != 1:
            raise LookupError(f"this is {text.count(old)} times in {name}/flow.py, and should be there once: {old}")
        text = text.replace(old, new)
    return text


def difference(old, new):
    """Print how one text becomes the other: the lines that go, and those that come."""
    for line in difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""):
        if line[:3] not in ("---", "+++") and line[:2] != "@@":
            print(line)


@contextmanager
def on(name, changes=()):
    """Yield a function that makes a Trial of a program of solutions/engines, each in an empty home; its flow with these `changes`.

    The engine is loaded once for all of them, so that the notebook does not wait for it at each start.
    """
    processes.adopt_orphans()
    known = {child.pid for child in processes.descendants()}
    preload = next(program.preload for program in programs() if program.name == name)
    with scratch() as folder, Outside(folder / "outside.sock", seed="notebooks") as server:
        stage(FOLDER / name, folder / "source")
        (folder / "source" / "starter" / "flow.py").write_text(changed(name, changes))
        staged = replace(stage(folder / "source", folder / "staged"), preload=preload)
        with Ground(staged, server, folder, "notebooks") as ground:
            yield lambda: Trial(ground.program("trial"))
        if server.errors:
            raise server.errors[0]
        if left := processes.survivors(known):
            raise processes.Survived(f"{left[0]} still ran at the end: no process may outlive its program")


def killed_and_resumed(one, kind):
    """Kill a Trial's run after the outside acted on its request of this `kind`, then resume it. Returns how many refunds and mails there are."""
    process, _ = killed_at(one.program, kind, "after", lambda: one.program.start(TICKET))
    resumed = one.program.ask("resume", process.line())
    if resumed.code:
        raise RuntimeError(f"{resumed} {one.blank(resumed.end)}: {one.blank(resumed.last_words)}")
    return len(one.outside.refunds), len(one.outside.mails)


def figures():
    """What `labs engines` measured last, by the name of the program."""
    return json.loads(FIGURES.read_text())
