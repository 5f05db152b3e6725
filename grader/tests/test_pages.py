"""The pages: every command that the README, a chapter, a guide or a notebook names is run, and what a page shows is what comes."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.tests.pages import commands_of, pages
from labs.command.durable import write_tree
from labs.command.shipped import shipped_starter
from labs.harness.staging import KIT


@dataclass
class Run:
    """How a command is tried: in a copy of the kit, after `before`, with `given` in place of words that stand for something of the reader's."""

    says: str = ""                # a pattern that is found in what it prints
    code: int | None = 0          # None: what it is depends on the machine
    given: dict = None            # {word on the page: what is there instead}
    before: str = ""              # what has to be done first, in bash
    slow: bool = False            # takes more than some seconds
    elsewhere: str = ""           # the test that runs it, where that needs more than a shell


BY_HAND = "test_by_hand.py::test_what_lab_01_does_by_hand"
CHAT = "test_by_hand.py::test_the_starter_chats_until_its_memory_is_longer_than_the_models_window"
QUEUE = "test_engine_dbos.py::test_a_killed_workers_submissions_are_graded_once_by_the_others"
CI = ".ci/run"
CLASS = "mkdir -p ../downloads; cp -r starter ../downloads/untouched; mkdir ../downloads/finished; cp starter/*.py solutions/0[1-5]/*.py ../downloads/finished; "
GRADED = CLASS + "grader grade ../downloads --out ../report --labs 1 --sample 40; "
SAMPLE = {"pytest": "pytest --lab-sample 40"}   # where all points of these checks are another command's
ALL_RED, ALL_GREEN = r": \d of (\d+) checks passed.*, seed 1", r": (\d+) of \1 checks passed, (\d+) of \2 points"
RUNS = {
    "python3 -m venv .venv && .venv/bin/pip install -q -e '.[all]' -c .ci/constraints.txt && .venv/bin/grader demo": Run(elsewhere=CI),
    "python3 -m venv .venv && .venv/bin/pip install -q -e .": Run(elsewhere="test_pythons.py::test_the_labs_and_their_harness_work"),
    ".venv/bin/pytest": Run(elsewhere=CI),
    "pytest -m slow": Run(elsewhere=CI),
    ".venv/bin/labs demo": Run("2 refunds for one order"),
    "labs demo": Run("2 refunds for one order"),
    ".venv/bin/grader demo": Run("finished", slow=True),
    ". .venv/bin/activate": Run(),
    "labs status": Run("01 write the plan down", slow=True),
    "labs status 03": Run("03 resume", slow=True),
    **{f"labs hint 0{number}": Run(f"lab 0{number}") for number in range(1, 6)},
    "labs show": Run("why  ", before="pytest labs/01 -k finished_run;"),
    "labs show 02": Run("lab 02", before="pytest labs/01 -k finished_run; pytest labs/01 labs/02 --lab-sample 40 -k done;"),
    "labs solution 03": Run(code=1, slow=True),
    "labs reset 03": Run(given={"03": "03 --yes"}),
    "labs doctor": Run("Python", code=None),
    "labs bench": Run("line", given={"bench": "bench --points 1"}, slow=True),
    "labs engines": Run("sqlite", given={"engines": "engines --only sqlite --points 2 --runs 1"}, slow=True),
    "labs outside": Run(elsewhere=BY_HAND),
    "python -m labs outside": Run(elsewhere=BY_HAND),
    "python -m labs outside --pace 0": Run(elsewhere=BY_HAND),
    "python -m starter start starter/ticket.json &": Run(elsewhere=BY_HAND),
    "python -m starter start starter/ticket.json": Run(elsewhere=BY_HAND),
    "python -m starter resume 5e5957cc98bd4bc4b2b397b01e6f7cde": Run(elsewhere=BY_HAND),
    "5e5957cc98bd4bc4b2b397b01e6f7cde": Run(elsewhere=BY_HAND),   # what the flow prints behind the prompt
    "echo $?": Run(elsewhere=BY_HAND),
    'for n in $(seq 400); do echo "turn $n: is there any news of parcel P-$n"; done | python -m starter chat C-7 | tail -1': Run(elsewhere=CHAT),
    "labs sweep solutions/05": Run(" 0 bad", slow=True),
    "labs sweep DIR": Run(" 0 bad", given={"DIR": "solutions/05 --kind race"}),
    "labs sweep": Run(" 0 bad", given={"sweep": "sweep solutions/05 --kind power"}),
    "labs sweep starter --lab 02": Run("by the rules of lab 02", code=1, given={"02": "02 --kind power"}),
    "python -m labs sweep starter --lab 01 --kind power": Run("starter", code=1, slow=True),
    "python -m labs sweep solutions/mistakes/the-default-will-do --kind power": Run("[1-9] bad", code=1, slow=True),
    "python -m labs sweep solutions/mistakes/act-then-record --kind line --lab 03": Run("refunded twice", code=1, slow=True),
    **{f"pytest labs/0{number}": Run(rf"lab 0{number} .*: \d of \d+ checks passed.*; program starter", code=1, given=SAMPLE, slow=True) for number in range(1, 6)},
    **{f"pytest labs/0{number} --program solutions/0{number - 1}": Run(ALL_RED, code=1, given=SAMPLE, slow=True) for number in range(2, 6)},
    **{f"pytest labs/0{number} --program solutions/0{number}": Run(ALL_GREEN, slow=True) for number in range(1, 6)},
    "pytest labs/03 --program DIR": Run(ALL_GREEN, given={"DIR": "solutions/03", **SAMPLE}, slow=True),
    "pytest labs/03 --program solutions/engines/dbos --lab-preload dbos": Run(ALL_GREEN, given={"--lab-preload": "--lab-sample 60 --lab-preload"}, slow=True),
    "pytest labs --program DIR": Run("lab 05" + ALL_GREEN.replace(":", ".*:", 1), given={"DIR": "solutions/05 --lab-sample 8"}, slow=True),
    "pytest labs/03 --program solutions/mistakes/started-taken-for-done": Run("FAIL", code=1, slow=True),
    "jupyter lab notebooks": Run(elsewhere="test_notebooks.py::test_jupyter_serves_the_notebooks"),
    "pytest notebooks": Run(elsewhere="test_notebooks.py::test_a_notebook_shows_what_was_committed"),
    "git checkout notebooks": Run(before="git init -q .; git add notebooks; echo >> notebooks/plots.py;"),
    "grader doctor": Run("Python", code=None),
    "grader selftest": Run("nothing is not as it has to be", given={"selftest": "selftest --quick"}, slow=True),
    "grader release ../kit-for-learners": Run("It may be handed out", slow=True),
    "grader grade ../downloads --out ../report": Run("untouched", before=CLASS, slow=True),
    "grader grade ../downloads --out ../report-2": Run("untouched", before=CLASS, given={"../report-2": "../report-2 --labs 1 --sample 40"}, slow=True),
    "grader diff ../report ../report-2": Run("same", before=GRADED + GRADED.replace(CLASS, "").replace("../report", "../report-2"), slow=True),
    "grader grade ../downloads --out /shared/report --engine dbos --database postgresql://…": Run(elsewhere=QUEUE),
    "grader worker --database postgresql://…": Run(elsewhere=QUEUE),
    "grader gradescope autograder.zip": Run("autograder.zip"),
}
#: What looks like a command and is none: a form, a name, a piece of code.
NO_COMMAND = {"python -m labs", "python -m starter", "python -m starter VERB …", "python -m starter status RUN_ID", "grader error", "for attempt in range(5)"}
DIFFERS = [(r"[0-9a-f]{32}", "ID"), (r"[0-9a-f]{8}…", "ID…"), (r"\d+\.\d+ ?s\b( \(\d+:\d+:\d+\))?", "T"), (r" +\d+/s", " RATE"), (r" +\d+ points", " N points"),
           (r"={3,}", "==="), (r"[ \t]+", " ")]   # from run to run, and the widths of columns


