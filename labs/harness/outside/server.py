"""The outside as an HTTP server, on a Unix socket or on TCP. One server serves many accounts at once."""

import json
import os
import select
import socket
import socketserver
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from random import Random
from urllib.parse import parse_qsl, urlsplit

from .account import Account
from .answer import Answer, error
from .faults import CODES

BODY_LIMIT = 1 << 20  # bytes


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
        self._server = _UnixServer(str(path), _Handler) if path else _TcpServer(("127.0.0.1", port), _Handler)
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

    def open_account(self, key=None):
        """A fresh account; its key is drawn from the seed unless one is given."""
        with self._lock:
            return self._open(key or f"key-{Random(f'{self._seed} key {len(self._accounts)}').getrandbits(64):016x}")

    def _open(self, key):
        account = Account(key, f"{self._seed} {len(self._accounts)}", self._watch)
        self._accounts[key] = account
        return account

    def account_of(self, key):
        """The account of a bearer key, or None."""
        with self._lock:
            if key and key not in self._accounts and self._open_to_all:
                self._open(key)
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
        self.group = _group_of_peer(sock)

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


def _group_of_peer(sock):
    if sock.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    pid, _, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    try:
        return os.getpgid(pid)
    except (OSError, ValueError):
        return None


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


class _Refused(Exception):
    """A request that is refused before it is read to its end: an HTTP status and a message."""


def _size(text, base, already=0):
    """The number of bytes that a client announces after `already` many. Raises _Refused."""
    text, digits = text.strip(), "0123456789abcdef"[:base]
    if not text or text.lower().strip(digits):
        raise _Refused(400, "the size of the body, or of a chunk of it, is no number")
    if len(text) > 20 or already + int(text, base) > BODY_LIMIT:
        raise _Refused(413, f"the body may have at most {BODY_LIMIT} bytes")
    return int(text, base)


class _Lines:
    """The lines of a stream, and the last one that was read: empty at the stream's end."""

    def __init__(self, stream):
        self._stream, self.last = stream, b""

    def readline(self, limit):
        self.last = self._stream.readline(limit)
        return self.last


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "killproof"
    wbufsize = 1 << 16

    def log_message(self, *_):
        pass

    def send_error(self, code, message=None, explain=None):
        self.close_connection = True
        self._send(error(code, "malformed", message or "this is no HTTP request"))
        # A socket that is closed with unread data in it takes the answer back. The rest is read and thrown away.
        self.connection.shutdown(socket.SHUT_WR)
        while self.connection.recv(1 << 16):
            pass

    def parse_request(self):
        # The parser takes the end of the stream for the end of the header. A client that died there asked for nothing.
        stream, self.rfile = self.rfile, _Lines(self.rfile)
        try:
            parsed, last = super().parse_request(), self.rfile.last
        finally:
            self.rfile = stream
        self.close_connection = self.close_connection or not last
        return parsed and bool(last)

    def handle_expect_100(self):
        super().handle_expect_100()
        self.wfile.flush()  # the client sends no body before it has read this
        return True

    def _serve(self):
        try:
            body = self._read_body()
        except _Refused as refused:
            self.send_error(*refused.args)
            return
        if body is None:
            self.close_connection = True  # cut short: no request
            return
        connection = self.server.connection_of(self.request)
        scheme, _, key = self.headers.get("Authorization", "").partition(" ")
        account = self.server.outside.account_of(key.strip()) if scheme.lower() == "bearer" else None
        if account is None and self._show_page():
            return
        if account is None:
            self._send(error(401, "unauthorized", "send the API key: Authorization: Bearer KEY"))
            return
        try:
            url = urlsplit(self.path)
        except ValueError:
            self.send_error(400, "this is no path")
            return
        malformed, parsed = False, None
        if self.command != "GET":
            try:
                parsed = json.loads(body)
            except (ValueError, RecursionError):
                malformed = True
        connection.account = account
        request, fault = account.receive(self.command, url.path, dict(parse_qsl(url.query)), parsed, malformed,
                                         self.headers.get("Idempotency-Key"), connection.group)
        connection.request = request
        try:
            self._answer(account, request, fault, connection)
        finally:
            connection.request = None

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve

    def _show_page(self):
        page = self.server.outside.page
        shown = page.answer(self.path, self.headers) if page and self.command == "GET" else None
        if shown is None:
            return False
        status, headers, chunks = shown
        self.close_connection = True  # it has no length: the end of the connection is the end of the body
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(chunk)
            self.wfile.flush()
        return True

    def _answer(self, account, request, fault, connection):
        deed = fault.deed if fault else None
        closing, pace = self.server.outside.closing, self.server.outside.pace
        if deed == "hold_before" and not account.hold(request, "before"):
            self.close_connection = True
            return
        # A client may die during the pace. Started again, it looks for what it did: nothing may be done after that.
        if pace and (closing.wait(pace) or connection.abandoned()):
            account.end(request, "dropped")
            self.close_connection = True
            return
        if deed == "answer":
            headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            self._finish(account, request, error(fault.status, CODES.get(fault.status, "out_of_order"), "the service says no", headers))
            return

        account.act(request, fault)
        if pace:
            closing.wait(pace)
        if deed == "hold_after" and not account.hold(request, "after"):
            self.close_connection = True
        elif deed == "hang":
            if account.hold(request, "after"):
                account.end(request, "unanswered")
            self.close_connection = True
        elif deed == "close":
            account.end(request, "unanswered")
            self.close_connection = True
        elif deed == "fail_after":
            self._finish(account, request, error(500, "internal", "something went wrong"))
        elif deed == "garbage":
            self._finish(account, request, Answer(200, "<html>Bad gateway</html>"))
        else:
            self._finish(account, request, request.made)

    def _finish(self, account, request, answer):
        if self.server.connection_of(self.request).abandoned():
            account.end(request, "unanswered")
            self.close_connection = True
            return
        # Noted before it is sent: who has read the answer may ask the ledger at once.
        account.end(request, "answered", answer)
        self._send(answer)

    def _read_body(self):
        """The whole body, empty where there is none; None where it did not arrive whole. Raises _Refused."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks()
        length = _size(self.headers.get("Content-Length", "0"), 10)
        body = self.rfile.read(length)
        return body if len(body) == length else None

    def _read_chunks(self):
        body = b""
        while True:
            line = self.rfile.readline(1024)
            if not line.endswith(b"\n"):
                return None
            size = _size(line.split(b";")[0].decode("latin-1"), 16, len(body))
            if size == 0:
                while (line := self.rfile.readline(1024)).strip():
                    pass  # fields may follow the last chunk; they say nothing that we need
                return body if line.endswith(b"\n") else None
            chunk = self.rfile.read(size)
            line = self.rfile.readline(1024)
            if len(chunk) != size or not line.endswith(b"\n"):
                return None
            if line.strip():
                raise _Refused(400, "a chunk is longer than its size")
            body += chunk

    def _send(self, answer):
        data = (answer.body if isinstance(answer.body, str) else json.dumps(answer.body)).encode()
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **answer.headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
