"""Intake: what there is to grade in a folder or a download, and what is taken of each."""

import bz2
import errno
import gzip
import io
import lzma
import os
import shutil
import stat
import struct
import tarfile
import tempfile
import time
import unicodedata
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from grader.intake import Invalid, Submission, archives, find, sources, take, unpack, unwanted

from labs.command.refused import Refused
from labs.harness.staging import SHIPPED, stage

PROGRAM = {"__main__.py": "print(1)\n", "flow.py": "steps = 3\n", "deep/er/data.json": "{}"}
STARTER = {f"starter/{name}": content for name, content in PROGRAM.items()}


# ---- making submissions

def folder(path, files=STARTER):
    for name, content in files.items():
        file = Path(os.fsdecode(os.fsencode(path) + b"/" + os.fsencode(name)))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def zipped(path, files=STARTER):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (files.items() if isinstance(files, dict) else files):
            archive.writestr(name, content)
    return path


def member(name, content=b"", **fields):
    info = tarfile.TarInfo(name)
    content = content.encode() if isinstance(content, str) else content
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, io.BytesIO(content)


def tarred(path, files=STARTER, extra=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = {".gz": "gz", ".tgz": "gz", ".xz": "xz", ".bz2": "bz2"}.get(path.suffix.lower(), "")
    with tarfile.open(path, f"w:{packed}") as archive:
        for info, content in [*(member(name, content) for name, content in files.items()), *extra]:
            archive.addfile(info, content)
    return path


def pack(path, files=STARTER):
    if path.suffix in (".pdf", ".py", ".rar"):
        return folder(path.parent, {path.name: "no archive"}) / path.name
    return zipped(path, files) if path.suffix == ".zip" else tarred(path, files) if ".t" in path.name.lower() else folder(path, files)


def taken_from(path, target=None):
    return take(Submission("x", path, path.name, None), target or Path(tempfile.mkdtemp(dir=path.parent)) / "taken")


def files_in(taken):
    return {path.relative_to(taken.program).as_posix(): path.read_text() for path in taken.program.rglob("*") if path.is_file()}


def reason(path):
    """Why a submission is invalid. Whatever is wrong with it, nothing of it is copied."""
    target = Path(tempfile.mkdtemp(dir=path.parent)) / "taken"
    with pytest.raises(Invalid) as caught:
        taken_from(path, target)
    text = str(caught.value)
    assert not target.exists()
    assert text.isprintable() and len(text) < 1000, text
    text.encode()
    return text


def names(path, *only):
    return [one.name for one in find(path, only).submissions]


def state_of(top):
    """All that is in a folder, but for when it was last read."""
    found = {}
    for path in [top, *top.rglob("*")]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else os.readlink(path) if path.is_symlink() else None
        found[os.fsencode(path)] = status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, content
    return found


@pytest.fixture
def subs(tmp_path):
    path = tmp_path / "subs"
    path.mkdir()
    return path


# ---- taking

@pytest.mark.parametrize("name", ["a", "a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "a.txz", "a.tar.bz2", "a.tbz2"])
@pytest.mark.parametrize("above", ["", "starter/", "Ana's work (final)/starter/", "a/b/c/d/myflow/"])
def test_a_program_is_taken_from_every_kind_of_package_and_depth(subs, name, above):
    path = pack(subs / name, {f"{above}{file}": content for file, content in PROGRAM.items()})
    taken = taken_from(path)
    assert files_in(taken) == PROGRAM
    assert (taken.dropped, taken.notes) == ([], [])
    assert taken.sha256 == taken_from(folder(subs / "same", PROGRAM)).sha256


def test_what_is_taken_can_be_staged(subs, tmp_path):
    staged = stage(taken_from(zipped(subs / "a.zip")).program, tmp_path / "staged")
    assert set(staged.files) == {"starter/__main__.py", "starter/flow.py"}


def test_the_hash_is_of_paths_and_contents_and_not_of_their_order(subs):
    pairs = list(STARTER.items())
    other = {**STARTER, "starter/flow.py": "steps = 4\n"}
    moved = {("starter/flow2.py" if name == "starter/flow.py" else name): content for name, content in pairs}
    one, same, *others = (taken_from(zipped(subs / f"{number}.zip", files)).sha256
                          for number, files in enumerate([pairs, pairs[::-1], other, moved]))
    assert one == same and one not in others


def test_content_cannot_be_moved_between_names_unseen(subs):
    hashes = {taken_from(zipped(subs / f"{number}.zip", {"__main__.py": "", **files})).sha256
              for number, files in enumerate([{"a": "bc"}, {"ab": "c"}, {"a": "", "bc": ""}])}
    assert len(hashes) == 3


@pytest.mark.parametrize("umask", [0o022, 0o077, 0])
def test_every_user_can_read_the_copy_and_nobody_write_its_files(subs, umask):
    script = zipfile.ZipInfo("starter/run.sh")
    script.external_attr = (stat.S_IFREG | 0o4755) << 16
    before = os.umask(umask)
    try:
        taken = taken_from(zipped(subs / "a.zip", [*STARTER.items(), (script, "")]))
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in [taken.program.parent, *taken.program.parent.rglob("*")]}
    assert modes == {"taken": 0o755, "starter": 0o755, "deep": 0o755, "er": 0o755, "run.sh": 0o555,
                     "__main__.py": 0o444, "flow.py": 0o444, "data.json": 0o444}


@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_scripts_stay_executable(subs, kind):
    if kind == "tar":
        path = tarred(subs / "a.tar", extra=[member("starter/run.sh", mode=0o755)])
    else:
        path = folder(subs / "a", {**STARTER, "starter/run.sh": ""})
        (path / "starter/run.sh").chmod(0o755)
    modes = {path.name: path.stat().st_mode & 0o111 for path in taken_from(path).program.iterdir() if path.is_file()}
    assert modes == {"run.sh": 0o111, "__main__.py": 0, "flow.py": 0}


def test_nothing_is_copied_over_what_is_there(subs, tmp_path):
    path = folder(subs / "a")
    taken_from(path, tmp_path / "target")
    with pytest.raises(FileExistsError):
        taken_from(path, tmp_path / "target")


NAMES = ["Ana Lima", "[bold]x[/]", "-rf", "--help", "a'b\"c", "новая папка", "山田　太郎", "a\nb", "a\tb\x1b[31m", "a\u202eb", b"caf\xe9",
         "a" * 250, "%s{{7*7}}", "*", "~", "$HOME", "c:d", ".hidden"]


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_may_hold_anything(subs, kind, name):
    name = os.fsdecode(name)
    files = {**STARTER, f"starter/{name}/{name}.txt" if len(name) < 200 else f"starter/{name}": "x"}
    path = subs / ("sub" if kind == "folder" else f"sub.{kind}")
    if kind == "zip" and name == "caf\udce9":   # as a Linux in Latin-1 packs it: bytes, without the flag of UTF-8
        zipped(path, {file.replace(name, "cafX"): content for file, content in files.items()})
        path.write_bytes(path.read_bytes().replace(b"cafX", os.fsencode(name)))
    else:
        pack(path, files)
    taken = taken_from(path)
    assert files_in(taken) == {file.removeprefix("starter/"): content for file, content in files.items()}
    assert taken.sha256 == taken_from(folder(subs / "same", files)).sha256


def test_utf_8_names_are_read_where_the_zip_does_not_say_so(subs):
    path = zipped(subs / "a.zip", {**STARTER, "starter/cafXX.txt": "x"})
    path.write_bytes(path.read_bytes().replace(b"cafXX", "café".encode()))
    assert "café.txt" in files_in(taken_from(path))


# ---- which program

@pytest.mark.parametrize("others", [["labs", "grader"], ["myflow"], ["a/b/starter"], ["old/myflow", "starter/tools"]])
def test_starter_is_taken_before_others(subs, others):
    taken = taken_from(folder(subs / "a", {**STARTER, **{f"{other}/__main__.py": "wrong" for other in others}}))
    assert files_in(taken)["__main__.py"] == PROGRAM["__main__.py"]
    said = " ".join(taken.notes)
    assert all((f"{other}/" in said) == (other not in ("labs", "grader", "starter/tools")) for other in others), said


def test_the_highest_is_taken_where_none_is_called_starter(subs):
    taken = taken_from(folder(subs / "a", {**{f"x/{name}": content for name, content in PROGRAM.items()}, "y/z/__main__.py": "wrong"}))
    assert files_in(taken) == PROGRAM and "y/z/" in taken.notes[0]


def test_of_the_whole_kit_only_the_starter_is_taken(subs):
    taken = taken_from(folder(subs / "a", {**STARTER, "labs/__main__.py": "", "labs/conftest.py": "", "README.md": "", ".git/config": ""}))
    assert files_in(taken) == PROGRAM and taken.dropped == []
    assert taken.notes == ["taken: starter/; not taken: .git, README.md, labs"]


@pytest.mark.parametrize("files, said", [
    ({"x/__main__.py": "", "y/__main__.py": ""}, ["several programs", "x/, y/"]),
    ({"x/starter/__main__.py": "", "y/starter/__main__.py": ""}, ["several programs", "x/starter/, y/starter/"]),
    ({"flow.py": "", "report.pdf": ""}, ["flow.py in it but no __main__.py", "whole folder starter/"]),
    ({"report.pdf": ""}, ["no program in it: no folder with a __main__.py, only report.pdf"]),
    ({"labs/__main__.py": ""}, ["no program in it"]),
    ({}, ["no program in it: it is empty"]),
    ({"a.pyc": ""}, ["no program in it: nothing of it can be taken (a.pyc is "]),
    ({f"{number}.txt": "" for number in range(100)}, ["and 94 more"]),
    ({"starter/__main__.pyc": ""}, ["no program in it"])])
@pytest.mark.parametrize("name", ["a", "a.zip", "a.tar"])
def test_where_it_is_not_plain_which_is_the_program_the_reason_says_what_there_is(subs, name, files, said):
    path = pack(subs / name, files)
    path.mkdir() if not path.exists() else None
    assert all(words in reason(path) for words in said), reason(path)


# ---- what is left out

UNWANTED = ["__pycache__/flow.cpython-311.pyc", "flow.pyc", "conftest.py", "deep/conftest.py", "ConfTest.py", "pytest.ini", ".pytest.ini",
            "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml", "x.pth",
            "sitecustomize.py", "usercustomize.py", "x-1.dist-info/METADATA", "x.egg-info/PKG-INFO",
            ".git/config", ".GIT/config", "deep/.git", ".venv/bin/python", "node_modules/x/y.js", "lib/site-packages/x.py", ".lab/runs.db",
            ".lab-evidence/latest", ".DS_Store", "._flow.py", "__MACOSX/._x", "env/pyvenv.cfg"]


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
@pytest.mark.parametrize("name", UNWANTED)
def test_unwanted_files_are_left_out_and_named(subs, kind, name):
    path = pack(subs / ("a" if kind == "folder" else f"a.{kind}"), {**STARTER, f"starter/{name}": "x"})
    taken = taken_from(path)
    assert files_in(taken) == PROGRAM
    (dropped,) = taken.dropped
    assert f"starter/{name}".startswith(dropped.path) and dropped.why
    assert taken.sha256 == taken_from(folder(subs / "same")).sha256


def test_files_that_are_called_alike_are_taken(subs):
    alike = ["my_conftest.py", "sitecustomize/x.py", "git/x", ".env", "pth", "venv/x.py"]
    files = {**STARTER, **{f"starter/{name}": "" for name in alike}}
    taken = taken_from(folder(subs / "a", files))
    assert len(files_in(taken)) == len(files) and not taken.dropped


def test_a_virtual_environment_around_the_program_is_not_one(subs):
    files = {**STARTER, "pyvenv.cfg": "", "starter/pyvenv.cfg": ""}
    assert files_in(taken_from(folder(subs / "a", files))) == {**PROGRAM, "pyvenv.cfg": ""} == files_in(taken_from(zipped(subs / "a.zip", files)))


def test_thousands_that_are_left_out_are_named_together(subs):
    files = {**STARTER, **{f"starter/{number}.pyc": "" for number in range(3000)}, "starter/conftest.py": ""}
    dropped = taken_from(zipped(subs / "a.zip", files)).dropped
    assert len(dropped) == unwanted.NAMED + 1
    assert any(one.path == "and 2,993 more" for one in dropped) and any(one.path == "starter/conftest.py" for one in dropped)


def test_a_large_environment_is_neither_counted_nor_listed(subs):
    files = {f"starter/.venv/lib/{number}.py": "" for number in range(3000)}
    for path in (folder(subs / "a", {**STARTER, **files}), zipped(subs / "a.zip", {**STARTER, **files})):
        taken = taken_from(path)
        assert files_in(taken) == PROGRAM and [one.path for one in taken.dropped] == ["starter/.venv"]


def test_links_pipes_and_sockets_of_a_folder_are_left_out_and_not_followed(subs, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = folder(subs / "a")
    (path / "starter/link.py").symlink_to(secret)
    (path / "starter/folder").symlink_to("/")
    (path / "starter/round").symlink_to(".")
    os.mkfifo(path / "starter/pipe.py")
    os.mknod(path / "starter/sock", stat.S_IFSOCK | 0o600)
    taken = taken_from(path)
    assert files_in(taken) == PROGRAM
    assert {one.path.removeprefix("starter/"): one.why for one in taken.dropped} == {
        "link.py": "a symbolic link", "folder": "a symbolic link", "round": "a symbolic link", "pipe.py": "a pipe", "sock": "a socket"}


def test_links_and_devices_of_a_tar_are_left_out(subs):
    extra = [member("starter/soft", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
             member("starter/hard", type=tarfile.LNKTYPE, linkname="starter/flow.py"),
             member("starter/null", type=tarfile.CHRTYPE),
             member("starter/disk", type=tarfile.BLKTYPE), member("starter/pipe", type=tarfile.FIFOTYPE),
             member("starter/soft/below.py", "x")]
    taken = taken_from(tarred(subs / "a.tar.gz", extra=extra))
    assert files_in(taken) == {**PROGRAM, "soft/below.py": "x"}
    assert {one.path.removeprefix("starter/"): one.why for one in taken.dropped} == {
        "soft": "a symbolic link", "hard": "a hard link", "null": "a device", "disk": "a device", "pipe": "a pipe"}


@pytest.mark.parametrize("kind, why", [(stat.S_IFLNK, "a symbolic link"), (stat.S_IFIFO, "a pipe"), (stat.S_IFBLK, "a device"),
                                       (stat.S_IFDIR, "neither file nor folder")])
def test_links_and_devices_of_a_zip_are_left_out(subs, kind, why):
    info = zipfile.ZipInfo("starter/x")
    info.external_attr = (kind | 0o777) << 16
    taken = taken_from(zipped(subs / "a.zip", [*STARTER.items(), (info, "/etc/passwd")]))
    assert files_in(taken) == PROGRAM
    assert [(one.path, one.why) for one in taken.dropped] == [("starter/x", why)]


@pytest.mark.parametrize("linked", ["starter", "starter/__main__.py"])
def test_a_program_that_is_a_link_is_none(subs, tmp_path, linked):
    folder(tmp_path / "elsewhere")
    path = folder(subs / "a", {"starter/flow.py": ""} if "/" in linked else {"x": ""})
    (path / linked).symlink_to(tmp_path / "elsewhere" / linked)
    assert f"{linked} is a symbolic link" in reason(path)


def test_a_submission_that_is_a_link_is_not_followed(subs, tmp_path):
    (subs / "a").symlink_to(folder(tmp_path / "elsewhere"))
    (subs / "b.zip").symlink_to(zipped(tmp_path / "elsewhere.zip"))
    folder(subs / "c")
    assert names(subs) == ["c"] and find(subs).ignored == ["a: a link", "b.zip: a link"]
    assert "cannot be read" in reason(subs / "a") and "cannot be read" in reason(subs / "b.zip")


# ---- escapes

ESCAPES = ["../x", "starter/../../x", "a/../x", "/etc/x", "//x", "starter\\..\\x", "..\\x", "C:\\x", "C:/x", "c:x", "\\\\host\\x", ".."]


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("kind", ["zip", "tar", "dropped"])
def test_a_name_that_leads_out_makes_the_whole_submission_invalid(subs, kind, name):
    if kind == "zip":
        path = zipped(subs / "a.zip", {**STARTER, name: "x"})
    else:   # also where the entry itself would be left out
        path = tarred(subs / "a.tar", extra=[member(name, type=tarfile.SYMTYPE if kind == "dropped" else tarfile.REGTYPE)])
    assert "outside of its folder" in reason(path) or "backslash" in reason(path)


def test_names_with_needless_dots_and_slashes_are_the_same_names(subs):
    path = tarred(subs / "a.tar", {f"././/{name}": content for name, content in STARTER.items()})
    assert files_in(taken_from(path)) == PROGRAM


def test_a_name_with_a_zero_byte_is_none(subs):
    path = zipped(subs / "a.zip", {**STARTER, "starter/evilX.txt": "x"})
    path.write_bytes(path.read_bytes().replace(b"evilX", b"evil\0"))
    assert "name in it is none" in reason(path)


# ---- too much

def test_a_program_may_have_2000_files_and_no_more(subs):
    files = {f"starter/{number}.txt": "" for number in range(unpack.FILES - len(PROGRAM))}
    assert len(files_in(taken_from(zipped(subs / "a.zip", {**STARTER, **files})))) == 2000
    assert "more than 2,000 files (2,001)" in reason(zipped(subs / "b.zip", {**STARTER, **files, "starter/more": ""}))
    assert files_in(taken_from(zipped(subs / "c.zip", {**STARTER, **{name.replace("starter", "docs"): "" for name in files}}))) == PROGRAM


@pytest.mark.parametrize("name", ["a", "a.zip", "a.tar.xz"])
def test_a_program_may_have_20_mb_and_no_more(subs, name):
    left = unpack.BYTES - sum(map(len, PROGRAM.values()))
    files = {**STARTER, "starter/a": bytes(left // 2), "starter/b": bytes(left - left // 2)}
    assert taken_from(pack(subs / name, files)).sha256
    more = pack(subs / f"b{name[1:]}", {**files, "starter/c": b"1"})
    assert "more than 20 MB (at starter/" in reason(more)


@pytest.mark.parametrize("packed", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_bomb_is_not_unpacked(subs, packed, monkeypatch):
    path = subs / "a.zip"
    with zipfile.ZipFile(path, "w", packed) as archive, archive.open("starter/__main__.py", "w") as file:
        for _ in range(60):
            file.write(bytes(1 << 20))
    read = []
    chunks = unpack._chunks
    monkeypatch.setattr(unpack, "_chunks", lambda *arguments: (read.append(len(chunk)) or chunk for chunk in chunks(*arguments)))
    assert ("more than 20 MB" if packed == zipfile.ZIP_DEFLATED else "ordinary zip") in reason(path)
    assert sum(read) <= 2 * unpack.BYTES


@pytest.mark.parametrize("pack_", [gzip.compress, bz2.compress, lzma.compress])
def test_a_tar_bomb_is_not_unpacked_even_where_it_would_be_left_out(subs, pack_, monkeypatch):
    monkeypatch.setattr(archives, "UNPACKED", 1 << 20)
    plain = tarred(subs / "plain.tar", extra=[member("starter/.git/x", bytes(5 << 20))]).read_bytes()
    (subs / "a.tar.gz").write_bytes(pack_(plain))
    assert "unpacks to more than 1 MB" in reason(subs / "a.tar.gz")


def test_a_sparse_file_is_counted_by_what_it_unpacks_to(subs):
    info, content = member("starter/big", b"x")
    info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "starter/big", "GNU.sparse.size": str(1 << 40),
                        "GNU.sparse.map": "0,1", "GNU.sparse.numblocks": "1"}
    assert "more than 20 MB" in reason(tarred(subs / "a.tar", extra=[(info, content)]))


def test_a_size_that_a_zip_lies_about_is_no_way_around(subs):
    path = zipped(subs / "a.zip", {"starter/__main__.py": bytes(30 << 20)})
    data = path.read_bytes()
    assert data.count(struct.pack("<I", 30 << 20)) == 2
    path.write_bytes(data.replace(struct.pack("<I", 30 << 20), struct.pack("<I", 10)))
    assert "damaged" in reason(path)


def test_a_zip_with_a_long_list_of_files_is_not_listed(subs, monkeypatch):
    monkeypatch.setattr(archives, "DIRECTORY", 100_000)
    assert "list of files is too long" in reason(zipped(subs / "a.zip", {**STARTER, **{f"docs/{number}": "" for number in range(2000)}}))


@pytest.mark.parametrize("name", ["a", "a.zip", "a.tar"])
def test_only_so_many_entries_are_looked_through(subs, name, monkeypatch):
    for module in (archives, sources):
        monkeypatch.setattr(module, "LOOKED_THROUGH", 100)
    assert "more than 100 files and folders" in reason(pack(subs / name, {**STARTER, **{f"docs/{number}": "" for number in range(100)}}))


def test_a_long_header_of_a_tar_is_not_read(subs):
    info, content = member("starter/x", b"")
    info.pax_headers = {"comment": "1" * (1 << 20)}
    assert "too long" in reason(tarred(subs / "a.tar", extra=[(info, content)]))


def test_an_archive_that_takes_too_long_is_given_up(subs, monkeypatch):
    monkeypatch.setattr(archives, "PATIENCE", -1)
    assert "seconds to unpack" in reason(zipped(subs / "a.zip")) and "seconds to unpack" in reason(tarred(subs / "a.tgz"))


@pytest.mark.parametrize("name", ["a", "a.zip", "a.tar"])
def test_folders_can_be_too_deep(subs, name):
    assert taken_from(pack(subs / name, {**STARTER, "starter/" + "d/" * 18 + "x": ""})).sha256
    assert "deep in each other" in reason(pack(subs / f"b{name[1:]}", {**STARTER, "starter/" + "d/" * 20 + "x": ""}))
    # Beside the program too, where looking further would take ever longer.
    assert "deep in each other" in reason(pack(subs / f"c{name[1:]}", {**STARTER, "docs/" + "d/" * 60 + "x": ""}))


@pytest.mark.parametrize("long", ["a" * 256, "é" * 128, "/".join(["a" * 200] * 6)])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_can_be_too_long(subs, kind, long):
    assert "too long" in reason(pack(subs / f"a.{kind}", {**STARTER, f"starter/{long}": ""}))


COLLIDING = [("A.py", "a.py"), ("É.py", unicodedata.normalize("NFD", "É.py")), ("straße.py", "STRASSE.py"), ("D/x.py", "d/y.py")]


@pytest.mark.parametrize("pair", COLLIDING, ids=ascii)
@pytest.mark.parametrize("name", ["a", "a.zip", "a.tar"])
def test_two_names_that_are_one_elsewhere_are_refused(subs, name, pair):
    assert "one on other systems" in reason(pack(subs / name, {**STARTER, **{f"starter/{one}": "" for one in pair}}))


def test_a_name_twice_or_both_a_file_and_a_folder_is_refused(subs):
    twice = [*STARTER.items(), ("starter/./flow.py", "other")]
    assert "twice: starter/flow.py" in reason(zipped(subs / "a.zip", twice))
    assert "twice: starter/flow.py" in reason(tarred(subs / "a.tar", extra=[member("starter/flow.py", "other")]))
    assert "both a file and a folder" in reason(zipped(subs / "b.zip", {**STARTER, "starter/x": "", "starter/x/y": ""}))


# ---- damaged, encrypted, no archive

@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2"])
def test_an_archive_that_was_cut_off_anywhere_is_damaged(subs, name):
    noise = {f"starter/{number}": sha256(bytes([number])).digest() * 20 for number in range(8)}
    data = pack(subs / name, {**STARTER, **noise}).read_bytes()
    end = len(data.rstrip(b"\0")) if name == "a.tar" else len(data)   # a tar ends in zeros, of which it may lack some
    path = subs / f"cut{name[1:]}"
    for length in range(1, end, max(1, end // 60)):
        path.write_bytes(data[:length])
        assert "damaged" in reason(path)
    path.write_bytes(b"")
    assert "is empty" in reason(path)


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz", "a.tar.bz2"])
def test_an_archive_of_which_a_byte_changed_is_damaged_or_the_same(subs, name):
    noise = {f"starter/{number}": sha256(bytes([number])).digest() * 4 for number in range(8)}
    data = pack(subs / name, {**STARTER, **noise}).read_bytes()
    whole = taken_from(subs / name).sha256
    path, damaged = subs / f"b{name[1:]}", 0
    for place in range(0, len(data), max(1, len(data) // 120)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1:])
        try:
            # Names and modes have no checksum in a zip: another name is another submission, but never a traceback.
            assert taken_from(path).sha256 == whole or name == "a.zip"
        except Invalid:
            damaged += 1
    assert damaged > 50


def test_a_tar_of_which_only_the_end_is_unreadable_is_not_taken_in_part(subs):
    path = tarred(subs / "a.tar", extra=[member("starter/last.py", "x")])
    data = path.read_bytes()
    at = data.index(b"starter/last.py")
    path.write_bytes(data[:at] + b"\xff" * 512 + data[at + 512:])
    assert "damaged" in reason(path)


def test_a_negative_size_in_a_tar_does_not_go_round_for_ever(subs):
    for type_ in (tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        header = bytearray(member("starter/x", type=type_)[0].tobuf(tarfile.GNU_FORMAT))
        header[124:136] = b"\xff" * 4 + (-512).to_bytes(8, "big", signed=True)
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        data = tarred(subs / "a.tar").read_bytes()
        at = data.index(b"starter/deep")
        (subs / "b.tar").write_bytes(data[:at] + bytes(header) + data[at:])
        assert "damaged" in reason(subs / "b.tar")


def test_a_tar_with_headers_for_headers_for_headers_is_damaged(subs):
    header = member("x", type=tarfile.XHDTYPE)[0].tobuf(tarfile.GNU_FORMAT)
    (subs / "a.tar").write_bytes(header * 5000 + bytes(1024))
    assert "damaged" in reason(subs / "a.tar")


def test_an_encrypted_zip_is_refused(subs):
    path = zipped(subs / "a.zip")
    data = path.read_bytes()
    for header, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        parts = data.split(header)
        data = header.join([parts[0], *(part[:place - 4] + b"\x01" + part[place - 3:] for part in parts[1:])])
    path.write_bytes(data)
    assert "encrypted: hand in a zip without a password" in reason(path)


@pytest.mark.parametrize("content, said", [(b"Rar!\x1a\x07\x01\x00rest", "RAR"), (b"7z\xbc\xaf\x27\x1crest", "7-Zip"), (b"%PDF-1.7", "a PDF"),
                                           (b"<!DOCTYPE html><title>Log in</title>", "a web page"),
                                           (b"print(1)\n", "no zip and no tar"), (b"", "is empty"),
                                           (gzip.compress(b"print(1)\n" * 100, mtime=0), "no zip and no tar"),
                                           (b"PK\x05\x06" + bytes(18), "no program in it")])
def test_what_is_called_an_archive_and_is_none_is_called_what_it_is(subs, content, said):
    (subs / "work.zip").write_bytes(content)
    assert said in reason(subs / "work.zip")


def test_an_archive_is_known_by_what_is_in_it_and_not_by_its_name(subs):
    shutil.move(tarred(subs / "a.tar.gz"), subs / "a.zip")
    assert files_in(taken_from(subs / "a.zip")) == PROGRAM


# ---- archives in submissions

@pytest.mark.parametrize("outer", ["a", "a.zip", "a.tar.gz"])
@pytest.mark.parametrize("inner", ["work.zip", "work.tar.xz"])
def test_an_archive_in_a_submission_is_opened(subs, tmp_path, outer, inner):
    content = pack(tmp_path / inner, {**STARTER, "starter/conftest.py": ""}).read_bytes()
    taken = taken_from(pack(subs / outer, {f"in/{inner}": content, "report.pdf": ""}))
    assert files_in(taken) == PROGRAM
    assert [one.path for one in taken.dropped] == [f"in/{inner}/starter/conftest.py"]
    assert taken.notes == [f"taken: in/{inner}; not taken: report.pdf"]


def test_archives_are_opened_only_so_deep(subs, tmp_path):
    content = zipped(tmp_path / "0.zip").read_bytes()
    for depth in range(1, 4):
        content = zipped(tmp_path / f"{depth}.zip", {f"{depth - 1}.zip": content}).read_bytes()
    assert files_in(taken_from(tmp_path / "2.zip")) == PROGRAM
    assert "no program in it" in reason(tmp_path / "3.zip")


def test_an_archive_in_an_archive_is_counted_too(subs):
    assert "more than 20 MB" in reason(zipped(subs / "a.zip", {"inner.zip": bytes(21 << 20)}))


def test_of_two_archives_the_newer_is_taken_as_a_whole(subs):
    path = subs / "a"
    for name, when, files in (("old.zip", 1_700_000_000, {**STARTER, "starter/extra.py": ""}), ("new.tar.gz", 1_700_003_600, STARTER)):
        os.utime(pack(path / name, files), (when, when))
    taken = taken_from(path)
    assert files_in(taken) == PROGRAM
    assert taken.notes == ["taken: new.tar.gz, the newest of 2 archives; not taken: old.zip"]
    assert taken.doubts == ["1 of 2 archives taken"]


def test_of_two_archives_of_one_time_none_is_taken(subs):
    for name in ("one.zip", "two.zip"):
        os.utime(zipped(subs / "a" / name), (1_700_000_000, 1_700_000_000))
    assert "one.zip, two.zip" in reason(subs / "a")
    assert "several archives" in reason(zipped(subs / "b.zip", {name: (subs / "a" / name).read_bytes() for name in ("one.zip", "two.zip")}))


# ---- what changes, and what cannot be read

def test_a_file_that_vanishes_or_turns_into_something_else_is_named(subs, tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("secret")
    changes = {"vanishes": lambda file: None, "link": lambda file: file.symlink_to(tmp_path / "secret"), "pipe": os.mkfifo, "folder": os.mkdir}
    for name, change in changes.items():
        file = folder(subs / name) / "starter/flow.py"
        real = os.open

        def changed(path, flags, *rest, file=file, change=change, real=real, **options):
            if path == "flow.py":
                file.unlink()
                change(file)
            return real(path, flags, *rest, **options)

        monkeypatch.setattr(sources.os, "open", changed)
        assert "starter/flow.py cannot be read" in reason(subs / name)
        monkeypatch.undo()


def test_a_folder_that_turns_into_a_link_is_not_followed(subs, tmp_path, monkeypatch):
    path, real, listed = folder(subs / "a"), os.open, []
    folder(tmp_path / "elsewhere", {"data.json": "secret"})

    def changed(name, *rest, **options):
        if name == "er":
            listed.append(name)
            if len(listed) == 2:   # the first time it is listed, the second time read
                shutil.move(path / "starter/deep/er", tmp_path / "moved")
                (path / "starter/deep/er").symlink_to(tmp_path / "elsewhere")
        return real(name, *rest, **options)

    monkeypatch.setattr(sources.os, "open", changed)
    assert "starter/deep/er/data.json cannot be read" in reason(path)


@pytest.mark.parametrize("closed", ["starter/flow.py", "starter/deep"])
def test_what_cannot_be_read_is_named(closed):
    with tempfile.TemporaryDirectory() as top:   # pytest's own folders are closed to others
        os.chmod(top, 0o777)
        path = folder(Path(top) / "a")
        (path / closed).chmod(0)
        root = os.geteuid() == 0
        try:
            os.seteuid(65534) if root else None
            said = reason(path)
        finally:
            os.seteuid(0) if root else None
            (path / closed).chmod(0o755)
        assert said == f"{closed} cannot be read: Permission denied"


def test_a_submission_that_is_gone_is_invalid(subs):
    assert "a.zip cannot be read: No such file" in reason(subs / "a.zip")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_what_this_machine_cannot_do_is_not_the_submissions_fault(subs, monkeypatch, number):
    path = folder(subs / "a")

    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(sources.os, "open", fail)
    with pytest.raises(OSError, match=os.strerror(number)):
        taken_from(path)


def test_that_the_copy_cannot_be_written_is_not_the_submissions_fault(subs, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        taken_from(folder(subs / "a"), tmp_path / "file" / "target")


# ---- what there is to grade

def test_a_folder_of_folders_and_archives(subs):
    for name in ("Ana Lima", "bob.zip", "cy.tar.gz", "dee.TGZ", "-e.tar.xz", "f.v2.tar.bz2", "gus.rar"):
        pack(subs / name)
    (subs / "README.md").touch()
    (subs / "grades.csv").touch()
    (subs / ".DS_Store").touch()
    (subs / "__MACOSX").mkdir()
    (subs / "empty").mkdir()
    found = find(subs)
    assert [(one.name, one.relative) for one in found.submissions] == [
        ("-e", "-e.tar.xz"), ("Ana Lima", "Ana Lima"), ("bob", "bob.zip"), ("cy", "cy.tar.gz"), ("dee", "dee.TGZ"), ("empty", "empty"),
        ("f.v2", "f.v2.tar.bz2"), ("gus", "gus.rar")]
    assert found.ignored == ["README.md: no folder and no archive", "grades.csv: no folder and no archive"]
    assert all(one.attempt is None and one.source == subs / one.relative for one in found.submissions)


@pytest.mark.parametrize("files", [STARTER, PROGRAM,
                                   {**STARTER, "labs/__main__.py": "", "grader/__main__.py": "", "solutions/01/flow.py": "", "a.md": ""}])
def test_one_submission_is_found_as_such(tmp_path, files):
    path = folder(tmp_path / "ana", files)
    assert names(path) == ["ana"] == names(zipped(tmp_path / "x" / "ana.zip", files)) == names(tarred(tmp_path / "y" / "ana.tar.gz", files))
    (submission,) = find(path).submissions
    assert files_in(take(submission, tmp_path / "taken")) == PROGRAM


def test_a_submission_called_starter_is_one_of_many(subs):
    for name in ("starter", "solution", "mistake"):
        folder(subs / name, PROGRAM)
    assert names(subs) == ["mistake", "solution", "starter"]


def test_names_are_unique_valid_text_of_one_line(subs):
    for name in NAMES:
        folder(subs / os.fsdecode(name))
    found = [one for one in find(subs).submissions]
    assert len({one.name for one in found}) == len(found) == len(NAMES) - 1   # but for the hidden one
    assert all("\n" not in one.name + one.relative and (one.name + one.relative).encode() for one in found)
    assert "caf\\udce9" in names(subs) and "a\\nb" in names(subs) and "山田　太郎" in names(subs)
    for number, one in enumerate(found):
        assert files_in(take(one, subs.parent / str(number))) == PROGRAM


def test_names_that_are_shown_alike_are_told_apart(subs):
    for name in ("a\nb", "a\\nb", "a\\nb (a\\nb)"):
        folder(subs / name)
    assert len(set(names(subs))) == 3


def test_the_archive_is_taken_before_the_folder_that_somebody_unpacked_it_to(subs):
    for name in ("ana", "ana.zip", "bob.rar", "bob"):
        pack(subs / name)
    assert [(one.name, one.relative, one.attempt) for one in find(subs).submissions] == [
        ("ana", "ana.zip", "2 have this name, ana.zip was taken; not taken: ana"), ("bob", "bob", "not taken: bob.rar")]


def test_only_those_that_are_wanted(subs):
    for name in ("ana", "bob.zip", "cy"):
        pack(subs / name)
    assert names(subs, "cy", "bob") == ["bob", "cy"] == names(subs, "bob.zip", str(subs / "cy") + "/")
    with pytest.raises(Refused, match="no submission bbo; there is: bob"):
        find(subs, ["ana", "bbo"])


def test_a_folder_without_submissions_or_none_at_all_is_refused(subs):
    (subs / "README.md").touch()
    with pytest.raises(Refused, match="nothing to grade"):
        find(subs)
    with pytest.raises(Refused, match="cannot be read: No such file"):
        find(subs / "nowhere")
    (subs / "README.md").unlink()
    with pytest.raises(Refused, match="which is empty"):
        find(subs)


@pytest.mark.parametrize("name, content, says", [("flow.py", b"print()", "is one file of a program: name a zip"), ("notes.txt", b"x", "is no archive"),
                                                 ("empty", b"", "is no archive"), ("essay.pdf", b"%PDF-1.4", "is no archive")])
def test_a_file_that_is_no_archive_is_refused_with_what_to_name(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Refused, match=says):
        find(tmp_path / name)


def test_an_archive_without_an_archives_name_is_one_submission(tmp_path):
    path = zipped(tmp_path / "a.zip", STARTER).rename(tmp_path / "work")
    assert names(path) == ["work"]


def test_a_report_is_no_folder_of_submissions(tmp_path):
    for name in ("journal.sqlite", "lock", "index.html", "submissions/ana.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(Refused, match="is a report of the grader, and holds no submissions: name the folder"):
        find(tmp_path)


def test_the_kit_as_handed_out_is_nobodys_submission_until_something_is_changed(tmp_path):
    folder(tmp_path / "kit", {"labs/__main__.py": "", "README.md": ""})
    with zipfile.ZipFile(SHIPPED) as archive:
        archive.extractall(tmp_path / "kit" / "starter")
    with pytest.raises(Refused, match="learners' kit as it is handed out.*--one"):
        find(tmp_path / "kit")
    assert [one.name for one in find(tmp_path / "kit", one=True).submissions] == ["kit"]
    assert names(tmp_path) == ["kit"]   # among others it is one that did nothing
    with open(tmp_path / "kit" / "starter" / "flow.py", "a") as file:
        file.write("# mine\n")
    assert names(tmp_path / "kit") == ["kit"]


# ---- platforms

GRADESCOPE = """---
submission_101:
  :submitters:
  - :name: Ana Lima
    :sid: '1'
    :email: ana@example.com
  :created_at: 2026-11-20 14:03:12.123000000 Z
  :score: 0.0
  :results:
    output: "!!python/object/apply:os.system ['false']"
    tests: []
  :history:
  - :id: 99
    :created_at: 2026-11-18 10:00:00.000000000 Z
  - :id: 100
    :created_at: !ruby/object:ActiveSupport::TimeWithZone
      utc: 2026-11-19 10:00:00.000000000 Z
      zone: !ruby/object:ActiveSupport::TimeZone
        name: Etc/UTC
submission_102:
  :submitters:
  - :name: Bob
    :email: bob@example.com
  - :name: Cy
    :email: cy@example.com
  :created_at: 2026-11-20 09:00:00 Z
submission_103:
  :submitters:
  - :name: Cy
    :email: cy@example.com
  - :name: Bob
    :email: bob@example.com
  :created_at: 2026-11-20 10:00:00 Z
submission_104:
  :submitters:
  - :name: Ana Lima
    :email: other@example.com
submission_105:
  :submitters: []
submission_106:
  :submitters:
  - :name: Nobody
"""


def gradescope(path, text=GRADESCOPE):
    folder(path, {"submission_metadata.yml": text})
    for number in range(101, 106):
        folder(path / f"submission_{number}")
    return path


@pytest.mark.parametrize("deeper", [False, True])
def test_a_gradescope_export(subs, deeper):
    above = "assignment_9_export/" if deeper else ""
    gradescope(subs / above)
    found = find(subs)
    assert [(one.name, one.relative.removeprefix(above), one.attempt) for one in found.submissions] == [
        (f"Ana Lima ({above}submission_101)", "submission_101", "attempt 3 of 3, 2026-11-20 14:03"),
        (f"Ana Lima ({above}submission_104)", "submission_104", None),
        ("Cy & Bob", "submission_103", "2026-11-20 10:00; the newest of 2; not taken: submission_102"),
        ("submission_105", "submission_105", None)]
    assert [one.doubts for one in found.submissions] == [(), (), ("1 of 2 taken",), ()]   # the last of three attempts is no doubtful one
    assert found.ignored == ["submission_106 (Nobody): in submission_metadata.yml, but not there"]


def test_an_earlier_attempt_that_the_student_chose_is_called_so(subs):
    gradescope(subs, GRADESCOPE.replace("2026-11-20 14:03:12.123000000", "2026-11-18 14:03:12.123000000"))
    assert find(subs).submissions[0].attempt == "attempt 2 of 3, 2026-11-18 14:03"
    assert find(subs).submissions[0].doubts == ("attempt 2 of 3",)


@pytest.mark.parametrize("text", ["a: [", "a: &x [*x", "\x00", b"\xff\xfe\xff", "[" * 100_000])
def test_metadata_that_cannot_be_read_is_refused(subs, text):
    gradescope(subs, text)
    with pytest.raises(Refused, match="submission_metadata.yml cannot be read"):
        find(subs)


@pytest.mark.parametrize("text", ["", "[]", "submission_101: []", "submission_101: {':submitters': {a: b}, ':history': 3}",
                                  "submission_101: {':submitters': [3, {':name': [x]}], ':created_at': 3}", "a: &x [*x]",
                                  "submission_101: !!python/object/apply:os.system ['touch hacked']"])
def test_metadata_that_says_nothing_of_use_leaves_the_names(subs, text, monkeypatch):
    monkeypatch.chdir(subs.parent)
    found = find(gradescope(subs, text)).submissions
    assert {one.relative for one in found} == {f"submission_{number}" for number in range(101, 106)}
    assert not Path("hacked").exists()


def test_students_of_whom_the_metadata_says_nothing_are_not_one(subs):
    text = "".join(f"submission_{number}: {{':submitters': [{{':name': null, ':email': ''}}]}}\n" for number in range(101, 106))
    assert len(names(gradescope(subs, text))) == 5


def test_a_moodle_download_in_folders(subs):
    for name in ("Ana Lima_11_assignsubmission_file", "Bob_12_assignsubmission_file_", "Ana Lima_13_assignsubmission_file_",
                 "Participant_14_assignsubmission_onlinetext", "Default group_assignsubmission_file"):
        (subs / name).mkdir()
    zipped(subs / "Bob_12_assignsubmission_file_" / "work.zip")
    folder(subs / "Bob_12_assignsubmission_onlinetext_", {"onlinetext.html": "<p>see the file"})
    assert [(one.name, one.attempt) for one in find(subs).submissions] == [
        ("Ana Lima (11)", None), ("Ana Lima (13)", None), ("Bob", "not taken: Bob_12_assignsubmission_onlinetext_"), ("Default group", None),
        ("Participant", None)]
    assert not any(one.doubts for one in find(subs).submissions)   # an online text is no other attempt
    assert files_in(take(find(subs, ["Bob"]).submissions[0], subs.parent / "taken")) == PROGRAM


def test_a_moodle_download_in_files(subs):
    for name, when in (("Ana Lima_11_assignsubmission_file_my_work.zip", 2), ("Ana Lima_11_assignsubmission_file_work2.zip", 1),
                       ("Ana Lima_11_assignsubmission_file_report.pdf", 3), ("Bob_12_assignsubmission_file_flow.py", 1)):
        os.utime(zipped(subs / name), (when, when))
    ana, bob = find(subs).submissions
    assert (ana.name, ana.relative) == ("Ana Lima", "Ana Lima_11_assignsubmission_file_my_work.zip")
    assert ana.attempt == ("the newest of 2 by the files' times; not taken: Ana Lima_11_assignsubmission_file_work2.zip, "
                           "Ana Lima_11_assignsubmission_file_report.pdf")
    assert (ana.doubts, bob.doubts) == (("1 of 3 taken",), ())
    assert (bob.name, bob.relative) == ("Bob", "Bob_12_assignsubmission_file_flow.py")   # no archive, and yet not forgotten


def test_a_canvas_download(subs):
    for name in ("limaana_501_90001_starter.zip", "limaana_501_90017_starter-1.zip", "limaana_501_90005_starter-2.zip",
                 "limaana_501_90020_notes.pdf", "roybob_LATE_502_90002_work_2_1234_final.zip", "van_der_bergcy_503_90003_x.tar.gz",
                 "LATE_anon_Ab1_90004_x.zip", "limaana_504_90006_x.zip", "fayeva_505_90007_flow.py", "emailed by gus.zip"):
        pack(subs / name)
    folder(subs / "limaana_501_90001_starter")   # somebody has unpacked it
    assert [(one.name, one.relative, one.attempt) for one in find(subs).submissions] == [
        ("anon_Ab1", "LATE_anon_Ab1_90004_x.zip", "late"),
        ("emailed by gus", "emailed by gus.zip", None),
        ("fayeva", "fayeva_505_90007_flow.py", None),
        ("limaana (501)", "limaana_501_90017_starter-1.zip", "the newest of 4; not taken: limaana_501_90005_starter-2.zip, "
         "limaana_501_90001_starter.zip, limaana_501_90001_starter, limaana_501_90020_notes.pdf"),
        ("limaana (504)", "limaana_504_90006_x.zip", None),
        ("roybob", "roybob_LATE_502_90002_work_2_1234_final.zip", "late"),
        ("van_der_bergcy", "van_der_bergcy_503_90003_x.tar.gz", None)]
    assert {one.name: one.doubts for one in find(subs).submissions if one.doubts} == {
        "anon_Ab1": ("late",), "limaana (501)": ("1 of 5 taken",), "roybob": ("late",)}


@pytest.mark.parametrize("pattern", ["hw_1_20261120_{}.zip", "hw_{}_2026_x.zip", "lab_2_{}_2026.zip"])
def test_names_that_only_look_like_canvas_do_not_make_one_student_of_many(subs, pattern):
    for student in ("1001", "1002", "1003"):
        zipped(subs / pattern.format(student))
    assert len(names(subs)) == 3


@pytest.mark.parametrize("top, cloned, expected", [
    ("subs", True, ["ana", "bob-x"]), ("lab-1-submissions", False, ["ana", "bob-x"]), ("subs", False, ["lab-1-ana", "lab-1-bob-x"])])
def test_a_github_classroom_download_of_clones(tmp_path, top, cloned, expected):
    for name in ("lab-1-ana", "lab-1-bob-x"):
        folder(tmp_path / top / name, {**STARTER, **({".git/HEAD": "ref: refs/heads/main"} if cloned else {})})
    found = find(tmp_path / top).submissions
    assert [one.name for one in found] == expected and found[0].relative == "lab-1-ana"
    assert files_in(take(found[0], tmp_path / "taken")) == PROGRAM


def test_a_prefix_is_cut_only_where_names_are_left(subs):
    for name in ("lab-group-1", "lab-group-2", "lab-group-10"):
        folder(subs / name, {".git/HEAD": ""})
    assert names(subs) == ["group-1", "group-10", "group-2"]
    folder(subs / "lab-")
    assert len(names(subs)) == 4 and "lab-" in names(subs)


def test_github_zips_of_a_branch(subs):
    for name in ("lab1-ana", "lab1-anton"):
        zipped(subs / f"{name}-main.zip", {f"{name}-main/{file}": content for file, content in STARTER.items()})
    found = find(subs).submissions
    assert [one.name for one in found] == ["ana", "anton"]
    assert files_in(take(found[0], subs.parent / "taken")) == PROGRAM


@pytest.mark.parametrize("files", [
    {"submission_metadata.yml": "", "submission_1/flow.py": ""}, {"a/submission_metadata.yml": "", "a/submission_1/__main__.py": ""},
    {"Ana_1_assignsubmission_file/starter/__main__.py": ""}, {"Ana_1_assignsubmission_file_x.zip": ""},
    {"anal_1_10001_x.zip": "", "bob_2_10002_report.pdf": ""}, {"ana.zip": "", "bob.zip": ""}])
def test_a_download_that_was_not_unpacked_is_refused_with_what_to_do(tmp_path, files):
    with pytest.raises(Refused, match="holds more than one submission: unpack it"):
        find(zipped(tmp_path / "download.zip", files))


def test_a_damaged_archive_alone_is_found_and_left_to_be_invalid(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 and no more")
    assert names(tmp_path / "a.zip") == ["a"]


# ---- the whole

def test_the_submissions_folder_is_never_written_to(subs, tmp_path):
    for name in ("ana", "bob.zip", "cy.tar.gz", "dee.tar"):
        pack(subs / name)
    zipped(subs / "eve" / "work.zip")
    (subs / "ana" / "link").symlink_to("starter")
    (subs / "bad.zip").write_bytes(b"PK\x03\x04")
    gradescope(subs)
    before = state_of(subs)
    for number, one in enumerate(find(subs).submissions):
        try:
            take(one, tmp_path / str(number))
        except Invalid:
            assert one.name == "bad"
    assert number > 5 and state_of(subs) == before


def test_finding_is_quick_and_reads_no_submission(subs, monkeypatch):
    for number in range(300):
        zipped(subs / f"student {number}.zip")
    monkeypatch.setattr(sources.os, "open", None)
    began = time.process_time()
    assert len(names(subs)) == 300
    assert time.process_time() - began < 0.5
