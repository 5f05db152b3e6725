"""The fork server as the harness uses it, and starts by way of it: forked, watched and killed by a keeper of their own."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .messages import receive, send
from .processes import DEADLINE, ProgramFault
from .sandbox import Sandbox

PATIENCE = 20.0   # seconds in which a keeper, or the server, has to answer: one that a program has stopped never will
_KILLED = "the program killed, or stopped, a process that watches it"
_SERVER = Path(__file__).with_name("forkserver.py")
_STARTER = ThreadPoolExecutor(1)


class ForkServer:
    """The server as its user sees it. Close it, or use it as a context.

    `folder` is that of a staged program, whose compiled files are read once; `modules` are loaded once for all starts, none of them the program's own.
    With `cell`, a Cell, it runs in a sandbox, and so does all that it starts.
    """

    def __init__(self, folder="", modules=(), cell=None):
        self._ours, theirs = socket.socketpair()
        self._lock, self._idle, self._closed, self._up = threading.Lock(), [], False, False
        self.broken = False   # whether a program got at its processes: what it left there ends with the server
        user = cell.sandbox.user if cell else None
        # Like PYTHONFAULTHANDLER in a program that is executed: signals are to look the same.
        words = [sys.executable, "-I", "-B", "-X", "faulthandler", str(_SERVER), str(theirs.fileno()), "" if user is None else str(user), str(folder), *modules]
        # In a session of its own, so that Ctrl-C is the harness's alone; it ends when the harness does. A sandbox dies with the thread
        # that made it, and this one lives on.
        self._process = _STARTER.submit(
            subprocess.Popen, cell.command(folder, words) if cell else words, pass_fds=[theirs.fileno()], cwd="/", start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}).result()
        self.pid = self._process.pid
        theirs.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def of(self, number):
        """The server for the `number`-th process that works on a run: this one, for them all."""
        return self

    def keeper(self):
        """The socket to a keeper that has nothing to do; give it back when its program has ended."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if not self._up:
                self._up = _speaks(self._ours, PATIENCE) and receive(self._ours)[0] is not None
                if not self._up:
                    self.gone()
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    send(self._ours, "a keeper", [theirs.fileno()])
                except OSError:
                    self.gone()
            return ours

    def gone(self):
        """Say that the server, or a keeper, is not there any more. Raises ProgramFault, or RuntimeError where no program is to blame."""
        self.broken = True
        if self._up:   # nobody but a program that it started can have done that
            raise ProgramFault(_KILLED) from None
        raise RuntimeError("the fork server did not start; what it said on stderr says why") from None

    def give_back(self, keeper):
        with self._lock:
            if self._closed:
                keeper.close()
            else:
                self._idle.append(keeper)

    def close(self):
        """End the server and the keepers that have nothing to do; another one ends with its program."""
        with self._lock:
            self._closed = True
            self._ours.close()
            while self._idle:
                self._idle.pop().close()
        with suppress(ProcessLookupError):
            # Keepers are of its group. Whom a program has stopped would not notice the end.
            os.killpg(self.pid, signal.SIGKILL if self.broken else signal.SIGCONT)
        self._process.wait()


class ForkServers:
    """Two servers, which the processes of a run come from in turn. What they take is what ForkServer takes.

    Each forks one interpreter, with one seed of hashes, in all its starts: a program that relies on what is another in each process, like the hash
    of a text, has to meet another.
    """

    def __init__(self, *arguments):
        self._servers = [ForkServer(*arguments) for _ in range(2)]

    def of(self, number):
        """The ForkServer for the `number`-th process that works on a run."""
        return self._servers[number % len(self._servers)]

    @property
    def broken(self):
        return any(server.broken for server in self._servers)

    def close(self):
        for server in self._servers:
            server.close()


@dataclass(frozen=True)
class Cell:
    """The sandbox of one session, whose homes and places are in `folder`, with the outside's `socket`."""

    sandbox: Sandbox
    folder: Path
    socket: Path

    def command(self, staged, words):
        """The command line that runs `words` in it."""
        return self.sandbox.command(self.folder, staged, self.socket, words)

    def confined(self, home, place):
        """`confined` of a start, see keeper.keep()."""
        return self.sandbox.confined(self.folder, self.socket, home, place)


