"""The payment service: it honours idempotency keys."""

from .answer import Answer, error, missing


class Payments:
    """Refunds, and the keys they were asked for with. `random` makes the refunds' ids."""

    def __init__(self, random):
        self._random = random
        self._by_key = {}
        self.refunds = []

    def refund(self, body, key):
        """The answer to `POST /v1/refunds`; `key` is the `Idempotency-Key` header or None."""
        wrong = missing(body, order_id=str, amount_cents=int)
        if wrong:
            return wrong
        if body["amount_cents"] <= 0:
            return error(422, "incomplete", "`amount_cents` must be above 0")
        asked = (body["order_id"], body["amount_cents"])
        if key in self._by_key:
            known, answer = self._by_key[key]
            if known != asked:
                return error(422, "idempotency_key_reused", "this key was used for another refund")
            return Answer(200, answer, {"Idempotent-Replayed": "true"})

        made = {"refund_id": self._new_id(), "order_id": asked[0], "amount_cents": asked[1]}
        self.refunds.append(made)
        if key:
            self._by_key[key] = (asked, made)
        return Answer(201, made, effect=made)

    def lookup(self, query):
        """The answer to `GET /v1/refunds?order_id=…`."""
        if not query.get("order_id"):
            return error(400, "malformed", "say which order: /v1/refunds?order_id=…")
        return Answer(200, {"refunds": [refund for refund in self.refunds if refund["order_id"] == query["order_id"]]})

    def _new_id(self):
        taken = {refund["refund_id"] for refund in self.refunds}
        while (name := f"R-{self._random.randrange(10000, 100000)}") in taken:
            pass
        return name
