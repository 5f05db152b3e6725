"""Programs of a notebook's own, beside the starter's clients: one text with a `main`, kills at a counted place in it, and races."""

from experiment import trial
from gaps import planted, statements
from labs.harness.outside import Fault

MAIN = '''
import sys

from . import app
from .exits import Exit

try:
    sys.exit(app.main(*sys.argv[1:]))
except Exit as end:
    print(end, file=sys.stderr)
    sys.exit(end.code)
'''
# The file is gone once it is read: the next start passes. It is read before `main` begins, and a program that never gets here dies nowhere.
GATE = '''
import os

path, left = os.path.join(os.environ["LAB_HOME"], "die-at"), 0
if os.path.exists(path):
    with open(path) as file:
        left = int(file.read())
    os.unlink(path)


def passed():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
'''
PASS = "from . import gate; gate.passed()"


def running(text, **modules):
    """A Trial, as trial() yields it, of a program whose words go to `main(*words)` in `text`; `modules` are the texts of others beside it."""
    return trial(**{"__main__": MAIN, "app": text, "gate": GATE, **modules})


def held(one, *words, fault):
    """Start the program of a Trial with these words, and wait until its request is held as this Fault says. Returns the Process."""
    one.outside.plan(fault)
    process = one.program.begin(*words)
    one.program.until_held(process)
    return process


def killed(one, *words, fault):
    """Start the program, and kill it while its request is held. Returns the Process; no fault is planned any more."""
    process = held(one, *words, fault=fault)
    one.program.kill(process)
    one.outside.plan()
    return process


def killed_at_pass(one, *words, nth):
    """Start the program, and have it killed where it passes `gate` for the `nth` time. Returns the Process."""
    (one.program.home / "die-at").write_text(str(nth))
    process = one.program.begin(*words).wait()
    if process.code != -9:
        raise RuntimeError(f"nobody was killed at pass {nth}: {process} {process.end}: {process.last_words}")
    one.program.kill(process)   # its requests are settled, and nothing of it lives on
    return process


def in_each_gap(text, function, words, look, gaps=None):
    """Kill in gaps between the statements of a function, and start the program again each time, all in one home.

    `words(gap)` are the words of both starts. Returns, for each gap, what `look(trial, words, process)` saw, `process` being the second start.
    """
    found = []
    with running(planted(text, function, PASS)) as one:
        for gap in range(len(statements(text, function))) if gaps is None else gaps:
            killed_at_pass(one, *words(gap), nth=gap + 1)
            found.append(look(one, words(gap), one.program.ask(*words(gap))))
    return found


def race(one, kind, *starts):
    """Start the program once for each tuple of words; when each is at its request of this kind, or has ended, let all of them go on to their end."""
    one.outside.plan(Fault(kind, "hold_before", times=len(starts)))
    processes = [one.program.begin(*words) for words in starts]

    def all_there():
        return len(one.outside.held()) + sum(not process.running for process in processes) == len(starts)

    processes[0].wait_until(all_there, f"be at its {kind} request, like the others")
    one.outside.release()
    for process in processes:
        process.wait()
    one.outside.plan()
    return processes
