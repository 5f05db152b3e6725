"""The sources are a mistake of the bank; what is compiled would be of the finished program, if somebody took it."""

import importlib.util
import marshal
from pathlib import Path

from labs.harness.staging import KIT


def make(program):
    source = sorted(KIT.glob("solutions/[0-9][0-9]/flow.py"))[-1].read_text()
    code = marshal.dumps(compile(source, str(program / "flow.py"), "exec"))
    compiled = Path(importlib.util.cache_from_source(program / "flow.py"))
    compiled.parent.mkdir()
    for path in (compiled, program / "flow.pyc"):
        path.write_bytes(importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code)   # 1: hash-based, and never checked
