"""One client of the outside: its requests as HTTP, what the faults make of them, and the answers."""

import json
import socket
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, urlsplit

from .answer import Answer, error
from .faults import CODES

BODY_LIMIT = 1 << 20  # bytes


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


class Handler(BaseHTTPRequestHandler):
    """Serves one connection. `server.outside` is the Outside that it belongs to."""

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
                                         self.headers.get("Idempotency-Key"), connection.group, connection.client)
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
            status = fault.status or 503
            self._finish(account, request, error(status, CODES.get(status, "out_of_order"), "the service says no", headers))
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
            self._finish(account, request, error(fault.status or 500, "internal", "something went wrong"))
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
