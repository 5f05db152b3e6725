"""What there is to grade: the submissions in a folder, whoever called them so: an instructor, Gradescope, Moodle, Canvas or GitHub Classroom.

    Gradescope   submission_123456/ and submission_metadata.yml, which says whose they are and when they came
    Moodle       Full Name_12345_assignsubmission_file/, or Full Name_12345_assignsubmission_file_NAME.zip without folders
    Canvas       lastnamefirstname[_LATE]_USER_FILE_NAME.zip: FILE grows from upload to upload, and a name that came before ends in -1, -2, …
    GitHub       ASSIGNMENT-USER/ with a .git, ASSIGNMENT-USER-main.zip, or whatever begins so in a folder ASSIGNMENT-submissions
    other        a folder or an archive each, called like whose it is

The first three give every student an id, by which several uploads are of one student: the newest is taken. Other names say nothing of
that; only a folder and archives of the very same name are one student's.
"""

import difflib
import os
import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from labs.command.refused import Refused
from labs.harness.staging import SHIPPED
from labs.harness.story import counted

from . import gradescope
from .archives import ARCHIVES, is_archive
from .entries import FILE, Invalid, listed, shown
from .sources import source_at
from .unwanted import why_unwanted

MOODLE = re.compile(r"(?P<name>.*?)(?:_(?P<id>\d+))?_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?", re.DOTALL)
CANVAS = re.compile(r"(?:(?P<name>\w+?)_)??(?P<late>LATE_)?(?P<id>\d+|anon_\w+?)_(?P<upload>\d{4,})_(?P<file>.+)", re.DOTALL)
UNREADABLE = (".rar", ".7z", ".zst", ".gz", ".xz", ".bz2", ".lz", ".z", ".zipx", ".lha", ".ace", ".cab")   # archives all the same
KIT = ("labs", "grader")   # folders of the kit that can be started, and are no submission beside starter/


@dataclass(frozen=True)
class Submission:
    """One thing to grade. `name` is unique among those that were found together."""

    name: str              # whose it is, without the parts that are the platform's
    source: Path           # a folder or a file
    relative: str          # the source, from the submissions folder, as text
    attempt: str | None    # which of several, in words, and which were not taken
    doubts: tuple = ()     # what makes it worth a look whether it is the right one, each in a few words


class Found(NamedTuple):
    """The submissions, in order of their names, and what is none, in words."""

    submissions: list[Submission]
    ignored: list[str]


@dataclass(frozen=True)
class _Upload:
    """One file or folder of somebody's. Of those of one `key` the usable one with the greatest `order` is taken."""

    path: Path
    name: str
    key: tuple
    order: tuple = ()
    said: str = ""         # about it, if it is taken
    doubt: str = ""        # the part of that for which somebody should look at it
    usable: bool = True    # whether it can be one at all: a folder, or an archive that we read
    id: str = ""           # what tells somebody from others of the same name


def find(path, only=(), one=False):
    """What there is to grade at a path, as Found; with `only`, those that are called so; with `one` the path is one submission, whatever is in it.

    Nothing is unpacked. Raises Refused.
    """
    path = Path(path)
    try:
        path = path.resolve(strict=True)
        if not one:
            _refuse_what_nobody_handed_in(path)
        submissions, ignored = _in_folder(path) if path.is_dir() and not one else ([_single(path)], [])
    except (OSError, RuntimeError) as error:
        raise Refused(f"{shown(str(path))} cannot be read: {getattr(error, 'strerror', None) or error}; name the folder of the submissions") from None
    if not submissions:
        raise Refused(f"there is nothing to grade in {shown(str(path))}{_beside(ignored)}: it takes a folder or an archive for each submission")
    return Found(chosen(submissions, only), ignored)


def chosen(submissions, only):
    """Those of the submissions that are called so, by name or path; without `only` all. Raises Refused."""
    wished = []
    for wanted in only:
        # Whoever lets the shell complete the name has the path.
        same = [one for one in submissions if wanted in (one.name, one.relative) or os.path.basename(wanted.rstrip("/")) == one.source.name]
        if not same:
            near = difflib.get_close_matches(wanted, [one.name for one in submissions], 3) or [one.name for one in submissions]
            raise Refused(f"there is no submission {shown(wanted)}; there is: {listed(near)}")
        wished += same
    return [one for one in submissions if one in wished] if only else submissions


# ---- one submission, or the folder of many

def _beside(ignored):
    return f", {counted(len(ignored), 'thing')} in it {'is' if len(ignored) == 1 else 'are'} neither folder nor archive" if ignored else ", which is empty"


