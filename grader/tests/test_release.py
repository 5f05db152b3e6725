"""`grader release`: the learner's kit has all that learners need, nothing that they should find themselves, and is proven."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from base64 import b64encode
from html import escape
from io import BytesIO

import pytest
from grader import release
from grader.release import build_release, proof
from grader.release.contents import contents
from grader.release.leaks import leaks
from grader.release.proof import Unproven, prove_clone
from grader.suites import LABS
from grader.tests.pages import prose_of

from labs.command.refused import Refused
from labs.command.shipped import files_of, shipped_starter
from labs.harness.staging import KIT

SOLUTION = (KIT / "solutions/03/flow.py").read_text()
HIDDEN = (KIT / "labs/03/hidden/test_resume_closely.py").read_text()


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """A learner's kit, not proven."""
    folder = tmp_path_factory.mktemp("release") / "kit"
    assert build_release(folder, prove=False) == 0
    return folder


@pytest.fixture
def copy(kit, tmp_path):
    """A copy of it, which a test may work in."""
    return shutil.copytree(kit, tmp_path / "kit", ignore=shutil.ignore_patterns(".git"))


def in_kit(kit, *command):
    """Run a Python module in a learner's kit; returns its exit code, and all that it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "BROWSER"))}
    done = subprocess.run([sys.executable, "-m", *command], cwd=kit, env={**environment, "PYTHONPATH": str(kit), "COLUMNS": "100"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


# ---- what is in it


def test_it_has_what_a_learner_needs_and_nothing_else(kit):
    assert {path.name for path in kit.iterdir()} == {".git", ".github", ".gitignore", "AGENTS.md", "LICENSE", "README.md", "labs",
                                                     "notebooks", "pyproject.toml", "starter"}
    assert files_of(kit / "starter") == shipped_starter()
    for lab in LABS:
        shown = {path.name for path in (kit / "labs" / lab).iterdir()}
        assert {"README.md", "lab.toml"} < shown and "hidden" not in shown
        assert {check.test.split("::")[0] for check in LABS[lab].checks if not check.hidden} == shown - {"README.md", "lab.toml"}


def test_its_notebooks_are_those_that_need_no_solutions(kit):
    mine, theirs = ({path.name for path in (folder / "notebooks").glob("*.ipynb")} for folder in (KIT, kit))
    assert mine - theirs == {"08-engines.ipynb"} and theirs < mine
    done, output = in_kit(kit, "pytest", "-q", "-p", "no:cacheprovider", "notebooks/00-what-survives.ipynb")
    assert done == 0, output


def test_what_its_pages_link_to_is_there(kit):
    pages = [kit / "README.md", *kit.glob("labs/*/README.md"), *kit.glob("notebooks/*.ipynb")]
    links = {(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)\)", prose_of(page))}
    missing = {f"{page.relative_to(kit)}: {link}" for page, link in links if not (page.parent / link).exists()}
    assert len(links) > 10 and not {one for one in missing if "solutions/" not in one}, missing


def test_an_edited_starter_is_not_what_is_shipped(tmp_path):
    for name in ("labs", "notebooks", "solutions"):
        (tmp_path / name).mkdir()
    for name in ("LICENSE", ".gitignore", "pyproject.toml", "labs/harness/starter.zip", "starter/flow.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(KIT / name, tmp_path / name)
    (tmp_path / "starter/flow.py").write_text(SOLUTION)
    assert contents(tmp_path)["starter/flow.py"] == shipped_starter()["flow.py"]


def test_it_installs_as_the_kit_does_but_for_the_grader(kit):
    mine, theirs = (tomllib.loads((folder / "pyproject.toml").read_text()) for folder in (KIT, kit))
    for name in ("name", "version", "requires-python", "dependencies", "license"):
        assert theirs["project"][name] == mine["project"][name]
    assert theirs["project"]["scripts"] == {"labs": mine["project"]["scripts"]["labs"]}
    assert theirs["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["labs", "starter"]
    for name in ("timeout", "timeout_method", "pythonpath"):
        assert theirs["tool"]["pytest"]["ini_options"][name] == mine["tool"]["pytest"]["ini_options"][name]


def test_its_workflow_runs_the_checks_of_each_lab(kit):
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((kit / ".github/workflows/labs.yml").read_text())
    assert workflow[True] == ["push", "workflow_dispatch"]   # YAML takes `on` for a truth value
    job = workflow["jobs"]["lab"]
    assert job["strategy"] == {"fail-fast": False, "matrix": {"lab": list(LABS)}}
    assert [step["run"] for step in job["steps"] if "run" in step] == ["python -m pip install -e .", "pytest labs/${{ matrix.lab }}"]
    assert {"uses": "actions/setup-python@v5", "with": {"python-version": "3.11"}} in job["steps"]


def test_what_it_says_to_learners_is_true_of_it(kit):
    readme = (kit / "README.md").read_text()
    hidden = [check for lab in LABS.values() for check in lab.checks if check.hidden]
    assert f"{len(hidden)} hidden ones, for\n{sum(check.points for check in hidden)} of 100 points" in readme
    assert all(f"labs/{lab}/README.md" in readme for lab in LABS) and "labs solution 0" not in readme
    agents = (kit / "AGENTS.md").read_text()
    assert all(words in agents for words in ("You may", "You must not", "look for solutions elsewhere", "weaken", "`starter/`"))


def test_it_is_a_repository_whatever_git_is_told_elsewhere(tmp_path, monkeypatch):
    (tmp_path / ".gitconfig").write_text("[core]\nexcludesFile = ~/ignored\n[commit]\ngpgsign = true\n")
    (tmp_path / "ignored").write_text("*.zip\n*.toml\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    folder = tmp_path / "kit"
    assert build_release(folder, prove=False) == 0
    monkeypatch.delenv("GIT_DIR")
    tracked = subprocess.run(["git", "ls-files"], cwd=folder, capture_output=True, text=True).stdout.splitlines()
    assert set(tracked) == {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts}
    log = subprocess.run(["git", "log", "--format=%s"], cwd=folder, capture_output=True, text=True)
    assert log.stdout == "The kit as handed out\n"


def test_without_git_it_is_a_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build_release(tmp_path / "kit", prove=False) == 0
    assert not (tmp_path / "kit/.git").exists() and "no Git repository" in capsys.readouterr().out


# ---- its command


NO_SOLUTIONS = "this kit has no solutions/: whoever gave it to you has them"


@pytest.mark.parametrize("arguments, code, says", [
    ("solution 1 --reveal", 2, f"labs: {NO_SOLUTIONS}\n"),
    ("reset 3 --yes", 2, f"labs: the starter before lab 03 needs the solutions before it, and {NO_SOLUTIONS}; `reset 01` needs none\n"),
    ("status --program solutions/03", 2, f"labs: {NO_SOLUTIONS}; name a folder that holds a program, like starter\n"),
    ("engines", 2, f"labs: {NO_SOLUTIONS}\n"),
    ("sweep solutions/mistakes/act-then-record", 2, f"labs: {NO_SOLUTIONS}; name a folder that holds a program, like starter\n"),
    ("show", 2, "labs: no run has left a failed check here"),
    ("demo", 0, "2 refunds for one order: $128.30 and $128.15\n\nMake it one that survives this: labs/01/README.md\n"),
    ("doctor", 0, "The labs can run here."),
])
def test_its_command_does_without_solutions(copy, arguments, code, says):
    ended, output = in_kit(copy, "labs", *arguments.split())
    assert (ended, says in output) == (code, True), output
    assert "tests of pages" not in output


def test_its_hints_promise_no_solution(copy):
    outputs = [in_kit(copy, "labs", "hint", "2") for _ in range(4)]
    assert [code for code, _ in outputs] == [0] * 4
    assert outputs[3][1].endswith("These are all 3, there are no more.\n")


def test_its_bench_needs_no_solutions(monkeypatch, tmp_path):
    from labs.command import bench

    class Enough(Exception):
        pass

    def ground(path, command, seed):
        raise Enough(path)

    monkeypatch.setattr(bench, "KIT", tmp_path)
    monkeypatch.setattr(bench, "proving_ground", ground)
    with pytest.raises(Enough, match=str(tmp_path / "starter")):
        bench.show_bench()


def test_its_checks_run(copy):
    code, output = in_kit(copy, "pytest", "-q", "-p", "no:cacheprovider", "-k", "unknown_run or three_results")   # and without a path
    assert code == 1 and "lab 01 · write the plan down: 1 of 2 checks passed, 1 of 2 points; program starter" in output


# ---- leaks


def lines_of(text, first, count):
    lines = [line for line in text.splitlines() if line.strip() and "import" not in line]
    return "\n".join(lines[first:first + count])


def archive_with(name, text):
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, text)
    return content.getvalue()


def shown_by_a_cell(**output):
    return json.dumps({"cells": [{"source": ["show()"], "outputs": [output]}]})


def drawn(text):
    """A picture as a notebook's output has it, with each line of the text for itself."""
    svg = "".join(f"<text>{escape(line)}</text>" for line in text.splitlines())
    return f'<img src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"/>'


