"""A daemon that outlives everybody and keeps what there is to know on an abstract socket; the work is done in it too."""

import os
import signal
import socket
import sys

NAME = "\0" + os.environ.get("OUTSIDE_KEY", "")


def find():
    try:
        with socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(NAME)
            daemon.shutdown(socket.SHUT_WR)
            with daemon.makefile("rb") as file:
                return file.read()
    except OSError:
        return None


def keep(data):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork():
            os._exit(0)
        for descriptor in range(3):
            os.close(descriptor)
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(NAME)
        except OSError:
            os._exit(0)   # the first of them keeps what it has
        listener.listen()
        while True:
            with listener.accept()[0] as asked:
                asked.sendall(data)
    os.wait()
