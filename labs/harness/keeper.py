"""The keeper: the parent of one start after the other. It watches a program, kills it at a point, and lets nothing outlive it.

A keeper is forked by the fork server (forkserver.py) and forks the program. Every process that descends from the
program comes to the keeper when its own parent dies, so nothing can slip away (Linux; elsewhere the process group is
all that is known). It speaks with the harness over one socket, in messages of JSON (messages.py). It hears a start, and
then words: `go`, `kill`, `stop`, `cont`, `ask` (where it stands); after `keep the zombie` the dead program is not buried before the next start ends. It says {"pid"}, from a
sandbox with a descriptor of the process, for its number is another outside; {"ready"} where the start waits for its release; {"stopped"} after `stop`; {"at"} where the program is held at
a call; and at the end the report. When the harness is gone, everything ends.

A start is a dict, sent with the three descriptors that become the program's standard streams:
    module, command      what runs: a module of Python, or else a list of words
    python               whether that list begins with our Python, so that it is not the program's fault where it cannot be started
    arguments            more words
    folder, environment  the working directory, and all of the environment
    files                the program's own Python files, relative to the folder
    lines, calls         whether line events, and whether system calls are followed; with both the calls are the points
    strike               the number of the point before which the program dies
    hold                 the number of the call that waits for `go`
    locks                whether calls that lock files are points too
    gated                whether the start waits for `go` before it begins
    confined             how it is shut in: see confine.enter(); its memory and files are watched then
    all, writes          whether the report has every point; what was written and synced

The report has
    code        the exit code, -9 after a SIGKILL
    killed      whether it was killed on purpose
    excess      what it had too much of, "memory" or "files", and was ended for, or null
    outlived    processes that it left running, in words; they are dead now
    events      how many points there were
    unseen      how many calls a signal ended before the keeper saw them: see syscall.Call
    last        the last of them, as in `all`
    stack       the program's own lines that were under way then, the innermost first: [file, line]
    all         where asked for, every one: [seconds, file, line], or [seconds, call, on what, file, line]
    stacks      where asked for, and both are followed: the `stack` at each call of `all`
    writes      where asked for, what was written and synced: see power.py
    trouble     why the program could not be started or followed, or null
"""

import os
import select
import signal
import sys
import time
from pathlib import Path

from .becoming import LIBC, Note, become, take_environment
from .confine import excess
from .kills import power, syscall
from .kills.line import Lines
from .messages import receive, send
from .ready import place_compiled

MOST_OUTLIVED = 20   # that are named
WATCH = 0.25     # seconds from look to look at what a confined program has
PATIENCE = 1.0   # seconds in which what a program left behind may still end by itself


def keep(ours):
    """Serve one start after the other that comes by the socket `ours`.

    Returns in a program's own process alone: the function that runs the program.
    """
    if sys.platform == "linux":
        PR_SET_CHILD_SUBREAPER = 36
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, lambda *_: None)   # the server ignores it, and who ignores it cannot wait
    woken, wake = os.pipe()
    for descriptor in (woken, wake):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    zombie = None
    while True:
        start, streams = receive(ours, 3)
        if start is None:
            os._exit(0)
        if not streams:
            continue   # a word for a program that had ended before it was heard
        # Its program is like the last one's but for a word or two, and what is changed here is not changed, and copied, in each of them.
        take_environment(start["environment"])
        place_compiled(start["folder"])
        lines, told = Lines(start["files"]) if start.get("lines") else None, Note()
        gate, release = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(release)
            ours.detach()   # become() closes it; a socket that is found open when it is thrown away takes long to say so
            return become(start, streams, lines, told, gate)
        os.close(gate)
        writes = power.Recorder(start["environment"].get("LAB_HOME", ""), streams[1]) if start.get("writes") else None
        for stream in streams:
            os.close(stream)
        keeper = _Keeper(start, pid, ours, woken, lines, told, writes, zombie)
        keeper.run(release)
        zombie = pid if keeper.zombie else None


