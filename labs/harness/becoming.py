"""What a forked process does to become the program: the environment of its start, the watchers, then the program's own code.

It takes the place of a new interpreter, which would take ten times as long. Nothing of the program was ever imported in
the process that it is forked from, and nothing of ours is on its stack when it begins.
"""

import _signal
import atexit
import builtins
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
import types
import weakref
from contextlib import suppress
from itertools import takewhile

from . import confine
from .kills import syscall
from .ready import use_compiled

LIBC = ctypes.CDLL(None, use_errno=True)


class Note:
    """A number, a line of text and a yes or no that the program's process tells its keeper without a system call."""

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

    @property
    def shut_in(self):
        """Whether the process is confined, and may be looked into."""
        return bool(self._memory[-1])

    @shut_in.setter
    def shut_in(self, whether):
        self._memory[-1] = whether

    def close(self):
        self._memory.close()


_preloaded = {}   # the names of all modules that are no program's own
_streams = []     # weak references to the standard streams: what was made before the fork gc.get_objects() does not list


def prepare():
    """Do in the fork server, once, what would be the same in each program: what a process changes, it has to copy first."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "labs"]:
        del sys.modules[name]
    _open_streams()
    _preloaded.update(dict.fromkeys(sys.modules))


def take_environment(environment):
    """Make this process's environment this one, by changing what is different."""
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    time.tzset()


def become(start, streams, lines, told, gate):
    """Make this process the program's once something comes by `gate`, and return a function that runs it. `start` is as in keeper.keep()."""
    os.setsid()
    if not os.read(gate, 1):
        os._exit(0)   # there is nobody any more for whom it would run
    signal.set_wakeup_fd(-1)
    # What the fork server, or Python itself, ignores must not be ignored in a program of another language.
    for number in (signal.SIGCHLD, *((signal.SIGPIPE, signal.SIGXFSZ) if start.get("command") else ())):
        _signal.signal(number, _signal.SIG_DFL)   # signal.signal() looks in vain for a name of the handler that was there
    for number, stream in enumerate(streams):
        os.dup2(stream, number, inheritable=True)
    os.closerange(3, 1 << 10)
    if sys.platform == "linux":
        PR_SET_DUMPABLE = 4
        LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # it was off to protect the server
    if start.get("confined"):
        try:
            confine.enter(start["confined"])
        except (confine.CannotConfine, OSError) as error:
            told.text = f"{confine.CANNOT}: {error}"
            os._exit(127)
        told.shut_in = True
    os.chdir(start["folder"])
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
        _execute([*start["command"], *start["arguments"]], told, f"{confine.CANNOT}: " if start.get("confined") and start.get("python") else "")
    told.close()   # what the keeper reads of it is ours, and not the program's
    return lambda: _run_module(start, lines)


def _execute(words, told, blame):
    try:
        os.execvpe(words[0], words, dict(os.environ))
    except (OSError, ValueError) as error:
        told.text = f"{blame}`{words[0]}` cannot be started: {getattr(error, 'strerror', None) or error}"
        os._exit(127)


def _run_module(start, lines):
    sys.path.insert(0, start["folder"])
    use_compiled(start["folder"])
    sys.argv[:] = [start["module"], *start["arguments"]]
    sys._xoptions.clear()
    sys.orig_argv[:] = [sys.executable, "-m", *sys.argv]
    if start.get("lines"):
        if start.get("calls"):
            lines.follow(start["folder"], stacks=True)
        else:
            lines.follow(start["folder"], start.get("strike"))
    # What `python -m` calls, with a main module that nobody has used.
    sys.modules["__main__"] = types.ModuleType("__main__")
    vars(sys.modules["__main__"]).update(__builtins__=builtins, __annotations__={})
    threading.main_thread()._set_native_id()
    code = _code_of(lambda: runpy._run_module_as_main(start["module"]))
    _end(code)