def _refuse_what_nobody_handed_in(path):
    """Raise Refused for what an instructor may name by mistake: a report, the kit as it is handed out, a file that is no archive."""
    if path.is_dir() and os.path.isfile(path / "journal.sqlite") and os.path.isfile(path / "lock"):
        raise Refused(f"{shown(str(path))} is a report of the grader, and holds no submissions: name the folder that was graded into it")
    if path.is_dir() and os.path.isfile(path / "labs" / "__main__.py") and _is_as_shipped(path / "starter"):
        raise Refused(f"{shown(str(path))} is the learners' kit as it is handed out, with nobody's work in it: name the folder of the submissions "
                      "(--one grades it all the same)")
    if path.is_file() and not path.name.casefold().endswith((*ARCHIVES, *UNREADABLE)):
        try:
            with source_at(path):
                pass
        except Invalid:
            what = "one file of a program" if path.suffix == ".py" else "no archive"
            raise Refused(f"{shown(str(path))} is {what}: name a zip, a tar or the folder of one submission, or the folder of all") from None


def _is_as_shipped(starter):
    """Whether a folder has the starter's files, and all of them as they are handed out."""
    try:
        with zipfile.ZipFile(SHIPPED) as archive:
            return all((starter / name).read_bytes() == archive.read(name) for name in archive.namelist() if not name.endswith("/"))
    except OSError:
        return False


def _single(path):
    if path.is_file():
        _refuse_a_download(path)
    return Submission(shown(_stem(path)), path, shown(path.name), None)


def _refuse_a_download(path):
    """Raise Refused for a zip that holds many submissions, by its list of files. Others stay as they are, also damaged ones."""
    if path.suffix.casefold() != ".zip":
        return
    try:
        with source_at(path) as source:
            entries = source.entries()
    except Invalid:
        return
    names = {entry.parts[-1] for entry in entries if entry.kind == FILE}
    archives = {entry.parts for entry in entries if is_archive(entry.parts[-1])}
    marked = (gradescope.METADATA in names or any(MOODLE.fullmatch(part) for entry in entries for part in entry.parts[:2])
              or len({entry.parts[0] for entry in entries if CANVAS.fullmatch(entry.parts[0])}) > 1)
    if marked or "__main__.py" not in names and len(archives) > 1:
        raise Refused(f"{shown(path.name)} holds more than one submission: unpack it, and name the folder that comes of it")


def _in_folder(path):
    children = _children(path)
    if os.path.isfile(path / "__main__.py") or _is_kit(path, children):
        return [_single(path)], []
    # What was downloaded may be a folder deeper than where it was unpacked.
    folders = [child for child in children if child.is_dir() and not child.is_symlink()]
    if len(folders) == 1 and not any(is_archive(child.name) for child in children):
        inner = _children(folders[0])
        if any(child.name == gradescope.METADATA or MOODLE.fullmatch(child.name) for child in inner):
            children = inner
    uploads, ignored = _uploads(children[0].parent, children) if children else ([], [])
    return _named(_newest(uploads), path), ignored


def _children(path):
    return sorted((path / entry.name for entry in os.scandir(path)
                   if not entry.name.startswith(".") and not why_unwanted(entry.name, entry.is_dir(follow_symlinks=False))),
                  key=lambda child: child.name)


def _is_kit(path, children):
    """Whether this is one submission, with its starter/ beside other things, and not a folder of which one submission is called so."""
    return os.path.isfile(path / "starter" / "__main__.py") and not any(
        is_archive(child.name) or os.path.isfile(child / "__main__.py") or os.path.isdir(child / "starter")
        for child in children if child.name not in ("starter", *KIT))


def _uploads(path, children):
    known = gradescope.submitters(path)
    canvas = _canvas(children)
    uploads, ignored = [], []
    for child in children:
        if child.is_symlink() or not (child.is_dir() or child.is_file()):
            ignored.append(f"{shown(child.name)}: {'a link' if child.is_symlink() else 'no file and no folder'}")
        elif upload := _gradescope(child, known) or _moodle(child) or canvas.get(child):
            uploads.append(upload)
        elif child.is_dir() or child.name.casefold().endswith((*ARCHIVES, *UNREADABLE)):
            uploads.append(_plain(child))
        elif child.name != gradescope.METADATA:
            ignored.append(f"{shown(child.name)}: no folder and no archive")
    there = {child.name for child in children}
    ignored += [f"{shown(name)} ({listed(handed.names)}): in {gradescope.METADATA}, but not there"
                for name, handed in known.items() if name not in there]
    return _without_assignment(uploads, path), ignored


# ---- the schemes

def _gradescope(path, known):
    if not (handed := known.get(path.name)):
        return None
    number = f"attempt {handed.attempt} of {handed.attempts}" if handed.attempts > 1 else ""
    return _Upload(path, " & ".join(handed.names) or path.name, ("gradescope", *(handed.ids or [path.name])), (handed.when, path.name),
                   ", ".join(filter(None, [number, handed.when])), number if handed.attempt < handed.attempts else "")


