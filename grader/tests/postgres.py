"""A PostgreSQL for tests: the distribution's, with its data in a temporary folder, on a free port of this machine."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "200", "shared_buffers": "16MB",
            "listen_addresses": "127.0.0.1"}


def binaries():
    """Where initdb and pg_ctl are, of the newest version; None where there is no PostgreSQL."""
    found = [Path(path).parent for path in [shutil.which("initdb")] if path]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    return next((path for path in found if (path / "initdb").exists() and (path / "pg_ctl").exists()), None)


class Server:
    """A server that can be stopped and started again. `url` is the address of a superuser's database."""

    def __init__(self, folder):
        # It refuses to run as root.
        self._user = pwd.getpwnam("nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name)
        if os.geteuid() == 0:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        self.folder, self.port = folder, _free_port()
        self._run("initdb", "-D", folder / "data", "-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        with open(folder / "data" / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in {**SETTINGS, "port": self.port, "unix_socket_directories": folder}.items())

    @property
    def url(self):
        return f"postgresql://tests@127.0.0.1:{self.port}/postgres"

    def start(self):
        self._run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-w", "start")

    def stop(self):
        self._run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")

    def _run(self, name, *arguments):
        as_user = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run([binaries() / name, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, timeout=60, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, **as_user)
        assert not done.returncode, f"{name}: {done.stderr}"


@contextmanager
def server():
    """A Server that runs, until the end of the block."""
    # Not under pytest's own folder, which another user may not enter.
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        started = Server(Path(folder))
        started.start()
        try:
            yield started
        finally:
            started.stop()


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