def tried():
    """(command, Run, pages' lines that show what it prints) of each command that a shell runs here."""
    shown = {}
    for _, text in pages():
        for command, lines in commands_of(text):
            shown.setdefault(command, []).extend(lines)
    for command, run in RUNS.items():
        if not run.elsewhere:
            yield pytest.param(command, run, shown.get(command, []), id=command, marks=[pytest.mark.slow, pytest.mark.timeout(900)] if run.slow else [])


@pytest.mark.parametrize("name, text", list(pages()), ids=lambda value: value.split("\n")[0][:40])
def test_every_command_of_a_page_is_known(name, text):
    unknown = [command for command, _ in commands_of(text) if command not in RUNS and command not in NO_COMMAND]
    assert not unknown, f"{name} names commands that no test runs: {unknown}"


def test_no_command_is_tried_that_no_page_names():
    named = {command for _, text in pages() for command, _ in commands_of(text)}
    assert named == {*RUNS, *NO_COMMAND}


@pytest.mark.parametrize("text, command", [
    ("```bash\nlabs x\n```\n", "labs x"), ("~~~sh\nlabs x\n~~~\n", "labs x"), ("1. so:\n\n   ```sh title=x\n   labs x  # so\n   ```\n", "labs x"),
    ("```console\n$ labs x\n```\n", "labs x"), ("```sh\nlabs \\\nx\n```\n", "labs x"), ("`$ labs x`", "labs x"), ("``labs x``", "labs x"),
    ("| so | `pip install x` |", "pip install x"), ("`sudo labs x`", "sudo labs x"), ("`./x.sh`", "./x.sh"), ("`python3 -m labs x`", "python3 -m labs x")])
