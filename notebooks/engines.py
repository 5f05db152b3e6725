"""Experiments on the programs of solutions/engines: as one writes them first, with a few lines changed, and what was measured of them."""

import ast
import difflib
import json
from contextlib import contextmanager
from dataclasses import replace

from experiment import TICKET, Trial, nothing_outlives   # first: it finds the kit

from pictures import grid
from plots import BAD, GOOD, plot

from labs.command.engines import FIGURES, FOLDER, programs
from labs.harness.ground import Ground
from labs.harness.kills.boundary import held_at, killed_at
from labs.harness.staging import AS_IS, stage

NAMES = ("sqlite", "dbos", "langgraph")
PROGRAMS = {program.name: program for program in programs()}
TITLES = {name: program.title for name, program in PROGRAMS.items()}
NO_BREAK = "\N{NO-BREAK SPACE}"
BOTH = [name + ending for name in NAMES for ending in (AS_IS, "")]


def source(name, file="flow.py"):
    """The text of a file of a program in solutions/engines, from the uppermost of its layers that has it. Raises KeyError, StopIteration."""
    return next(layer / file for layer in reversed(PROGRAMS[name].layers) if (layer / file).exists()).read_text()


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
    with nothing_outlives() as (folder, server, _):
        stage(FOLDER / name, folder / "source")
        (folder / "source" / "starter" / "flow.py").write_text(changed(name, changes))
        staged = replace(stage(folder / "source", folder / "staged"), preload=PROGRAMS[name].preload)
        with Ground(staged, server, folder, "notebooks") as ground:
            yield lambda: Trial(ground.program("trial"))


def killed_and_resumed(one, kind):
    """Kill a Trial's run after the outside acted on its request of this `kind`, then resume it. Returns how many refunds and mails there are."""
    process, _ = killed_at(one.program, kind, "after", lambda: one.program.start(TICKET))
    resumed = one.program.ask("resume", process.line())
    if resumed.code:
        raise RuntimeError(f"{resumed} {one.blank(resumed.end)}: {one.blank(resumed.last_words)}")
    return len(one.outside.refunds), len(one.outside.mails)


def two_at_once(one):
    """Start a run, and resume it in a second process while the mail of the first is held. Returns how many refunds and mails there are at the end."""
    first, _ = held_at(one.program, "mail", "before", lambda: one.program.start(TICKET))
    one.program.resume(first.line()).wait()
    one.outside.release()
    first.wait()
    return len(one.outside.refunds), len(one.outside.mails)


def figures():
    """What `labs engines` measured last, by the name of the program."""
    return json.loads(FIGURES.read_text())


def part(name, *wanted):
    """The source of these functions and variables of the program's flow, in the order of the file; a `for` that follows a variable belongs to it."""
    text, found, belongs, kind = source(name), [], False, None
    for node in ast.parse(text).body:
        names = [node.name] if isinstance(node, ast.FunctionDef) else [target.id for target in node.targets] if isinstance(node, ast.Assign) else []
        belongs = bool(set(names) & set(wanted)) or belongs and not names
        if belongs:
            first = min([node.lineno, *(line.lineno for line in getattr(node, "decorator_list", ()))])
            separate = ["", ""] if found and ast.FunctionDef in (type(node), kind) else []
            kind = type(node)
            found += [*separate, *text.splitlines()[first - 1:node.end_lineno]]
    return "\n".join(found)


#: The shortest changes after which a kill between the act and its record doubles nothing: (old text, new text), by program.
SHORTEST = {
    "dbos-as-is": [
        ('outside.refund(found["order_id"], found["amount_cents"])',
         'outside.refund(found["order_id"], found["amount_cents"], f"{DBOS.workflow_id} refund")'),
        ("    message_id = os.urandom(16).hex()\n    outside",
         '    message_id = f"{DBOS.workflow_id} reply"\n    if not outside.mail_was_sent(message_id):\n        outside')],
    "langgraph-as-is": [
        ("from langgraph.graph import END", "from langgraph.config import get_config\nfrom langgraph.graph import END"),
        ('outside.refund(found["order_id"], found["amount_cents"])',
         'outside.refund(found["order_id"], found["amount_cents"], key("refund"))'),
        ('def reply(run):\n    ticket, message_id = run["task"], os.urandom(16).hex()\n    outside',
         'def key(step):\n    return f"{get_config()[\'configurable\'][\'thread_id\']} {step}"\n\n\n'
         'def reply(run):\n    ticket, message_id = run["task"], key("reply")\n    if not outside.mail_was_sent(message_id):\n        outside')],
    "sqlite-as-is": [
        ("attempt(engine, refund, found)", 'attempt(engine, refund, found, f"{engine.run_id} refund")'),
        ("attempt(engine, reply, ticket, found, refunded)", 'attempt(engine, reply, ticket, found, refunded, f"{engine.run_id} reply")'),
        ('def refund(found):\n    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"])}',
         'def refund(found, key):\n    return {"refund_id": outside.refund(found["order_id"], found["amount_cents"], key)}'),
        ("def reply(ticket, found, refunded):\n    message_id = os.urandom(16).hex()\n    outside",
         "def reply(ticket, found, refunded, message_id):\n    if not outside.mail_was_sent(message_id):\n        outside")],
}


