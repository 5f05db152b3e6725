"""The outside in the foreground, for a person who starts, kills and resumes a program by hand."""

import signal
import sys
import time
from contextlib import closing

from rich.console import Console
from rich.text import Text

from .harness.outside import Outside
from .harness.story import NAMES, event_line
from .inbox import Inbox

DEFAULT = "http://127.0.0.1:8765"  # where a program looks that was told of no other OUTSIDE


def run_outside(port, pace):
    """Serve until Ctrl-C, printing each request and effect as it happens; the inbox shows them. Returns an exit code."""
    console = Console(highlight=False, soft_wrap=True)
    inbox = Inbox()

    def watch(account, event):
        inbox.note(account, event)
        _print(console, event)

    try:
        server = Outside(port=port, seed=time.time_ns(), pace=pace, open_to_all=True, watch=watch, page=inbox)
    except OSError as error:
        print(f"labs: cannot listen on port {port}: {error.strerror}; end what listens there, or choose another with --port "
              "and name it in OUTSIDE", file=sys.stderr)
        return 2
    with closing(inbox), server:
        wait = f"each request waits {pace:g} s, acts, waits {pace:g} s and is answered" if pace else "no pauses"
        console.print(f"[bold]The outside[/] listens at {server.address}: {wait}. Ctrl-C ends it.")
        console.print(f"What the customer sees, live: {server.address}/")
        where = "" if server.address == DEFAULT else f"export OUTSIDE={server.address}; "
        console.print(f"In a second terminal: {where}python -m starter start starter/ticket.json\n")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            server.closing.wait()
        except KeyboardInterrupt:
            console.print("\nThe outside is closed.")
    return 0


def _print(console, event):
    line = event_line(event)
    if line is None:
        return
    request = event.request
    style = "bold red" if "ONE MORE" in line else "bold green" if event.what == "acted" and request.effect else \
        "yellow" if event.what in ("dropped", "unanswered") else "" if event.what == "received" else "dim"
    console.print(Text.assemble((time.strftime("%H:%M:%S"), "dim"), f"  #{request.number:<3} {NAMES[request.kind]:<15} ",
                                (line, style)))