def test_a_command_is_seen_however_a_page_writes_it(text, command):
    assert [found for found, _ in commands_of(f"Before.\n\n{text}\nBehind.\n")] == [command]


@pytest.mark.parametrize("place", sorted({run.elsewhere for run in RUNS.values() if "::" in run.elsewhere}))
def test_what_runs_elsewhere_is_there(place):
    file, name = place.split("::")
    assert f"def {name}(" in (Path(__file__).parent / file).read_text()


@pytest.mark.parametrize("command", [command for command, run in RUNS.items() if run.elsewhere == CI])
def test_what_a_new_machine_runs_is_in_its_script(command):
    lines = (KIT / CI).read_text().splitlines()
    assert command in lines or f".venv/bin/{command}" in lines


@pytest.fixture
def kit(tmp_path):
    """A copy of the kit, with the starter as shipped, whose commands work on it and not on this one."""
    folder = tmp_path / "kit"
    shutil.copytree(KIT, folder, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv", ".lab-*", ".pytest_cache", "__pycache__", "build"))
    shutil.rmtree(folder / "starter")
    write_tree(folder / "starter", shipped_starter())
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.mark.parametrize("command, run, shown", list(tried()))
def test_a_command_does_what_the_page_says(command, run, shown, kit):
    line = command
    for word, there in (run.given or {}).items():
        line = line.replace(word, there)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{environment['PATH']}", "PYTHONPATH": str(kit), "COLUMNS": "120"}
    ended = subprocess.run(["bash", "-c", f"{{ {run.before or ':;'} }} > /dev/null 2>&1\n{line}"], cwd=kit, env=environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.code in (None, ended.returncode) and re.search(run.says, ended.stdout) and "Traceback" not in ended.stdout, ended.stdout
    printed = iter(alike(ended.stdout))
    missing = [words for words in alike("\n".join(shown)) if words not in printed]   # `in` goes on where it last stopped: their order counts
    assert not missing, f"the page shows what did not come, or not in this place:\n{missing[0]}\n\nThis came:\n{ended.stdout}"


def alike(text):
    """The lines of a text without what differs from run to run."""
    for pattern, instead in DIFFERS:
        text = re.sub(pattern, instead, text)
    return [line.strip() for line in text.splitlines() if line.strip()]
