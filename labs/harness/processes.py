"""A process under test: what it says, capped; how it ends; and what is done to it from outside. Its body is a Spawned or a Kept."""

import queue
import re
import select
import signal
import threading
import time
from contextlib import suppress

import psutil

from .confine import CANNOT, HOME, MEMORY
from .story import short

OUTPUT_LIMIT = 1 << 20  # bytes, of each of stdout and stderr
DEADLINE = 30.0         # seconds that a process may take where a check names no other time
ANSWER = 5.0            # seconds that it has to say where it stands
_PLACE = re.compile(r"/\S+/program/(?=starter/)")   # what is in front of a file of the program's own, which its author knows without
_FATAL = re.compile(r"^Fatal Python error: .*$", re.MULTILINE)
_TRACED = re.compile(r'File "[^"]*/program/([^"]+)", line (\d+)')   # a place in the program's own files, in a traceback


class ProgramFault(AssertionError):
    """The program under test did something that no check can go on from. The message says what, `kind` in a word what a grader calls it."""

    kind = "failed"


class Late(ProgramFault):
    """`process` did not do in time what it should."""

    kind = "timeout"

    def __init__(self, message, process):
        super().__init__(message)
        self.process = process


class SaidTooMuch(ProgramFault):
    kind = "output limit"


class Survived(ProgramFault):
    """A process of it lived on where none may."""

    kind = "survivors"