def measured():
    """Print when, on what and of what versions the figures are, and how many points of how many were tried."""
    found = figures()
    for name in BOTH:
        about, kinds = found[name]["measured"], found[name]["kinds"].values()
        versions = ", ".join(f"{package} {version}" for package, version in about["engine"].items()) or f"SQLite {about['sqlite']}"
        print(f"{name:<16} {about['date']}  {sum(kind['tried'] for kind in kinds):>4} of {sum(kind['points'] for kind in kinds):>5,} points  {versions}")
    about = found[NAMES[0]]["measured"]
    print(f"all: Python {about['python']}, SQLite {about['sqlite']}, {about['kernel']}, {about['cores']} cores, seed {about['seed']}")


def bad_points():
    """A Picture of the part of the tried points at which each program broke a rule, by kind of sweep: as it is, and mended."""
    found = figures()
    kinds = list(found[NAMES[0]]["kinds"])
    share = {name: [found[name]["kinds"][kind]["bad"] / found[name]["kinds"][kind]["tried"] for kind in kinds]
             for name in BOTH}

    def draw(axes):
        for place, name in enumerate(NAMES):
            for number, kind in enumerate(kinds):
                x = place * (len(kinds) + 1.5) + number
                bad, mended = share[name + AS_IS][number], share[name][number]
                axes.bar(x, 100 * bad, color=BAD, width=0.8, label="as it is" if not x else None)
                axes.plot(x, 100 * mended, "D", color=GOOD, clip_on=False, zorder=3, label="mended" if not x else None)
                axes.text(x, 100 * bad + 2, f"{bad:.0%}", ha="center", fontsize=8)
        axes.set_xticks([place * (len(kinds) + 1.5) + number for place in range(len(NAMES)) for number in range(len(kinds))],
                        kinds * len(NAMES), rotation=60)
        for place, name in enumerate(NAMES):
            axes.text(place * (len(kinds) + 1.5) + (len(kinds) - 1) / 2, 107, TITLES[name], ha="center", weight="bold")
        axes.set_ylim(0, 130)
        axes.set_yticks(range(0, 101, 20))
        axes.set_ylabel("% of the tried points")
        axes.legend(frameon=False, loc="upper right", ncols=2)

    words = "\n".join(f"{name}: " + ", ".join(f"{kind} {part:.0%}" for kind, part in zip(kinds, shares)) for name, shares in share.items())
    return plot("Where a kill breaks a rule", words, draw, 360)


def _headings():
    return [f"{TITLES[name]}, {'as it is'.replace(' ', NO_BREAK) if name.endswith(AS_IS) else 'mended'}" for name in BOTH]


def for_free():
    """A Picture of which rules the programs keep: at how many of the points that were tried they break each."""
    killed, everything = ("line", "syscall", "double"), ("lost", "broken", "repeated")
    rows = {"a run stays known": (killed, 1, everything), "…after a power cut": (("power",), 1, everything),
            "recorded, then sent": (killed, 2, everything), "nothing twice": (killed, 3, ("repeated",)),
            "attempts are counted": (("syscall",), 7, everything), "one works at a time": (("race",), 3, everything)}
    found, cells = figures(), {}
    for row, (names, rule, marks) in rows.items():
        cells[row] = []
        for program in BOTH:
            kinds = [found[program]["kinds"][name] for name in names]
            bad = sum(kind["how"].get(f"{rule} {mark}", 0) for kind in kinds for mark in marks)
            cells[row].append(f"{'✗' if bad else '✓'} {bad} of {sum(kind['tried'] for kind in kinds)}")
    return grid("At how many kills each rule is broken", _headings(), cells)


def costs():
    """A Picture of what the programs take: lines, packages, time."""
    found = figures()
    rows = {"lines of code": lambda one: f"{sum(one['lines'].values())}", "packages": lambda one: f"{one['packages']['count']}",
            "MB of packages": lambda one: f"{one['packages']['megabytes']:.0f}",
            "start, seconds": lambda one: f"{one['times']['start']['processor_seconds']:.2f}",
            "resume, seconds": lambda one: f"{one['times']['resume']['processor_seconds']:.2f}"}
    return grid("What it costs", _headings(),
                {row: [tell(found[name]) for name in BOTH] for row, tell in rows.items()})