def _not_preloaded():
    """The names of the modules that the program brought, in order. The latest come last: to go through all would touch, and copy, each name."""
    last = next(reversed(_preloaded))
    new = list(takewhile(lambda name: name != last, reversed(sys.modules)))
    if len(new) != len(sys.modules) - len(_preloaded):   # it took some of the library away, or put them in anew
        new = [name for name in reversed(sys.modules) if name not in _preloaded]
    return reversed(new)


def _open_streams():
    """Make the standard streams anew: a text stream asks when it is made whether it can seek, and those that are here asked another file.

    They are made over pipes, as which a program will have them, and then put back.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        read, write = os.pipe()
        was = os.dup(number)
        os.dup2(write if number else read, number)
        old = getattr(sys, name)
        new = open(number, "w" if number else "r", 1 if name == "stderr" else -1, old.encoding, old.errors, "\n", closefd=False)
        new.buffer.raw.name = f"<{name}>"
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
        _streams.extend(map(weakref.ref, (new, new.buffer)))
        os.dup2(was, number)
        for descriptor in (read, write, was):
            os.close(descriptor)


def _code_of(run):
    """The exit code that Python has for how `run()` ends, -2 for the signal; what it would print is printed."""
    try:
        run()
        return 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            number = end.code or 0
            return number & 0xFF if -1 << 63 <= number < 1 << 63 else 0xFF
        with suppress(Exception):
            print(end.code, file=sys.stderr or open(2, "w", closefd=False))
        return 1
    except BaseException as raised:
        error = raised
        error.__traceback__ = error.__traceback__.tb_next.tb_next   # without two calls of ours
    # Not while it is handled: what the hook raises would be told as what came of it.
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    _show(type(error), error, error.__traceback__)
    code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    del error   # it holds the frames that hold it; what the program had open in them is to go with sys.last_value
    return code


def _show(*error):
    try:
        sys.excepthook(*error)
    except Exception as failed:
        failed.__traceback__ = failed.__traceback__.tb_next   # without a call of ours
        for said, what in (("Error in sys.excepthook:", sys.exc_info()), ("\nOriginal exception was:", error)):
            with suppress(Exception):
                print(said, file=sys.stderr or io.StringIO())
                sys.__excepthook__(*what)


def _ignore(error, stream):
    message, of = ("Exception ignored on flushing sys.stdout", None) if sys.version_info >= (3, 13) else (None, stream)
    if sys.unraisablehook is sys.__unraisablehook__:   # which takes nothing that is not made by Python
        print(f"{message}:" if message else f"Exception ignored in: {stream!r}", *traceback.format_exception_only(error), sep="\n", end="", file=sys.stderr)
    else:
        sys.unraisablehook(types.SimpleNamespace(exc_type=type(error), exc_value=error, exc_traceback=None, err_msg=message, object=of))


def _end(code):
    """End the process as Python ends: threads, then atexit, then what the program's modules hold, then its open files.

    Only the standard library is left as it is. To take it down, which nobody can notice, takes longer than most programs run.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream and not stream.closed:
                stream.flush()
        except Exception as error:
            if stream is sys.stdout:
                with suppress(Exception):
                    _ignore(error, stream)
            code = code if code == -signal.SIGINT else 120
    gc.collect()   # what is garbage is not flushed by Python either
    _flush()
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    popped = (sys.modules.pop(name, None) for name in ["__main__", *_not_preloaded()])
    gone = [weakref.ref(module) for module in popped if isinstance(module, types.ModuleType)]
    gc.collect()
    for module in filter(None, (reference() for reference in reversed(gone))):   # somebody still holds it
        names = vars(module)
        for name in sorted(names, key=lambda name: not name.startswith("_")):
            names[name] = None
    gc.collect()
    _flush()
    if code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


def _flush():
    found = [*gc.get_objects(), *filter(None, (reference() for reference in _streams))]
    for kinds in ((io.TextIOWrapper,), (io.BufferedWriter, io.BufferedRandom)):
        for file in (*(file for file in found if type(file) in kinds), sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            with suppress(Exception):   # closed by now, or nobody reads it
                file.flush()
