"""The order of the house: which way the arrows point, and that what is said in two places is the same."""

import ast
import os
import re
import subprocess
import sys

import pytest
from grader.suites import LABS
from grader.tests.pages import pages

from labs.harness.events import CODES
from labs.harness.outside import Outside
from labs.harness.outside.account import KIND_OF
from labs.harness.processes import DEADLINE
from labs.harness.program import Program
from labs.harness.staging import AS_IS, KIT, stage
from labs.harness.sweeps.rules import RULES
from labs.harness.sweeps.trial import RUN

ENGINES = {"sqlite": set(), "dbos": {"dbos", "sqlalchemy"}, "langgraph": {"langgraph"}}   # what the programs on an engine may import besides
PROGRAMS = [path for folder in ("starter", "solutions") for path in (KIT / folder).rglob("*.py")]
SUITES = [path for path in (KIT / "labs").rglob("test_*.py")]


def imports_of(path):
    """The top-level names that a module imports, but for relative ones."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(KIT)))
def test_programs_use_the_standard_library_alone_or_their_engine(path):
    engine = path.parent.name.removesuffix(AS_IS) if path.parent.parent == KIT / "solutions" / "engines" else "sqlite"
    assert set(imports_of(path)) <= sys.stdlib_module_names | ENGINES[engine]


def test_nothing_imports_upward_and_nobody_imports_a_program():
    for path in (KIT / "labs").rglob("*.py"):
        assert not {"grader", "notebooks", "starter", "solutions"} & set(imports_of(path)), path


def test_the_harness_knows_nothing_of_those_who_use_it():
    harness = KIT / "labs" / "harness"
    for path in harness.rglob("*.py"):
        # It runs as a script, and knows the others by their whole names only.
        whole = "labs.harness." if path == harness / "forkserver.py" else None
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                outside = node.level > len(path.relative_to(harness).parts)
                own = node.level or not node.module.startswith("labs") or whole and node.module.startswith(whole)
                assert not outside and own, f"{path}:{node.lineno}"


def test_the_top_level_holds_nothing_else():
    tracked = subprocess.run(["git", "ls-files"], cwd=KIT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    top = {name.split("/")[0] for name in tracked.stdout.splitlines()}
    assert {name for name in top if not name.startswith(".")} <= {
        "README.md", "pyproject.toml", "LICENSE", "starter", "solutions", "labs", "notebooks", "grader"}


@pytest.mark.parametrize("path", SUITES, ids=lambda path: str(path.relative_to(KIT)))
def test_every_assertion_of_a_check_says_why(path):
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Assert) or node.msg, f"{path}:{node.lineno} asserts without a reason"


@pytest.mark.parametrize("lab", LABS)
def test_the_points_of_the_checks_are_those_of_the_lab(lab):
    assert sum(check.points for check in LABS[lab].checks) == LABS[lab].points


@pytest.mark.parametrize("lab", LABS)
def test_the_chapter_announces_every_check_in_the_words_of_the_manifest(lab):
    chapter = (KIT / "labs" / lab / "README.md").read_text()
    for check in LABS[lab].checks:
        assert f"{check.does} ({check.points} point{'s' * (check.points > 1)})" in " ".join(chapter.split()), check.test


def test_ci_runs_the_two_commands_of_the_readme():
    readme, ci = (KIT / "README.md").read_text(), (KIT / ".ci" / "run").read_text()
    commands = re.search(r"```sh\n(.*?)\n(.*?)\n```", readme).groups()
    assert all(command in ci.splitlines() for command in commands)
    assert os.access(KIT / ".ci" / "run", os.X_OK)


def test_the_contract_names_all_that_a_program_is_given_and_all_that_it_may_say(tmp_path):
    contract = (KIT / "labs" / "CONTRACT.md").read_text()
    with Outside(tmp_path / "outside.sock") as server:
        program = Program(stage(KIT / "starter", tmp_path / "staged"), tmp_path / "program", server, server.open_account())
        given = set(program._environment(tmp_path)) - {"PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER"}   # Python's own
    verbs = ("start [--run-id ID] TICKET", "resume RUN", "status RUN", "runs [--state STATE]", "chat CONVERSATION", "memory CONVERSATION", "forget CONVERSATION")
    assert not [name for name in (*given, *verbs) if f"`{name}`" not in contract and f"`{name} " not in contract]
    codes = re.search(r"Exit codes: 0 (.*?)Anything else", contract, re.S)[1]
    assert [int(code) for code in re.findall(r"(?:, |\n)([2-9]) ", codes)] == sorted(CODES)
    for kind, (method, path) in {kind: place for place, kind in KIND_OF.items()}.items():
        assert f"`{method} {path}" in contract, kind
    assert all(f"{n}. " in contract for n in RULES) and f"`start --run-id {RUN} " in contract and f"{DEADLINE:g} seconds" in contract


@pytest.mark.parametrize("path, text", list(pages()), ids=[name for name, _ in pages()])
def test_what_a_page_links_to_is_there(path, text):
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert not [link for link in links if not ((KIT / path).parent / link).exists()]
    for anchor in re.findall(r"\]\(#([^)]+)\)", text):
        assert anchor in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)]


def test_whoever_sweeps_is_led_to_the_contract():
    readme = (KIT / "README.md").read_text()
    assert "](labs/CONTRACT.md)" in readme[readme.index("## A flow of your own"):readme.index("## How it works")]
    told = subprocess.run([sys.executable, "-m", "labs", "sweep", "--help"], cwd=KIT, capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"})
    assert all(words in told.stdout for words in ("labs/CONTRACT.md", "Exit codes: 0", "less than a minute", "No sweep tries memory"))