LONG_LINE = max((KIT / "solutions/02/flow.py").read_text().splitlines(), key=len)


@pytest.mark.parametrize("name, content, says", [
    ("labs/03/example.py", SOLUTION, "of solutions/"),
    ("labs/03/notes.txt", f"# so?\n        {LONG_LINE.strip()}\n", "labs/03/notes.txt:2: 1 line of solutions/02/flow.py"),
    ("starter/record.py", lines_of((KIT / "solutions/03/record.py").read_text(), 10, 6), "of solutions/"),
    ("labs/lessons.txt", (KIT / "solutions/mistakes/act-then-record/mistake.toml").read_text(), "of solutions/"),
    ("labs/03/test_more.py", HIDDEN, "the hidden check test_"),
    ("labs/03/test_more.py", "def test_a_record_that_cannot_be_read_is_not_begun_anew(program):\n    pass\n", "test_more.py:1: the hidden check"),
    ("labs/03/part.txt", lines_of(HIDDEN, 8, 5), "5 lines on end of labs/03/hidden/"),
    ("labs/results.py", (KIT / "grader/results.py").read_text(), "20 lines on end of grader/results.py"),
    ("labs/03/hidden/test_x.py", "", "no folder of that name"),
    ("grader/__init__.py", "", "no folder of that name"),
    ("labs/harness/starter.zip", archive_with("flow.py", SOLUTION), "labs/harness/starter.zip/flow.py:"),
    ("notebooks/09-flow.ipynb", json.dumps({"cells": [{"source": SOLUTION.splitlines(keepends=True)}]}), "of solutions/"),
    ("notebooks/09-flow.ipynb", shown_by_a_cell(output_type="stream", text=SOLUTION.splitlines(keepends=True)), "of solutions/"),
    ("notebooks/09-flow.ipynb", shown_by_a_cell(output_type="display_data", data={"text/plain": SOLUTION}), "of solutions/"),
    ("notebooks/09-flow.ipynb", shown_by_a_cell(output_type="display_data", data={"text/html": drawn(SOLUTION)}), "of solutions/"),
    ("notebooks/09-flow.ipynb", json.dumps([SOLUTION]), "is no text"),
    ("labs/more.zip", archive_with("flow.py", SOLUTION), "is no text"),
    ("labs/flow.bin", b"\xff\xfe\x00", "is no text"),
])
def test_a_leak_is_found_whatever_it_is_called(name, content, says):
    found = leaks({"starter/flow.py": shipped_starter()["flow.py"], name: content if isinstance(content, bytes) else content.encode()})
    assert len(found) == 1 and found[0].startswith(name) and says in found[0], found


