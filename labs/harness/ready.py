"""The program's modules, compiled and at hand: importing them needs no look at the disk.

What is imported is what would be found: the compiled form of the very files, made when the program was staged.
"""

import _imp
import importlib.util
import marshal
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path

_HEADER = 16   # bytes before the code in a compiled file
_codes = {}    # by the path of the source below the program's folder


def read_compiled(folder):
    """Read what was compiled of the Python files below `folder`. Nothing of it is run."""
    for path in sorted(Path(folder).rglob("*.py")) if folder else ():
        try:
            compiled = Path(importlib.util.cache_from_source(path)).read_bytes()
            _codes[path.relative_to(folder).as_posix()] = marshal.loads(compiled[_HEADER:])
        except (OSError, ValueError, EOFError, TypeError):
            pass   # not compiled, because it cannot be; Python will say so when it is imported


def place_compiled(folder):
    """Give them their place, `folder`, which has a copy of the files, where they are not there already."""
    for path, code in _codes.items():
        _imp._fix_co_filename(code, f"{folder}/{path}")


def use_compiled(folder):
    """From now on import them as if from `folder`, their place."""
    if _codes:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder(folder))


class _Finder:
    def __init__(self, folder):
        self._folder = folder

    def find_spec(self, name, path=None, target=None):
        # Only where Python would look first, and find it.
        first = next(iter(sys.path if path is None else path), None)
        if first != self._folder and not str(first).startswith(f"{self._folder}/"):
            return None
        below = f"{first}/{name.rpartition('.')[2]}"[len(self._folder) + 1:]
        for file, places in ((f"{below}/__init__.py", [f"{self._folder}/{below}"]), (f"{below}.py", None)):
            if file in _codes:
                place = f"{self._folder}/{file}"
                return importlib.util.spec_from_file_location(name, place, loader=_Loader(name, place, _codes[file]), submodule_search_locations=places)
        return None


class _Loader(SourceFileLoader):
    def __init__(self, name, path, code):
        super().__init__(name, path)
        self._code = code

    def get_code(self, name):
        return self._code
