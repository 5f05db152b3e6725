"""The picture on the README's front: the shipped flow, killed between refund and mail, and started again. `python notebooks/front_door.py` draws it."""

from pathlib import Path

from experiment import trial

FILE = Path(__file__).with_suffix(".svg")


def picture():
    """The picture's SVG as text, made by a real kill: the same wherever and whenever it is drawn."""
    with trial() as one:
        one.kill("mail", "before")
        one.start()
        return one.timeline("Killed after the refund, and started again: the customer is refunded twice").svg


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
    print(f"{FILE.name}: {FILE.stat().st_size} bytes")
