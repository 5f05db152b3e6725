"""The hints of a lab, one more at each call, and how many a learner has seen."""

import sys
import time
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console

from labs.harness.staging import KIT

from .durable import replace_text
from .kit import EVIDENCE, lab_numbered, shown
from .prose import say

PROGRESS = EVIDENCE / "progress.json"


class Progress(BaseModel):
    """What the kit remembers of a learner: by lab, how many hints were shown."""

    model_config = ConfigDict(extra="allow")

    hints: dict[str, Annotated[int, Field(ge=0)]] = {}


def show_hint(number):
    """Print the next hint of a lab, or all of them once all were seen. Returns an exit code; raises Refused."""
    lab = lab_numbered(number)
    progress, total = read_progress(), len(lab.hints)
    seen = progress.hints.get(lab.number, 0)
    console = Console(highlight=False)
    if seen >= total:
        for place, hint in enumerate(lab.hints, 1):
            _print(console, lab, place, hint)
        further = f" Once the checks pass, `python -m labs solution {lab.number}` shows how it can be done; with --reveal it does so before."
        say(console, f"These are all {total}, there are no more.{further if (KIT / 'solutions').is_dir() else ''}")
        return 0
    _print(console, lab, seen + 1, lab.hints[seen])
    progress.hints[lab.number] = seen + 1
    write_progress(progress)
    if seen + 1 < total:
        console.print(f"One more: python -m labs hint {lab.number}", style="dim")
    return 0


def _print(console, lab, place, hint):
    console.print(f"[bold]lab {lab.number} · {lab.title}[/]  hint {place} of {len(lab.hints)}\n")
    say(console, hint, indent=2)
    console.print()


def read_progress():
    """The Progress so far. A file that cannot be understood is set aside, with one line on stderr, and it begins anew."""
    try:
        return Progress.model_validate_json(PROGRESS.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (ValidationError, IsADirectoryError):
        aside = PROGRESS.with_name(f"progress-damaged-{time.strftime('%Y%m%d-%H%M%S')}.json")
        PROGRESS.replace(aside)
        print(f"{shown(PROGRESS)} could not be understood; it is now {aside.name}, and hints are counted anew", file=sys.stderr)
    return Progress()


def write_progress(progress):
    """Keep it. Where nothing can be written, one line on stderr says so: a hint is worth more than its count."""
    try:
        PROGRESS.parent.mkdir(parents=True, exist_ok=True)
        replace_text(PROGRESS, progress.model_dump_json() + "\n")
    except OSError as error:
        print(f"{shown(PROGRESS)} cannot be written ({error.strerror}): this hint will come again", file=sys.stderr)
