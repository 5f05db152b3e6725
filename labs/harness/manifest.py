"""`lab.toml`: what a lab is worth, what it checks, how it helps."""

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .staging import KIT


class BadManifest(Exception):
    """A lab.toml that cannot be used; the message names the file and the field."""


class Check(BaseModel):
    """One check: a test function, with all of its parameters. It passes as a whole or not at all."""

    model_config = ConfigDict(extra="forbid")

    test: str = Field(pattern=r"^(hidden/)?test_\w+\.py::test_\w+$")
    points: int = Field(ge=1)
    does: str = Field(min_length=20)          # in one line what the check does; the chapter has the same line
    passes_on_starter: bool = False

    @property
    def hidden(self):
        return self.test.startswith("hidden/")


class Lab(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: str = Field(pattern=r"^\d\d$")
    title: str
    points: int
    minutes: int
    hints: list[str] = Field(min_length=3, max_length=3)
    checks: list[Check]

    @model_validator(mode="after")
    def _the_points_add_up(self):
        if self.points != sum(check.points for check in self.checks):
            raise ValueError(f"points says {self.points}, and those of its checks are {sum(check.points for check in self.checks)}")
        return self

    def check(self, test):
        """The check of a test function, named like `test_x.py::test_y`, or None."""
        return next((check for check in self.checks if check.test == test), None)


class Mistake(BaseModel):
    """`mistake.toml`: one honest mistake in an overlay over the finished program, and the checks that must catch it."""

    model_config = ConfigDict(extra="forbid")

    mistake: str = Field(min_length=20)
    lesson: str = Field(min_length=20)
    caught_by: list[str] = Field(min_length=1)   # like `02/test_effects.py::test_x`
    touches: list[str] = []                      # further labs where it may show, now and then


def mistakes():
    """Every Mistake of the bank, by its name. Raises BadManifest."""
    return {path.parent.name: _load(Mistake, path) for path in sorted((KIT / "solutions" / "mistakes").glob("*/mistake.toml"))}


def folders():
    """The folders of all labs, in order."""
    return sorted(path.parent for path in (KIT / "labs").glob("[0-9][0-9]/lab.toml"))


def read(folder):
    """The Lab in a folder. Raises BadManifest."""
    return _load(Lab, Path(folder) / "lab.toml")


def _load(model, path):
    try:
        return model.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise BadManifest(f"{path}: {error}") from None
