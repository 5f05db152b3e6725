"""Tickets that nobody has seen before, made from a seed."""

from random import Random

NAMES = ("ana", "bela", "chidi", "dana", "emeka", "fatima", "goran", "hana", "ivo", "jun")
COMPLAINTS = ("arrived broken", "never arrived", "is the wrong size", "came without its charger", "was delivered twice")


def make_ticket(seed, conversation=None):
    """A ticket as a dict. The same seed makes the same one."""
    random = Random(f"ticket {seed}")
    price = random.randrange(500, 20000)
    ticket = {
        "ticket_id": f"T-{random.randrange(1000, 10000)}",
        "customer": f"{random.choice(NAMES)}@example.com",
        "text": f"Order A-{random.randrange(1000, 10000)} {random.choice(COMPLAINTS)}, I paid "
                f"${price // 100}.{price % 100:02}. I want my money back.",
    }
    return {**ticket, "conversation": conversation} if conversation else ticket