def test_what_two_people_would_write_is_no_leak():
    assert leaks({"labs/a.py": b"import sqlite3\n        os.fsync(file.fileno())\n", "labs/b.py": b"from contextlib import contextmanager\n"}) == []


def test_with_a_leak_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(release, "contents", lambda: {"labs/notes.py": SOLUTION.encode()})
    assert build_release(tmp_path / "kit") == 1
    assert list(tmp_path.iterdir()) == [] and "labs/notes.py:" in capsys.readouterr().out


# ---- where it is written


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "mine").write_text("mine")
    for path, says in ((tmp_path, "is not empty"), (tmp_path / "mine", "is no folder")):
        with pytest.raises(Refused, match=says):
            build_release(path)
    (tmp_path / "empty").mkdir()
    for target in ("nowhere", "empty"):
        (tmp_path / f"link to {target}").symlink_to(target)
        with pytest.raises(Refused, match="is no folder"):
            build_release(tmp_path / f"link to {target}")
    assert (tmp_path / "mine").read_text() == "mine"


def test_an_empty_folder_will_do(tmp_path):
    assert build_release(tmp_path, prove=False) == 0 and (tmp_path / "labs").is_dir()


def test_it_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(folder, files):
        (folder / "labs").mkdir(parents=True)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(release, "write_tree", full)
    with pytest.raises(OSError):
        build_release(tmp_path / "kit")
    assert list(tmp_path.iterdir()) == []


def test_a_kit_that_is_not_whole_is_refused(kit):
    with pytest.raises(Refused, match="has no solutions: a release is made of a whole kit"):
        contents(kit)


# ---- the proof


CHECKS = [(lab, check) for lab in LABS for check in LABS[lab].checks if not check.hidden]


def as_announced():
    return {(lab, check.test): "passed" if check.passes_on_starter else "failed" for lab, check in CHECKS}


