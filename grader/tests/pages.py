"""The pages that people read: README, chapters, contract, guide, notebooks; and the commands that they name."""

import json
import re

from labs.harness.staging import KIT

PROGRAMS = "pytest|labs|grader|python|jupyter|git|for"
COMMAND = re.compile(rf"(?:\.venv/bin/)?(?:{PROGRAMS}) .*")
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
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if kind == "sh":
            yield from ((NOTES.sub("", line), []) for line in block.splitlines())
        else:
            for said in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, *shown = said.splitlines()
                yield command, shown
    yield from ((span, []) for span in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)) if COMMAND.fullmatch(span))
