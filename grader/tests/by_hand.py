"""Does what a person does by hand: runs the outside in the foreground, and the starter against it."""

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from labs.command.durable import write_tree
from labs.command.shipped import shipped_starter
from labs.harness.staging import KIT

PYTHON = [sys.executable, "-u", "-m"]


@cache
def shipped():
    """A folder with starter/ as it was shipped, whatever somebody has made of this kit's."""
    folder = Path(tempfile.mkdtemp(prefix="by-hand-"))
    atexit.register(shutil.rmtree, folder)
    write_tree(folder / "starter", shipped_starter())
    return folder


@contextmanager
def labs_outside(port=None):
    """`python -m labs outside` on this port, or on a free one, without pauses. Yields the process and its address."""
    process = subprocess.Popen([*PYTHON, "labs", "outside", "--port", str(port or free_port()), "--pace", "0"], cwd=KIT,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process, re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline()).group()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def starter(*arguments, home, address, **options):
    environment = {**os.environ, "LAB_HOME": str(home), "OUTSIDE": address, "OUTSIDE_KEY": "by-hand"}
    return subprocess.run([*PYTHON, "starter", *arguments], cwd=shipped(), env=environment, capture_output=True, text=True,
                          timeout=60, **options)
