"""From what `--program` names to a clean copy that can be started: which files, and which command line."""

import ast
import difflib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from .scratch import remove

KIT = Path(__file__).resolve().parents[2]
DO_SOMETHING = {"antigravity", "idlelib", "test", "this", "turtledemo"}   # modules that are not imported for what is in them
SHIPPED = Path(__file__).resolve().with_name("starter.zip")  # the starter as it was before anybody edited it
AS_IS = "-as-is"   # ends the name of an engine's program as one writes it first: an overlay over the mended one
GIVEN = ("__main__.py", "conversation.py", "exits.py", "flow.py", "outside.py")  # files of a program that began as the starter
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".git", ".lab", ".lab-evidence", ".venv", ".pytest_cache", "mistake.toml", "engine.toml")


class NoProgram(Exception):
    """What was named cannot be started; the message says why and what would do."""


@dataclass(frozen=True)
class Staged:
    """A program, copied to `folder`. Every start gets a Place of its own and runs `command` there.

    `module` is the module that `command` has Python run, None where it is another command line. `preload` are installed modules that its
    fork server loads once for all starts.
    """

    name: str
    folder: Path
    command: tuple
    module: str | None = None
    give: Callable = lambda path: None   # makes a path the program's own, where it runs as another user
    preload: tuple = ()

    @cached_property
    def places(self):
        return Places(self.folder, self.give)

    @cached_property
    def files(self):
        """Its own Python files, relative to the folder, in order; but for empty ones, in which no line runs, like an `__init__.py` of ours."""
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.py") if path.is_file() and path.stat().st_size)

    @property
    def sources(self):
        """The text of its own Python files, by their names in the package that is run. What a link leads to elsewhere is not read."""
        inside = (name for name in self.files if (self.folder / name).resolve().is_relative_to(self.folder.resolve()))
        return {name.removeprefix("starter/"): (self.folder / name).read_text(errors="replace") for name in inside}

    @cached_property
    def imports(self):
        """The modules of the standard library that its Python files import, in order; read, not run. None that it has one of its own of that name."""
        found, own = set(), {Path(name).stem for name in self.files} | {path.name for path in self.folder.rglob("*") if path.is_dir()}
        for path in self.folder.rglob("*.py"):
            try:
                nodes = list(ast.walk(ast.parse(path.read_bytes())))
            except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            found.update(name.name for node in nodes if isinstance(node, ast.Import) for name in node.names)
            found.update(node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level)
        return sorted(name for name in found if name.partition(".")[0] in sys.stdlib_module_names - DO_SOMETHING - own and "__main__" not in name)


class Places:
    """Where starts of a program take place: a clean copy of it, `program`, and empty folders `home` and `tmp` beside it.

    A place in which nothing was written serves again, the others are thrown away. All methods may be called from any thread.
    """

    def __init__(self, source, give):
        self._source, self._give, self._free, self._made, self._lock = source, give, [], {}, threading.Lock()

    def take(self):
        """The path of a place that nobody else uses, as good as new."""
        while place := self._one_that_served():
            if _contents(place) == self._made[place]:
                return place
            remove(place)
        place = Path(tempfile.mkdtemp(prefix=f"{self._source.name}-place-", dir=self._source.parent))
        shutil.copytree(self._source, place / "program", symlinks=True)
        for name in ("home", "tmp"):
            (place / name).mkdir()
        self._give(place)
        self._made[place] = _contents(place)
        return place

    def _one_that_served(self):
        with self._lock:
            return self._free.pop() if self._free else None

    def give_back(self, place):
        """Say that every process that used a place is gone."""
        self._free.append(place)


