"""The battery of attacks: submissions that try to earn what they do not, and what each must score."""

import runpy
import shutil
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from labs.harness.manifest import BadManifest
from labs.harness.staging import KIT, LEFT_OUT, stage

from .results import Outcome, Status

ATTACKS = KIT / "grader" / "attacks"
HONEST = "an honest neighbour"   # the finished program, graded among the attacks


class Attack(BaseModel):
    """`attack.toml`. The folder's other files are laid over the finished program.

    `make.py` in it is no part of the submission: its `make(program)` gets the folder of the program, to put in what no repository
    should have, and returns what is submitted where that is something else.
    """

    model_config = ConfigDict(extra="forbid")

    attack: str = Field(min_length=20)            # what it tries, in a sentence
    stopped_by: str = Field(min_length=20)        # and why that does not help
    over: list[str] = []                          # what comes between: folders of solutions/mistakes, or of attacks/bases
    passes: list[str] = []                        # like `02/test_effects.py::test_x`: what its honest part earns
    fails: dict[str, list[Status]] = {}           # the other checks that are made of it, and the statuses of which it has one
    drops: list[str] = []                         # names that intake has to leave out
    outcome: Outcome = Outcome.GRADED
    landlock: int = 0                             # below this version of it the attack may do itself harm, and fail what it `passes`

    @property
    def checks(self):
        return [*self.passes, *self.fails]


def attacks():
    """Every Attack, by its name. Raises BadManifest."""
    found = {}
    for path in sorted(ATTACKS.glob("*/attack.toml")):
        try:
            found[path.parent.name] = Attack.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
            raise BadManifest(f"{path}: {error}") from None
    return found


def submit(name, attack, folder):
    """Make the submission of an Attack below `folder`, a path that does not exist. With `attack` None it is the finished program."""
    staged = stage(max(KIT.glob("solutions/[0-9][0-9]")), folder)
    shutil.rmtree(staged.folder / "starter" / "__pycache__", ignore_errors=True)
    if attack is None:
        return
    for layer in (*attack.over, name):
        source = next(place / layer for place in (KIT / "solutions" / "mistakes", ATTACKS / "bases", ATTACKS) if (place / layer).is_dir())
        shutil.copytree(source, folder / "starter", dirs_exist_ok=True,
                        ignore=lambda folder, names: {*LEFT_OUT(folder, names), *({"attack.toml", "make.py"} & set(names))})
    if (ATTACKS / name / "make.py").is_file():
        runpy.run_path(str(ATTACKS / name / "make.py"))["make"](folder / "starter")


def wrong(attack, result):
    """What of a Result is not as the Attack has to end, in sentences; none where all is. With `attack` None everything has to pass."""
    from labs.harness.confine import abi
    if result is None:
        return ["it has no result"]
    outcome = attack.outcome if attack else Outcome.GRADED
    if result.outcome != outcome:
        return [f"it is {result.outcome} ({result.reason}), not {outcome}"]
    found = []
    for lab, check in result.checks:
        wanted = attack.fails.get(f"{lab.number}/{check.test}", [Status.PASSED]) if attack else [Status.PASSED]
        harmless = wanted == [Status.PASSED] and attack and abi() < attack.landlock
        if check.status not in wanted and not harmless:
            found.append(f"{lab.number}/{check.test} is {check.status}, not {' or '.join(wanted)} ({check.why})")
    made = {f"{lab.number}/{check.test}" for lab, check in result.checks}
    if attack and outcome == Outcome.GRADED and made != set(attack.checks):
        found.append(f"other checks were made than it names: {sorted(made ^ set(attack.checks))}")
    dropped = {Path(entry.path).name for entry in result.dropped}
    found += [f"{name} was not left out" for name in (attack.drops if attack else []) if name not in dropped]
    return found
