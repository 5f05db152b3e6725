"""The model: it never says the same thing twice."""

import json
import re

from .answer import Answer, error, missing

WINDOW = 4096  # tokens


def tokens(messages):
    """How many tokens the messages hold: their white-space separated words."""
    return sum(len(message["content"].split()) for message in messages)


class Model:
    """A chat-completions service for support tickets. `random` decides what it makes up."""

    def __init__(self, random):
        self._random = random
        self._goodwill = []
        self._numbers = set()
        self._last = {}

    def complete(self, body, garble=False, repeat=False):
        """The answer to `POST /v1/chat/completions`."""
        wrong = missing(body, model=str, messages=list)
        if wrong:
            return wrong
        messages = body["messages"]
        for message in messages:
            if not (isinstance(message, dict) and message.get("role") in ("system", "user", "assistant")
                    and isinstance(message.get("content"), str)):
                return error(422, "incomplete", "every message needs a role (system, user or assistant) and a content")
        if not any(message["role"] == "user" for message in messages):
            return error(422, "incomplete", "there is no message of a user")
        if body.get("stream"):
            return error(400, "unsupported", "this model does not stream")
        size = tokens(messages)
        if size > WINDOW:
            return error(400, "context_length_exceeded", f"the window is {WINDOW} tokens, the prompt has {size}")

        wants = body.get("response_format")
        as_json = isinstance(wants, dict) and wants.get("type") == "json_object"
        content = self._content(messages, as_json, repeat)
        if garble:
            content = "Certainly! Here is the JSON that you asked for:"
        count = len(content.split())
        return Answer(200, {
            "id": f"chatcmpl-{self._number()}", "object": "chat.completion", "model": body["model"],
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": size, "completion_tokens": count, "total_tokens": size + count}})

    def _content(self, messages, as_json, repeat):
        if not (repeat and as_json in self._last):
            text = [message["content"] for message in messages if message["role"] == "user"][-1]
            self._last[as_json] = json.dumps(self._reading(text)) if as_json else f"Noted, as number {self._number()}."
        return self._last[as_json]

    def _reading(self, text):
        order = re.search(r"\bA-[0-9]+", text)
        price = re.search(r"\$([0-9]{1,9})\.([0-9]{2})\b", text)
        number = self._number()
        opening = self._random.choice(["We are sorry to hear that", "That should not have happened", "Thank you for telling us"])
        return {
            "order_id": order and order.group(),
            "classification": "refund" if order and price else "question",
            "amount_cents": int(price[1]) * 100 + int(price[2]) + self._next_goodwill() if price else None,
            "draft_text": f"{opening}. We refund your order {order.group() if order else ''}. Our note: {number}."}

    def _next_goodwill(self):
        if not self._goodwill:
            self._goodwill = self._random.sample(range(1, 501), 500)
        return self._goodwill.pop()

    def _number(self):
        number = self._random.randrange(10**7, 10**8)
        while number in self._numbers:
            number = self._random.randrange(10**7, 10**8)
        self._numbers.add(number)
        return number
