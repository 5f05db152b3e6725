"""The mail service: it remembers no keys, but it can be asked."""

from .answer import Answer, error, missing


class Mail:
    def __init__(self):
        self.mails = []

    def send(self, body):
        """The answer to `POST /v1/mails`. Every accepted request is one more mail."""
        wrong = missing(body, message_id=str, to=str, subject=str, body=str)
        if wrong:
            return wrong
        mail = {name: body[name] for name in ("message_id", "to", "subject", "body")}
        self.mails.append(mail)
        return Answer(202, {"message_id": mail["message_id"]}, effect=mail)

    def lookup(self, query):
        """The answer to `GET /v1/mails?message_id=…`."""
        if not query.get("message_id"):
            return error(400, "malformed", "say which mail: /v1/mails?message_id=…")
        return Answer(200, {"mails": [mail for mail in self.mails if mail["message_id"] == query["message_id"]]})
