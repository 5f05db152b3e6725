"""Whether a learner's kit has something of what learners should not find: of solutions, of hidden checks, of the grader.

Lines are compared without their indentation, so that neither another file name nor another place in a file hides them. What
the starter or a chapter says is no secret, nor is an import or `except X:`. Some lines are so plain that two people write them: one
counts from LONG characters on, else there must be two, or RUN of them one after the other. Of the grader, whose commands are
written like the learner's, only a good part of a module counts.
"""

import base64
import html
import io
import json
import re
import zipfile
from pathlib import PurePosixPath

from labs.command.shipped import ARCHIVE, files_of, shipped_starter
from labs.harness.staging import KIT

SHORT, LONG = 24, 40   # characters of a line that says something, and of one that says enough
RUN, PART = 5, 20      # lines: of what is secret, of the grader
FORBIDDEN = {"solutions", "hidden", "grader"}   # as names of folders
CHECK = re.compile(r"def (test_\w+)\(")
SVG = re.compile(r"image/svg\+xml;base64,([A-Za-z0-9+/=]+)")
TAG = re.compile(r"<[^<>]*>")
PLAIN = re.compile(r"(from [\w.]+ )?import [\w.]+|except [\w.]+( as \w+)?:$")   # an import, or the head of a handler: anybody writes these


def leaks(files, kit=KIT):
    """A line for each leak in `files`, {relative path: bytes}; none where there is none."""
    secrets = _Secrets(kit)
    found = [f"{name}: there should be no folder of that name" for name in files if FORBIDDEN & set(PurePosixPath(name).parts[:-1])]
    for name, text in _texts(files):
        if text is None:
            found.append(f"{name}: is no text, and cannot be looked into")
        elif leak := secrets.within(text):
            found.append(f"{name}{leak}")
    return found


def _texts(files):
    """(name, text) of each file, of a notebook's cells, and of each member of the shipped starter's archive; None for what cannot be read."""
    for name, content in files.items():
        if name == str(ARCHIVE):
            try:
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    yield from _texts({f"{name}/{member}": archive.read(member) for member in archive.namelist()})
                continue
            except zipfile.BadZipFile:
                pass
        try:
            text = content.decode()
            if name.endswith(".ipynb"):   # where each line of a cell is a string of JSON
                text = "\n".join(shown for cell in json.loads(text)["cells"] for shown in _shown(cell))
            yield name, text
        except (ValueError, LookupError, TypeError):   # of which UnicodeDecodeError is one
            yield name, None


def _shown(cell):
    """The texts of a cell of a notebook: its own, and those of its outputs, a picture's too."""
    yield "".join(cell["source"])
    for output in cell.get("outputs", ()):
        for text in (output.get("text", ""), output.get("traceback", ""), *output.get("data", {}).values()):
            text = "".join(text) if isinstance(text, list) else str(text)
            for seen in (text, *(base64.b64decode(image).decode() for image in SVG.findall(text))):
                yield seen
                yield html.unescape(TAG.sub("\n", seen))


def _lines(text):
    """(number, line) of each line that is neither blank nor plain."""
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in lines if line and not PLAIN.match(line)]


def _runs(lines, length):
    return (tuple(lines[start:start + length]) for start in range(len(lines) - length + 1))


class _Secrets:
    """All that is secret in a kit, by lines."""

    def __init__(self, kit):
        chapters = [path.read_bytes() for path in (kit / "labs").glob("[0-9][0-9]/README.md")]
        texts = [*shipped_starter(kit).values(), *chapters]
        public = {line for text in texts for _, line in _lines(text.decode(errors="replace"))}
        self._single, self._checks, self._runs = {}, {}, {}
        for folder in (kit / "solutions", *sorted((kit / "labs").glob("[0-9][0-9]/hidden")), kit / "grader"):
            for name, content in files_of(folder).items():
                secret = f"{folder.relative_to(kit).as_posix()}/{name}"
                if folder.name == "grader" and not name.endswith(".py"):
                    continue   # the learner's own files are among them
                lines = [line for _, line in _lines(content.decode(errors="replace"))]
                for run in _runs(lines, PART if folder.name == "grader" else RUN):
                    if not public.issuperset(run):
                        self._runs.setdefault(run, secret)
                if folder.name == "solutions":
                    self._single |= {line: secret for line in lines if len(line) >= SHORT and line not in public and line not in self._single}
                if folder.name == "hidden":
                    self._checks |= {check: secret for check in CHECK.findall("\n".join(lines))}

    def within(self, text):
        """Where and of what a text has something secret, in words that follow its name; None where it has nothing."""
        lines = _lines(text)
        said = {line: number for number, line in reversed(lines) if line in self._single}
        if len(said) > 1 or any(len(line) >= LONG for line in said):
            first = min(said, key=said.get)
            return f":{said[first]}: {len(said)} line{'s' * (len(said) > 1)} of {self._single[first]}, like “{first[:60]}”"
        for number, line in lines:
            for check in CHECK.findall(line):
                if check in self._checks:
                    return f":{number}: the hidden check {check} of {self._checks[check]}"
        for length in (RUN, PART):
            for (number, _), run in zip(lines, _runs([line for _, line in lines], length)):
                if run in self._runs:
                    return f":{number}: {length} lines on end of {self._runs[run]}"
        return None
