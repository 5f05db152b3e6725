"""The strongest isolation that this machine really gives, tried and not concluded."""

from functools import cache

from labs.command.refused import Refused
from labs.harness.kept import Cell, ForkServer, Kept
from labs.harness.sandbox import NoSandbox, sandbox
from labs.harness.scratch import scratch

from .results import Isolation

LADDER = ("bubblewrap/view", "bubblewrap/landlock", "landlock/landlock", "process/limits")
STRONG = LADDER[:1]


@cache
def strongest():
    """(one of LADDER, the Isolation as results have it, [why each stronger one is not to be had])."""
    reasons = []
    for rung in LADDER:
        try:
            found = tried(rung)
        except (NoSandbox, RuntimeError, OSError) as error:
            reasons.append(f"{'/'.join(dict.fromkeys(rung.split('/')))}: {' '.join(str(error).split())}")
            continue
        return rung, found, reasons
    raise Refused("no program can be started here: " + "; ".join(reasons))


@cache
def tried(rung):
    """The Isolation of one of LADDER, after a shell ran in it. Raises NoSandbox, RuntimeError or OSError."""
    level, _, how = rung.partition("/")
    with scratch() as folder:
        found = sandbox(level, how, str(folder))
        found.open(folder)
        for name in ("staged", "home", "place"):
            (folder / name).mkdir()
            found.give(folder / name)
        socket = folder / "socket"
        socket.touch()
        cell = Cell(found, folder, socket)
        with ForkServer(folder / "staged", cell=cell) as forks:
            tried = Kept(forks, {"command": ["/bin/sh", "-c", "echo > home/x && test ! -e staged/x"], "arguments": [], "folder": str(folder),
                                 "environment": {}, "confined": cell.confined(folder / "home", folder / "place")})
            tried.stdin.close()
            code = tried.wait()
            said = tried.stderr.read(1000).decode(errors="replace").strip()
            for stream in (tried.stdout, tried.stderr):
                stream.close()
        if code:
            raise RuntimeError(tried.report["trouble"] or said or f"a shell in it ended with exit code {code}")
        # What is less than all is called by its whole name.
        return Isolation(level=rung if found.level == "bubblewrap" and rung not in STRONG else found.level, detail=found.detail, lacks=found.lacks)
