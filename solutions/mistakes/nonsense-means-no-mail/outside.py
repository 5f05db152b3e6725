"""Clients for what the flow does not own: the model, payments, mail. Given and complete.

Every function makes one HTTP request and returns the answer as Python objects, or raises OutsideError.
"""

import json
import os

from .exits import Exit


class OutsideError(Exit):
    """No answer, an error, or an answer that makes no sense.

    `status` is the HTTP status; None where no answer came that one can use, and then nobody here knows whether the
    outside acted. `retry_after` is in seconds, None where the outside named no time.
    """

    def __init__(self, line, status=None, retry_after=None):
        super().__init__(line)
        self.status, self.retry_after = status, retry_after


def call(method, path, body=None, headers=None, query=None):
    """Send one request and return the JSON object that answers it. Raises OutsideError."""
    # Imported here: it takes longer than all else, and a look at the record does without it.
    import http.client
    import socket
    from urllib.parse import urlencode, urlsplit

    address = os.environ.get("OUTSIDE", "http://127.0.0.1:8765")
    bearer = "Bearer " + os.environ.get("OUTSIDE_KEY", "by-hand")
    headers = {"Authorization": bearer, "Content-Type": "application/json", **(headers or {})}
    try:
        url, timeout = urlsplit(address), float(os.environ.get("LAB_TIMEOUT", "10"))
        connection = http.client.HTTPConnection(url.hostname or "localhost", url.port, timeout=timeout)
        if url.scheme == "unix":
            connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.sock.settimeout(timeout)
            connection.sock.connect(url.path)
        target = path + ("?" + urlencode(query) if query else "")
        connection.request(method, target, body and json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
    except (ConnectionRefusedError, FileNotFoundError):
        raise OutsideError(f"nothing listens at {address}: start the outside with `python -m labs outside`, "
                           "or say in OUTSIDE where it is") from None
    except ValueError as error:
        raise OutsideError(f"OUTSIDE or LAB_TIMEOUT cannot be used: {error}") from None
    except (OSError, http.client.HTTPException) as error:
        raise OutsideError(f"{method} {path}: no answer ({error or type(error).__name__})") from None

    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if response.status >= 400:
        error = answer.get("error") if isinstance(answer, dict) else None
        error = error if isinstance(error, dict) else {}
        retry_after = response.getheader("Retry-After", "")
        raise OutsideError(f"{method} {path}: {response.status} {error.get('code')}: {error.get('message')}",
                           response.status, int(retry_after) if retry_after.isdigit() else None)
    if not isinstance(answer, dict):
        raise OutsideError(f"{method} {path}: the answer is no JSON object")
    return answer


def _field(answer, name, kind=str):
    value = answer.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise OutsideError(f"the answer lacks `{name}` or it has the wrong type: {str(answer)[:200]}")
    return value


def ask(messages, **options):
    """Ask the model. `messages` is a list of {"role", "content"}; returns the text of its answer."""
    answer = call("POST", "/v1/chat/completions", {"model": "support-1", "messages": messages, **options})
    try:
        return _field(answer["choices"][0]["message"], "content")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise OutsideError("the model's answer holds no message") from None


def triage(text, memory=()):
    """Have the model read a ticket's text; `memory` is a list of earlier turns, oldest first.

    Returns order_id, classification, amount_cents and draft_text. Another answer every time it is asked.
    """
    content = ask([*memory, {"role": "user", "content": text}], response_format={"type": "json_object"})
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise OutsideError(f"the model's answer is no JSON object: {content[:200]}")
    kinds = {"order_id": str, "classification": str, "amount_cents": int, "draft_text": str}
    return {name: _field(answer, name, kind) for name, kind in kinds.items()}


def refund(order_id, amount_cents, key=None):
    """Refund `amount_cents` and return the refund's id. With the same `key`: one refund, however often it is sent."""
    headers = {"Idempotency-Key": key} if key else {}
    body = {"order_id": order_id, "amount_cents": amount_cents}
    return _field(call("POST", "/v1/refunds", body, headers), "refund_id")


def send_mail(message_id, to, subject, body):
    """Send a mail. The service remembers no ids: every request that it accepts is one more mail."""
    mail = {"message_id": message_id, "to": to, "subject": subject, "body": body}
    return _field(call("POST", "/v1/mails", mail), "message_id")


def mail_was_sent(message_id):
    """Ask the mail service whether it has a mail with this id."""
    try:
        return bool(call("GET", "/v1/mails", query={"message_id": message_id}).get("mails"))
    except OutsideError as error:
        if "no JSON object" in str(error):
            return False  # it has nothing to say about it
        raise
