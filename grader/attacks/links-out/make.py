"""Links, and what is no file."""

import os
from pathlib import Path

KIT = Path(os.path.abspath(__file__ if "__file__" in globals() else ".")).parents[3]


def make(program):
    for name, target in {"passwd": "/etc/passwd", "shadow": "/etc/shadow", "kit": KIT, "root": "/", "loop": "loop", "hardlink-of-nothing": "../../../nothing"}.items():
        (program / name).symlink_to(target)
    os.mkfifo(program / "pipe")
