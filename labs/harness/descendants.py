"""All processes that descend from this one: none slips away when its parent dies, and what lives on too long is found, named and killed."""

import ctypes
import os
import sys
from pathlib import Path

import psutil

from .processes import DEADLINE

leaders = set()   # pids of the processes that we started and have not buried


def adopt_orphans():
    """Make every orphaned descendant of this process its child, so that none can slip away. Linux only."""
    if sys.platform == "linux":
        PR_SET_CHILD_SUBREAPER = 36
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def living():
    """All processes that descend from this one, as psutil.Process."""
    if sys.platform == "linux" and not candidates():
        return []  # orphans are adopted, so who has no child has no grandchild; to know this takes no time
    return psutil.Process().children(recursive=True)


def survivors(known=frozenset(), patience=1.0):
    """Descendants of this process that still run, but those whose pids are `known`; they are killed.

    Returns a description of each. One that is about to end gets `patience` seconds for it.
    """
    here = [child for child in living() if child.pid not in known]
    # Waiting buries our own dead. Those whose parent lives are its to bury, and a leader is buried by its Process alone.
    _, alive = psutil.wait_procs([child for child in here if child.pid not in leaders and not _buried_by_another(child)],
                                 timeout=patience)
    found = []
    for process in (*alive, *(child for child in here if child.pid in leaders and not _is_dead(child))):
        try:
            found.append(_in_words(process))
            process.kill()
        except psutil.NoSuchProcess:
            pass
    psutil.wait_procs(alive, timeout=DEADLINE)
    return found


def orphans(home):
    """Processes with this LAB_HOME that run though the process that started them is gone, each in words."""
    found, seen = [], set(leaders)
    # One that ends while we look leaves its children to us: look until there is nobody new.
    while new := candidates() - seen:
        for pid in new:
            try:
                child = psutil.Process(pid)
                if child.status() != psutil.STATUS_ZOMBIE and child.environ().get("LAB_HOME") == str(home):
                    found.append(_in_words(child))
            except psutil.Error:
                pass
        seen |= new
    return found


def candidates():
    """The pids of all processes that may be orphans: our children, or those of init where there is no adoption."""
    if sys.platform != "linux":
        return {process.pid for process in psutil.process_iter(["ppid"]) if process.info["ppid"] == 1}
    found = set()
    # By thread, which is much faster than to look at every process of the machine.
    for thread in os.listdir("/proc/self/task"):
        try:
            found.update(map(int, Path(f"/proc/self/task/{thread}/children").read_text().split()))
        except OSError:
            pass  # this thread has just ended; its children are another one's now
    return found


def of_group(leader):
    """Those of `candidates()` that are in the process group of `leader`, but for itself, as psutil.Process."""
    return [process for process in map(_process, candidates() - {leader}) if process and _group(process) == leader]


def still_alive(processes, patience):
    """Which of these psutil.Process still run after `patience` seconds, each in words."""
    _, alive = psutil.wait_procs(processes, timeout=patience)
    return [_in_words(process) for process in alive if not _is_dead(process)]


def _process(pid):
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def _group(process):
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return None


def _in_words(process):
    try:
        command, *arguments = process.cmdline() or [process.name()]
        words = " ".join([os.path.basename(command), *arguments])[:80]   # where an interpreter lies would leave no room for what it runs
    except psutil.Error:
        words = "it has just ended"
    return f"process {process.pid} ({words})"


def _is_dead(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _buried_by_another(process):
    try:
        return _is_dead(process) and process.ppid() != os.getpid()
    except psutil.NoSuchProcess:
        return True
