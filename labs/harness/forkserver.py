"""The fork server: a process that has the standard library loaded, and forks keepers (keeper.py), who fork programs.

A new interpreter takes 60 to 200 ms to come up, a fork of one that is up a few. The program's own code is loaded in the
program's process alone: a module that the server had loaded would be the same in every start, its ids and open files
too. What was compiled of it is read here, once, and nothing of it is run. This is run as a script, with the number of a
socket that requests come by, the user to become or an empty word, the program's folder and the modules to load; kept.py starts it, and asks it for a keeper
by sending the keeper's end of a socket, once it has said that it is up. In a sandbox of root's it becomes another user first.
"""

import gc
import importlib
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

#: What a program that keeps a record and speaks HTTP loads, some of it only when it is first used. Its own list comes on top.
ALWAYS = ("http.client", "encodings.idna", "encodings.latin_1", "json", "os", "runpy", "socket", "ssl", "sqlite3", "tempfile", "traceback",
          "urllib.parse")


def serve(requests, folder, modules):
    """Fork a keeper for each request. Returns in a program's own process alone: the function that runs the program."""
    for name in (*ALWAYS, *modules):
        try:
            importlib.import_module(name)
        except BaseException:
            pass   # a Python built without it, or a module that is for something else: the program will see
    # Ours come first while they are loaded, and never again: an installed package may be called `labs` too.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from labs.harness.becoming import LIBC, prepare
    from labs.harness.keeper import keep
    from labs.harness.messages import receive, send
    from labs.harness.ready import read_compiled
    del sys.path[0]
    read_compiled(folder)
    prepare()
    if sys.platform == "linux":
        PR_SET_DUMPABLE = 4
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # no program may reach into it, or into a keeper, through /proc
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)   # keepers are nobody's to wait for
    gc.collect()
    gc.freeze()
    with suppress(OSError):   # the harness is gone; the next lines notice it
        send(requests, "up")
    while True:
        request, descriptors = receive(requests, 1)
        if request is None:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            return keep(socket.socket(fileno=descriptors[0]))
        os.close(descriptors[0])


if __name__ == "__main__":
    if sys.argv[2]:
        os.setgroups([])
        os.setgid(int(sys.argv[2]))
        os.setuid(int(sys.argv[2]))
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[3], sys.argv[4:])()
