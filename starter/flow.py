"""One support ticket, three steps: triage it with the model, refund, reply."""

import os

from . import conversation, outside


def start(ticket, run_id=None):
    """Handle a ticket from the first step to the last. Returns the state that the run ended in."""
    run_id = run_id or os.urandom(16).hex()
    print(run_id, flush=True)

    triage = outside.triage(ticket["text"], conversation.turns(ticket.get("conversation")))

    refund_id = outside.refund(triage["order_id"], triage["amount_cents"])

    text = f"{triage['draft_text']}\n\nYour refund: {refund_id}"
    outside.send_mail(os.urandom(16).hex(), ticket["customer"], f"Your ticket {ticket['ticket_id']}", text)

    if "conversation" in ticket:
        conversation.remember(ticket["conversation"], ticket["text"], text)
    return "done"