def _moodle(path):
    if not (found := MOODLE.fullmatch(path.name)):
        return None
    return _Upload(path, found["name"].strip() or path.name, ("moodle", found["name"], found["id"] or ""), (path.stat().st_mtime,),
                   usable=found["kind"] == "file" and _is_usable(path), id=found["id"] or "")


def _canvas(paths):
    """{path: upload} of what Canvas called so; {} where the names only look like it, and would make one student of many."""
    found = {path: match for path in paths if (match := CANVAS.fullmatch(path.name))}
    if len({match["upload"] for match in found.values()}) < len({_stem(path) for path in found}):
        return {}
    if len(found) > 1 and 1 in (len({match["id"] for match in found.values()}), len({match["name"] or match["id"] for match in found.values()})):
        return {}
    return {path: _Upload(path, match["name"] or match["id"], ("canvas", match["id"]), (int(match["upload"]), not path.is_dir()),
                          "late" if match["late"] else "", "late" if match["late"] else "", _is_usable(path), match["id"]) for path, match in found.items()}


def _plain(path):
    # The archive is what was handed in; a folder of its name is where somebody unpacked it.
    return _Upload(path, _stem(path), ("plain", _stem(path)), (not path.is_dir(), path.stat().st_mtime), usable=_is_usable(path))


def _is_usable(path):
    return path.is_dir() or is_archive(path.name)


def _stem(path):
    """The name without the ending of an archive, the longest that fits: of .tar.gz, not only .gz."""
    if path.is_dir():
        return path.name
    fits = [ending for ending in (*ARCHIVES, *UNREADABLE) if path.name.casefold().endswith(ending)]
    return path.name[:-len(max(fits, key=len))] or path.name if fits else path.name


def _without_assignment(uploads, path):
    """The uploads, called by what follows the assignment where GitHub Classroom put that before every name."""
    plain = [upload for upload in uploads if upload.key[0] == "plain"]
    names = {upload: upload.name for upload in plain}
    branch = re.compile("-(main|master)$")
    packed = all(not upload.path.is_dir() and branch.search(upload.name) for upload in plain)
    if packed:
        names = {upload: branch.sub("", upload.name) for upload in plain}
    prefix = path.name.removesuffix("submissions") if path.name.endswith("-submissions") else None
    if not (prefix and all(name.startswith(prefix) for name in names.values())):
        cloned = any(os.path.exists(upload.path / ".git") for upload in plain)
        common = os.path.commonprefix(list(names.values())) if len(plain) > 1 and (cloned or packed) else ""
        prefix = common[:common.rfind("-") + 1]
        if any(name.removeprefix(prefix).isdigit() for name in names.values()):   # group-1 and group-2 are called so
            prefix = prefix[:prefix[:-1].rfind("-") + 1]
    if not all(name.removeprefix(prefix) for name in names.values()):
        return uploads
    return [replace(upload, name=names[upload].removeprefix(prefix)) if upload in names else upload for upload in uploads]


# ---- one submission of each student

def _newest(uploads):
    """Of every student the upload that is taken, what is said of that, and what is doubtful in it: [(upload, attempt, doubts)]."""
    by_key = {}
    for upload in uploads:
        by_key.setdefault(upload.key, []).append(upload)
    taken = []
    for same in by_key.values():
        *others, newest = sorted(same, key=lambda upload: (upload.usable, upload.order, upload.path.name))
        words = [newest.said]
        if (count := sum(upload.usable for upload in same)) > 1:
            words.append({"plain": f"{count} have this name, {shown(newest.path.name)} was taken",
                          "moodle": f"the newest of {count} by the files' times"}.get(newest.key[0], f"the newest of {count}"))
        if others:
            words.append(f"not taken: {listed(upload.path.name for upload in reversed(others))}")
        # What Moodle keeps beside files, like an online text, is no other attempt.
        rivals = [upload for upload in others if upload.key[0] != "moodle" or MOODLE.fullmatch(upload.path.name)["kind"] == "file"]
        doubts = [newest.doubt, f"1 of {len(rivals) + 1} taken" if rivals else ""]
        taken.append((newest, "; ".join(filter(None, words)) or None, tuple(filter(None, doubts))))
    return taken


def _named(taken, path):
    """Them as Submissions in the folder `path`, each with a name of its own: where two have one name, with what tells them apart after it."""
    names = [shown(upload.name) for upload, *_ in taken]
    used, found = set(), []
    for (upload, attempt, doubts), name in zip(taken, names, strict=True):
        relative = shown(str(upload.path.relative_to(path)), 1000)
        if names.count(name) > 1:
            name = f"{name} ({upload.id or relative})"
        number, unique = 2, name
        while unique in used:
            unique, number = f"{name} ({number})", number + 1
        used.add(unique)
        found.append(Submission(unique, upload.path, relative, attempt, doubts))
    return sorted(found, key=lambda one: (one.name.casefold(), one.relative))
