"""Experiments for the notebooks: a program in an empty home, an outside of its own, kills, and what is seen of all that.

Whatever chance makes (run ids, keys) is shown under a name, and what happened is shown in its order and without times. So
a notebook shows the same whenever and wherever it is run.
"""

import json
import re
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))   # the kit that this is a part of, not another one that is installed

from labs.harness import descendants, processes, story, timeline
from labs.harness.events import events_of, sentences
from labs.harness.kills.boundary import killed_at
from labs.harness.outside import Outside
from labs.harness.program import Program
from labs.harness.scratch import scratch
from labs.harness.staging import SHIPPED, stage

from gaps import KILL, planted, statements
from pictures import Picture

TICKET = {"ticket_id": "T-4521", "customer": "ana@example.com",
          "text": "Order A-1009 arrived broken, I paid $42.00. I want my money back."}


def source(name="flow.py"):
    """The text of a file of the starter as it was shipped, whatever `starter/` has become since."""
    with zipfile.ZipFile(SHIPPED) as files:
        return files.read(name).decode()


@contextmanager
def trial(flow=None, **modules):
    """Yield a Trial of the starter as shipped, or with the text `flow` in place of its flow.py, and others likewise: `conversation=TEXT`.

    The outside is a new one and the same each time: the same first answer of the model, and so on. At the end everything
    that still runs is killed. Raises Survived where something outlived its own process.
    """
    with nothing_outlives() as (folder, server, programs):
        with zipfile.ZipFile(SHIPPED) as files:
            files.extractall(folder / "source")
        for name, text in {"flow": flow, **modules}.items():
            if text is not None:
                (folder / "source" / f"{name}.py").write_text(text, encoding="utf-8")
        program = Program(stage(folder / "source", folder / "staged"), folder / "program", server, server.open_account("trial"))
        programs.append(program)
        yield Trial(program)


@contextmanager
def nothing_outlives():
    """Yield an empty folder, an Outside and an empty list, for the Programs that are put there.

    At the end, also where a cell raises, these are discarded, and everything that still runs is killed. Raises Survived where something
    outlived its own process.
    """
    descendants.adopt_orphans()
    known, programs, left = {child.pid for child in descendants.living()}, [], []
    with scratch() as folder, Outside(folder / "outside.sock", seed="notebooks") as server:
        try:
            yield folder, server, programs
        finally:
            for program in programs:
                left += [words for process in program.processes for words in process.left_behind()]
                program.outside.drop()
                program.discard()
            left += descendants.survivors(known)
        if server.errors:
            raise server.errors[0]
        if left:
            raise processes.Survived(f"{left[0]} still ran at the end: no process may outlive its program")


def killed_in_each_gap(flow, look, function="start"):
    """Kill the flow in each gap between the statements of a function. Returns what `look(trial, process)` saw after each."""
    found = []
    for gap in range(len(statements(flow, function))):
        with trial(planted(flow, function, KILL, [gap])) as one:
            process = one.program.start(TICKET).wait()
            if process.code != -9:
                raise RuntimeError(f"nobody was killed in gap {gap}: {process} {one.blank(process.end)}: {one.blank(process.last_words)}")
            found.append(look(one, process))
    return found


class Trial:
    """One program in an empty home. `program` and `outside` (its account) are those of labs/harness."""

    def __init__(self, program):
        self.program, self.outside, self._names = program, program.outside, {}

    def start(self):
        """Start the flow with the ticket, and let it run to its end. Returns the Process."""
        return self._show(self.program.start(TICKET).wait())

    def kill(self, kind, when):
        """Start the flow, and kill it while its request of this `kind` (model, refund, mail) is held, `before` or `after` the outside acts.

        Returns the Process. Nothing of it lives on, and its request has acted or never will.
        """
        process, _ = killed_at(self.program, kind, when, lambda: self.program.start(TICKET))
        done = "before the outside acts" if when == "before" else "after the outside acted, before it answers"
        return self._show(process, f"✂ kill -9: the {kind} request is held, {done}")

    def ask(self, *arguments):
        """Run the program with these arguments to its end. Returns the Process."""
        return self._show(self.program.ask(*arguments))

    def story(self):
        """Tell what happened so far."""
        print("\n".join(self.blank(line) for line in story.tell(self.program)))

    def timeline(self, title, why=""):
        """What happened so far, as a Picture. The numbers count the events in their order."""
        events = [{**event, "at": number / 1000} for number, event in enumerate(events_of(self.program))]
        events = json.loads(self.blank(json.dumps(events, ensure_ascii=False)))
        # With a number in place of every time: when something happened depends on the machine, in what order does not.
        svg = re.sub(r">(\d+)\.(\d{3}) s<", lambda found: f">{int(found[1] + found[2])}<", timeline.draw(events, title, why))
        svg = svg.replace("the distances are not to scale", "the numbers count what happens")
        return Picture(_counted(svg), title, _counted("\n".join(sentences(events))))

    def blank(self, text):
        """The text with a name in place of whatever chance made: `run-1` is the id of the first run, `id-1` another one."""
        starts = (process for process in self.program.processes if process.arguments[0] == "start")
        for number, process in enumerate(starts, 1):
            if found := re.match(r"[0-9a-f]{32}\b", process.stdout):
                self._names.setdefault(found[0][:8], f"run-{number}")
        return re.sub(r"\b([0-9a-f]{8})(?:[0-9a-f]{24}\b|…)", self._name, text)

    def _name(self, found):
        others = sum(name.startswith("id-") for name in self._names.values())
        return self._names.setdefault(found[1], f"id-{others + 1}")

    def _show(self, process, killed=None):
        lines = [f"$ python -m starter {' '.join(process.arguments)}", process.stdout.rstrip()]
        lines += [killed] if killed else [process.last_words, f"exit code {process.code}"] if process.code else []
        print(self.blank("\n".join(filter(None, lines))))
        return process


def _counted(text):
    return re.sub(r"\b(\d+)\.(\d{3}) s\b", lambda found: f"moment {int(found[1] + found[2])}", text)
