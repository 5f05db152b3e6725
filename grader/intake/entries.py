"""What is known of one thing in a submission, and how that and what is wrong with it is said, whatever it is called."""

import errno
import stat
import unicodedata
from contextlib import contextmanager
from dataclasses import dataclass

DEPTH = 20                # folders within folders
LOOKED_THROUGH = 50_000   # entries of a submission, but for those within unwanted folders on disk
CHUNK = 16 << 10          # bytes that are read at once
OURS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
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


@contextmanager
def reading(name):
    """Turn whatever reading can raise into Invalid, which names what was read; but for what is this machine's fault."""
    try:
        yield
    except (Invalid, MemoryError):
        raise
    except Exception as error:   # the libraries have no common word for bytes that make no sense
        if getattr(error, "errno", None) in OURS:
            raise
        if why := getattr(error, "strerror", None):
            raise Invalid(f"{name} cannot be read: {why}") from None
        raise Invalid(f"{name} is damaged or cut off ({shown(str(error) or type(error).__name__)}): download it again, or ask for it anew") from None


def kind_of(mode):
    """The kind of an Entry with this mode."""
    return {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe",
            stat.S_IFSOCK: "a socket"}.get(stat.S_IFMT(mode), "a device")
