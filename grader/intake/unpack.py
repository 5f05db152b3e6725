"""From one submission to a clean copy of the program in it."""

import io
import os
import time
import unicodedata
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from grader.results import Dropped

from .entries import Invalid, listed, shown
from .sources import CHUNK, DEPTH, Folder, archive_in, is_archive, reading, source_at
from .unwanted import sift, told

BYTES = 20 << 20     # of what is taken: the program's folder, without what is left out
FILES = 2_000        # likewise
NESTED = 2           # archives within archives that are opened
NAME, PATH = 255, 1024   # bytes: what file systems hold, and what leaves room for the folders that a copy is put in
APART = 60           # seconds between two archives of which one is the newer: unpacking a download may set both to now
NOT_PROGRAMS = ("labs", "grader")   # parts of the kit that can be started and are nobody's program
KIT_FILES = ("flow.py", "conversation.py", "outside.py", "exits.py", "state.toml")


@dataclass(frozen=True)
class Taken:
    """What was taken of a submission, as copied.

    `program` is a folder with a __main__.py, and `sha256` of its files' paths and contents, the same for a folder, a zip
    and a tar. `dropped` is what was left out anywhere in the submission, `notes` what else an instructor should know.
    """

    program: Path
    sha256: str
    dropped: list[Dropped]
    notes: list[str]


def take(submission, target):
    """Copy the program of a Submission into `target`, a folder that is made, and return it as Taken. Raises Invalid.

    The copies are not writable; folders are, for their owner, so that they can be removed. Every user can read them.
    Limits: BYTES and FILES, of what is taken. Raises FileExistsError where there is a `target`, and OSError where it cannot be
    written; then it is to be removed by the caller.
    """
    found = _Found()
    with source_at(submission.source) as source:
        files = _program(source, found)
    program = Path(target) / "starter"
    _write(files, program)
    return Taken(program, _digest(files), told(found.dropped), found.notes)


class _Found:
    """What is said about a submission while its program is looked for."""

    def __init__(self):
        self.dropped, self.notes = {}, []


def _program(source, found, above="", nested=0):
    """The files of the program in a source, {path: (content, whether it can be executed)}. `above` is how a name in it begins."""
    wanted, dropped = sift(source.entries())
    found.dropped.update((above + shown("/".join(parts)), why) for parts, why in dropped.items())
    folders = {entry.parts[:-1] for entry in wanted if entry.parts[-1] == "__main__.py"}
    folders = {parts for parts in folders if not (parts and parts[-1] in NOT_PROGRAMS)}
    if not folders:
        archive = _archive(wanted, found) if nested < NESTED else None
        if archive is None:
            raise Invalid(_no_program(wanted, dropped))
        with reading(archive), _opened(source, archive) as file, archive_in(file, str(archive)) as inner:
            return _program(inner, found, f"{above}{archive}/", nested + 1)
    chosen = _choose(folders, found, above)
    _say_what_is_beside(chosen, wanted, found)
    inside = [entry for entry in wanted if entry.parts[:len(chosen)] == chosen]
    if len(inside) > FILES:
        raise Invalid(f"the program has more than {FILES:,} files ({len(inside):,}): hand in only what it needs")
    _check_names(inside)
    return _read(source, inside, len(chosen))


def _choose(folders, found, above):
    """The parts of the program's folder: `starter` before others, then the one that is highest."""
    def rank(parts):
        return not parts or parts[-1] != "starter", len(parts)

    def said(parts):
        return shown("/".join(parts)) + "/" if parts else "the top folder"

    best = min(map(rank, folders))
    chosen, *others = sorted(parts for parts in folders if rank(parts) == best)
    if others:
        raise Invalid(f"there are several programs in it, and nothing says which to take: {listed(map(said, [chosen, *others]))}; "
                      "leave one, or call it starter. Where these are several people's, unpack it and name the folder")
    if others := [parts for parts in sorted(folders) if parts[:len(chosen)] != chosen]:
        found.notes.append(f"there are other programs in it, which were not taken: {listed(map(said, others))}; "
                           f"taken: {said(chosen)} ({'its name' if chosen and chosen[-1] == 'starter' else 'the highest'})")
    if above:
        found.notes.append(f"the program was in an archive in it: {above.rstrip('/')}")
    return chosen