def _contents(place):
    """All that is in a place with its size, its times and its inode: whatever was written there, and was put back, shows."""
    found, folders = [], [place]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    found.append((entry.path, status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
                    if stat.S_ISDIR(status.st_mode):
                        folders.append(entry.path)
        except OSError:
            found.append(None)   # what we cannot read is not what we made
    return sorted(found, key=str)


def stage(program, folder, command=None):
    """Copy the program to `folder` and return it Staged. Raises NoProgram.

    `program` is a path: a folder with a `__main__.py`; one that holds such a folder called `starter`; a solution of
    the kit by its lab (`solutions/03`: the starter as shipped under the overlays 01 to 03); a mistake of the kit
    (`solutions/mistakes/NAME`: the finished program under that overlay); one on an engine (`solutions/engines/NAME`: the same); SHIPPED, the starter
    as shipped. With `command`, a command line, the whole folder is copied and the command is run in it. Links are copied as links: what they lead to is
    not read here.
    """
    program = Path(program).resolve()
    if program.is_relative_to(KIT / "solutions") and not (KIT / "solutions").is_dir():
        raise NoProgram("this kit has no solutions/: whoever gave it to you has them; name a folder that holds a program, like starter")
    if program.is_file() and program != SHIPPED:
        raise NoProgram(f"{program} is a file: name the folder that it is in" + (f", {program.parent}" if program.name == "__main__.py" else ""))
    if not program.is_dir() and program != SHIPPED:
        there = []
        with suppress(OSError):   # there is none, or it is closed to us
            there = [path.name for path in program.parent.iterdir() if path.is_dir()]
        close = difflib.get_close_matches(program.name, there, 1)
        raise NoProgram(f"there is no folder {program}: " + (f"is it {program.with_name(close[0])}?" if close else "name one that holds a program, like starter"))
    if command is not None:
        return _stage_command(program, folder, command)

    layers = _layers(program)
    for layer in layers:
        _copy(layer, folder / "starter")
    # A folder without this file loses against any other `starter` that Python finds, like the one of the kit itself.
    package = folder / "starter" / "__init__.py"
    if not os.path.lexists(package):
        package.touch()
    # Compiled once here rather than at each of hundreds of starts. Compiling runs nothing of the program.
    subprocess.run([sys.executable, "-I", "-m", "compileall", "-q", "-e", str(folder), str(folder)], timeout=60,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Staged(_name(program), folder, (sys.executable, "-m", "starter"), "starter")


def _stage_command(program, folder, command):
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise NoProgram(f"--command cannot be read ({error}): quote it like a shell command") from None
    if not words:
        raise NoProgram("--command is empty: give the command line that starts the program")
    _copy(program, folder)
    return Staged(_name(program), folder, tuple(words))


@cache
def shipped_texts():
    """The starter's Python files as they were before anybody edited them, {name: text}."""
    with zipfile.ZipFile(SHIPPED) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")}


def _layers(program):
    if program == SHIPPED:
        return [SHIPPED]
    solutions = KIT / "solutions"
    overlays = sorted(solutions.glob("[0-9][0-9]"))
    if program.parent == solutions and re.fullmatch(r"\d\d", program.name):
        return [SHIPPED, *(layer for layer in overlays if layer.name <= program.name)]
    if program.parent == solutions / "mistakes":
        return [SHIPPED, *overlays, program]
    if program.parent == solutions / "engines":
        return [SHIPPED, *overlays, *dict.fromkeys((program.with_name(program.name.removesuffix(AS_IS)), program))]
    if program in (KIT / "labs", KIT / "grader"):
        raise NoProgram(f"{program} is the kit's own command, and no flow: name a folder that holds a program, like starter")
    for folder in (program, program / "starter"):
        if (folder / "__main__.py").is_file():
            return [folder]
    raise NoProgram(f"{program} holds no program: it needs a __main__.py, or a folder starter/ with one; "
                    "where it is started otherwise, say how with --command 'LINE'")


def _name(program):
    return str(program.relative_to(KIT)) if program.is_relative_to(KIT) else program.name


def _copy(source, target):
    try:
        if source == SHIPPED:
            zipfile.ZipFile(source).extractall(target)
            return
        shutil.copytree(source, target, symlinks=True, ignore=LEFT_OUT, dirs_exist_ok=True)
    except shutil.Error as error:
        name, _, why = error.args[0][0]
        raise NoProgram(f"{name} cannot be copied: {why}") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise NoProgram(f"{source} cannot be copied: {error}") from None
