"""A program under test, in one home and with one account: the unit of every experiment."""

import json
import os
from contextlib import suppress
from pathlib import Path
from random import Random

from .descendants import orphans
from .kept import Kept
from .processes import DEADLINE, Process, ProgramFault, Survived
from .scratch import remove
from .spawned import Spawned
from .story import counted

KEPT_FROM_ENVIRONMENT = ("PATH",)
WORKING = (("start",), ("resume",), ("chat",))   # what begins a process that does something, and does not only tell
LOCAL_TIME = "KIT-5:45"  # hours before UTC: nowhere should it be taken for UTC


class Program:
    """Starts, watches and kills the program in `home`, which is its LAB_HOME and lasts from start to start.

    `outside` is the Account that it works with, `seed` what its random choices come from. Everything else that it
    finds (its own files, HOME, TMPDIR, the working directory) is as new at every start. With `forks`, a ForkServer or ForkServers, its
    processes are forked instead of executed, and can be told where to die; but not those of an `executed` one, which a keeper watches all
    the same. With a `cell` all of them are confined.
    """

    def __init__(self, staged, folder, server, outside, seed=0, timeout=10.0, retry_delay=0.0, forks=None, executed=False, cell=None):
        self.staged, self.outside, self.seed = staged, outside, seed
        self.home = Path(folder) / "lab-home"
        self.home.mkdir(parents=True)
        self.processes, self._discarded = [], False
        self._folder, self._server, self._forks, self._executed, self._cell = Path(folder), server, forks, executed, cell
        self.give_home()
        self._contract = {"LAB_HOME": str(self.home), "OUTSIDE": server.address, "OUTSIDE_KEY": outside.key,
                          "LAB_TIMEOUT": f"{timeout:g}", "LAB_RETRY_DELAY": f"{retry_delay:g}"}

    # ---- the verbs: those that work return a Process that runs, those that ask return the answer

    def start(self, ticket, run_id=None, **keeping):
        """`start` with a ticket (a dict). Returns the Process; its first line is the run id."""
        return self.begin("start", *(["--run-id", run_id] if run_id else []), ticket=ticket, **keeping)

    def resume(self, run_id, **keeping):
        """`resume`. Returns the Process."""
        return self.begin("resume", run_id, **keeping)

    def chat(self, conversation):
        """`chat`. Returns the Process, whose standard input is open: write() a line, then wait for line()."""
        return self.begin("chat", conversation, keep_stdin=True)

    def status(self, run_id):
        """The record of a run, as `status` prints it. Raises ProgramFault where it prints none."""
        return self.status_of(self.ask("status", run_id))

    def status_of(self, process):
        """The record that a `status` printed, which has ended. Raises ProgramFault where it printed none."""
        if process.code != 0:
            run_id = process.arguments[1]
            taken = f"; the first line on stdout, {run_id[:80]!r}, was taken for the run id, which stands there alone" if len(run_id.split()) > 1 else ""
            raise ProgramFault(f"{process} {process.end}, it should print the run's record{taken}")
        return self._object(process.stdout, process)

    def runs(self, state=None):
        """The records that `runs` prints, oldest first. Raises ProgramFault where it prints none."""
        process = self.ask("runs", *(["--state", state] if state else []))
        if process.code != 0:
            raise ProgramFault(f"{process} {process.end}, it should print the runs' records")
        return [self._object(line, process) for line in process.stdout.splitlines() if line.strip()]

    def memory(self, conversation):
        """What `memory` prints of a conversation. Raises ProgramFault where it prints nothing of use."""
        process = self.ask("memory", conversation)
        if process.code != 0:
            raise ProgramFault(f"{process} {process.end}, it should print the memory")
        return self._object(process.stdout, process)

    def forget(self, conversation):
        """`forget`. Returns the Process, ended."""
        return self.ask("forget", conversation)

    def ask(self, *arguments, deadline=DEADLINE, **options):
        """Start the program with these arguments and wait for its end. Returns the Process."""
        return self.begin(*arguments, **options).wait(deadline)

    def begin(self, *arguments, ticket=None, stdin=b"", keep_stdin=False, **keeping):
        """Start the program with these arguments. Returns the Process, which runs.

        A `ticket` (a dict, or bytes for something that is none) is put into a file, whose path comes last. `keeping` is
        for keeper.keep(): where the process is to die, and what is to be noted of it.
        """
        if self._discarded:
            raise ProgramFault("the check is over, and nothing is started any more")
        self._give_back()
        place = self.staged.places.take()
        shown = arguments
        if ticket is not None:
            path = place / "ticket.json"
            path.write_bytes(ticket if isinstance(ticket, bytes) else json.dumps(ticket).encode())
            arguments, shown = (*arguments, str(path)), (*arguments, "ticket.json")
        process = Process(shown, lambda: self._body(arguments, place, keeping), place, self.outside.changed, stdin, keep_stdin)
        self.processes.append(process)
        return process

    def _body(self, arguments, place, keeping):
        folder, environment = place / "program", self._environment(place)
        if self._forks is None:
            return Spawned((*self.staged.command, *arguments), folder, environment)
        what = {"module": self.staged.module} if self.staged.module and not self._executed else \
            {"command": self.staged.command, "python": bool(self.staged.module)}
        if self._cell:
            what["confined"] = self._cell.confined(self.home, place)
            if arguments and os.path.dirname(str(arguments[-1])) == str(place):
                self._cell.sandbox.give(arguments[-1])
        turn = sum(words[:1] in WORKING for words in (*(process.arguments for process in self.processes), arguments))
        return Kept(self._forks.of(turn), {**what, "arguments": arguments, "folder": str(folder), "environment": environment,
                                  "files": self.staged.files, **keeping})

    def _give_back(self):
        for process in self.processes:
            if process.buried and process.folder:
                with suppress(OSError):   # the program may have put anything in its place; that shows when the place is taken again
                    (process.folder / "ticket.json").unlink()
                self.staged.places.give_back(process.folder)
                process.folder = None

    def converse(self, conversation, lines, deadline=60.0):
        """`chat` through these lines to the end. Returns the exchanges as turns, {"role", "content"}, oldest first."""
        process = self.chat(conversation)
        turns = self.say(process, lines, 0, deadline)
        process.close_stdin()
        process.wait(deadline)
        if process.code != 0:
            raise ProgramFault(f"{process} {process.end} after {counted(len(lines), 'turn')}; it should end with exit code 0")
        return turns

    def say(self, process, lines, said=0, deadline=60.0):
        """Write these lines to a `chat` that has answered `said` before. Returns the exchanges as turns."""
        process.write("".join(f"{line}\n" for line in lines).encode())
        process.line(said + len(lines), deadline)
        replies = process.stdout.split("\n")[said:said + len(lines)]
        return [{"role": role, "content": text.rstrip("\r")} for pair in zip(lines, replies)
                for role, text in zip(("user", "assistant"), pair)]

    def give_home(self):
        """Make all that is in the home the program's own: say so after something was put there."""
        if self._cell:
            self._cell.sandbox.give(self._folder)

    @property
    def home_size(self):
        """How many bytes the files of the home hold."""
        return sum(path.stat().st_size for path in self.files())

    def files(self):
        """The paths of the regular files in the home. What a program links to, or nests too deep to be named, is not ours."""
        found, folders = [], [] if self.home.is_symlink() else [self.home]
        while folders:
            try:
                entries = list(os.scandir(folders.pop()))
            except OSError:
                continue
            folders += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            found += [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
        return sorted(found)

    # ---- what is done to it

    def until(self, process, predicate, what, deadline=DEADLINE):
        """Wait until something is so that `process` should bring about. Raises ProgramFault where it ends first."""
        process.wait_until(lambda: predicate() or not process.running, what, deadline)
        if not predicate():
            raise ProgramFault(f"{process} {process.end}; it should {what}")

    def until_held(self, process, what="send a request"):
        """Wait until a request is held, and return that Request. Raises ProgramFault where the process ends first."""
        self.until(process, self.outside.held, what)
        return self.outside.held()[0]

    def kill(self, *processes, bury=True):
        """SIGKILL processes, and return when they are gone and their requests are settled.

        Without `bury` their process ids stay taken, as after a death that no parent has noticed yet. Raises
        ProgramFault where something that they started lives on.
        """
        for process in processes:
            process.kill(bury)
        # A keeper has seen all that came of its program, and a sweep judges it; of others we have to look for what got away.
        left = [words for process in processes for words in process.outlived] if self._executed else [] if self._forks else orphans(self.home)
        if left:
            raise Survived(f"{left[0]} outlived the kill of {processes[-1]}")
        self._server.settle(self.outside)

    def spoil_home(self):
        """Overwrite every file of the home with noise of at least its length. Empty files stay.

        The noise comes in whole lines, so that no program can take it for the torn end of a log.
        """
        random = Random(f"{self.seed} noise")
        for path in self.files():
            if path.stat().st_size:
                lines = path.stat().st_size // 32 + 2
                path.chmod(0o600)
                path.write_bytes(b"".join(b"\xff" + random.randbytes(30).replace(b"\n", b"\r") + b"\n" for _ in range(lines)))

    def discard(self):
        """End everything that still runs, without a trace. Returns the processes that ran, in words."""
        self._discarded = True
        ran = [f"process {process.pid} ({process})" for process in self.processes if process.discard()]
        self._give_back()
        remove(self._folder)
        return ran

    # ----

    def _environment(self, folder):
        kept = {name: os.environ[name] for name in KEPT_FROM_ENVIRONMENT if name in os.environ}
        return {**kept, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "LANG": "C.UTF-8",
                "TZ": LOCAL_TIME, "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONFAULTHANDLER": "1",   # one that hangs can be asked where: Spawned.ask_where()
                **self._contract}

    @staticmethod
    def _object(text, process):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ProgramFault(f"{process} should print one JSON object, it printed {text.strip()[:120]!r}")
        return found
