"""What is left out of a submission, and why: what would reach Python or pytest behind the program's back, and litter."""

from grader.results import Dropped

from .entries import FILE, FOLDER

PYTEST = "configures pytest, which is the grader's"
STARTUP = "is run by every Python that finds it"
HISTORY = "a repository's history"
ENVIRONMENT = "a virtual environment or installed packages"
BYTECODE = "bytecode, of which nobody knows what it was made from"
LEFT = "left behind by an earlier run"
LITTER = "left behind by a tool or a system"

FILES = {**dict.fromkeys(["conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg"], PYTEST),
         **dict.fromkeys(["sitecustomize.py", "usercustomize.py"], STARTUP),
         **dict.fromkeys([".ds_store", "thumbs.db", "desktop.ini"], LITTER), ".git": HISTORY}
FOLDERS = {"__pycache__": BYTECODE, **dict.fromkeys([".git", ".hg", ".svn"], HISTORY),
           **dict.fromkeys([".venv", "site-packages", "node_modules", ".tox", ".nox"], ENVIRONMENT),
           **dict.fromkeys([".lab", ".lab-evidence", ".lab-backup"], LEFT),
           **dict.fromkeys(["__macosx", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".ipynb_checkpoints", ".idea", ".vscode"], LITTER)}
ENDINGS = {".pyc": BYTECODE, ".pyo": BYTECODE, ".pth": STARTUP}
FOLDER_ENDINGS = {".dist-info": ENVIRONMENT, ".egg-info": ENVIRONMENT}
NAMED = 8   # things that are left out for one reason and named one by one


def why_unwanted(name, folder):
    """Why a file or a folder of this name is left out, None where it is not. Upper and lower case are the same: they are so elsewhere."""
    name = name.casefold()
    if name.startswith("._"):
        return LITTER
    names, endings = (FOLDERS, FOLDER_ENDINGS) if folder else (FILES, {**ENDINGS, **FOLDER_ENDINGS})
    return names.get(name) or next((why for ending, why in endings.items() if name.endswith(ending)), None)


def is_environment(names):
    """Whether a folder with these names in it is a virtual environment, and not a program that has one around it."""
    return "pyvenv.cfg" in names and "__main__.py" not in names


def sift(entries):
    """The files of `entries` that are wanted, and what is not, as {parts: why}."""
    inside = {}
    for entry in entries:
        if entry.parts[-1] in ("pyvenv.cfg", "__main__.py") and entry.kind == FILE:
            inside.setdefault(entry.parts[:-1], set()).add(entry.parts[-1])
    environments = {parts for parts, names in inside.items() if parts and is_environment(names)}
    wanted, dropped = [], {}
    for entry in entries:
        unwanted = _unwanted(entry, environments)
        if unwanted:
            dropped.setdefault(*unwanted)
        elif entry.kind == FILE:
            wanted.append(entry)
    return wanted, dropped


def _unwanted(entry, environments):
    """The topmost of an entry and the folders around it that is not wanted, and why; None where all are."""
    for depth, name in enumerate(entry.parts, 1):
        around = depth < len(entry.parts) or entry.kind == FOLDER
        why = ENVIRONMENT if entry.parts[:depth] in environments else why_unwanted(name, around)
        if not why and not around and entry.kind != FILE:
            why = entry.kind
        if why:
            return entry.parts[:depth], why
    return None


def told(dropped):
    """What was left out, {name: why} in order, as Dropped: at most some of each why, and how many more there are."""
    by_why = {}
    for name, why in dropped.items():
        by_why.setdefault(why, []).append(name)
    return [Dropped(path=name, why=why) for why, names in by_why.items()
            for name in (names if len(names) <= NAMED else [*names[:NAMED - 1], f"and {len(names) - NAMED + 1:,} more"])]
