"""A submission as it lies there, listed and read with nothing followed and nothing unpacked.

Whoever made it may be hostile, and may still be at it: a folder is read by descriptors, so that nothing outside of it
is, whatever changes meanwhile.
"""

import itertools
import os
import stat
from contextlib import contextmanager

from .archives import archive_in
from .entries import DEPTH, FILE, FOLDER, LOOKED_THROUGH, Entry, Invalid, kind_of, reading, shown
from .unwanted import is_environment, why_unwanted


@contextmanager
def source_at(path):
    """The Folder, Zip or Tar at a path. Raises Invalid."""
    name = shown(path.name)
    with reading(name):
        descriptor = _open(path, 0)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            with Folder(descriptor) as folder:
                yield folder
            return
        with _regular(descriptor) as file, archive_in(file, name) as archive:
            yield archive


def _open(path, flags, descriptor=None):
    # What was a file a moment ago may be a pipe or a link by now; neither of them may keep us.
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, dir_fd=descriptor)


def _regular(descriptor):
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(0, "it is no regular file")
    return file


class Folder:
    """A folder on disk. What is in unwanted folders is not listed, only they themselves are."""

    def __init__(self, descriptor):
        self._top = descriptor

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._top)

    def entries(self):
        """All its Entries, in order. Raises Invalid."""
        found = []
        self._list(self._top, (), found)
        return found

    def _list(self, descriptor, above, found):
        with os.scandir(descriptor) as listing:
            children = sorted(itertools.islice(listing, LOOKED_THROUGH + 1), key=lambda child: child.name)
            entries = [self._entry(child, above) for child in children]
        found += entries
        if len(found) > LOOKED_THROUGH:
            raise Invalid(f"it holds more than {LOOKED_THROUGH:,} files and folders: hand in the program's folder alone")
        if above and is_environment({entry.parts[-1] for entry in entries if entry.kind == FILE}):
            return
        for entry in entries:
            if entry.kind == FOLDER and not why_unwanted(entry.parts[-1], folder=True):
                if len(entry.parts) > DEPTH:
                    raise Invalid(f"folders are more than {DEPTH} deep in each other: {entry}")
                with reading(entry):
                    below = _open(entry.parts[-1], os.O_DIRECTORY, descriptor)
                    try:
                        self._list(below, entry.parts, found)
                    finally:
                        os.close(below)

    def _entry(self, child, above):
        with reading(shown("/".join((*above, child.name)))):
            status = child.stat(follow_symlinks=False)
        return Entry((*above, child.name), kind_of(status.st_mode), bool(status.st_mode & 0o111), status.st_mtime)

    def open(self, entry):
        """The content of an Entry as an open binary file. Raises OSError."""
        descriptor = os.dup(self._top)
        try:
            for name in entry.parts[:-1]:
                above, descriptor = descriptor, _open(name, os.O_DIRECTORY, descriptor)
                os.close(above)
            return _regular(_open(entry.parts[-1], 0, descriptor))
        finally:
            os.close(descriptor)