class Process:
    """One start of a program.

    `changed` is a Condition that is notified when the process ends, so that whoever waits for something else from it
    does not wait in vain. `begun` and `ended` are time.monotonic() seconds; `code` is the exit code, -9 after a
    SIGKILL, None while it runs; `killed` says whether it was this harness that killed it.
    """

    def __init__(self, arguments, begin, folder, changed, stdin=b"", keep_stdin=False):
        self.arguments = arguments
        self.folder = folder
        self.changed = changed
        self.begun, self.ended = time.monotonic(), None
        self.code, self._struck = None, False
        self.hung = None   # where, once it was asked: see where()
        self.too_much_output = False
        self._output = {"stdout": bytearray(), "stderr": bytearray()}
        self._body = begin()   # after `begun`: what it does is not of a time before it
        self.pid = self._body.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._watch, daemon=True).start()
        self._input = queue.SimpleQueue()
        if stdin or keep_stdin:
            threading.Thread(target=self._write, daemon=True).start()
            self.write(stdin)
            if not keep_stdin:
                self.close_stdin()
        else:
            self._body.stdin.close()

    # ---- what it says

    @property
    def stdout(self):
        return self._output["stdout"].decode(errors="replace")

    @property
    def stderr(self):
        return self._output["stderr"].decode(errors="replace")

    @property
    def running(self):
        return self.ended is None

    @property
    def buried(self):
        """Whether it is dead and gone, and its process id may be another's."""
        return not self.running and self._body.buried

    @property
    def report(self):
        """What its keeper noted, see keeper.py; None without a keeper, or while it runs."""
        return None if self.running else self._body.report

    @property
    def excess(self):
        """What it had too much of where it is confined: "memory", "files" or None."""
        return self.report["excess"] if self.report else None

    @property
    def outlived(self):
        """What lived on after it, in words; known where it has a keeper."""
        return self.report["outlived"] if self.report else []

    @property
    def killed(self):
        return self._struck and self.code == -signal.SIGKILL

    def line(self, number=1, deadline=DEADLINE):
        """The `number`-th line of stdout, waited for. Raises ProgramFault where it ends without one."""
        def there():
            return self._output["stdout"].count(b"\n") >= number or not self.running
        self.wait_until(there, f"print line {number} on stdout", deadline)
        lines = self.stdout.split("\n")
        if len(lines) <= number:
            raise ProgramFault(f"{self}: it {self.end} and had printed {len(lines) - 1} whole lines, not {number}"
                               + ("; what is printed and not flushed dies with the process" if self.killed else ""))
        return lines[number - 1].rstrip("\r")

    @property
    def end(self):
        """In words how it ended."""
        if self.running:
            return "still runs"
        if self.too_much_output:
            return f"wrote more than {OUTPUT_LIMIT >> 20} MiB of output and was ended"
        if self.hung is not None:
            return f"hung{self.hung}"
        if self.killed:
            return "was killed"
        if self.excess:
            return {"memory": f"held more than {MEMORY >> 20} MiB of memory and was ended",
                    "files": f"had more than {HOME >> 20} MiB of files, or hid them, and was ended"}[self.excess]
        if self.code == -signal.SIGXCPU:
            return "used up its CPU time and was ended"
        if self.code < 0:
            return f"died of {_signal_name(-self.code)}"
        return f"ended with exit code {self.code}"

    @property
    def last_words(self):
        """The last line that it wrote on stderr, or an empty string."""
        return (self.stderr.strip().splitlines() or [""])[-1]

    @property
    def complaint(self):
        """The last words, quoted, and where in its own files a traceback names a place, the last of them; or an empty string."""
        if self.hung is not None:
            return ""   # its last words are not its own
        words, places = self.last_words, _TRACED.findall(self.stderr)[-1:]
        if fatal := _FATAL.search(self.stderr):   # of Python itself; then come its calls, the innermost first
            words, places = fatal[0], _TRACED.findall(self.stderr, fatal.end())[:1]
        return f"“{_PLACE.sub('', words)[:160]}”{f' ({places[0][0]}, line {places[0][1]})' if places else ''}" if words else ""

    @property
    def resident(self):
        """How many bytes of memory the process and its descendants hold now (RSS)."""
        leader = psutil.Process(self.pid)
        return sum(process.memory_info().rss for process in (leader, *leader.children(recursive=True)))

    # ---- what is done to it

    def write(self, data):
        """Send bytes to its standard input, without waiting for it to read them; one that does not read is no error."""
        self._input.put(data)

    def close_stdin(self):
        """End its standard input, after all that was written."""
        self._input.put(None)

    def _write(self):
        try:
            while (data := self._input.get()) is not None:
                self._body.stdin.write(data)
                self._body.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it is dead, or has closed its standard input
        with suppress(OSError):
            self._body.stdin.close()

    def wait_until(self, predicate, what, deadline=DEADLINE):
        """Wait for something that this process should bring about. Raises ProgramFault after `deadline` seconds."""
        with self.changed:
            there = self.changed.wait_for(predicate, deadline)
        if self.report and (self.report["trouble"] or "").startswith(CANNOT):
            raise RuntimeError(self.report["trouble"])   # of us and this machine, not of the program
        if there:
            return
        raise Late(f"{self} did not {what} within {deadline:g} seconds", self)

    def wait(self, deadline=DEADLINE):
        """Wait for its end and return it. Raises ProgramFault where it hangs or says too much."""
        self.wait_until(lambda: not self.running, "end", deadline)
        if self.too_much_output:
            raise SaidTooMuch(f"{self} {self.end}")
        if self._body.fault:
            raise ProgramFault(f"{self}: {self._body.fault}")
        return self

    def kill(self, bury=True):
        """SIGKILL the whole process group, and return when every process of it is gone.

        Without `bury` its leader, dead too, stays a zombie: whoever asks for its process id finds it taken. Safe to call
        at any time: the leader is not reaped before this, so that its number cannot be another's.
        """
        if not self._body.buried:
            self._struck = self._struck or self.running
            if not bury:
                self._body.keep_the_zombie()
            self._body.signal(signal.SIGKILL)
            with self.changed:
                if not self.changed.wait_for(lambda: not self.running, DEADLINE):
                    raise RuntimeError(f"process {self.pid} does not die of SIGKILL")
            self._body.bury(bury)
        return self

    def where(self):
        """Where in its own files a process stands that does not go on, like ` in flow.py, line 7`, or an empty string. It ends with its answer."""
        if not self.running or not self._body.ask_where():
            return ""
        with self.changed:
            self.changed.wait_for(lambda: not self.running, ANSWER)
        place = _TRACED.search(self.stderr)   # the first is the innermost
        self.hung = f" in {place[1]}, line {place[2]}" if place else ""
        return self.hung

    def stop(self):
        """SIGSTOP the whole process group, and return when its leader stands still, or is dead."""
        self._body.stop()

    def go_on(self):
        """SIGCONT the whole process group."""
        self._body.signal(signal.SIGCONT)

    def until_ready(self):
        """Wait until a start that is `gated` stands at its gate."""
        self._body.until_ready()

    def until_held(self):
        """Wait until it stands at the call where its keeper is to `hold` it. Returns whether it does; if not, it has ended."""
        return self._body.until_held()

    def go(self):
        """Let it go on from its gate, or from where its keeper holds it."""
        self._body.go()

    def left_behind(self, patience=1.0):
        """What it left running when it ended by itself, in words; what ends within `patience` seconds is nothing."""
        return [] if self.running else self._body.left_behind(patience)

    # ---- the threads that watch it

    def _read(self):
        poll, streams = select.poll(), {}
        for name in self._output:
            stream = getattr(self._body, name)
            streams[stream.fileno()] = stream, self._output[name]
            poll.register(stream, select.POLLIN)
        while streams:
            for descriptor, _ in poll.poll():
                stream, kept = streams[descriptor]
                if data := stream.read1(65536):
                    self._take(data, kept)
                else:
                    poll.unregister(descriptor)
                    streams.pop(descriptor)[0].close()

    def _take(self, data, kept):
        with self.changed:
            too_much = len(kept) + len(data) > OUTPUT_LIMIT
            kept.extend(data[:OUTPUT_LIMIT - len(kept)])
            self.changed.notify_all()
        if too_much and not self.too_much_output and not self._body.buried:
            self.too_much_output = True
            self._body.signal(signal.SIGKILL)

    def _watch(self):
        code = self._body.wait()
        # Its output is read to the end first, so that nothing of it is missed; but a grandchild that keeps the pipe
        # open must not keep us.
        self._reader.join(1.0)
        with self.changed:
            self.code = code
            self._struck = self._struck or self._body.killed and not self.too_much_output
            self.ended = time.monotonic()
            self.changed.notify_all()

    def discard(self):
        """Forget it: kill what is left of it. Returns whether anything of it still ran."""
        ran = self.running
        self.kill()
        self.close_stdin()
        return ran

    def __str__(self):
        return f"`{' '.join(map(short, self.arguments))}`"


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # a real-time one