def checked(monkeypatch, tmp_path, statuses, output="the last line"):
    """What the proof says of a run of the clone's checks that ended like this."""
    def ran(command, folder, otherwise, expected):
        entries = [json.dumps({"lab": lab, "check": check, "status": status}) for (lab, check), status in statuses.items()]
        (tmp_path / "results.jsonl").write_text("\n".join(entries))
        return output
    monkeypatch.setattr(proof, "_run", ran)
    return proof._checked(tmp_path, sys.executable, tmp_path / "results.jsonl")


def test_checks_that_end_as_announced_are_proof(monkeypatch, tmp_path):
    green = sum(check.passes_on_starter for _, check in CHECKS)
    assert checked(monkeypatch, tmp_path, as_announced()) == f"on its starter {len(CHECKS) - green} checks are red and {green} green, as announced"


@pytest.mark.parametrize("key, status, says", [
    (("03", "test_resume.py::test_a_killed_run_is_finished"), "passed", "should be failed on the starter, it is passed"),
    (("01", "test_record.py::test_a_bad_ticket_is_refused"), "failed", "should be passed on the starter, it is failed"),
    (("01", "test_record.py::test_a_bad_ticket_is_refused"), None, "should be passed on the starter, it is not run"),
    (("02", "test_effects.py::test_a_killed_effect_stays_started"), "error", "could not be made .*the last line"),
    (("03", "hidden/test_resume_closely.py::test_x"), "failed", "lab 03 of the clone runs a check that learners should not have"),
])
def test_checks_that_end_otherwise_are_none(monkeypatch, tmp_path, key, status, says):
    statuses = {**as_announced(), key: status} if status else {other: end for other, end in as_announced().items() if other != key}
    with pytest.raises(Unproven, match=says):
        checked(monkeypatch, tmp_path, statuses)


def test_what_cannot_be_installed_is_told_in_a_line_and_stays(tmp_path, monkeypatch, capsys):
    def run(command, folder, otherwise, expected=(0,)):
        if "pip" in command:
            raise Unproven(f"{otherwise}: exit code 1, “ERROR: no network”")
    monkeypatch.setattr(proof, "_run", run)
    monkeypatch.setenv("PATH", str(tmp_path))   # no git: it is copied
    assert build_release(tmp_path / "kit") == 1
    said = capsys.readouterr().out
    assert "pip cannot install the clone; it needs a package index, by network or PIP_INDEX_URL: exit code 1, “ERROR: no network”" in said
    assert "It is not proven" in said and (tmp_path / "kit/labs").is_dir()


def test_a_command_that_fails_hangs_or_is_not_there_is_a_line(tmp_path, monkeypatch):
    with pytest.raises(Unproven, match="It fails: exit code 3, “the last”"):
        proof._run(["sh", "-c", "echo first; echo the last; exit 3"], tmp_path, "It fails")
    with pytest.raises(Unproven, match="It fails: No such file"):
        proof._run([tmp_path / "nothing"], tmp_path, "It fails")
    monkeypatch.setattr(proof, "PATIENCE", 0.1)
    with pytest.raises(Unproven, match="It fails: it was ended after 0.1 seconds"):
        proof._run(["sleep", "60"], tmp_path, "It fails")


def test_a_clone_uses_nothing_of_this_kit(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(KIT))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")
    monkeypatch.setenv("VIRTUAL_ENV", str(KIT / ".venv"))
    said = proof._run(["env"], tmp_path, "")
    assert "PYTHONPATH" not in said and "PYTEST_ADDOPTS" not in said and "VIRTUAL_ENV" not in said and "PATH=" in said


def test_a_clone_is_searched_again(tmp_path):
    (tmp_path / "kit/labs").mkdir(parents=True)
    (tmp_path / "kit/labs/notes.py").write_text(SOLUTION)
    with pytest.raises(Unproven, match="a clone has what learners should not find: labs/notes.py:"):
        prove_clone(tmp_path / "kit", print)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_is_proven_and_its_workflow_works(tmp_path, capsys):
    """Needs a package index, twice."""
    yaml = pytest.importorskip("yaml")
    folder = tmp_path / "kit"
    assert build_release(folder) == 0, capsys.readouterr().out
    assert "It may be handed out." in capsys.readouterr().out
    subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(proof.NOT_HANDED_ON)}
    environment["PATH"] = f"{folder}/.venv/bin:{environment['PATH']}"
    steps = yaml.safe_load((folder / ".github/workflows/labs.yml").read_text())["jobs"]["lab"]["steps"]
    install, check = (step["run"].replace("${{ matrix.lab }}", "01") for step in steps if "run" in step)
    subprocess.run(["bash", "-ec", install], cwd=folder, env=environment, check=True)
    ended = subprocess.run(["bash", "-ec", check], cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 1 and "lab 01 · write the plan down: 2 of 7 checks passed, 2 of 10 points" in ended.stdout
