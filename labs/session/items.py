"""An item of pytest: which check of which lab it is, the programs that it made, and how it may end without a verdict."""

import pytest

PROGRAMS = pytest.StashKey()   # of an item: the Programs that its check has made


class CouldNotCheck(pytest.skip.Exception):
    """The machine, or the harness, is not able: that says nothing about the program, neither good nor bad."""


class NotApplicable(pytest.skip.Exception):
    """The check has nothing to say of this program. Its points leave the total."""


def lab_folder(item):
    """The folder of the item's lab, like labs/03; None where it is of no lab."""
    return next((folder for folder in item.path.parents if (folder / "lab.toml").is_file()), None)


def test_name(item):
    """Its check as lab.toml names it, like hidden/test_keys.py::test_x: without the parameters, of which each makes another item."""
    return f"{item.path.relative_to(lab_folder(item)).as_posix()}::{item.originalname}"


def known_as(item):
    """The item as the records know it: (lab, check, name)."""
    return lab_folder(item).name, test_name(item), item.name
