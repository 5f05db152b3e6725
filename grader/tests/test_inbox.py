"""The customer's inbox: the event stream as bytes, and the page in a browser."""

import itertools
import json
import os
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from grader.tests.by_hand import free_port, labs_outside, starter

from labs.harness.outside import Outside
from labs.harness.staging import KIT
from labs.inbox import Inbox

HOSTILE = """<script>window.hacked = "script"</script><img src=x onerror="window.hacked = 'img'"><b>bold</b>"""


@contextmanager
def served(port=0):
    """The outside with its inbox. Yields the outside, and the list of all that its ledgers hold."""
    inbox, ledger = Inbox(), []

    def watch(account, event):
        inbox.note(account, event)
        ledger.append(event)

    with closing(inbox), Outside(port=port, open_to_all=True, watch=watch, page=inbox) as outside:
        yield outside, ledger
    assert not outside.errors


@pytest.fixture
def outside():
    with served() as (outside, _):
        yield outside


def ask(outside, method, path, body=None, **headers):
    """The status and the text that answer one request."""
    with closing(HTTPConnection(urlsplit(outside.address).netloc, timeout=20)) as connection:
        connection.request(method, path, body and json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


def post(outside, path, body, key="by-hand", **headers):
    status, text = ask(outside, "POST", path, body, Authorization=f"Bearer {key}", **headers)
    assert status < 500, text
    return status


def send_mail(outside, body="Hello.", to="ana@example.com", subject="Your ticket T-1", message_id="m-1", key="by-hand"):
    assert post(outside, "/v1/mails", {"message_id": message_id, "to": to, "subject": subject, "body": body}, key) == 202


def send_refund(outside, order="A-1", cents=4200, **headers):
    return post(outside, "/v1/refunds", {"order_id": order, "amount_cents": cents}, **headers)


def send_prompt(outside, *contents):
    messages = [{"role": "user", "content": content} for content in contents]
    return post(outside, "/v1/chat/completions", {"model": "support-1", "messages": messages})


class Stream:
    """A browser's side of the event stream."""

    def __init__(self, outside, last=None):
        self._connection = HTTPConnection(urlsplit(outside.address).netloc, timeout=20)
        self._connection.request("GET", "/events", headers={} if last is None else {"Last-Event-ID": last})
        self._response = self._connection.getresponse()
        assert self._response.getheader("Content-Type") == "text/event-stream"
        self.last = None
        self.hello = self.next()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._response.close()
        self._connection.close()

    def next(self):
        """The data of the next event; None at the stream's end."""
        fields = {}
        while line := self._response.readline().decode().removesuffix("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        self.last = fields.get("id", self.last)
        return json.loads(fields["data"]) if fields else None

    def items(self, count):
        return [self.next() for _ in range(count)]


# ---- the stream


def test_a_page_that_is_opened_late_is_sent_all_that_happened_and_then_what_happens(outside):
    send_prompt(outside, "Where is my order?")
    send_refund(outside)
    with Stream(outside) as stream:
        assert stream.hello["there"] == 2 and stream.hello["window"] == 4096
        prompt, refund = stream.items(2)
        assert prompt["tokens"] == 4 and prompt["messages"] == [{"role": "user", "content": "Where is my order?"}]
        assert prompt["answer"].startswith("Noted") and prompt["refused"] is None
        assert (refund["kind"], refund["order_id"], refund["amount"], refund["key"]) == ("refund", "A-1", "$42.00", None)
        send_mail(outside)
        mail, = stream.items(1)
        assert (mail["kind"], mail["to"], mail["body"], mail["number"]) == ("mail", "ana@example.com", "Hello.", 3)


def test_one_more_of_the_same_is_counted_and_what_is_not_the_same_is_not(outside):
    send_refund(outside, "A-1", 4200)
    send_refund(outside, "A-2", 4200)
    send_refund(outside, "A-1", 4310)
    send_mail(outside)
    send_mail(outside, subject="Your ticket T-2")
    send_mail(outside, to="ben@example.com")
    send_mail(outside, body="Another wording.", message_id="m-2")
    send_mail(outside, key="another-account")
    with Stream(outside) as stream:
        assert [item["nth"] for item in stream.items(8)] == [1, 1, 2, 1, 1, 1, 2, 1]


def test_what_no_customer_would_notice_is_not_shown(outside):
    assert send_refund(outside, **{"Idempotency-Key": "k"}) == 201
    assert send_refund(outside, **{"Idempotency-Key": "k"}) == 200
    assert send_refund(outside, cents=-1) == 422
    assert post(outside, "/v1/mails", {"to": "ana@example.com"}) == 422
    assert post(outside, "/v1/chat/completions", {"model": "support-1", "messages": "?"}) == 422
    assert ask(outside, "GET", "/v1/refunds?order_id=A-1", Authorization="Bearer by-hand")[0] == 200
    send_mail(outside)
    with Stream(outside) as stream:
        assert [(item["kind"], item.get("key")) for item in stream.items(2)] == [("refund", "k"), ("mail", None)]


def test_a_prompt_that_the_model_refused_is_shown_with_the_reason(outside):
    assert send_prompt(outside, "word " * 5000) == 400
    assert post(outside, "/v1/chat/completions", {"model": "support-1", "messages": [{"role": 7, "content": "x"}]}) == 422
    with Stream(outside) as stream:
        long, odd = stream.items(2)
        assert long["tokens"] == 5000 and "the window is 4096 tokens" in long["refused"] and long["answer"] is None
        assert odd["messages"] == [{"role": "7", "content": "x"}] and "role" in odd["refused"]


def test_a_page_that_comes_back_is_sent_what_it_missed_and_nothing_twice(outside):
    for number in range(3):
        send_mail(outside, message_id=f"m-{number}")
    with Stream(outside) as stream:
        stream.items(2)
    send_mail(outside, message_id="m-3")
    with Stream(outside, stream.last) as again:
        assert [mail["message_id"] for mail in again.items(2)] == ["m-2", "m-3"]
        with Stream(outside, again.last) as nothing_new:
            assert nothing_new.last == again.last
            send_mail(outside, message_id="m-4")
            assert nothing_new.next()["message_id"] == again.next()["message_id"] == "m-4"


@pytest.mark.parametrize("last", ["", "1", "another-1", "{name}-", "{name}-x", "{name}--1", "{name}-\xb2",
                                  "{name}-" + "9" * 5000])
def test_an_id_that_is_none_of_this_outsides_counts_for_nothing(outside, last):
    send_mail(outside)
    with Stream(outside) as stream:
        name = stream.hello["outside"]
    with Stream(outside, last.format(name=name)) as again:
        assert again.last == f"{name}-0" and again.next()["number"] == 1


@pytest.mark.parametrize("text", [
    HOSTILE, "one\n\ndata: {}\n\nevent: hello\r\nid: 9\r\n\r\n", "\u2028\u2029\x00\x1b[31m", "\ud800", ""])
def test_whatever_a_program_writes_stays_one_item(outside, text):
    send_mail(outside, body=f"{text}.", to=f"{text}.", subject=f"{text}.", message_id=f"{text}.")
    send_prompt(outside, text)
    with Stream(outside) as stream:
        mail, prompt = stream.items(2)
        assert {mail[name] for name in ("to", "subject", "body", "message_id")} == {f"{text}."}
        assert prompt["messages"][0]["content"] == text and prompt["number"] == 2


def test_every_page_is_sent_the_same_in_the_same_order_however_many_programs_there_are(outside):
    streams = [Stream(outside) for _ in range(5)]
    with ThreadPoolExecutor(8) as pool:
        seen = [pool.submit(stream.items, 60) for stream in streams]
        for sender in [pool.submit(send_mail, outside, key=f"key-{number % 3}") for number in range(60)]:
            sender.result()
        seen = [each.result() for each in seen]
    assert all(items == seen[0] for items in seen)
    assert [item["number"] for item in seen[0]] == list(range(1, 61))
    assert sorted(item["nth"] for item in seen[0]) == sorted(list(range(1, 21)) * 3)
    for stream in streams:
        stream.__exit__()


def test_a_page_that_never_reads_keeps_nobody_waiting(outside):
    address = urlsplit(outside.address)
    with socket.socket() as idle, Stream(outside) as stream:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect((address.hostname, address.port))
        idle.sendall(f"GET /events HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        for number in range(30):  # 15 million bytes are more than any socket's buffers hold
            send_mail(outside, body="x" * 500_000)
            assert stream.next()["number"] == number + 1
        # It was slow, no more: all is there for it.
        with idle.makefile("rb") as slow:
            numbers = (json.loads(line[5:])["number"] for line in slow if line.startswith(b'data: {"number"'))
            assert [next(numbers) for _ in range(30)] == list(range(1, 31))


def test_a_page_that_vanished_keeps_nobody_waiting(outside):
    for number in range(5):
        with Stream(outside):
            send_mail(outside)
        send_mail(outside)
    with Stream(outside) as stream:
        assert len(stream.items(10)) == 10


def test_the_end_of_the_outside_ends_every_stream():
    before = set(threading.enumerate())
    with served() as (outside, _):
        waiting = Stream(outside)
        idle = socket.create_connection(("127.0.0.1", urlsplit(outside.address).port))
        idle.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(15):
            send_mail(outside, body="x" * 1_000_000)
        waiting.items(15)
    assert waiting.next() is None
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive(), thread
    idle.close()
    waiting.__exit__()


def test_an_idle_stream_is_written_to_so_that_a_page_that_is_gone_is_noticed(outside, monkeypatch):
    monkeypatch.setattr("labs.inbox.HEARTBEAT", 0.01)
    with Stream(outside) as stream:
        assert stream._response.readline() == b": still here\n"


# ---- who is answered


def test_the_page_is_no_request_of_the_outside():
    with served() as (outside, ledger):
        status, text = ask(outside, "GET", "/")
        assert status == 200 and "customer’s inbox" in text
        with Stream(outside):
            pass
        assert ask(outside, "GET", "/favicon.ico")[0] == 401
        assert not ledger
        send_mail(outside)
        assert ledger[0].request.number == 1


def test_the_page_takes_nothing_from_the_contract():
    with served() as (outside, ledger):
        for method, path in (("POST", "/"), ("POST", "/events"), ("GET", "/v1/mails?message_id=m"), ("GET", "//[")):
            assert ask(outside, method, path)[0] == 401
        assert ask(outside, "GET", "/", Authorization="Bearer by-hand")[0] == 404
        assert [event.request.kind for event in ledger if event.what == "received"] == ["unknown"]


def test_the_outside_of_the_suites_has_no_page(tmp_path):
    for outside in (Outside(), Outside(open_to_all=True)):
        with outside:
            assert [ask(outside, "GET", path)[0] for path in ("/", "/events")] == [401, 401]
            outside.settle(outside.open_account())


@pytest.mark.parametrize("path", ["/", "/events"])
@pytest.mark.parametrize("host, status", [
    ("localhost", 200), ("LocalHost:8765", 200), ("127.0.0.1", 200), ("127.0.0.1:1", 200), (None, 403), ("", 403),
    ("evil.example", 403), ("evil.example:8765", 403), ("localhost.evil.example", 403), ("127.0.0.1.evil.example", 403),
    ("evil.example#localhost", 403), ("user@localhost", 403), ("localhost:8765 evil", 403), ("0.0.0.0:8765", 403)])
def test_a_page_of_another_name_is_shown_nothing(outside, path, host, status):
    send_mail(outside, body="secret")
    with socket.create_connection(("127.0.0.1", urlsplit(outside.address).port), timeout=20) as client:
        header = "" if host is None else f"Host: {host}\r\n"
        client.sendall(f"GET {path} HTTP/1.1\r\n{header}\r\n".encode())
        with client.makefile("rb") as answer:
            assert answer.readline().split()[1] == b"%d" % status
            if status == 403:
                rest = answer.read()
                assert b"secret" not in rest and b"localhost and 127.0.0.1" in rest


def test_the_terminal_names_the_page(outside_by_hand):
    process, address = outside_by_hand
    assert process.stdout.readline() == f"What the customer sees, live: {address}/\n"


# ---- the page


@pytest.fixture
def open_page(browser):
    """Opens the page of an outside. In the end: no page complained, and none asked anybody else for anything."""
    complaints, contexts = [], []

    def open_page(address, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: "Failed to load resource" in message.text or complaints.append(message.text))
        page.on("request", lambda request: request.url.startswith((address, "data:")) or complaints.append(request.url))
        page.goto(address)
        expect(page.locator("#connection")).to_have_text("● live")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


def expect(locator):
    from playwright.sync_api import expect
    expect.set_options(timeout=30_000)
    return expect(locator)


def test_the_second_mail_arrives_without_a_reload(open_page, outside_by_hand, tmp_path):
    _, address = outside_by_hand
    page = open_page(address)
    expect(page.get_by_text("Nothing yet")).to_be_visible()
    page.evaluate("window.opened = true")
    mails, refunds = page.locator("#inbox .mail"), page.locator("#inbox .refund")

    assert starter("start", "starter/ticket.json", home=tmp_path, address=address).returncode == 0
    expect(mails).to_have_count(1)
    expect(page.get_by_text("Nothing yet")).to_be_hidden()
    expect(page.locator("#inbox").get_by_text("ONE MORE")).to_be_hidden()

    ticket = (KIT / "starter/ticket.json").read_text()
    assert starter("start", "-", home=tmp_path, address=address, input=ticket).returncode == 0
    expect(mails).to_have_count(2)
    expect(refunds).to_have_count(2)
    expect(mails.nth(0).locator(".mark")).to_have_text("✗ ONE MORE: mail 2 of the same")
    expect(refunds.nth(0).locator(".mark")).to_have_text("✗ ONE MORE: refund 2 of this order")
    expect(mails.nth(1).locator(".mark")).to_be_hidden()
    expect(mails.nth(0)).to_contain_text("Your ticket T-4521")
    expect(page.locator("#counts")).to_have_text(re.compile(r"2 refunds ✗ 1 repeated\s+2 mails ✗ 1 repeated\s+2 prompts"))
    expect(page.get_by_role("log")).to_contain_text("✗ ONE MORE: mail 2 of the same. Mail to ana@example.com")
    expect(page.locator(".account").first).to_be_hidden()
    assert page.evaluate("window.opened")


def test_a_prompt_opens_with_the_mouse_and_with_the_keyboard(open_page, outside):
    send_prompt(outside, "Where is my order?", "word " * 1000)
    send_prompt(outside, "word " * 5000)
    page = open_page(outside.address)
    refused, prompt = page.locator("#prompts details").nth(0), page.locator("#prompts details").nth(1)
    expect(prompt.locator("summary")).to_contain_text("Prompt 1 1,004 of 4,096 tokens")
    expect(refused.locator(".mark")).to_have_text("✗ refused: the window is 4096 tokens, the prompt has 5000")
    expect(page.get_by_text("Where is my order?")).to_be_hidden()
    prompt.locator("summary").click()
    expect(page.get_by_text("Where is my order?")).to_be_visible()
    expect(prompt.get_by_text("the model’s answer")).to_be_visible()
    expect(prompt.locator(".text").nth(1)).to_have_attribute("tabindex", "0")  # it scrolls

    page.get_by_role("link", name="2 prompts").focus()
    page.keyboard.press("Tab")
    expect(refused.locator("summary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(refused.locator(".messages")).to_be_visible()


def test_hostile_text_is_text(open_page, outside):
    page = open_page(outside.address)
    send_mail(outside, body=HOSTILE, to=HOSTILE, subject=HOSTILE, message_id=HOSTILE)
    send_mail(outside, body=HOSTILE, to=HOSTILE, subject=HOSTILE, message_id=HOSTILE, key=HOSTILE)
    send_refund(outside, HOSTILE, **{"Idempotency-Key": HOSTILE})
    post(outside, "/v1/chat/completions", {"model": "m", "messages": [{"role": HOSTILE, "content": HOSTILE}]})
    expect(page.locator("#prompts details")).to_have_count(1)
    page.locator("summary").click()
    for name in ("subject", "to", "message_id", "body"):
        expect(page.locator(f".mail [data-is={name}]").first).to_have_text(HOSTILE)
    expect(page.locator(".mail [data-is=account]").first).to_have_text(HOSTILE)
    expect(page.locator(".refund [data-is=order_id]")).to_have_text(HOSTILE)
    expect(page.locator(".messages [data-is=role]")).to_have_text(HOSTILE)
    expect(page.locator(".messages [data-is=content]")).to_have_text(HOSTILE)
    assert page.locator("img, b:not(#counts b, [data-is=name]), script:not(body > script)").count() == 0
    assert page.evaluate("window.hacked") is None


def test_the_browser_would_refuse_html_if_some_day_the_page_made_any(browser, outside):
    with closing(browser.new_page()) as page:
        page.goto(outside.address)
        assert page.evaluate("try { document.body.innerHTML = '<p>'; 'taken' } catch (error) { error.name }") == "TypeError"


def test_accounts_are_named_where_there_is_more_than_one(open_page, outside):
    page = open_page(outside.address)
    send_mail(outside, key="ana")
    account = page.locator(".mail .account")
    expect(account).to_be_hidden()
    send_mail(outside, key="ben")
    expect(account).to_have_text(["account ben", "account ana"])
    expect(account.nth(1)).to_be_visible()


def test_a_page_that_loses_its_connection_goes_on_without_a_loss_or_a_double(open_page, outside):
    page, other = open_page(outside.address), open_page(outside.address)
    for number in range(12):
        send_mail(outside, message_id=f"m-{number}")
        if number % 4 == 3:
            for connection in outside._server.connections():
                connection.hang_up()
    for each in (page, other):
        expect(each.locator(".mail [data-is=message_id]")).to_have_text([f"m-{number}" for number in reversed(range(12))])
        expect(each.locator("#connection")).to_have_text("● live")


def test_a_page_whose_browser_has_given_up_asks_again_itself_and_shows_nothing_twice(open_page, outside):
    page = open_page(outside.address)
    send_mail(outside, message_id="m-0")
    expect(page.locator(".mail")).to_have_count(1)
    page.route("**/events", lambda route: route.fulfill(status=503), times=1)
    with page.expect_response(lambda response: response.status == 503):
        for connection in outside._server.connections():
            connection.hang_up()
    send_mail(outside, message_id="m-1")
    expect(page.locator("#connection")).to_have_text("● live")
    expect(page.locator(".mail [data-is=message_id]")).to_have_text(["m-1", "m-0"])


def test_a_page_begins_anew_when_the_outside_is_started_again(open_page, tmp_path):
    port = free_port()
    with labs_outside(port) as (_, address):
        page = open_page(address)
        assert starter("start", "starter/ticket.json", home=tmp_path, address=address).returncode == 0
        expect(page.locator(".mail")).to_have_count(1)
    expect(page.locator("#connection")).to_contain_text("does not answer")
    expect(page.locator(".mail")).to_have_count(1)
    with labs_outside(port):
        expect(page.locator("#connection")).to_have_text("● live")
        expect(page.locator(".mail")).to_have_count(0)
        assert starter("start", "starter/ticket.json", home=tmp_path, address=address).returncode == 0
        expect(page.locator(".mail")).to_have_count(1)
        expect(page.locator("#inbox .mark >> visible=true")).to_have_count(0)


def test_nothing_is_wider_than_the_page(open_page, outside):
    long = "W" * 400
    for _ in range(2):
        send_mail(outside, body=long * 50, to=long, subject=long, message_id=long)
        send_refund(outside, long, 10**40, **{"Idempotency-Key": long})
    send_prompt(outside, long)
    send_mail(outside, key=long)
    page = open_page(outside.address)
    expect(page.locator("#inbox > *")).to_have_count(4)
    page.locator("summary").click()
    expect(page.locator(".messages")).to_be_visible()
    for width, scheme in itertools.product([320, 390, 1200], ["light", "dark"]):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("innerWidth") == width and page.evaluate("document.documentElement.scrollWidth") <= width
        # Nor is anything cut off, or to be scrolled sideways.
        assert page.locator("#inbox *, #prompts *").evaluate_all(
            "nodes => nodes.filter(node => node.clientWidth && node.scrollWidth > node.clientWidth).length") == 0, width
        dark = sum(map(int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor")))) < 200
        assert dark == (scheme == "dark")


def test_without_a_browser_these_tests_are_skipped_but_not_in_ci(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | {"PATH": str(tmp_path)}
    for more, says in (({}, "1 skipped"), ({"CI": "1"}, "1 error")):
        command = [sys.executable, "-m", "pytest", __file__, "-k", "opens_with_the_mouse", "-rsE", "-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=KIT, env=environment | more, capture_output=True, text=True, timeout=100)
        assert says in done.stdout and "apt-get install chromium" in done.stdout, done.stdout
