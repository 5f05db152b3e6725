"""The evidence of checks and sweeps that failed: their stories, and where everything else about them is."""

import re
import textwrap
import webbrowser

from rich.console import Console
from rich.text import Text

from labs.harness import records
from labs.harness.story import WIDTH

from .kit import EVIDENCE, lab_numbered, shown
from .refused import Refused
from .results import about

LABEL = re.compile(r"  (\S[^ ]*(?: [^ ]+)*) {2,}(?=\S)")  # what a line of a story begins with
HANGING = " " * 17                                         # where its text begins
COPIED = ("look", "again", "hint")                         # labels of paths and commands, which a line break would spoil


def show_evidence(name=None, open_it=False):
    """Print the story of the first failed check, or sweep, of the last run that had one, or of the one that `name` is part of; a number is a lab's.

    Returns an exit code. Raises Refused where no run has left a failure, or none of that name.
    """
    session, folders = _last_failures()
    lab = f"{int(name):02}-" if name and name.isdecimal() else None
    wanted = [folder for folder in folders if name is None or (folder.name.startswith(lab) if lab else name.replace("_", "-") in folder.name)]
    if not wanted:
        raise Refused(_why_none(session, name, lab and lab[:-1]))
    exact = [folder for folder in wanted if folder.name == name]
    folder = (exact or wanted)[0]
    console = Console(highlight=False)
    _say_which_run(console, session, len(folders))
    others = [other for other in (exact or wanted) if other != folder]
    if others:
        console.print("\nFailed as well (python -m labs show NAME):", style="dim")
        # After `labs status` most of them are of labs that nobody has begun.
        near = others if name else [other for other in others if _lab_of(other) == _lab_of(folder)]
        for other in near:
            console.print(f"  {other.name}", style="dim", soft_wrap=True)
        if far := [other for other in others if other not in near]:
            numbers = sorted({_lab_of(other) for other in far})
            console.print(f"  and {len(far)} of lab {', '.join(numbers)} (python -m labs show {numbers[0]})", style="dim", soft_wrap=True)
    console.print()
    for line in fitted((folder / "story.txt").read_text(errors="replace"), console.width):
        console.print(_styled(line), soft_wrap=True)
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
    console.print(f"\nfiles: {shown(folder)}/", soft_wrap=True)
    console.print(textwrap.fill("  ".join(names), console.width, initial_indent="       ", subsequent_indent="       ",
                                break_on_hyphens=False), markup=False)
    if (page := session / "killmap.html").is_file():   # of a whole sweep, and not of one check
        console.print(f"kill map: {shown(page)}", soft_wrap=True)
    if open_it:
        _open(console, folder)
    return 0


def _why_none(session, name, lab):
    run = about(session)
    then = f"in the run of {run['began']}, of {run['program']}"
    if not lab:
        return f"no check called {name} failed {then}; `python -m labs show` lists those that did"
    lab_numbered(lab)
    if not any(entry["lab"] == lab for entry in records.outcomes(records.read(session / "results.jsonl"))):
        return f"lab {lab} was not {then}, the last one with a failure: run `pytest labs/{lab}`"
    return f"no check of lab {lab} failed {then}; `python -m labs show` lists those that did"


def _lab_of(folder):
    """The number of a failed check's lab; of a sweep nothing."""
    number = folder.name.partition("-")[0]
    return number if number.isdecimal() else ""


def _last_failures():
    """The newest session that had failures, and the folders of the failed checks in the order in which they failed."""
    for session in sorted((path for path in EVIDENCE.glob("*/") if not path.is_symlink()), reverse=True):
        stories = sorted(session.glob("*/story.txt"), key=lambda path: path.stat().st_mtime_ns)
        if stories:
            return session, [story.parent for story in stories]
    raise Refused("no run has left a failed check here: run `pytest labs/01`, and look again where something fails")


def _say_which_run(console, session, failed):
    run, latest = about(session), (EVIDENCE / "latest").resolve()
    if checks := {(entry["lab"], entry["check"]) for entry in records.outcomes(records.read(session / "results.jsonl")) if entry.get("evidence")}:
        tests, failed = failed, len(checks)   # a check of several tests may have left several folders, and `labs status` counts it once
        several = f", in {tests} tests," if tests > failed else ""
    else:
        several = ""
    rules = f", by the rules of lab {run['lab']}" if "lab" in run else ""
    console.print(Text.assemble((f"{failed} {run['what']}{'s' * (failed > 1)} failed", "bold"),
                                f"{several} in the run of {run['began']}, of {run['program']}, seed {run['seed']}{rules}"), soft_wrap=True)
    if latest != session.resolve() and latest.is_dir():
        console.print(f"That is not the last run: in the one of {about(latest)['began']} nothing failed, as far as it went.", style="yellow", soft_wrap=True)


def fitted(story, width):
    """The lines of a story, in lines of at most `width` columns, but for those that are there to be copied."""
    lines = []
    for line in story.splitlines():
        if line.startswith(HANGING) and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.rstrip())
    for line in lines:
        if line.endswith("FAIL"):
            line = f"{line[:-4].rstrip():<{min(width, WIDTH) - 5}} FAIL"
        if line.startswith(tuple(f"  {label} " for label in COPIED)):
            yield line
        else:
            yield from textwrap.wrap(line, max(40, min(width, WIDTH)), subsequent_indent=HANGING,
                                     break_on_hyphens=False) or [""]


def _styled(line):
    text = Text(line)
    if line.endswith("FAIL"):
        text.stylize("bold")
        text.stylize("red", len(line) - 4)
    elif label := LABEL.match(line):
        text.stylize("bold red" if label.group(1) == "why" else "cyan", label.start(1), label.end(1))
    return text


def _open(console, folder):
    timeline = folder / "timeline.svg"
    target = timeline if timeline.is_file() else folder
    try:
        opened = webbrowser.open(target.resolve().as_uri())
    except webbrowser.Error:
        opened = False
    console.print(f"opened {shown(target)}" if opened else f"no browser could be started here; open this in one: {target}",
                  soft_wrap=True)
