"""What a forked process does to become the program: the environment of its start, the watchers, then the program's own code.

It takes the place of a new interpreter, which would take ten times as long. Nothing of the program was ever imported in
the process that it is forked from, and nothing of ours is on its stack when it begins.
"""

import atexit
import ctypes
import gc
import io
import mmap
import os
import runpy
import signal
import sys
import threading
import time
import traceback

from .kills import syscall

LIBC = ctypes.CDLL(None, use_errno=True)


class Told:
    """A number and a line of text that the program's process tells its keeper without a system call."""

    def __init__(self):
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    @property
    def number(self):
        return int.from_bytes(self._memory[:8], "little", signed=True)

    @number.setter
    def number(self, number):
        self._memory[:8] = number.to_bytes(8, "little", signed=True)

    @property
    def text(self):
        return self._memory[8:].split(b"\0")[0].decode(errors="replace")

    @text.setter
    def text(self, text):
        data = text.encode()[:1000]
        self._memory[8:8 + len(data)] = data


def become(start, streams, lines, told):
    """Make this process the program's, and return a function that runs it. `start` is as in keeper.keep()."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    # What the fork server, or Python itself, ignores must not be ignored in a program of another language.
    for number in (signal.SIGCHLD, *((signal.SIGPIPE, signal.SIGXFSZ) if start.get("command") else ())):
        signal.signal(number, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number, inheritable=True)
    os.closerange(3, 1 << 10)
    os.chdir(start["folder"])
    if sys.platform == "linux":
        PR_SET_DUMPABLE = 4
        LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # it was off to protect the server
    os.environ.clear()
    os.environ.update(start["environment"])
    time.tzset()
    listener = -1
    if start.get("calls"):
        try:
            told.number = listener = syscall.watch_this_process(start.get("locks", False))
        except syscall.CannotWatch as error:
            told.text = str(error)
    if start.get("calls") or start.get("gated"):
        os.kill(os.getpid(), signal.SIGSTOP)   # until the keeper listens, and the harness says go
    if listener >= 0:
        os.close(listener)
    if start.get("command"):
        _execute([*start["command"], *start["arguments"]], told)
    return lambda: _run_module(start, lines)


def _execute(words, told):
    try:
        os.execvpe(words[0], words, dict(os.environ))
    except (OSError, ValueError) as error:
        told.text = f"`{words[0]}` cannot be started: {getattr(error, 'strerror', None) or error}"
        os._exit(127)


def _run_module(start, lines):
    for name in [name for name in sys.modules if name.partition(".")[0] == "labs"]:
        del sys.modules[name]
    preloaded = set(sys.modules)
    sys.dont_write_bytecode = True
    sys.path.insert(0, start["folder"])
    sys.argv[:] = [start["module"], *start["arguments"]]
    if start.get("lines"):
        if start.get("calls"):
            lines.follow(start["folder"], stacks=True)
        else:
            lines.follow(start["folder"], start.get("strike"))
    code = _code_of(lambda: runpy.run_module(start["module"], run_name="__main__", alter_sys=True))
    _end([name for name in sys.modules if name not in preloaded], code)


def _code_of(run):
    """The exit code that Python has for how `run()` ends; what it would print is printed."""
    try:
        run()
        return 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    return 1


def _end(modules, code):
    """End the process as Python ends: threads, then atexit, then what the program's modules hold, then its open files.

    Only the standard library is left as it is. To take it down, which nobody can notice, takes longer than most programs run.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    for name in reversed(modules):
        vars(sys.modules.pop(name)).clear()
    gc.collect()
    for file in [found for found in gc.get_objects() if isinstance(found, io.IOBase)] + [sys.stdout, sys.stderr]:
        try:
            file.flush()
        except (AttributeError, OSError, ValueError):
            pass   # closed by now, or nobody reads it
    os._exit(code)
