"""The pages that people read: README, chapters, contract, guide, notebooks; and the commands that they name."""

import json
import re

from labs.harness.staging import KIT

PROGRAMS = "pytest|labs|grader|python3?|pip|jupyter|git|for|sudo"
COMMAND = re.compile(rf"(?:\.venv/bin/)?(?:{PROGRAMS}) .*|\./.*")
FENCED = re.compile(r"^( *)(```+|~~~+)(\w*)[^\n]*\n(.*?)^\1\2$", re.M | re.S)
SHELLS = {"sh", "bash", "shell", "console"}
NOTES = re.compile(r"\s{2,}#.*")   # what a page says of a command, behind it


def pages():
    """(name, text) of every page."""
    for path in (KIT / "README.md", *sorted(KIT.glob("labs/[0-9][0-9]/README.md")), KIT / "labs/CONTRACT.md", KIT / "grader/README.md",
                 *sorted(KIT.glob("notebooks/*.ipynb"))):
        yield path.relative_to(KIT).as_posix(), prose_of(path)


def prose_of(path):
    """The text of a page; of a notebook what is written between its cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def commands_of(text):
    """(command, the lines that the page shows of what it prints) of each command of a page."""
    for indent, _, kind, block in FENCED.findall(text):
        block = re.sub(rf"^{indent}", "", block, flags=re.M)
        if kind in SHELLS and not re.search(r"^\$ ", block, re.M):
            yield from ((NOTES.sub("", line), []) for line in block.replace("\\\n", "").splitlines() if line.strip())
        else:
            for said in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, *shown = said.splitlines()
                yield command, shown
    spans = (span.strip().removeprefix("$ ") for span in re.findall(r"`([^`\n]+)`", FENCED.sub("", text)))
    yield from ((span, []) for span in spans if COMMAND.fullmatch(span))
