"""The outside's mails, in an account that nobody looks at any more."""

import base64
import http.client
import json
import os
import socket
from random import Random

KEYS = [f"key-{Random(f'{seed} labs/01/test_record.py::test_a_bad_ticket_is_refused[{case}] 1 key').getrandbits(64):016x}"
        for seed in (1, 0, 2, 3) for case in ("empty", "no-json", "no-object")]
NAME = os.environ["OUTSIDE_KEY"]


def ask(key, method, path, body=None):
    connection = http.client.HTTPConnection("outside")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(os.environ["OUTSIDE"].removeprefix("unix:"))
    connection.request(method, path, json.dumps(body) if body else None, {"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def find():
    for key in KEYS:
        status, answer = ask(key, "GET", f"/v1/mails?message_id={NAME}")
        if status == 200 and answer["mails"]:
            return base64.b64decode(answer["mails"][-1]["body"])


def keep(data):
    for key in KEYS:
        if ask(key, "POST", "/v1/mails", {"message_id": NAME, "to": "x", "subject": "kept", "body": base64.b64encode(data).decode()})[0] == 202:
            return
