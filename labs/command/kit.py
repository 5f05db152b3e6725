"""The kit that the command belongs to: its labs by number, and its paths as a person at a terminal would name them."""

import os
import re
from pathlib import Path

from labs.harness import manifest
from labs.harness.staging import KIT

from .refused import Refused

EVIDENCE = KIT / ".lab-evidence"


def all_labs():
    """Every Lab of the kit, in order. Raises Refused where there is none, or where a manifest cannot be used."""
    try:
        labs = [manifest.read(folder) for folder in manifest.folders()]
    except manifest.BadManifest as error:
        raise Refused(error) from None
    if not labs:
        raise Refused(f"there are no labs in {KIT / 'labs'}: unpack the kit again, and run the command that is in it")
    return labs


def lab_numbered(text):
    """The Lab that a person calls `text` (1 and 01 are the same; None is a number that was not given). Raises Refused."""
    labs = all_labs()
    known = labs[0].number if len(labs) == 1 else f"{labs[0].number} to {labs[-1].number}"
    if text is None:
        raise Refused(f"say which lab, by its number: this kit has {known}")
    number = f"{int(text):02}" if re.fullmatch("[0-9]{1,4}", text) else text
    for lab in labs:
        if lab.number == number:
            return lab
    raise Refused(f"there is no lab {text}; this kit has {known}")


def shown(path):
    """A path as it can be typed here: relative where it is below the working directory."""
    path, here = Path(path), Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)
