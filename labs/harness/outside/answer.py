"""What a service answers."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    """An HTTP answer before it is bytes. `effect` is what a customer would notice of it, if anything."""

    status: int
    body: object
    headers: dict = field(default_factory=dict)
    effect: dict | None = None


def error(status, code, message, headers=None):
    return Answer(status, {"error": {"code": code, "message": message}}, headers or {})


def missing(body, /, **kinds):
    """The answer to a body that lacks one of the named fields or has it in another type; None where all is well."""
    if not isinstance(body, dict):
        return error(400, "malformed", "the body must be a JSON object")
    for name, kind in kinds.items():
        if not isinstance(body.get(name), kind) or isinstance(body[name], bool) or body[name] == "":
            return error(422, "incomplete", f"`{name}` is missing, empty, or not {kind.__name__}")
    return None