def _say_what_is_beside(chosen, wanted, found):
    beside = {entry.parts[:depth + 1] for entry in wanted for depth in range(min(len(chosen), len(entry.parts)))
              if entry.parts[:depth] == chosen[:depth] and entry.parts[depth] != chosen[depth]}
    if beside:
        found.notes.append(f"taken: {shown('/'.join(chosen))}/; not taken: {listed('/'.join(parts) for parts in sorted(beside))}")


def _no_program(wanted, dropped):
    for parts, why in dropped.items():
        if parts[-1] == "__main__.py" or parts[-1] == "starter":
            return f"there is no program in it: {shown('/'.join(parts))} is {why}"
    names = sorted("/".join(entry.parts) for entry in wanted)
    if changed := sorted({entry.parts[-1] for entry in wanted} & set(KIT_FILES)):
        return (f"there is {listed(changed)} in it but no __main__.py: it takes the whole folder starter/, "
                "with the files that did not change")
    return f"there is no program in it, which is a folder with a __main__.py; found: {listed(names) or 'nothing'}"


# ---- archives in a submission

def _archive(wanted, found):
    """The one archive in which the program can be, None where there is none. Of several the newest, where that is certain."""
    archives = sorted((entry for entry in wanted if is_archive(entry.parts[-1])), key=lambda entry: (entry.modified or 0, entry.parts))
    if not archives:
        return None
    *older, newest = archives
    if older:
        if newest.modified is None or newest.modified - older[-1].modified < APART:
            raise Invalid(f"there is no program in it but several archives, and nothing says which is the newest: {listed(map(str, archives))}; "
                          "leave one. Where these are several people's, unpack it and name the folder")
        when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(newest.modified))
        found.notes.append(f"of {len(archives)} archives the newest was taken: {newest}, of {when}; not taken: {listed(map(str, older))}")
    return newest


def _opened(source, entry):
    """An archive in a source as an open file; what is itself packed is held in memory, and may have BYTES."""
    if isinstance(source, Folder):
        return source.open(entry)
    return io.BytesIO(b"".join(_chunks(source, entry, BYTES)))


# ---- the files

def _check_names(entries):
    """Raise Invalid where a copy of the files elsewhere could not be the same."""
    seen, files = {}, set()
    for entry in entries:
        if len(entry.parts) > DEPTH:
            raise Invalid(f"folders are more than {DEPTH} deep in each other: {entry}")
        if len(os.fsencode("/".join(entry.parts))) > PATH or any(len(os.fsencode(part)) > NAME for part in entry.parts):
            raise Invalid(f"a name is too long: {entry}")
        if entry.parts in files:
            raise Invalid(f"a file is in it twice: {entry}; pack it anew")
        files.add(entry.parts)
        for depth in range(1, len(entry.parts) + 1):
            parts = entry.parts[:depth]
            alike = unicodedata.normalize("NFC", "/".join(parts).casefold())
            if seen.setdefault(alike, parts) != parts:
                raise Invalid(f"two names are one on other systems: {shown('/'.join(seen[alike]))} and {shown('/'.join(parts))}")
    for entry in entries:
        if any(entry.parts[:depth] in files for depth in range(1, len(entry.parts))):
            raise Invalid(f"a name is both a file and a folder, above {entry}; pack it anew")


def _read(source, entries, depth):
    files, left = {}, BYTES
    for entry in entries:
        with reading(entry):
            content = b"".join(_chunks(source, entry, left))
        left -= len(content)
        files["/".join(entry.parts[depth:])] = content, entry.executable
    return files


def _chunks(source, entry, most):
    """The content of an entry, counted as it comes: what an archive says of sizes need not be so. Raises Invalid over `most` bytes."""
    with source.open(entry) as file:
        while chunk := file.read(CHUNK):
            most -= len(chunk)
            if most < 0:
                raise Invalid(f"it has more than {BYTES >> 20} MB (at {entry}): hand in only what the program needs")
            yield chunk


def _digest(files):
    digest = sha256()
    for path, (content, _) in sorted(files.items()):
        for part in (os.fsencode(path), content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _write(files, folder):
    folder.parent.mkdir(parents=True)
    for path, (content, executable) in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o555 if executable else 0o444)
    for path, _, _ in os.walk(folder.parent):
        os.chmod(path, 0o755)
