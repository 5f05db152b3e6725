"""The outside as an HTTP server, on a Unix socket or on TCP. One server serves many accounts at once."""

import os
import secrets
import select
import socket
import socketserver
import struct
import sys
import threading
import time

from .account import Account
from .handler import Handler


class Outside:
    """The model, the payment service and the mail service, listening at `address` until closed.

    `path` is where a Unix socket is made; without it the server listens on 127.0.0.1 at `port` (0: any free one).
    `pace` is how many seconds a request waits before it acts, and again before it is answered: for a person who
    watches. With `open_to_all` any key opens an account; otherwise an unknown key is answered 401.
    `watch(account, event)` is called for each line of each ledger. `page.answer(path, headers)` is offered each GET
    without an account, before it is answered 401: it returns None, or a status, headers and the body in chunks of bytes.
    """

    def __init__(self, path=None, port=0, seed=0, pace=0.0, open_to_all=False, watch=None, page=None):
        self._seed, self._watch, self._open_to_all = seed, watch, open_to_all
        self.pace, self.page = pace, page
        self._accounts = {}
        self._lock = threading.Lock()
        self._server = _UnixServer(str(path), Handler) if path else _TcpServer(("127.0.0.1", port), Handler)
        self._server.outside = self
        self.closing = threading.Event()
        self.errors = []   # exceptions of this server itself: whoever judges by it must look here first
        self.address = f"unix:{path}" if path else f"http://127.0.0.1:{self._server.server_address[1]}"
        self._path = path
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True, name="outside").start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def open_account(self, name=None, like=None):
        """A fresh account. All that is made up in it comes from the seed and from `name`, or from `like`; its key is made of chance.

        Without a name it is the number of the account: then what is made up depends on how many there were before.
        """
        with self._lock:
            world = like if like is not None else name if name is not None else len(self._accounts)
            # Of chance: who could work out another one's key could keep there what nobody sees.
            return self._open(f"key-{secrets.token_hex(8)}", f"{self._seed} {world}")

    def close_account(self, account):
        """Forget an account; its key is unknown from now on."""
        with self._lock:
            self._accounts.pop(account.key, None)

    def _open(self, key, seed):
        account = Account(key, seed, self._watch)
        self._accounts[key] = account
        return account

    def account_of(self, key):
        """The account of a bearer key, or None."""
        with self._lock:
            if key and key not in self._accounts and self._open_to_all:
                self._open(key, f"{self._seed} {len(self._accounts)}")
            return self._accounts.get(key)

    def settle(self, account, deadline=10.0):
        """Return once each request of processes that are dead has acted or is dropped for good.

        Call it when every process of the account that should be dead is dead, before another one is started.
        Raises TimeoutError after `deadline` seconds, which would be a fault of this server.
        """
        # Connections are accepted in the order in which they came. Once a later one is answered, every earlier
        # one is known, though its client died before anybody looked at it.
        until = time.monotonic() + deadline
        self._knock(deadline)
        for connection in self._server.connections():
            # One whose account is not known yet sent no whole request so far; it may still hold one in its buffer.
            if connection.account not in (account, None) or not connection.abandoned():
                continue
            while not connection.ended.wait(0.02):
                if connection.account not in (account, None):
                    break
                request = connection.request
                if request is not None:
                    account.drop([request])
                if time.monotonic() > until:
                    raise TimeoutError(f"a request of a dead process was not settled within {deadline:g} s")

    def _knock(self, deadline):
        with socket.socket(self._server.address_family, socket.SOCK_STREAM) as knock:
            knock.settimeout(deadline)
            knock.connect(self._server.server_address)
            knock.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
            while knock.recv(4096):
                pass

    def close(self):
        """Stop listening and let go of everything that is held."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        for account in list(self._accounts.values()):
            account.drop()
        for connection in self._server.connections():
            connection.hang_up()
        if self._path:
            os.unlink(self._path)


class _Connection:
    """What the server knows of one client's connection."""

    def __init__(self, sock):
        self.socket = sock
        self.account = None   # of the last whole request
        self.request = None   # the one that is being worked on
        self.ended = threading.Event()
        # Ask now: a process that is dead by the time it is asked about has no group any more.
        self.client, self.group = _peer(sock)

    def abandoned(self):
        """Whether the client is gone. A client that only finished sending still waits for its answer."""
        try:
            poll = select.poll()
            if self.socket.family == socket.AF_UNIX:
                poll.register(self.socket, 0)
                return any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))
            closed = getattr(select, "POLLRDHUP", select.POLLHUP)
            poll.register(self.socket, closed)
            return bool(poll.poll(0)) and not self._peer_waits()
        except (OSError, ValueError):
            return True  # closed here already

    def _peer_waits(self):
        """Whether a process still holds the other end of a TCP connection that sends no more.

        TCP says the same of a client that is gone and of one that only finished sending. On one machine the kernel's
        table tells them apart: the socket of a process has an inode. False where there is no such table.
        """
        ends = [f":{end[1]:04X}" for end in (self.socket.getpeername(), self.socket.getsockname())]
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            try:
                with open(table) as rows:
                    for _, peer, own, *_, inode in (row.split()[:10] for row in rows):
                        if [peer[-5:], own[-5:]] == ends:
                            return inode != "0"
            except OSError:
                pass
        return False

    def hang_up(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _peer(sock):
    """The process at the other end and its group, as far as the socket tells."""
    if sock.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None, None
    pid, _, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    try:
        return pid, os.getpgid(pid)
    except (OSError, ValueError):
        return pid, None


class _Server(socketserver.ThreadingMixIn):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    outside = None

    def __init__(self, *arguments):
        self._connections = {}
        super().__init__(*arguments)

    def process_request(self, request, client_address):
        # Called in the thread that accepts, so that a connection is known in the order of its arrival.
        self._connections[request] = _Connection(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        super().shutdown_request(request)
        connection = self._connections.pop(request, None)
        if connection:
            connection.ended.set()

    def connections(self):
        return list(self._connections.values())

    def connection_of(self, request):
        return self._connections[request]

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # a client that went away is no news
            self.outside.errors.append(error)


class _UnixServer(_Server, socketserver.UnixStreamServer):
    pass


class _TcpServer(_Server, socketserver.TCPServer):
    allow_reuse_address = True
