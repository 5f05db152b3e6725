"""The outside keeps its side of the contract: over TCP and over a Unix socket, for any client, whatever is sent to it."""

import http.client
import json
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random

import pytest

from labs.harness.outside import Fault, Outside
from labs.harness.outside.handler import BODY_LIMIT
from labs.harness.scratch import scratch

PATIENCE = 20  # seconds after which a wait for something that must happen is a failure
TICKET = "Order A-1009 arrived broken, I paid $42.00. I want my money back."
REFUND = {"order_id": "A-1009", "amount_cents": 4263}
MAIL = {"message_id": "m-1", "to": "ana@example.com", "subject": "Your ticket", "body": "We are sorry."}
PROMPT = {"model": "support-1", "messages": [{"role": "user", "content": TICKET}]}
TRIAGE = {**PROMPT, "response_format": {"type": "json_object"}}

# One request of every kind that does its work: (kind, method, path, body, status).
REQUESTS = [("model", "POST", "/v1/chat/completions", TRIAGE, 200), ("refund", "POST", "/v1/refunds", REFUND, 201),
            ("mail", "POST", "/v1/mails", MAIL, 202), ("refund_lookup", "GET", "/v1/refunds?order_id=A-1009", None, 200),
            ("mail_lookup", "GET", "/v1/mails?message_id=m-1", None, 200)]
ACTIONS = REQUESTS[:3]
EVERY_KIND = pytest.mark.parametrize("kind, method, path, body, status", REQUESTS, ids=[request[0] for request in REQUESTS])
EVERY_ACTION = pytest.mark.parametrize("kind, method, path, body, status", ACTIONS, ids=[request[0] for request in ACTIONS])


# ---- a server on each transport, and a client that is no better than anybody's


@pytest.fixture(scope="module", params=["tcp", "unix"])
def server(request):
    with scratch() as folder, Outside(folder / "s" if request.param == "unix" else None, seed=7) as server:
        yield server


@pytest.fixture
def account(server):
    yield (account := server.open_account())
    account.drop()
    assert server.errors == []


@pytest.fixture
def client(server, account):
    return Client(server, account.key)


class Reply:
    def __init__(self, response):
        self.status, self.headers, self.text = response.status, response.headers, response.read().decode()

    @property
    def body(self):
        return json.loads(self.text)


class Client:
    """Calls the server with one key, on a new connection each time."""

    def __init__(self, server, key):
        self.server, self.key = server, key

    def connect(self):
        """A connected socket."""
        scheme, _, rest = self.server.address.partition(":")
        if scheme == "unix":
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(rest)
        else:
            host, _, port = rest.strip("/").partition(":")
            sock = socket.create_connection((host, int(port)))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(PATIENCE)
        return sock

    @contextmanager
    def connection(self):
        """An http.client connection, which may be used again and again."""
        connection = http.client.HTTPConnection("localhost")
        connection.sock = self.connect()
        try:
            yield connection
        finally:
            connection.close()

    def headers(self, more=()):
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **dict(more)}

    def call(self, method, path, body=None, connection=None, **headers):
        """Send one request; an object is sent as JSON. A header's `_` stands for `-`. Returns the Reply."""
        if connection is None:
            with self.connection() as connection:
                return self.call(method, path, body, connection, **headers)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, data, self.headers({name.replace("_", "-"): value for name, value in headers.items()}))
        return Reply(connection.getresponse())

    def raw(self, method, path, body=None, *lines):
        """A request as bytes."""
        data = b"" if body is None else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.key}", *lines]
        if body is not None:
            head.append(f"Content-Length: {len(data)}")
        return "\r\n".join([*head, "", ""]).encode("latin-1") + data

    def exchange(self, data):
        """Send bytes, say that there are no more, and return all that comes back until the server closes."""
        with self.connect() as sock:
            try:
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it closed before it had read everything; what it said may still be there
            return read_all(sock)

    def refund(self, body=REFUND, key=None):
        return self.call("POST", "/v1/refunds", body, **({"Idempotency_Key": key} if key else {}))

    def refunds(self, order="A-1009"):
        return self.call("GET", f"/v1/refunds?order_id={order}").body["refunds"]

    def mails(self, message_id="m-1"):
        return self.call("GET", f"/v1/mails?message_id={message_id}").body["mails"]

    def triage(self, body=TRIAGE):
        """What the model makes of a ticket, as an object."""
        return json.loads(self.content(body))

    def content(self, body=PROMPT):
        reply = self.call("POST", "/v1/chat/completions", body)
        assert reply.status == 200, reply.text
        return reply.body["choices"][0]["message"]["content"]


def read_all(sock):
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def error_code(reply):
    """The code of an error, once it has the one form that errors have."""
    assert reply.status >= 400, reply.text
    assert set(reply.body) == {"error"}
    assert isinstance(reply.body["error"]["message"], str) and reply.body["error"]["message"]
    return reply.body["error"]["code"]


def wait_for(account, predicate):
    """Wait for something that the ledger must show."""
    with account.changed:
        assert account.changed.wait_for(predicate, PATIENCE), "the ledger never showed it"


def until_held(account, count=1):
    wait_for(account, lambda: len(account.held()) == count)
    return account.held()


def what_happened(request, account):
    return [event.what for event in account.events if event.request is request]


