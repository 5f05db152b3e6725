"""The labs: chapters with their suites, the harness that kills and judges, and the learner's command."""

import sys
from pathlib import Path


def without(error):
    """What to say, and do, where a ModuleNotFoundError tells that this is not the Python that the kit was installed for."""
    return (f"{sys.executable} has no {error.name}: use the kit's own Python (. .venv/bin/activate), or install the kit into "
            f"this one: {sys.executable} -m pip install -e {Path(__file__).resolve().parents[1]}")
