"""The customer's inbox: a page that shows each refund, each mail and each prompt while they happen.

The stream is server-sent events, after the HTML standard's chapter of that name: a browser that lost its connection
comes back with the id of the last item that it has, and is sent those that follow.
"""

import json
import re
import threading
import time
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from ..harness.outside.model import WINDOW
from ..harness.story import money

HEARTBEAT = 15.0  # seconds; a browser that is gone is noticed when it is written to

# A name that an attacker's DNS points to 127.0.0.1 gets here as well, and its page would be of one origin with ours.
_OWN_HOST = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?", re.IGNORECASE)
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"}


class Inbox:
    """What the ledgers of all accounts hold that a customer would notice, and the prompts, in order, as a page.

    `note` is for Outside's `watch`, the inbox itself for its `page`. All methods may be called from any thread.
    """

    def __init__(self):
        # Another outside begins with an empty ledger: a browser that comes back from an earlier one must know it.
        self._name = token_hex(4)
        self._items = []
        self._closed = False
        self._changed = threading.Condition()
        page = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
        self._page, self._policy = page.encode(), _content_security_policy(page)

    def note(self, account, event):
        """Add an event of a ledger, if the page shows such."""
        with self._changed:
            item = self._item(event)
            if item:
                self._items.append({"account": account.key, "at": time.time(), **item})
                self._changed.notify_all()

    def answer(self, path, headers):
        """The answer to a GET without a key: status, headers, and the body in chunks. None where it is not for the page."""
        path = path.partition("?")[0]
        if path not in ("/", "/events"):
            return None
        if not _OWN_HOST.fullmatch(headers.get("Host", "")):
            return 403, {**_HEADERS, "Content-Type": "text/plain"}, [b"this page is for localhost and 127.0.0.1 alone\n"]
        if path == "/events":
            return 200, {**_HEADERS, "Content-Type": "text/event-stream"}, self._stream(headers.get("Last-Event-ID", ""))
        html = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": self._policy}
        return 200, {**_HEADERS, **html}, [self._page]

    def close(self):
        """End every stream."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _stream(self, last):
        """The items after the one with the id `last`, then each new one; all of them where there is no such item."""
        with self._changed:
            there = len(self._items)
        known = re.fullmatch(rf"{self._name}-([0-9]{{1,9}})", last)
        sent = min(int(known[1]), there) if known else 0
        hello = {"outside": self._name, "there": there, "window": WINDOW}
        yield f"retry: 1000\nevent: hello\nid: {self._name}-{sent}\ndata: {json.dumps(hello)}\n\n".encode()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or len(self._items) > sent, HEARTBEAT)
                if self._closed:
                    return
                fresh = self._items[sent:]
            # Written without the lock: a browser that reads slowly keeps nobody but itself waiting.
            for item in fresh:
                sent += 1
                yield f"id: {self._name}-{sent}\ndata: {json.dumps({'number': sent, **item})}\n\n".encode()
            if not fresh:
                yield b": still here\n\n"

    def _item(self, event):
        request = event.request
        if event.what != "acted":
            return None
        if request.kind == "model" and request.tokens is not None:
            messages = [{"role": str(message.get("role")), "content": message["content"]} for message in request.body["messages"]]
            refused = None if request.made.status == 200 else request.made.body["error"]["message"]
            answer = None if refused else request.made.body["choices"][0]["message"]["content"]
            return {"kind": "prompt", "tokens": request.tokens, "messages": messages, "answer": answer, "refused": refused}
        if request.effect and request.kind == "refund":
            return {"kind": "refund", "refund_id": request.effect["refund_id"], "order_id": request.effect["order_id"],
                    "amount": money(request.effect["amount_cents"]), "key": request.key, "nth": request.nth}
        if request.effect and request.kind == "mail":
            return {"kind": "mail", **request.effect, "nth": request.nth}
        return None


def _content_security_policy(page):
    """The header that lets the page's own script and style run and nothing else, and no text ever become HTML."""
    def own(tag):
        text = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    return (f"default-src 'none'; script-src {own('script')}; style-src {own('style')}; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            "require-trusted-types-for 'script'; trusted-types 'none'")
