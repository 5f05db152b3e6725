"""What a notebook must be besides what nbval looks at: committed whole, as it was run, and outlived by nothing that it started."""

import base64
import json
import re
import sys
from pathlib import Path

import pytest

try:
    import nbval as _   # loads itself as a plugin, where it is there
except ModuleNotFoundError as error:
    sys.exit(f"{sys.executable} has no {error.name}: running the notebooks needs more than the labs do: "
             f"{sys.executable} -m pip install -e '{Path(__file__).resolve().parents[1]}[notebooks,engines]'; reading them needs nothing")
from labs.harness import descendants

MOST_BYTES = 300_000
METADATA = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}}
# What would have nbval look away; it reads them as comments and as tags.
LOOK_AWAY = re.compile(r"#\s*(?:NBVAL_|PYTEST_VALIDATE_)\w+", re.I)
MACHINE = re.compile(r"(?<![\w.])/(?:home|root|Users|work|tmp|var|private|opt|dev/shm)/[^\s\"]*")
IMAGE = re.compile(r"base64,([A-Za-z0-9+/=]+)")
COMPARED = {"text/plain", "text/html"}   # what nbval has a look at, and a notebook here shows
QUESTIONS = 5
WIDEST = 110   # characters: of a longer line of code the end is out of sight


def faults_of(path):
    """What is wrong with a notebook as it was committed, a sentence each."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    if path.stat().st_size >= MOST_BYTES:
        yield f"it has {path.stat().st_size} bytes, it should have less than {MOST_BYTES}"
    if notebook["metadata"] != METADATA:
        yield "its metadata are not those of every notebook here"
    for number, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), 1):
        if cell["execution_count"] != number:
            yield f"code cell {number} was not run in its place, its number is {cell['execution_count']}"
        if cell["metadata"] or LOOK_AWAY.search("".join(cell["source"])):
            yield f"code cell {number} has metadata, or a comment that keeps its output from being compared"
        if any(output["output_type"] == "error" for output in cell["outputs"]):
            yield f"code cell {number} raised an exception"
        if any(len(line.rstrip()) > WIDEST for line in cell["source"]):
            yield f"code cell {number} has a line of more than {WIDEST} characters"
        if other := {kind for output in cell["outputs"] for kind in output.get("data", ())} - COMPARED:
            yield f"code cell {number} shows {', '.join(sorted(other))}, which is not compared"
        if found := MACHINE.search(IMAGE.sub(_drawn, json.dumps(cell["outputs"], ensure_ascii=False))):
            yield f"the output of code cell {number} names a place on one machine: {found[0]}"
    last = "".join(notebook["cells"][-1]["source"]) if notebook["cells"] else ""
    if not last.startswith("## Check your understanding") or last.count("<details>") != QUESTIONS or "Put in order" not in last:
        yield f"its last cell is not “Check your understanding”: {QUESTIONS} questions, each with its answer, one of them to put in order"


def _drawn(image):
    """What is written in a picture."""
    return base64.b64decode(image[1]).decode(errors="replace")


class Committed(pytest.File):
    """A notebook as a file: nobody runs it."""

    def collect(self):
        yield AsCommitted.from_parent(self, name="as committed")


class AsCommitted(pytest.Item):
    def runtest(self):
        if faults := list(faults_of(self.path)):
            pytest.fail(f"{self.path.name} is not as it was run; `python notebooks/renew.py` runs it and writes it anew\n" + "\n".join(faults),
                        pytrace=False)

    def reportinfo(self):
        return self.path, None, f"{self.path.name}: as committed"


def pytest_collect_file(file_path, parent):
    return Committed.from_parent(parent, path=file_path) if file_path.suffix == ".ipynb" else None


def pytest_configure(config):
    descendants.adopt_orphans()   # what outlives a kernel becomes our child


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    result = yield
    if nextitem is None or nextitem.path != item.path:   # its kernel has ended
        if left := descendants.survivors():
            pytest.fail(f"{left[0]} outlived {item.path.name}", pytrace=False)
    return result