class Kept:
    """A start in the hands of a keeper; what Spawned is for one that is our own child.

    `start` is what keeper.keep() takes. `report` is the keeper's, once the program has ended.
    """

    def __init__(self, server, start):
        self._server, self._keeper, self.report = server, server.keeper(), None
        pipes = [os.pipe() for _ in range(3)]
        inner = [pipes[0][0], pipes[1][1], pipes[2][1]]
        self.stdin, self.stdout, self.stderr = open(pipes[0][1], "wb"), open(pipes[1][0], "rb"), open(pipes[2][0], "rb")
        self._stands = {what: threading.Event() for what in ("ready", "at", "stopped")}
        self._struck = None   # when it was told to kill it
        self.fault = None   # a sentence where the program has ended and there is no report that says how
        with suppress(OSError):
            send(self._keeper, start, inner)
        for descriptor in inner:
            os.close(descriptor)
        message, pidfds = receive(self._keeper, 1) if _speaks(self._keeper, PATIENCE) else (None, [])
        if message is None:
            for stream in (self.stdin, self.stdout, self.stderr):
                stream.close()
            server.gone()
        self.pid = message["pid"]
        if pidfds:
            self.pid = _number(pidfds[0])
            os.close(pidfds[0])
            with suppress(OSError):
                send(self._keeper, {"word": "seen"})

    def until_ready(self):
        """Wait until a gated start stands at its gate."""
        self._stand("ready", "come to its first line")

    def until_held(self):
        """Wait until the start stands at the call where it is to be held, or has ended. Returns whether it stands there."""
        self._stand("at", "come to the call where it was to be held")
        return self.report is None

    def _stand(self, where, what):
        if not self._stands[where].wait(DEADLINE):
            raise ProgramFault(f"the program did not {what} within {DEADLINE:g} seconds")

    def go(self):
        """Let it go on from its gate, or from the call that it is held at."""
        self._say("go")

    # ---- what Spawned has too

    @property
    def buried(self):
        return self.report is not None

    @property
    def killed(self):
        return bool(self.report and self.report["killed"])

    def wait(self):
        try:
            while self.report is None:
                if not _speaks(self._keeper, PATIENCE / 4):
                    if self._struck and time.monotonic() - self._struck > PATIENCE:
                        return self._lost()
                    continue
                message, _ = receive(self._keeper)
                if message is None:
                    return self._lost()
                if "code" in message:
                    self.report = message
                for what in self._stands:
                    if what in message:
                        self._stands[what].set()
        finally:
            for stands in self._stands.values():
                stands.set()   # nobody waits for it any more
        self._server.give_back(self._keeper)
        return self.report["code"]

    def _lost(self):
        """Its keeper is gone, or stands still, and nobody but the program can have done that. What is left of it is ours now."""
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(OSError):
            os.waitpid(self.pid, 0)
        self.fault, self._server.broken = _KILLED, True
        self.report = {"code": -signal.SIGKILL, "killed": False, "excess": None, "outlived": [], "trouble": None, "events": 0, "last": None,
                       "all": None, "stacks": None, "writes": None}
        return self.report["code"]

    def signal(self, number):
        if number == signal.SIGKILL:
            self._struck = self._struck or time.monotonic()
        self._say({signal.SIGKILL: "kill", signal.SIGSTOP: "stop", signal.SIGCONT: "cont"}[number])

    def ask_where(self):
        self._say("ask")
        return self.report is None

    def stop(self):
        self._stands["stopped"].clear()
        if self.report is None:
            self.signal(signal.SIGSTOP)
            self._stands["stopped"].wait()

    def keep_the_zombie(self):
        self._say("keep the zombie")

    def bury(self, leader=True):
        pass   # the keeper has

    def left_behind(self, patience=None):
        return self.report["outlived"]

    def _say(self, word):
        # A word that comes when the program has ended is not for the next one: the keeper hears it before that one begins.
        with suppress(OSError):
            send(self._keeper, {"word": word})


def _speaks(connection, seconds):
    """Whether something comes by a socket, or its end, within so many seconds."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def _number(pidfd):
    """The number that the process of a descriptor has here, where we are."""
    with open(f"/proc/self/fdinfo/{pidfd}") as file:
        return int(next(line for line in file if line.startswith("Pid:")).split()[1])