class _Keeper:
    """In words of keep(): watches the program `pid`, whose line events come to `lines`, notes what it `writes`, and speaks over `ours`.

    `before` is the program of the last start, where it is not buried yet.
    """

    def __init__(self, start, pid, ours, woken, lines, told, writes, before=None):
        self.start, self.pid, self.ours, self.woken, self.lines, self.told = start, pid, ours, woken, lines, told
        self.left = {pid, before}   # by bury_orphans()
        self.home, self.watches = start["environment"].get("LAB_HOME", ""), start.get("calls")
        self.writes = writes
        self.listener, self.held, self.shut, self.count, self.calls, self.stacks = None, None, False, 0, [], []
        self.notice, self.unseen = None, 0
        self.struck, self.killed, self.code, self.until, self.outlived = False, False, None, None, []
        self.excess, self.looked, self.zombie = None, time.monotonic(), False
        self.poll = select.poll()
        for descriptor in (ours, woken):
            self.poll.register(descriptor, select.POLLIN)

    def run(self, release):
        """Watch it to its end. It waits until `release`, a descriptor, is written to: it may kill us, and is not to be unknown then."""
        if self.start.get("confined"):
            pidfd = os.pidfd_open(self.pid)
            self.say([pidfd], pid=self.pid)
            os.close(pidfd)
            receive(self.ours)   # it is read; before that the process may not be buried
        else:
            self.say(pid=self.pid)
        try:
            os.write(release, b".")
        except BrokenPipeError:
            pass   # it is dead already
        os.close(release)
        if self.watches or self.start.get("gated"):
            self.open_the_gate()
        while not self.is_over():
            left = None if self.until is None else max(0, 1000 * (self.until - time.monotonic()))
            if self.start.get("confined"):
                left = 1000 * WATCH if left is None else min(left, 1000 * WATCH)
                self.look_for_excess()
            for descriptor, event in self.poll.poll(left):
                if descriptor == self.woken:
                    os.read(self.woken, 4096)
                    self.bury_orphans()
                elif descriptor == self.ours.fileno():
                    self.hear()
                elif event & select.POLLIN:
                    self.see_a_call()
                else:
                    self.poll.unregister(descriptor)   # nobody is left who could make a call
        if self.listener is not None:
            os.close(self.listener)
        if self.start.get("confined") and self.told.shut_in and not self.killed and not self.excess:
            self.excess = excess((), self.start["confined"]["writable"])   # what it left counts, however soon it ended
            self.code = -signal.SIGKILL if self.excess else self.code      # as if it had been seen in time
        self.say(**self.report())

    # ---- with the harness

    def say(self, descriptors=(), **message):
        try:
            send(self.ours, message, descriptors)
        except OSError:
            pass   # nobody listens any more: hear() ends it all

    def hear(self):
        message, _ = receive(self.ours)
        if message is None:   # the harness is gone
            self.poll.unregister(self.ours)
        word = "kill" if message is None else message["word"]
        if word == "kill":
            self.strike()
        elif word == "ask" and self.code is None:
            os.kill(self.pid, signal.SIGABRT)   # Python says on stderr where it stands, and ends; see Spawned.ask_where()
        elif word == "keep the zombie":
            self.zombie = True
        elif word == "cont" and not self.shut:
            self.signal(signal.SIGCONT)
        elif word == "stop":
            self.signal(signal.SIGSTOP)
            if not self.held:   # else it stops when its call is over
                os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            self.say(stopped=True)
        elif word == "go" and self.held:
            call, self.held = self.held, None
            syscall.let_go_on(self.listener, call)
        return word

    def open_the_gate(self):
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if self.watches and not self.told.text:
            try:
                self.listener = syscall.listener_of(self.pid, self.told.number)
                self.poll.register(self.listener, select.POLLIN)
            except syscall.CannotWatch as error:
                self.told.text = str(error)
                self.strike()
        if self.start.get("gated"):
            self.say(ready=True)
            self.shut = True
            while self.hear() not in ("go", "kill"):
                pass
            self.shut = False
        self.signal(signal.SIGCONT)

    # ---- with the program

    def signal(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            os.kill(self.pid, number)   # it was born this moment, and has no group of its own yet
        except PermissionError:
            pass   # all of them are dead

    def strike(self):
        self.struck = True
        self.killed = self.killed or self.code is None
        self.signal(signal.SIGKILL)

    def look_for_excess(self):
        if self.code is None and not self.struck and not self.excess and self.told.shut_in and time.monotonic() - self.looked > WATCH:
            self.looked = time.monotonic()
            self.excess = excess({self.pid, *_descendants(self.pid)}, self.start["confined"]["writable"])
            if self.excess:
                self.signal(signal.SIGKILL)

    def see_a_call(self):
        call = syscall.next_call(self.listener)
        if call is None or self.struck:   # one that another thread makes while it dies: it gets no answer either
            return
        self.unseen += 0 if self.notice is None else call.notice - self.notice - 1
        self.notice = call.notice
        self.count += 1
        strikes = self.count == self.start.get("strike")
        if strikes or self.start.get("all"):
            self.stacks.append(self.lines.stack_of(call.thread) if self.lines else [])
            file, line = self.stacks[-1][0] if self.stacks[-1] else (None, None)
            self.calls.append([time.monotonic(), call.name, syscall.target(call, self.home), file, line])
        if strikes:
            self.strike()   # it waits for our answer, and never gets one
            return
        if self.writes:
            self.writes.note(call)
        if self.count == self.start.get("hold"):
            self.held = call
            self.say(at=self.count)
            return
        syscall.let_go_on(self.listener, call)

    def bury_orphans(self):
        """While the program runs they count among the processes that it may have: how many there are is not to be a matter of when it ends."""
        for child in _children() - self.left:
            os.waitpid(child, os.WNOHANG)

    def is_over(self):
        """Bury the dead. Whether the program has ended, and all that descends from it, which is ended here when it is late."""
        if self.code is None:
            # The leader is not buried before the rest: its number names the group, and nobody else's, for as long as it is not.
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if not ended:
                return False
            self.code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            self.until = time.monotonic() + PATIENCE
            self.killed = self.killed or self.struck_itself
            if self.killed:
                self.signal(signal.SIGKILL)
        late = self.killed or time.monotonic() > self.until
        while children := _children() - {self.pid}:   # whoever has died leaves its own children to us
            alive = [child for child in children if not os.waitpid(child, os.WNOHANG)[0]]
            if alive and not late:
                return False
            for child in alive:
                if not (self.killed and _group(child) == self.pid) and len(self.outlived) < MOST_OUTLIVED:
                    self.outlived.append(_in_words(child))
                os.kill(child, signal.SIGKILL)
            for child in alive:
                os.waitpid(child, 0)
        if not self.zombie:   # else it is, with what the next start leaves
            os.waitpid(self.pid, 0)
        return True

    @property
    def struck_itself(self):
        return not self.watches and self.lines is not None and self.lines.struck and self.code == -signal.SIGKILL

    def report(self):
        by_line = self.lines is not None and not self.watches
        events, every = (self.lines.count, self.lines.all) if by_line else (self.count, lambda: self.calls)
        return {"code": self.code, "killed": self.killed, "excess": self.excess, "outlived": self.outlived, "trouble": self.told.text or None, "events": events,
                "unseen": self.unseen,
                "last": self.lines.last_event if by_line else self.calls[-1] if self.calls else None,
                "stack": self.lines.stack if self.lines else [],
                "all": every() if self.start.get("all") else None, "stacks": self.stacks if self.start.get("all") else None,
                "writes": self.writes.found if self.writes else None}


def _children(pid=None):
    """The processes whose parent is `pid`, or else this one, which has but one thread."""
    try:
        found = set()
        for task in [f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")] if pid else ["/proc/thread-self"]:
            with open(f"{task}/children", "rb", 0) as file:
                found.update(map(int, file.read().split()))
        return found
    except OSError:
        return set()   # no Linux, where of those that are no children of ours nobody knows; or it has just ended


def _descendants(pid):
    found, new = set(), _children(pid)
    while new:
        found |= new
        new = set().union(*map(_children, new)) - found
    return found


def _group(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _in_words(pid):
    words = _command(pid)
    return f"process {pid} ({words[:80] if words and words != _command('self') else 'a process that it forked'})"
