"""Does what a person does by hand: runs the outside in the foreground, and the starter against it."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

from labs.harness.staging import KIT

PYTHON = [sys.executable, "-u", "-m"]


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
    return subprocess.run([*PYTHON, "starter", *arguments], cwd=KIT, env=environment, capture_output=True, text=True,
                          timeout=60, **options)
