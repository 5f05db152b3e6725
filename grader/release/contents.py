"""What is in the learner's kit: each file, from where it comes, and what is left out."""

import json
import tomllib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from labs.command.kit import all_labs
from labs.command.refused import Refused
from labs.command.shipped import shipped_starter
from labs.harness.staging import KIT

LEARNER = Path(__file__).with_name("learner")
AS_THEY_ARE = ("LICENSE", ".gitignore")                    # from the kit's top level
WRITTEN = {"README.md": "README.md.jinja", "AGENTS.md": "AGENTS.md", "pyproject.toml": "pyproject.toml.jinja",
           ".github/workflows/labs.yml": "labs.yml.jinja"}   # by this release, from LEARNER
LEFT_OUT = {"hidden", "__pycache__"}                       # folders of labs/
NOT_THEIRS = {"08-engines.ipynb", "engines.py", "front_door.py", "front_door.svg"}   # of notebooks/: what shows solutions, and what this kit's README shows


def contents(kit=KIT):
    """The files of the learner's kit, {relative path: bytes}. Raises Refused where the kit is not a whole one."""
    for name in ("labs", "notebooks", "solutions", "pyproject.toml", *AS_THEY_ARE):
        if not (kit / name).exists():
            raise Refused(f"{kit} has no {name}: a release is made of a whole kit; get it again, and run the command that is in it")
    files = {name: (kit / name).read_bytes() for name in AS_THEY_ARE}
    files |= {f"starter/{name}": content for name, content in shipped_starter(kit).items()}
    for folder in ("labs", "notebooks"):
        files |= {path.relative_to(kit).as_posix(): path.read_bytes() for path in sorted((kit / folder).rglob("*")) if _is_shown(path, kit)}
    return files | {name: text.encode() for name, text in _written(kit).items()}


def _is_shown(path, kit):
    parts = path.relative_to(kit).parts
    return path.is_file() and not path.is_symlink() and not LEFT_OUT & set(parts) and not any(part.startswith(".") for part in parts) \
        and path.suffix != ".pyc" and not (parts[0] == "notebooks" and path.name in NOT_THEIRS)


def _written(kit):
    # Nothing of it is HTML.
    environment = Environment(loader=FileSystemLoader(LEARNER), autoescape=False, undefined=StrictUndefined, keep_trailing_newline=True,
                              trim_blocks=True, lstrip_blocks=True)
    environment.filters["quoted"] = lambda value: json.dumps(value, ensure_ascii=False)   # as TOML and YAML have it too
    labs = all_labs()
    known = {"project": tomllib.loads((kit / "pyproject.toml").read_text(encoding="utf-8"))["project"], "labs": labs,
             "hidden": [check for lab in labs for check in lab.checks if check.hidden]}
    return {name: environment.get_template(template).render(known) for name, template in WRITTEN.items()}
