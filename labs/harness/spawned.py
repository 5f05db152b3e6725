"""A process under test as our own child: in a process group of its own, killed and buried with all of it."""

import os
import resource
import signal
import subprocess
import sys

import psutil

from . import descendants
from .processes import DEADLINE, ProgramFault


class Spawned:
    """A program's process as our own child, in a process group of its own."""

    killed, report, fault = False, None, None   # what a Kept learns from its keeper: here is none, so nobody but us kills it, as far as we know

    def __init__(self, command, folder, environment):
        try:
            self._popen = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True,
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except (OSError, ValueError) as error:  # a run id that a program printed may be no argument: a NUL in it, too long
            raise ProgramFault(f"`{command[0]}` cannot be started: {getattr(error, 'strerror', None) or error}") from None
        self.pid = self._popen.pid
        self.stdin, self.stdout, self.stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        descendants.leaders.add(self.pid)

    @property
    def buried(self):
        """Whether its process id may be another's by now."""
        return self._popen.returncode is not None

    def wait(self):
        """Wait for its end, without burying it. Returns the exit code, -9 after a SIGKILL."""
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def ask_where(self):
        """Have Python say on stderr where it stands, which is its last word. Returns whether it was asked."""
        if self.buried:
            return False
        if sys.platform == "linux":
            resource.prlimit(self.pid, resource.RLIMIT_CORE, (0, 0))
        os.kill(self.pid, signal.SIGABRT)   # see PYTHONFAULTHANDLER in program.py
        return True

    def signal(self, number):
        os.killpg(self.pid, number)

    def stop(self):
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def keep_the_zombie(self):
        pass   # it is ours, and nobody buries it before bury()

    def bury(self, leader=True):
        """Wait for the rest of the group, which SIGKILL has struck; and for the leader, unless it shall stay a zombie."""
        if leader:
            self._popen.wait()
            descendants.leaders.discard(self.pid)
        if sys.platform == "linux" and self.buried:
            try:
                while os.waitpid(-self.pid, 0):
                    pass
            except ChildProcessError:
                return
        members = []
        for process in psutil.process_iter():
            try:
                if os.getpgid(process.pid) == self.pid != process.pid:
                    members.append(process)
            except ProcessLookupError:
                pass
        psutil.wait_procs(members, timeout=DEADLINE)

    def left_behind(self, patience):
        if self.buried:
            return []
        return descendants.still_alive(descendants.of_group(self.pid), patience)
