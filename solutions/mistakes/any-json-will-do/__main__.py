"""The command line: `python -m starter VERB …`. Given and complete.

Each verb calls the function of that name: `start`, `resume`, `status` and `runs` in flow.py; `chat`,
`memory` and `forget` in conversation.py. A function that is not there yet is answered with exit code 2.
"""

import json
import sys

from . import conversation, flow
from .exits import Exit, Refused

USAGE = ("usage: python -m starter start [--run-id ID] TICKET | resume RUN | status RUN | runs [--state STATE] "
         "| chat CONVERSATION | memory CONVERSATION | forget CONVERSATION")
EXIT_CODES = {"done": 0, "failed": 3, "waiting": 4}


def read_ticket(path):
    """The ticket in a JSON file, or on standard input where `path` is `-`. Raises Refused."""
    try:
        if path == "-":
            text = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                text = file.read()
        ticket = json.loads(text)
    except OSError as error:
        raise Refused(f"cannot read the ticket {path}: {error.strerror}; name a JSON file, or - for stdin") from None
    except (ValueError, RecursionError):
        raise Refused(f'the ticket {path} is no JSON; it looks like {{"ticket_id": …, "customer": …, "text": …}}') from None
    if not isinstance(ticket, dict):
        raise Refused(f"the ticket {path} is no JSON object: put its fields in {{ }}")
    return ticket


def call(module, verb, *arguments):
    function = getattr(module, verb, None)
    if function is None:
        raise Refused(f"{verb}: this flow cannot do that yet; write `def {verb}` in {module.__name__.split('.')[-1]}.py")
    return function(*arguments)


def main(argv):
    match argv:
        case ["start", "--run-id", str(run_id), path] | ["start", path, "--run-id", str(run_id)] if run_id:
            return EXIT_CODES[call(flow, "start", read_ticket(path), run_id)]
        case ["start", path] if path == "-" or not path.startswith("-"):
            return EXIT_CODES[call(flow, "start", read_ticket(path))]
        case ["resume", run_id]:
            return EXIT_CODES[call(flow, "resume", run_id)]
        case ["status", run_id]:
            print(json.dumps(call(flow, "status", run_id)))
        case ["runs"] | ["runs", "--state", _]:
            for record in call(flow, "runs", *argv[2:]):
                print(json.dumps(record))
        case ["chat", name]:
            lines = (line.strip() for line in sys.stdin)
            for reply in call(conversation, "chat", name, filter(None, lines)):
                print(reply, flush=True)
        case ["memory", name]:
            print(json.dumps(call(conversation, "memory", name)))
        case ["forget", name]:
            call(conversation, "forget", name)
        case _:
            raise Refused(USAGE)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Exit as end:
        print(" ".join(str(end).split()), file=sys.stderr)
        sys.exit(end.code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
