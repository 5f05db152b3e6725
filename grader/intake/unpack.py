"""From one submission to a clean copy of the program in it."""

import io
import os
import unicodedata
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from grader.results import Dropped

from .archives import archive_in, is_archive
from .entries import CHUNK, DEPTH, Invalid, listed, reading, shown
from .sources import Folder, source_at
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
    and a tar. `dropped` is what was left out of that folder, `notes` what else an instructor should know, `doubts` in a few words each
    what makes it worth a look whether this is the right program.
    """

    program: Path
    sha256: str
    dropped: list[Dropped]
    notes: list[str]
    doubts: list[str]


def take(submission, target):
    """Copy the program of a Submission into `target`, a folder that is made, and return it as Taken. Raises Invalid.

    The copies are not writable; folders are, for their owner, so that they can be removed. Every user can read them.
    Limits: BYTES and FILES, of what is taken. Raises FileExistsError where there is a `target`, and OSError where this machine is at
    fault, as where `target` cannot be written; then what there is of it is the caller's to remove.
    """
    with source_at(submission.source) as source:
        found = _find_program(source)
    program = Path(target) / "starter"
    _write(found.files, program)
    return Taken(program, _digest(found.files), told(found.dropped), found.notes, found.doubts)


@dataclass
class _Program:
    """A program in a submission: files as {path: (content, whether it can be executed)}, what was dropped as {path: why}, notes and doubts."""

    files: dict
    dropped: dict
    notes: list
    doubts: list


def _find_program(source, nested=0):
    wanted, dropped = sift(source.entries())
    folders = {entry.parts[:-1] for entry in wanted if entry.parts[-1] == "__main__.py"}
    folders = {parts for parts in folders if not (parts and parts[-1] in NOT_PROGRAMS)}
    everything = [*(entry.parts for entry in wanted), *dropped]
    if folders:
        chosen, others = _choose(folders)
        files = _read(source, [entry for entry in wanted if _is_below(entry.parts, chosen)], len(chosen))
        found = _Program(files, {shown("/".join(parts)): why for parts, why in dropped.items() if _is_below(parts, chosen)}, [], [])
        if others:
            found.notes.append(f"not the only program: {listed(map(_said, others))} would be one too")
            found.doubts.append(f"1 of {len(others) + 1} programs taken")
        taken = _said(chosen)
    elif nested < NESTED and (archives := [entry for entry in wanted if is_archive(entry.parts[-1])]):
        archive = _newest(archives)
        chosen, taken = archive.parts, f"{archive}, the newest of {len(archives)} archives" if len(archives) > 1 else str(archive)
        with reading(archive), _opened(source, archive) as file, archive_in(file, archive) as inner:
            found = _find_program(inner, nested + 1)
        if len(archives) > 1:
            found.doubts.append(f"1 of {len(archives)} archives taken")
        found.dropped = {f"{archive}/{name}": why for name, why in found.dropped.items()}
    else:
        raise Invalid(_no_program(wanted, dropped))
    if beside := _beside(chosen, everything):
        found.notes.append(f"taken: {taken}; not taken: {listed(beside, 12)}")
    return found


def _is_below(parts, folder):
    return parts[:len(folder)] == folder


def _said(folder):
    return shown("/".join(folder)) + "/" if folder else "the top folder"


def _choose(folders):
    """The parts of the program's folder, `starter` before others, then the one that is highest; and the other folders, but for those in it."""
    def rank(parts):
        return not parts or parts[-1] != "starter", len(parts)

    first = min(map(rank, folders))
    best = sorted(parts for parts in folders if rank(parts) == first)
    if len(best) > 1:
        raise Invalid(f"there are several programs in it, and nothing says which to take: {listed(map(_said, best))}; "
                      "leave one, or call it starter. Where these are several people's, unpack it and name the folder")
    return best[0], sorted(parts for parts in folders if not _is_below(parts, best[0]))


def _beside(chosen, everything):
    """What is neither in the chosen folder nor around it, by the topmost names."""
    return sorted({"/".join(parts[:depth + 1]) for parts in everything for depth in range(min(len(chosen), len(parts)))
                   if parts[:depth] == chosen[:depth] and parts[depth] != chosen[depth]})


def _no_program(wanted, dropped):
    for parts, why in dropped.items():
        if parts[-1] == "__main__.py" or parts[-1] == "starter":
            return f"there is no program in it: {shown('/'.join(parts))} is {why}"
    names = sorted("/".join(entry.parts) for entry in wanted)
    if changed := sorted({entry.parts[-1] for entry in wanted} & set(KIT_FILES)):
        return (f"there is {listed(changed)} in it but no __main__.py: it takes the whole folder starter/, "
                "with the files that did not change")
    if names:
        return f"there is no program in it: no folder with a __main__.py, only {listed(names)}"
    left_out = next((f"nothing of it can be taken ({shown('/'.join(parts))} is {why})" for parts, why in dropped.items()), "it is empty")
    return f"there is no program in it: {left_out}"


# ---- archives in a submission

def _newest(archives):
    """The one archive in which the program can be. Raises Invalid where there are several and none is surely the newest."""
    *older, newest = sorted(archives, key=lambda entry: (entry.modified or 0, entry.parts))
    if older and (newest.modified is None or newest.modified - older[-1].modified < APART):
        raise Invalid(f"there is no program in it but several archives, and nothing says which is the newest: {listed(map(str, archives))}; "
                      "leave one. Where these are several people's, unpack it and name the folder")
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
    """The files of a program, {path below its folder, which is `depth` names deep: (content, whether it can be executed)}. Raises Invalid."""
    if len(entries) > FILES:
        raise Invalid(f"the program has more than {FILES:,} files ({len(entries):,}): hand in only what it needs")
    _check_names(entries)
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