@contextmanager
def in_background(function, *arguments):
    """A call in another thread; yields its future, and waits for its end."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(function, *arguments)
        yield future
        future.result(PATIENCE)


# ---- the key


@pytest.mark.parametrize("value", [None, "", "Bearer", "Bearer ", "Bearer no-such-key", "Basic {key}", "{key}"])
def test_a_request_without_a_known_key_is_refused_and_not_in_any_ledger(client, account, value):
    headers = {} if value is None else {"Authorization": value.format(key=account.key)}
    with client.connection() as connection:
        for kind, method, path, body, _ in REQUESTS:
            connection.request(method, path, body and json.dumps(body), headers)
            reply = Reply(connection.getresponse())
            assert reply.status == 401 and error_code(reply) == "unauthorized", kind
    assert account.requests == [] and account.refunds == [] and account.mails == []


def test_the_scheme_of_the_key_may_be_written_in_any_case(client, account):
    with client.connection() as connection:
        connection.request("GET", "/v1/mails?message_id=m", headers={"authorization": f"bearer {account.key}"})
        assert Reply(connection.getresponse()).status == 200


def test_a_server_that_is_open_to_all_makes_an_account_for_any_key_but_still_wants_one():
    with Outside(open_to_all=True) as server:
        assert Client(server, "by-hand").refund().status == 201
        assert Client(server, "other").refunds() == []
        assert len(Client(server, "by-hand").refunds()) == 1
        with Client(server, "").connection() as connection:
            connection.request("GET", "/v1/mails?message_id=m")
            assert Reply(connection.getresponse()).status == 401


def test_accounts_see_nothing_of_one_another(server, client, account):
    other = server.open_account()
    stranger = Client(server, other.key)
    assert account.key != other.key
    first, second = client.refund(key="k"), stranger.refund({**REFUND, "amount_cents": 1}, key="k")
    assert (first.status, second.status) == (201, 201), "a key of one account is no key of another"
    client.call("POST", "/v1/mails", MAIL)
    assert [refund["amount_cents"] for refund in stranger.refunds()] == [1]
    assert [refund["amount_cents"] for refund in client.refunds()] == [4263]
    assert stranger.mails() == [] and len(client.mails()) == 1
    assert len(other.refunds) == 1 and other.mails == [] and {request.kind for request in account.of("mail")} == {"mail"}
    account.plan(Fault("any", "answer", times=None))
    assert stranger.refund().status == 201, "a fault of one account is no fault of another"


# ---- the model


def test_the_model_answers_as_a_chat_completion(client):
    reply = client.call("POST", "/v1/chat/completions", TRIAGE)
    assert reply.status == 200 and reply.headers["Content-Type"] == "application/json"
    assert set(reply.body) == {"id", "object", "model", "choices", "usage"}
    assert (reply.body["object"], reply.body["model"]) == ("chat.completion", "support-1")
    choice, = reply.body["choices"]
    assert set(choice) == {"index", "message", "finish_reason"}
    assert (choice["index"], choice["finish_reason"], choice["message"]["role"]) == (0, "stop", "assistant")
    words = len(choice["message"]["content"].split())
    assert reply.body["usage"] == {"prompt_tokens": 12, "completion_tokens": words, "total_tokens": 12 + words}


def test_the_model_reads_order_and_price_from_the_last_message_of_the_user(client, account):
    body = {**TRIAGE, "messages": [{"role": "system", "content": "Order A-1, $1.00"}, {"role": "user", "content": "A-2, $2.00"},
                                   {"role": "assistant", "content": "A-3, $3.00"}, {"role": "user", "content": TICKET},
                                   {"role": "assistant", "content": "A-4, $4.00"}]}
    found = client.triage(body)
    assert set(found) == {"order_id", "classification", "amount_cents", "draft_text"}
    assert found["order_id"] == "A-1009" and found["classification"] == "refund"
    assert 4200 + 1 <= found["amount_cents"] <= 4200 + 500
    assert "A-1009" in found["draft_text"] and re.search(r"\d{5}", found["draft_text"])
    assert account.readings() == [found]


@pytest.mark.parametrize("text", ["hello", "A-1 for $4", "$" + "9" * 5000 + ".00", "A-\u0663 at $\u0663.00"])
def test_a_ticket_without_an_order_and_a_price_is_a_question(client, text):
    found = client.triage({**TRIAGE, "messages": [{"role": "user", "content": text}]})
    assert found["classification"] == "question" and found["amount_cents"] is None
    assert found["draft_text"]


def test_the_model_never_gives_the_same_answer_twice(client):
    answers = [client.triage() for _ in range(60)]
    assert len({answer["amount_cents"] for answer in answers}) == 60
    assert len({answer["draft_text"] for answer in answers}) == 60
    assert len({re.sub(r"\d+", "", answer["draft_text"]) for answer in answers}) > 1, "more than the number differs"
    replies = [client.call("POST", "/v1/chat/completions", PROMPT).body for _ in range(20)]
    assert len({reply["id"] for reply in replies}) == 20
    assert len({reply["choices"][0]["message"]["content"] for reply in replies}) == 20


@pytest.mark.parametrize("wants", [{}, {"response_format": None}, {"response_format": {"type": "text"}},
                                   {"response_format": "json_object"}, {"response_format": {}}])
def test_without_a_response_format_the_model_answers_with_a_short_line(client, account, wants):
    content = client.content({**PROMPT, **wants})
    assert content and "\n" not in content and len(content) < 100
    with pytest.raises(ValueError):
        json.loads(content)
    assert account.readings() == []


def test_tokens_are_the_words_of_all_contents(client, account):
    body = {**PROMPT, "messages": [{"role": "system", "content": " one\ttwo\n\nthree "}, {"role": "user", "content": "four"},
                                   {"role": "assistant", "content": ""}, {"role": "user", "content": "five\u00a0six seven-eight"}]}
    reply = client.call("POST", "/v1/chat/completions", body)
    assert reply.body["usage"]["prompt_tokens"] == 7
    assert account.requests[0].tokens == 7


def test_a_prompt_that_fills_the_window_is_answered_and_one_word_more_is_refused(client, account):
    def prompt(words):
        return {**TRIAGE, "messages": [{"role": "system", "content": "w " * (words - 12)}, {"role": "user", "content": TICKET}]}
    assert client.call("POST", "/v1/chat/completions", prompt(4096)).status == 200
    reply = client.call("POST", "/v1/chat/completions", prompt(4097))
    assert reply.status == 400 and error_code(reply) == "context_length_exceeded"
    assert [request.tokens for request in account.requests] == [4096, 4097]
    assert len(account.readings()) == 1


@pytest.mark.parametrize("body", [
    {}, {"model": "m"}, {"messages": []}, {**PROMPT, "model": 7}, {**PROMPT, "messages": []}, {**PROMPT, "messages": "hello"},
    {**PROMPT, "messages": {"role": "user", "content": "hello"}}, {**PROMPT, "messages": ["hello"]}, {**PROMPT, "messages": [None]},
    {**PROMPT, "messages": [{"role": "user"}]}, {**PROMPT, "messages": [{"content": "hello"}]},
    {**PROMPT, "messages": [{"role": "user", "content": None}]}, {**PROMPT, "messages": [{"role": ["user"], "content": "hello"}]},
    {**PROMPT, "messages": [{"role": "poet", "content": "hello"}]}, {**PROMPT, "messages": [{"role": "system", "content": "hello"}]},
    {**PROMPT, "stream": True}, [PROMPT], "hello", 7, None])
def test_a_model_refuses_an_incomplete_body(client, account, body):
    reply = client.call("POST", "/v1/chat/completions", json.dumps(body).encode())
    assert reply.status in (400, 422) and error_code(reply) in ("malformed", "incomplete", "unsupported")
    assert account.readings() == []


# ---- payments


def test_a_refund_is_made_and_can_be_looked_up(client, account):
    reply = client.refund(key="k-1")
    assert reply.status == 201 and "Idempotent-Replayed" not in reply.headers
    assert set(reply.body) == {"refund_id", "order_id", "amount_cents"} and reply.body["refund_id"]
    assert (reply.body["order_id"], reply.body["amount_cents"]) == ("A-1009", 4263)
    assert client.refunds() == [reply.body] == account.refunds
    assert client.refunds("A-1") == [] and client.refunds("A-10099") == []
    request = account.of("refund")[0]
    assert (request.key, request.effect, request.sent.status) == ("k-1", reply.body, 201)
    assert what_happened(request, account) == ["received", "acted", "answered"]


def test_a_refund_asked_for_again_with_its_key_is_the_same_refund(client, account):
    first = client.refund(key="k-1")
    for _ in range(3):
        again = client.refund(key="k-1")
        assert again.status == 200 and again.headers["Idempotent-Replayed"] == "true"
        assert again.body == first.body
    assert account.refunds == [first.body] == client.refunds()
    assert [bool(request.effect) for request in account.of("refund")] == [True, False, False, False]


@pytest.mark.parametrize("other", [{"amount_cents": 4264}, {"order_id": "A-1010"}])
def test_a_key_of_another_refund_is_refused_and_stays_good_for_its_own(client, account, other):
    first = client.refund(key="k-1")
    reply = client.refund({**REFUND, **other}, key="k-1")
    assert reply.status == 422 and error_code(reply) == "idempotency_key_reused"
    assert client.refund(key="k-1").body == first.body
    assert account.refunds == [first.body]


def test_every_refund_without_a_key_is_one_more(client, account):
    replies = [client.refund() for _ in range(3)]
    assert [reply.status for reply in replies] == [201] * 3
    assert len({reply.body["refund_id"] for reply in replies}) == 3
    assert client.refunds() == [reply.body for reply in replies] == account.refunds
    assert [request.key for request in account.of("refund")] == [None] * 3


def test_another_key_is_another_refund(client, account):
    assert client.refund(key="k-1").status == client.refund(key="k-2").status == 201
    assert len(account.refunds) == 2


def test_a_refund_that_was_refused_does_not_use_up_its_key(client, account):
    assert client.refund({**REFUND, "amount_cents": 0}, key="k-1").status == 422
    assert client.refund(key="k-1").status == 201


@pytest.mark.parametrize("body", [
    {}, {"order_id": "A-1"}, {"amount_cents": 5}, {"order_id": "", "amount_cents": 5}, {"order_id": 1, "amount_cents": 5},
    {"order_id": "A-1", "amount_cents": "5"}, {"order_id": "A-1", "amount_cents": 5.0}, {"order_id": "A-1", "amount_cents": None},
    {"order_id": "A-1", "amount_cents": True}, {"order_id": "A-1", "amount_cents": 0}, {"order_id": "A-1", "amount_cents": -5},
    [REFUND], "refund", None])
def test_payments_refuse_an_incomplete_body(client, account, body):
    reply = client.call("POST", "/v1/refunds", json.dumps(body).encode(), Idempotency_Key="k")
    assert reply.status in (400, 422) and error_code(reply) in ("malformed", "incomplete")
    assert account.refunds == [] and account.requests[0].effect is None


@pytest.mark.parametrize("path", ["/v1/refunds", "/v1/refunds?order_id=", "/v1/refunds?order=A-1009", "/v1/mails", "/v1/mails?id=m"])
def test_a_look_up_must_say_what_it_looks_for(client, path):
    reply = client.call("GET", path)
    assert reply.status == 400 and error_code(reply) == "malformed"


# ---- mail


def test_every_accepted_mail_is_a_mail_sent(client, account):
    for count in (1, 2, 3):
        reply = client.call("POST", "/v1/mails", MAIL, Idempotency_Key="k")
        assert reply.status == 202 and reply.body == {"message_id": "m-1"}
        assert client.mails() == [MAIL] * count == account.mails
    assert client.mails("m-2") == []
    assert [request.key for request in account.of("mail")] == ["m-1"] * 3, "a mail's key is its message_id"


def test_a_mail_is_found_by_any_message_id(client):
    message_id = "<run 7&step=reply/ü%41+1#x@host>"
    client.call("POST", "/v1/mails", {**MAIL, "message_id": message_id})
    quoted = "%3Crun+7%26step%3Dreply%2F%C3%BC%2541%2B1%23x%40host%3E"
    assert [mail["message_id"] for mail in client.mails(quoted)] == [message_id]


@pytest.mark.parametrize("body", [
    *({name: value for name, value in MAIL.items() if name != missing} for missing in MAIL),
    *({**MAIL, name: ""} for name in MAIL), {**MAIL, "message_id": 7}, {**MAIL, "to": ["a@example.com"]}, {}, [MAIL], None])
def test_the_mail_service_refuses_an_incomplete_body(client, account, body):
    reply = client.call("POST", "/v1/mails", json.dumps(body).encode())
    assert reply.status in (400, 422) and error_code(reply) in ("malformed", "incomplete")
    assert account.mails == []


# ---- what is no request of any service


@pytest.mark.parametrize("method, path", [("GET", "/"), ("GET", "/v1/refunds/R-1"), ("POST", "/v1/refund"), ("PUT", "/v1/refunds"),
                                          ("DELETE", "/v1/mails"), ("GET", "/v1/chat/completions"), ("PATCH", "/v1/mails")])
def test_what_is_not_there_is_not_found(client, account, method, path):
    for body in (REFUND, None, b"{"):
        reply = client.call(method, path, body)
        assert reply.status == 404 and error_code(reply) == "not_found"
    assert account.refunds == [] and account.mails == []
    assert [request.kind for request in account.requests] == ["unknown"] * 3


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe\x00", b"[" * 200_000, b'{"amount_cents": ' + b"9" * 5000 + b"}", b"order_id=A-1"],
                         ids=["nothing", "half", "no text", "deep", "long number", "form"])
def test_a_body_that_is_no_json_is_malformed(client, account, body):
    for path in ("/v1/chat/completions", "/v1/refunds", "/v1/mails"):
        reply = client.call("POST", path, body)
        assert reply.status == 400 and error_code(reply) == "malformed"
    assert [request.kind for request in account.requests] == ["malformed"] * 3
    assert account.refunds == [] and account.mails == []


def test_unknown_fields_and_any_text_are_accepted(client, account):
    text = "ünïcödé 💶 \u0000 \ud800"
    reply = client.call("POST", "/v1/mails", {**MAIL, "body": text, "more": [None, float("nan")]})
    assert reply.status == 202 and account.mails[0]["body"] == text
    assert client.mails()[0]["body"] == text


# ---- the many ways in which clients speak HTTP


def test_a_connection_serves_many_requests(client, account):
    with client.connection() as connection:
        for _ in range(3):
            for kind, method, path, body, status in REQUESTS:
                assert client.call(method, path, body, connection).status == status, kind
            assert client.call("GET", "/v1/nothing", None, connection).status == 404
            assert client.call("POST", "/v1/mails", b"{", connection).status == 400
    assert len(account.refunds) == 3 and len(account.mails) == 3


def test_requests_sent_without_waiting_are_answered_in_order(client, account):
    sent = b"".join(client.raw("POST", "/v1/refunds", {**REFUND, "amount_cents": cents}) for cents in (1, 2, 3))
    answer = client.exchange(sent)
    assert [int(cents) for cents in re.findall(rb'"amount_cents": (\d+)', answer)] == [1, 2, 3]
    assert [refund["amount_cents"] for refund in account.refunds] == [1, 2, 3]


def test_a_body_in_chunks_is_a_body(client, account):
    data = json.dumps(MAIL).encode()
    with client.connection() as connection:
        for size in (1, 7, len(data)):
            pieces = (data[start:start + size] for start in range(0, len(data), size))
            connection.request("POST", "/v1/mails", pieces, client.headers(), encode_chunked=True)
            assert Reply(connection.getresponse()).status == 202
    assert account.mails == [MAIL] * 3


def test_fields_after_the_last_chunk_belong_to_the_same_request(client, account):
    data = json.dumps(REFUND).encode()
    request = client.raw("POST", "/v1/refunds", None, "Transfer-Encoding: chunked")
    request += b"%x;part=1\r\n%s\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n" % (len(data), data)
    assert client.exchange(request * 2).count(b"HTTP/1.1 201 ") == 2
    assert len(account.refunds) == 2 == len(account.requests)


def test_a_client_of_http_1_0_gets_its_answer_and_the_end_of_the_connection(client, account):
    request = client.raw("POST", "/v1/refunds", REFUND).replace(b"HTTP/1.1", b"HTTP/1.0")
    with client.connect() as sock:
        sock.sendall(request)
        answer = read_all(sock)
    assert b" 201 " in answer.splitlines()[0] and b'"refund_id"' in answer
    assert len(account.refunds) == 1


def test_a_client_that_asks_whether_to_send_its_body_is_told_to(client, account):
    whole = client.raw("POST", "/v1/refunds", REFUND, "Expect: 100-continue", "Connection: close")
    head, _, body = whole.partition(b"\r\n\r\n")
    with client.connect() as sock:
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert account.requests == []
        sock.sendall(body)
        assert b" 201 " in read_all(sock).splitlines()[0]
    assert len(account.refunds) == 1


def test_a_client_that_asks_for_the_end_of_the_connection_gets_it(client):
    with client.connect() as sock:
        sock.sendall(client.raw("GET", "/v1/mails?message_id=m", None, "Connection: close"))
        assert b'{"mails": []}' in read_all(sock)


# ---- what did not arrive whole


def test_a_header_that_is_cut_short_is_no_request(client, account):
    for _, method, path, body, _ in (REQUESTS[1], REQUESTS[3]):
        head = client.raw(method, path, body).partition(b"\r\n\r\n")[0]
        for cut in range(len(head) + 3):
            client.exchange((head + b"\r\n\r\n")[:cut])
    assert account.requests == [] and account.events == []


def test_a_body_that_is_cut_short_is_no_request(client, account):
    whole = client.raw("POST", "/v1/refunds", REFUND)
    body = len(json.dumps(REFUND))
    for cut in range(len(whole) - body, len(whole)):
        assert client.exchange(whole[:cut]) == b""
    assert account.requests == [] and account.events == []
    client.exchange(whole)
    assert len(account.refunds) == 1


def test_a_body_in_chunks_that_is_cut_short_is_no_request(client, account):
    data = json.dumps(REFUND).encode()
    head = client.raw("POST", "/v1/refunds", None, "Transfer-Encoding: chunked")
    whole = head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (data[:20], data[20:])) + b"0\r\n\r\n"
    for cut in range(len(head), len(whole)):
        client.exchange(whole[:cut])
    assert account.requests == []
    client.exchange(whole)
    assert len(account.refunds) == 1


def mail_of(size):
    """A mail that is exactly this many bytes of JSON."""
    return {**MAIL, "body": "x" * (size - len(json.dumps({**MAIL, "body": ""})))}


def test_a_body_of_the_largest_size_is_accepted(client, account):
    assert len(json.dumps(mail_of(BODY_LIMIT))) == BODY_LIMIT
    assert client.call("POST", "/v1/mails", mail_of(BODY_LIMIT)).status == 202
    assert len(account.mails) == 1


@pytest.mark.parametrize("size", [BODY_LIMIT + 1, 8 * BODY_LIMIT], ids=["by one byte", "by far"])
@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "in chunks"])
def test_a_body_that_is_too_large_is_refused_though_the_client_sends_all_of_it_first(client, account, size, chunked):
    data = whole = json.dumps(mail_of(size)).encode()
    with client.connection() as connection:
        if chunked:
            data = (whole[start:start + 65536] for start in range(0, size, 65536))
        connection.request("POST", "/v1/mails", data, client.headers(), encode_chunked=chunked)
        reply = Reply(connection.getresponse())
    assert reply.status == 413 and error_code(reply) == "malformed" and reply.headers["Connection"] == "close"
    assert account.requests == [] and account.mails == []


@pytest.mark.parametrize("length", ["9" * 12, "9" * 5000])
def test_a_body_that_is_announced_too_large_is_refused_before_it_is_sent(client, account, length):
    with client.connect() as sock:
        sock.sendall(client.raw("POST", "/v1/mails", None, f"Content-Length: {length}"))
        assert b" 413 " in read_all(sock).splitlines()[0]
    assert account.requests == []


@pytest.mark.parametrize("header, data", [
    *((f"Content-Length: {length}", b"") for length in ("-1", "+5", "0x5", "5,5", "five", "5_0", "\u00b2")),
    *(("Transfer-Encoding: chunked", size + b"\r\n") for size in (b"", b"-1", b"-5", b"0x5", b"five", b"5_0", b"\xb2", b";a=b"))])
def test_a_size_that_is_no_number_is_refused(server, client, account, header, data):
    answer = client.exchange(client.raw("POST", "/v1/mails", None, header) + data)
    assert b" 400 " in answer.splitlines()[0] and b'"malformed"' in answer
    assert account.requests == [] and server.errors == []


def test_a_chunk_that_is_longer_than_its_size_is_refused(client, account):
    data = json.dumps(REFUND).encode()
    request = client.raw("POST", "/v1/refunds", None, "Transfer-Encoding: chunked") + b"%x\r\n%s, more\r\n0\r\n\r\n" % (len(data), data)
    answer = client.exchange(request)
    assert b" 400 " in answer.splitlines()[0] and b'"malformed"' in answer
    assert account.requests == []


# ---- faults


def fault_at(account, kind, deed, **options):
    account.plan(Fault(kind, deed, **options))


@EVERY_KIND
def test_a_request_held_before_it_acts_goes_on_when_it_is_released(client, account, kind, method, path, body, status):
    fault_at(account, kind, "hold_before")
    with in_background(client.call, method, path, body) as answer:
        request, = until_held(account)
        assert request.kind == kind and not request.acted and request.sent is None and not answer.done()
        assert account.refunds == [] and account.mails == [] and account.readings() == []
        account.release()
    assert answer.result().status == status
    assert request.acted and account.held() == []
    assert what_happened(request, account) == ["received", "held before", "acted", "answered"]


@EVERY_KIND
def test_a_request_held_after_it_acted_is_answered_when_it_is_released(client, account, kind, method, path, body, status):
    fault_at(account, kind, "hold_after")
    with in_background(client.call, method, path, body) as answer:
        request, = until_held(account)
        assert request.kind == kind and request.acted and not answer.done()
        assert len(account.refunds) == (kind == "refund") and len(account.mails) == (kind == "mail")
        account.release()
    assert answer.result().status == status
    assert what_happened(request, account) == ["received", "acted", "held after", "answered"]


@EVERY_ACTION
@pytest.mark.parametrize("deed, acts, end", [("hold_before", False, "dropped"), ("hold_after", True, "unanswered")])
def test_a_held_request_that_is_dropped_is_never_answered_and_acts_no_more(client, account, deed, acts, end,
                                                                           kind, method, path, body, status):
    fault_at(account, kind, deed)
    with client.connect() as sock:
        sock.sendall(client.raw(method, path, body))
        request, = until_held(account)
        account.drop()
        assert read_all(sock) == b""
    account.release()
    assert request.acted == acts and request.status == end and request.sent is None
    assert len(account.refunds) == (acts and kind == "refund") and len(account.mails) == (acts and kind == "mail")


@pytest.mark.parametrize("deed", ["hold_before", "hold_after"])
def test_an_answer_that_reaches_nobody_is_noted_as_none(client, account, deed):
    fault_at(account, "refund", deed)
    with client.connect() as sock:
        sock.sendall(client.raw("POST", "/v1/refunds", REFUND))
        request, = until_held(account)
    account.release()
    wait_for(account, lambda: request.status == "unanswered")
    assert request.acted and request.sent is None and len(account.refunds) == 1


def test_only_the_requests_that_are_named_are_dropped(client, account):
    fault_at(account, "refund", "hold_before", times=None)
    with client.connect() as first, client.connect() as second:
        first.sendall(client.raw("POST", "/v1/refunds", {**REFUND, "amount_cents": 1}, "Connection: close"))
        one, = until_held(account)
        second.sendall(client.raw("POST", "/v1/refunds", {**REFUND, "amount_cents": 2}, "Connection: close"))
        until_held(account, 2)
        account.drop([one])
        assert read_all(first) == b"" and len(account.held()) == 1
        account.release()
        assert b" 201 " in read_all(second)
    assert [refund["amount_cents"] for refund in account.refunds] == [2]


@EVERY_KIND
@pytest.mark.parametrize("code, retry_after", [(503, 0), (429, 7), (402, None), (403, None), (500, None)])
def test_an_answer_in_place_of_the_deed_does_not_act(client, account, kind, method, path, body, status, code, retry_after):
    fault_at(account, kind, "answer", status=code, retry_after=retry_after)
    reply = client.call(method, path, body)
    assert reply.status == code and error_code(reply)
    assert reply.headers["Retry-After"] == (None if retry_after is None else str(retry_after))
    request = account.requests[0]
    assert not request.acted and request.effect is None and request.sent.status == code
    assert account.refunds == [] and account.mails == [] and account.readings() == []
    assert client.call(method, path, body).status == status, "it passed"


@EVERY_ACTION
def test_a_request_that_acts_and_closes_is_not_answered(client, account, kind, method, path, body, status):
    fault_at(account, kind, "close")
    with client.connection() as connection, pytest.raises(http.client.RemoteDisconnected):
        client.call(method, path, body, connection)
    request = account.requests[0]
    assert request.acted and request.status == "unanswered" and request.made.status == status
    assert len(account.refunds) == (kind == "refund") and len(account.mails) == (kind == "mail")


@EVERY_ACTION
def test_a_request_that_acts_and_hangs_is_not_answered_and_the_connection_stays(client, account, kind, method, path, body, status):
    fault_at(account, kind, "hang")
    with client.connect() as sock:
        sock.sendall(client.raw(method, path, body))
        request, = until_held(account)
        assert request.acted and len(account.refunds) == (kind == "refund") and len(account.mails) == (kind == "mail")
        sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            sock.recv(1)
        sock.settimeout(PATIENCE)
        account.drop()
        assert read_all(sock) == b""
    assert request.status == "unanswered"


def test_a_request_that_hangs_is_not_answered_when_it_is_released_but_is_no_longer_held(client, account):
    fault_at(account, "refund", "hang")
    with client.connect() as sock:
        sock.sendall(client.raw("POST", "/v1/refunds", REFUND))
        request, = until_held(account)
        account.release()
        assert read_all(sock) == b""
    assert request.status == "unanswered" and account.held() == []


def test_a_released_request_is_not_held_again_before_it_goes_on(server, client, account, monkeypatch):
    held_again = []
    act = account.act

    def act_slowly(request, fault=None):
        held_again.extend(account.held())
        return act(request, fault)
    monkeypatch.setattr(account, "act", act_slowly)
    fault_at(account, "refund", "hold_before")
    with in_background(client.refund) as answer:
        until_held(account)
        account.release()
        assert answer.result(PATIENCE).status == 201
    assert held_again == []


@EVERY_ACTION
def test_a_500_after_the_deed_hides_that_it_acted(client, account, kind, method, path, body, status):
    fault_at(account, kind, "fail_after")
    reply = client.call(method, path, body)
    assert reply.status == 500 and error_code(reply)
    request = account.requests[0]
    assert request.acted and request.made.status == status and request.sent.status == 500
    assert len(account.refunds) == (kind == "refund") and len(account.mails) == (kind == "mail")


@EVERY_KIND
def test_garbage_is_a_200_that_is_no_json_after_the_deed(client, account, kind, method, path, body, status):
    fault_at(account, kind, "garbage")
    reply = client.call(method, path, body)
    assert reply.status == 200
    with pytest.raises(ValueError):
        json.loads(reply.text)
    assert account.requests[0].acted
    assert len(account.refunds) == (kind == "refund") and len(account.mails) == (kind == "mail")


def test_a_garbled_model_answer_is_well_formed_around_a_content_that_is_no_json(client, account):
    fault_at(account, "model", "garble", times=2)
    for _ in range(2):
        with pytest.raises(ValueError):
            json.loads(client.content(TRIAGE))
    assert account.readings() == []
    assert client.triage()["order_id"] == "A-1009"


def test_a_repeated_model_answer_is_the_last_one_and_then_a_new_one_comes(client, account):
    first = client.triage()
    fault_at(account, "model", "repeat", times=2)
    assert client.triage() == client.triage() == first
    assert client.triage() != first
    assert account.readings()[:3] == [first] * 3


def test_a_repeated_answer_where_there_was_none_is_a_first_one(client, account):
    fault_at(account, "model", "repeat")
    assert client.triage()["order_id"] == "A-1009"


def test_a_refund_lost_on_its_way_back_is_replayed_under_its_key(client, account):
    fault_at(account, "refund", "fail_after")
    assert client.refund(key="k").status == 500
    again = client.refund(key="k")
    assert again.status == 200 and again.headers["Idempotent-Replayed"] == "true"
    assert [again.body] == account.refunds


def test_a_fault_strikes_from_its_nth_request_as_often_as_it_says(client, account):
    fault_at(account, "refund", "answer", nth=2, times=3)
    client.call("POST", "/v1/mails", MAIL)
    assert [client.refund().status for _ in range(6)] == [201, 503, 503, 503, 201, 201]


def test_a_fault_that_strikes_no_fixed_number_of_times_strikes_for_ever(client, account):
    fault_at(account, "mail", "answer", nth=3, times=None)
    assert [client.call("POST", "/v1/mails", MAIL).status for _ in range(8)] == [202] * 2 + [503] * 6
    assert client.refund().status == 201


def test_a_fault_of_any_kind_counts_requests_of_every_kind(client, account):
    fault_at(account, "any", "answer", nth=2, times=4)
    statuses = [client.call(method, path, body).status for _, method, path, body, _ in REQUESTS]
    assert statuses == [200, 503, 503, 503, 503]
    assert client.refund().status == 201
    fault_at(account, "any", "answer", times=2)
    assert [client.call("GET", "/v1/nothing").status, client.refund(b"{").status, client.refund().status] == [503, 503, 201]


def test_the_first_fault_that_strikes_wins_and_every_fault_counts_for_itself(client, account):
    account.plan(Fault("refund", "answer", nth=2, status=429), Fault("any", "answer", nth=2, times=2, status=402),
                 Fault("refund", "answer", nth=4, status=500))
    assert [client.refund().status for _ in range(5)] == [201, 429, 402, 500, 201]


def test_a_new_plan_replaces_the_old_one_and_counts_from_now(client, account):
    fault_at(account, "refund", "answer", times=None)
    assert client.refund().status == 503
    fault_at(account, "refund", "answer", nth=2, status=402)
    assert [client.refund().status for _ in range(3)] == [201, 402, 201]
    account.plan()
    assert client.refund().status == 201


def test_a_plan_changed_while_a_request_is_held_does_not_touch_that_request(client, account):
    fault_at(account, "refund", "hold_before")
    with in_background(client.refund) as answer:
        until_held(account)
        fault_at(account, "refund", "answer", times=None)
        account.release()
    assert answer.result().status == 201


@pytest.mark.parametrize("kind, deed", [("refunds", "close"), ("", "close"), ("model", "explode"), ("any", "")])
def test_a_fault_that_there_is_not_cannot_be_planned(kind, deed):
    with pytest.raises(ValueError, match=r"there are .*(model|hold_before)"):
        Fault(kind, deed)


# ---- settling: what a killed client asked for is done, or never will be


# A process that forks clients, which is much quicker than to start each of them. A client sends what it is told, and
# then waits for the answer; it is known by its pid once all is sent.
KENNEL = """
import os, signal, socket, sys
alive = set()
for line in sys.stdin.buffer:
    verb, argument, size = line.split()
    if verb == b"kill":
        os.kill(int(argument), signal.SIGKILL)
        os.waitpid(int(argument), 0)
        alive.discard(int(argument))
        os.write(1, b"dead\\n")
        continue
    data = sys.stdin.buffer.read(int(size))
    if pid := os.fork():
        alive.add(pid)
        continue
    sys.excepthook = lambda *error: os.write(1, b"cannot send: %s\\n" % repr(error[1]).encode())
    scheme, _, rest = argument.decode().partition(":")
    if scheme == "unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(rest)
    else:
        host, _, port = rest.strip("/").partition(":")
        sock = socket.create_connection((host, int(port)))
    sock.sendall(data)
    os.write(1, b"%d\\n" % os.getpid())
    sock.recv(1)
    signal.pause()
