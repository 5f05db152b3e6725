"""What is said of one thing in a submission, and how a name that may hold anything is said."""

import unicodedata
from dataclasses import dataclass

FILE, FOLDER = "a file", "a folder"   # the kinds that can be wanted; any other kind is why an entry is left out


class Invalid(Exception):
    """A submission that cannot be graded. The message says why in one line, and what would mend it where that is not plain."""

    def __init__(self, reason):
        super().__init__(" ".join(reason.split()))


@dataclass(frozen=True)
class Entry:
    """Something in a submission. `parts` are the names from its top down, `modified` is in seconds since the epoch, None within an archive."""

    parts: tuple
    kind: str
    executable: bool = False
    modified: float | None = None
    member: object = None

    def __str__(self):
        return shown("/".join(self.parts))


def shown(name, longest=120):
    """A name as valid text of one line: what cannot be seen is escaped, and of a long one the middle is left out."""
    text = "".join(letter if letter.isprintable() or unicodedata.category(letter) == "Zs" else letter.encode("unicode_escape").decode()
                   for letter in name)
    return text if len(text) <= longest else f"{text[:longest // 2]}…{text[-longest // 2:]}"


def listed(names, most=6):
    """Some names in a row, and how many more there are."""
    names = [shown(name, 60) for name in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
