"""A copy of the kit with two small labs, for tests that edit, damage and reset it. Their checks start no program."""

import os
import shutil
import subprocess
import sys

from labs.harness.staging import KIT

LEFT_OUT = shutil.ignore_patterns("__pycache__", "[0-9][0-9]")

MANIFEST = '''
number = "{number}"
title = "{title}"
points = {points}
minutes = 45
hints = ["The first hint of lab {number}: look at `flow.py`.", "The second hint.", "The third hint."]
'''
CHECK = '''
[[checks]]
test = "{test}"
points = {points}
does = "{does}"
'''
LABS = {
    "01": ("write it down", [("test_small.py::test_the_flow_is_marked", 3, "Looks into flow.py for the mark of lab 01."),
                             ("test_small.py::test_there_is_a_record", 2, "Looks whether there is a record.py, twice."),
                             ("hidden/test_close.py::test_hidden", 5, "Is hidden, and would always fail.")]),
    "02": ("resume", [("test_small.py::test_the_flow_resumes", 4, "Looks into flow.py for the mark of lab 02.")]),
}
HELD = '''
    if port := os.environ.get("{name}"):
        with socket.create_connection(("127.0.0.1", int(port))) as door:
            door.sendall(b"%d\\n" % os.getpid())
            door.recv(1)
'''
SUITES = {
    "01/test_small.py": f'''
import os, socket
import pytest

def test_the_flow_is_marked(lab_session):
    {HELD.format(name="HELD_AT").strip()}
    if os.environ.get("BREAK_THE_SUITE"):
        raise RuntimeError("the suite is broken")
    assert "mark 01" in (lab_session.staged.folder / "starter/flow.py").read_text(), "flow.py has no mark 01"

@pytest.mark.parametrize("time", [1, 2])
def test_there_is_a_record(lab_session, time):
    assert (lab_session.staged.folder / "starter/record.py").exists(), "there is no record.py"
''',
    "01/hidden/test_close.py": '''
def test_hidden():
    assert False, "the hidden check ran"
''',
    "02/test_small.py": f'''
import os, socket

def test_the_flow_resumes(lab_session):
    {HELD.format(name="HELD_LATE_AT").strip()}
    assert "mark 02" in (lab_session.staged.folder / "starter/flow.py").read_text(), "flow.py has no mark 02"
''',
}
SOLUTIONS = {"01/flow.py": "# mark 01\n", "01/record.py": "RECORD = {}\n", "02/flow.py": "# mark 01\n# mark 02\n"}


class SmallKit:
    """The copy at `root`, and the command in it."""

    def __init__(self, root):
        self.root = root
        for folder in ("labs", "starter"):
            shutil.copytree(KIT / folder, root / folder, ignore=LEFT_OUT)
        shutil.copy(KIT / "pyproject.toml", root)
        for number, (title, checks) in LABS.items():
            text = MANIFEST.format(number=number, title=title, points=sum(points for _, points, _ in checks))
            self.write(f"labs/{number}/lab.toml", text + "".join(CHECK.format(test=test, points=points, does=does)
                                                                 for test, points, does in checks))
        for files, folder in ((SUITES, "labs"), (SOLUTIONS, "solutions")):
            for name, content in files.items():
                self.write(f"{folder}/{name}", content)

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def read(self, name):
        return (self.root / name).read_text()

    def solve(self, number):
        """Put the solutions up to lab `number` into starter/."""
        for lab in sorted((self.root / "solutions").iterdir()):
            if lab.name <= number:
                shutil.copytree(lab, self.root / "starter", dirs_exist_ok=True)

    def popen(self, *arguments, cwd=None, environment=(), **options):
        """Begin `python -m labs *arguments` in the copy, on 80 columns."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "BROWSER", "DISPLAY", "WAYLAND"))}
        return subprocess.Popen([sys.executable, "-m", "labs", *arguments], cwd=cwd or self.root, text=True, **options,
                                env={**kept, "PYTHONPATH": str(self.root), "COLUMNS": "80", **dict(environment)})

    def run(self, *arguments, stdin="", **options):
        """Run it to its end; returns the exit code, and what it wrote on stdout and stderr."""
        process = self.popen(*arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        stdout, stderr = process.communicate(stdin, timeout=60)
        assert "Traceback" not in stderr, stderr
        return process.returncode, stdout, stderr
