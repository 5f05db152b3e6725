"""What a submission is made of, listed and read with nothing followed and nothing unpacked: a folder, a zip or a tar.

Whoever made it may be hostile. Nothing here trusts a size, a name or a count that it did not see itself, and nothing is
read without a bound.
"""

import bz2
import gzip
import itertools
import lzma
import os
import re
import stat
import tarfile
import time
import zipfile
from contextlib import contextmanager

from .entries import FILE, FOLDER, Entry, Invalid, shown
from .unwanted import is_environment, why_unwanted

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tbz")

DEPTH = 20                  # folders within folders
LOOKED_THROUGH = 50_000     # entries of a submission, but for those within unwanted folders on disk
UNPACKED = 512 << 20        # bytes of a tar, with all that is left out
DIRECTORY = 8 << 20         # bytes of a zip's list of files, about 60,000 of them
HEADER = 32 << 10           # bytes of a tar's header: before 3.11.10 tarfile needs the square of its length in time
CHUNK = 16 << 10            # bytes that are read at once
PATIENCE = 60               # seconds that one archive may take

PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
FOREIGN = {b"Rar!": "a RAR archive", b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive", b"\x28\xb5\x2f\xfd": "packed with Zstandard",
           b"%PDF": "a PDF", b"<": "a web page"}


def is_archive(name):
    """Whether a file is called like an archive that can be read."""
    return name.casefold().endswith(ARCHIVES)


@contextmanager
def reading(name):
    """Turn whatever reading can raise into Invalid, which names what was read."""
    try:
        yield
    except Invalid:
        raise
    except MemoryError:
        raise Invalid(f"{name} needs more memory than there is") from None
    except Exception as error:   # the libraries have no common word for bytes that make no sense
        if why := getattr(error, "strerror", None):
            raise Invalid(f"{name} cannot be read: {why}") from None
        raise Invalid(f"{name} is damaged or cut off ({shown(str(error) or type(error).__name__)}): download it again, or ask for it anew") from None


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


@contextmanager
def archive_in(file, name):
    """The Zip or Tar in an open file, by what is in it and not by its name. Raises Invalid."""
    with reading(name):
        beginning = file.read(8)
        file.seek(0)
        if not beginning:
            raise Invalid(f"{name} is empty")
        if foreign := next((what for magic, what in FOREIGN.items() if beginning.startswith(magic)), None):
            raise Invalid(f"{name} is {foreign}: hand in a zip or a tar")
        if beginning.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            yield Zip(file)
            return
        unpack = next((unpack for magic, unpack in PACKED.items() if beginning.startswith(magic)), None)
        try:
            archive = Tar(unpack(file) if unpack else file)
        except tarfile.ReadError:
            raise Invalid(f"{name} is no zip and no tar, or damaged: hand in the program's folder as a zip") from None
        yield archive


# ---- a folder: by descriptors, so that nothing outside it is read, whatever changes meanwhile

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
        return Entry((*above, child.name), _kind(status.st_mode), bool(status.st_mode & 0o111), status.st_mtime)

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


def _kind(mode):
    return {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe",
            stat.S_IFSOCK: "a socket"}.get(stat.S_IFMT(mode), "a device")


# ---- archives

class _Bounded:
    """A file of which nobody can be made to read too much, neither at once nor in all nor for too long."""

    def __init__(self, file, at_once, most=None):
        self._file, self._at_once, self._most = file, at_once, most
        self._end = time.monotonic() + PATIENCE
        self.tell, self.close = file.tell, file.close

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        self._check(offset)
        return self._file.seek(offset, whence)

    def read(self, size=-1):
        data = self._file.read(size if 0 <= size <= self._at_once else self._at_once + 1)
        if len(data) > self._at_once:
            raise Invalid("its list of files is too long: hand in the program's folder alone")
        self._check(self._file.tell())
        return data

    def _check(self, offset):
        if self._most and offset > self._most:
            raise Invalid(f"it unpacks to more than {self._most >> 20} MB: hand in the program's folder alone")
        if time.monotonic() > self._end:
            raise Invalid(f"it takes more than {PATIENCE} seconds to unpack: hand in the program's folder alone")


def _parts(name):
    """The parts of a name in an archive. Raises Invalid where it could lead out of the folder that it is unpacked in."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or re.match("[A-Za-z]:", name):
        raise Invalid(f"a file in it would be unpacked outside of its folder: {shown(name)}")
    if "\\" in name:
        raise Invalid(f"a name in it has a backslash, which leads out of the folder on some systems: {shown(name)}; "
                      "where it is from Windows, pack it again with the Explorer")
    if "\0" in name:
        raise Invalid(f"a name in it is none: {shown(name)}")
    return parts


def _bounded(entries):
    entries = list(itertools.islice(entries, LOOKED_THROUGH + 1))
    if len(entries) > LOOKED_THROUGH:
        raise Invalid(f"it holds more than {LOOKED_THROUGH:,} files and folders: hand in the program's folder alone")
    return [entry for entry in entries if entry.parts]


class Zip:
    """A zip in an open file."""

    def __init__(self, file):
        self._zip = zipfile.ZipFile(_Bounded(file, DIRECTORY))

    def entries(self):
        """All its Entries, as they come. Raises Invalid."""
        return _bounded(self._entry(info) for info in self._zip.infolist())

    def _entry(self, info):
        mode = info.external_attr >> 16
        kind = FOLDER if info.is_dir() else _kind(mode) if stat.S_IFMT(mode) else FILE
        if kind == FOLDER and not info.is_dir():
            kind = "neither file nor folder"
        return Entry(_parts(self._name(info)), kind, bool(mode & 0o111), None, info)

    def _name(self, info):
        name = info.orig_filename
        # Without the flag that says UTF-8 it was read as code page 437; most of those that do not set it mean UTF-8.
        return name if info.flag_bits & 0x800 else os.fsdecode(name.encode("cp437"))

    def open(self, entry):
        """The content of an Entry as an open binary file. Raises Invalid, or what zipfile raises."""
        if entry.member.flag_bits & 0x1:
            raise Invalid(f"{entry} is encrypted: hand in a zip without a password")
        if entry.member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):   # of others zipfile unpacks without a bound
            raise Invalid(f"{entry} is packed in a way that few can read: hand in an ordinary zip")
        return self._zip.open(entry.member)


class Tar:
    """A tar, unpacked as it is read."""

    def __init__(self, file):
        self._file = _Bounded(file, HEADER, UNPACKED)
        self._tar = tarfile.open(fileobj=self._file, mode="r:")

    def entries(self):
        """All its Entries, as they come. Raises Invalid, or what tarfile raises."""
        found = _bounded(self._entry(member) for member in self._tar)
        # Whatever tarfile does not understand is the end to it, also when half of the files are missing.
        self._file.seek(self._tar.offset)
        if self._file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError("no end mark")
        while self._file.read(CHUNK):   # to the checksum at the end
            pass
        return found

    def _entry(self, member):
        if member.size < 0:   # tarfile would go back, and round for ever
            raise tarfile.ReadError("a negative size")
        kind = (FILE if member.isreg() else FOLDER if member.isdir() else "a symbolic link" if member.issym()
                else "a hard link" if member.islnk() else "a pipe" if member.isfifo() else "a device")
        return Entry(_parts(member.name), kind, bool(member.mode & 0o111), None, member)

    def open(self, entry):
        """The content of an Entry as an open binary file. Raises what tarfile raises."""
        return self._tar.extractfile(entry.member)