for pid in alive:
    os.kill(pid, signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def kennel():
    """tell(line, data): give the kennel an order and return its answer."""
    lock = threading.Lock()
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", KENNEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        def tell(verb, argument, data=b""):
            with lock:
                process.stdin.write(b"%s %s %d\n%s" % (verb, argument, len(data), data))
                process.stdin.flush()
                answer = process.stdout.readline().strip()
                assert answer == b"dead" or answer.isdigit(), answer.decode()
                return answer
        yield tell
        process.stdin.close()


@pytest.fixture
def doomed(server, kennel):
    """Start a client that sends these bytes; returns a function that kills it, once all is sent."""
    def start(data):
        pid = kennel(b"send", server.address.encode(), data)
        return lambda: kennel(b"kill", pid)
    return start


def snapshot(account):
    return account.refunds, account.mails, account.readings(), [(request.status, request.acted) for request in account.requests]


def settled_for_good(server, client, account):
    """Settle, and judge that nothing changes from then on, and that look-ups say what the ledger says."""
    server.settle(account)
    settled = snapshot(account)
    assert account.held() == []
    assert {status for status, _ in settled[3]} <= {"answered", "unanswered", "dropped"}
    account.release()
    server.settle(account)
    assert snapshot(account) == settled
    account.plan()
    assert client.refunds() == settled[0] and client.mails() == settled[1]
    return account.requests[0] if settled[3] else None


@EVERY_ACTION
def test_a_request_held_before_it_acted_never_acts_once_its_client_was_killed(server, client, account, doomed,
                                                                              kind, method, path, body, status):
    fault_at(account, kind, "hold_before")
    kill = doomed(client.raw(method, path, body))
    until_held(account)
    kill()
    request = settled_for_good(server, client, account)
    assert not request.acted and request.status == "dropped"
    assert account.refunds == [] and account.mails == [] and account.readings() == []


@EVERY_ACTION
@pytest.mark.parametrize("deed", ["hold_after", "hang"])
def test_a_request_that_acted_has_acted_once_its_client_was_killed(server, client, account, doomed, deed,
                                                                   kind, method, path, body, status):
    fault_at(account, kind, deed)
    kill = doomed(client.raw(method, path, body))
    until_held(account)
    kill()
    request = settled_for_good(server, client, account)
    assert request.acted and request.status == "unanswered"
    assert (len(account.refunds), len(account.mails), len(account.readings())) == tuple(
        int(kind == other) for other in ("refund", "mail", "model"))


@EVERY_ACTION
def test_a_request_that_was_sent_only_in_part_is_none_once_its_client_was_killed(server, client, account, doomed,
                                                                                 kind, method, path, body, status):
    kill = doomed(client.raw(method, path, body)[:-1])
    kill()
    server.settle(account)
    assert account.events == []
    assert settled_for_good(server, client, account) is None


@EVERY_ACTION
def test_a_request_that_the_server_has_not_begun_to_read_is_settled_too(server, client, account, doomed, monkeypatch,
                                                                        kind, method, path, body, status):
    accepted, gate = threading.Event(), threading.Event()

    class Slow(server._server.RequestHandlerClass):
        def handle(self):
            accepted.set()
            gate.wait(PATIENCE)
            super().handle()
    monkeypatch.setattr(server, "_knock", lambda *_: None)  # its knock would wait at the same gate
    monkeypatch.setattr(server._server, "RequestHandlerClass", Slow)
    kill = doomed(client.raw(method, path, body))
    kill()
    assert accepted.wait(PATIENCE)
    try:
        with pytest.raises(TimeoutError):
            server.settle(account, deadline=0.1)
        assert account.requests == []
    finally:
        gate.set()
    request = settled_for_good(server, client, account)
    assert request.acted and request.kind == kind
    assert len(account.refunds) == (kind == "refund") and len(account.mails) == (kind == "mail")


@EVERY_ACTION
def test_a_request_whose_connection_is_not_accepted_yet_is_settled_too(server, client, account, doomed, monkeypatch,
                                                                       kind, method, path, body, status):
    gate = threading.Event()
    monkeypatch.setattr(server._server, "verify_request", lambda *_: gate.wait(PATIENCE))
    kill = doomed(client.raw(method, path, body))
    kill()
    try:
        with pytest.raises(TimeoutError):
            server.settle(account, deadline=0.1)
        assert account.requests == []
    finally:
        gate.set()
    request = settled_for_good(server, client, account)
    assert request.acted and request.kind == kind
    assert len(account.refunds) == (kind == "refund") and len(account.mails) == (kind == "mail")


@pytest.mark.parametrize("half_closed", [False, True], ids=["open", "half closed"])
@pytest.mark.parametrize("deed", ["hold_before", "hold_after"])
def test_settling_does_not_disturb_a_live_client_of_the_same_account(server, client, account, doomed, deed, half_closed):
    fault_at(account, "refund", deed, times=None)
    with client.connect() as sock:
        sock.sendall(client.raw("POST", "/v1/refunds", {**REFUND, "amount_cents": 1}, "Connection: close"))
        if half_closed:
            sock.shutdown(socket.SHUT_WR)
        alive, = until_held(account)
        kill = doomed(client.raw("POST", "/v1/refunds", {**REFUND, "amount_cents": 2}))
        until_held(account, 2)
        kill()
        server.settle(account)
        assert account.held() == [alive]
        account.release()
        assert b" 201 " in read_all(sock).splitlines()[0]
    assert [refund["amount_cents"] for refund in account.refunds] == [1] + [2] * (deed == "hold_after")


def test_settling_does_not_wait_for_a_live_client_that_is_still_sending(server, client, account):
    whole = client.raw("POST", "/v1/refunds", REFUND, "Connection: close")
    with client.connect() as sock:
        sock.sendall(whole[:-5])
        server.settle(account)
        assert account.requests == []
        sock.sendall(whole[-5:])
        assert b" 201 " in read_all(sock)
    assert len(account.refunds) == 1


def test_settling_one_account_leaves_the_dead_clients_of_another_alone(server, client, account, doomed):
    other = server.open_account()
    other.plan(Fault("refund", "hold_before"))
    kill = doomed(Client(server, other.key).raw("POST", "/v1/refunds", REFUND))
    request, = until_held(other)
    kill()
    server.settle(account)
    assert other.held() == [request]
    server.settle(other)
    assert request.status == "dropped" and other.refunds == []


def test_many_accounts_are_settled_side_by_side(server, doomed):
    deeds = ["hold_before", "hold_after"] * 4
    accounts = [server.open_account() for _ in deeds]

    def experiment(account, deed):
        client = Client(server, account.key)
        for kind, method, path, body, _ in ACTIONS:
            fault_at(account, kind, deed)
            kill = doomed(client.raw(method, path, body))
            until_held(account)
            kill()
            server.settle(account)
            account.plan()
        return len(account.refunds), len(account.mails), len(account.readings()), client.refunds(), client.mails()

    with ThreadPoolExecutor(len(deeds)) as pool:
        results = list(pool.map(experiment, accounts, deeds))
    for account, deed, (*counts, refunds, mails) in zip(accounts, deeds, results):
        assert counts == [int(deed == "hold_after")] * 3
        assert (refunds, mails) == (account.refunds, account.mails)


def test_clients_killed_at_any_moment_are_settled(server, doomed):
    random = Random("any moment")
    for _ in range(12):
        account = server.open_account()
        client = Client(server, account.key)
        data = b"".join(client.raw("POST", "/v1/refunds", {**REFUND, "amount_cents": cents}) for cents in range(1, 40))
        data = data[:random.randrange(len(data))]
        kill = doomed(data)
        until = random.randrange(data.count(b"POST") or 1)
        wait_for(account, lambda count=until: len(account.requests) >= count)
        kill()
        settled_for_good(server, client, account)
        assert [refund["amount_cents"] for refund in account.refunds] == list(range(1, len(account.refunds) + 1))


# ---- one seed, one world


def world(seed):
    """All that a program could see of a fresh outside, but its key."""
    with Outside(seed=seed) as server:
        seen = []
        for _ in range(2):
            account = server.open_account()
            client = Client(server, account.key)
            seen.append(([client.triage() for _ in range(5)], client.content(),
                         [client.refund().body for _ in range(3)], client.call("POST", "/v1/chat/completions", PROMPT).body))
        assert server.errors == []
        return seen


def test_the_same_seed_makes_the_same_world_and_another_seed_another():
    first, again, other = world(1), world(1), world(2)
    assert first == again
    for (triages, content, refunds, _), (triages2, content2, refunds2, _) in [(first[0], other[0]), first]:
        assert triages != triages2 and content != content2
        assert {refund["refund_id"] for refund in refunds} != {refund["refund_id"] for refund in refunds2}


def test_nobody_can_work_out_the_key_of_an_account():
    keys = set()
    for _ in range(2):
        with Outside(seed=1) as server:
            keys |= {server.open_account("a check").key, server.open_account("a check", like="another").key}
    assert len(keys) == 4


# ---- the server itself


def test_every_line_of_every_ledger_is_watched_in_order(server, client):
    seen = []
    with Outside(watch=lambda account, event: seen.append((account, event))) as watched:
        account = watched.open_account()
        Client(watched, account.key).refund()
    assert seen == [(account, event) for event in account.events]
    assert [event.what for _, event in seen] == ["received", "acted", "answered"]
    assert [event.at for _, event in seen] == sorted(event.at for _, event in seen)


def test_closing_lets_go_of_everything_and_leaves_no_socket():
    with scratch() as folder, ThreadPoolExecutor(2) as pool:
        path = folder / "s"
        with Outside(path) as server:
            account = server.open_account()
            client = Client(server, account.key)
            account.plan(Fault("refund", "hold_before"), Fault("mail", "hang"))
            answers = [pool.submit(client.exchange, client.raw("POST", "/v1/refunds", REFUND)),
                       pool.submit(client.exchange, client.raw("POST", "/v1/mails", MAIL))]
            until_held(account, 2)
            idle = client.connect()
            idle.sendall(client.raw("GET", "/v1/mails?message_id=m"))
            assert idle.recv(4096)
        assert [answer.result(PATIENCE) for answer in answers] == [b"", b""]
        assert read_all(idle) == b""
        idle.close()
        assert not path.exists() and account.refunds == [] and len(account.mails) == 1


# ---- garbage


GARBAGE = [
    b"", b"\r\n", b"\r\n\r\n", b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1\r\n\r\n", b"GET / HTTP/1.x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"G\xc3\x89T / HTTP/1.1\r\n\r\n",
    b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"GET / HTTP/1.1\r\nno colon here\r\n\r\n", b"GET / HTTP/1.1\r\n: \r\n \r\n\r\n",
    b"__init__ / HTTP/1.1\r\n\r\n", b"HEAD / HTTP/1.1\r\n\r\n", b"OPTIONS * HTTP/1.1\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n"]


@pytest.mark.parametrize("data", GARBAGE, ids=lambda data: repr(data[:24]))
def test_garbage_is_answered_in_the_form_of_errors_or_not_at_all_and_breaks_nothing(server, client, account, data):
    answer = client.exchange(data)
    if b"\r\n\r\n" in answer:
        assert set(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]) == {"code", "message"}
    assert account.requests == [] and server.errors == []
    assert client.refund().status == 201


def test_a_path_that_is_none_is_refused(server, client, account):
    answer = client.exchange(client.raw("GET", "http://[/v1/refunds?order_id=A-1009"))
    assert b" 400 " in answer.splitlines()[0] and b'"malformed"' in answer
    assert account.requests == [] and server.errors == []


def test_a_whole_address_does_for_a_path(client):
    assert client.call("GET", "http://localhost/v1/mails?message_id=m").body == {"mails": []}


def test_random_bytes_break_nothing(server, client, account):
    random = Random("noise")
    whole = [client.raw(method, path, body, "Idempotency-Key: k") for _, method, path, body, _ in REQUESTS]
    for _ in range(150):
        data = bytearray(random.choice(whole) if random.random() < 0.8 else random.randbytes(random.randrange(300)))
        for _ in range(random.randrange(1, 6)):
            if data:
                place = random.randrange(len(data))
                data[place:place + random.randrange(3)] = random.randbytes(random.randrange(3))
        answer = client.exchange(bytes(data))
        status = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
        assert not status or status[1] in (b"200", b"201", b"202") or b'{"error": {"code": "' in answer, (bytes(data), answer)
    assert server.errors == []
    assert client.refund({**REFUND, "order_id": "A-after"}).status == 201
