"""`grader gradescope`: the zip that Gradescope takes, and what its two scripts do with whatever may happen there."""

import json
import os
import signal
import stat
import subprocess
import sys
import zipfile

import pytest
from grader.gradescope import write_autograder
from grader.suites import LABS

from labs.command.refused import Refused

RESULTS = {"score": 74, "output": "", "tests": [{"name": "01 · one", "score": 2, "max_score": 2}]}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("gradescope") / "autograder.zip"
    assert write_autograder(path, "1-3,5") == 0
    return path


class Autograder:
    """A container of Gradescope's, as far as the scripts see it: a folder with the zip's files in source/."""

    def __init__(self, root, archive):
        self.root = root
        self.commands = root / "commands"
        self.environment = {"PATH": f"{root}/stubs:{os.environ['PATH']}", "AUTOGRADER_ROOT": str(root), "HOME": str(root)}
        (root / "stubs").mkdir()
        (root / "submission").mkdir()
        with zipfile.ZipFile(archive) as opened:
            for member in opened.infolist():
                path = root / "source" / opened.extract(member, root / "source")
                path.chmod(member.external_attr >> 16)

    def stub(self, name, script):
        """Put a command in the place of a real one; it writes down how it was called."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/bash\necho "{path.name} $*" >> {self.commands}\n{script}\n')
        path.chmod(0o755)

    def grader(self, script):
        """What `grader grade` does; $report is its report folder."""
        self.stub("venv/bin/grader", f"report=$4\nresults={self.root}/results/results.json\n{script}")

    def run(self, script="source/run_autograder", **environment):
        """Run a script to the end of all that it started, for that has its output open; 60 seconds are too long."""
        return subprocess.run([self.root / script], cwd=self.root, env=self.environment | environment, capture_output=True, text=True, timeout=60)

    @property
    def results(self):
        return json.loads((self.root / "results/results.json").read_text())


@pytest.fixture
def autograder(tmp_path, archive):
    return Autograder(tmp_path, archive)


# ---- the zip


def test_it_has_both_scripts_at_its_root_and_the_kit_without_solutions_and_tests(archive):
    with zipfile.ZipFile(archive) as opened:
        modes = {member.filename: member.external_attr >> 16 for member in opened.infolist()}
    assert {name for name in modes if "/" not in name} == {"setup.sh", "run_autograder"}
    assert all(stat.S_IMODE(modes[name]) == 0o755 for name in ("setup.sh", "run_autograder"))
    assert {name.split("/")[1] for name in modes if name.startswith("kit/")} == {"LICENSE", "README.md", "pyproject.toml", "grader", "labs",
                                                                                 "starter"}
    for number, lab in LABS.items():
        assert {f"kit/labs/{number}/{check.test.split('::')[0]}" for check in lab.checks} < modes.keys()
    assert "kit/grader/results.py" in modes and "kit/grader/autograder/setup.sh" in modes
    assert not [name for name in modes if "/tests/" in name or "__pycache__" in name or "/." in name]


def test_the_same_kit_makes_the_same_zip(archive, tmp_path):
    write_autograder(tmp_path / "again.zip", "1-3,5")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    with zipfile.ZipFile(archive) as opened:
        assert {member.date_time[0] for member in opened.infolist()} == {1980}


@pytest.mark.parametrize("labs", ["", "0", "9", "3-1", "1-9", "one", "1;rm", '1"', "1,,2", "1-2-3", "1\n;"])
def test_labs_that_are_none_are_refused(labs, tmp_path):
    with pytest.raises(Refused, match="--labs "):
        write_autograder(tmp_path / "a.zip", labs)
    assert not list(tmp_path.iterdir())


def test_what_is_no_zip_by_name_is_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    for name in ("thesis.tex", "."):
        with pytest.raises(Refused, match="ends in .zip"):
            write_autograder(tmp_path / name)
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_it_says_how_many_points_the_assignment_has(tmp_path, capsys):
    write_autograder(tmp_path / "a.zip", "1,2")
    assert f"a programming assignment of {LABS['01'].points + LABS['02'].points} points" in capsys.readouterr().out


# ---- run_autograder


def test_the_graders_results_are_left_where_gradescope_looks(autograder):
    autograder.grader(f"mkdir -p $report/gradescope; echo '{json.dumps(RESULTS)}' > $report/gradescope/submission.json")
    assert autograder.run().returncode == 0
    assert autograder.results == RESULTS
    called = autograder.commands.read_text().split()
    assert called[:3] == ["grader", "grade", str(autograder.root / "submission")] and called[-3:] == ["--labs", "01,02,03,05", "--one"]


def test_results_count_whatever_the_exit_code(autograder):
    autograder.grader("mkdir -p $report/gradescope; echo '{\"output\": \"incomplete\"}' > $report/gradescope/a.json; exit 3")
    autograder.run()
    assert autograder.results == {"output": "incomplete"}


@pytest.mark.parametrize("script, says", [
    ("echo 'Traceback: hidden/test_x.py' >&2; exit 2", "ended with exit code 2 and left no results"),
    ("mkdir -p $report/gradescope; echo '{\"score\": 7' > $report/gradescope/a.json", "left results that cannot be read"),
    ("mkdir -p $report/gradescope; echo '[7]' > $report/gradescope/a.json", "left results that cannot be read"),
    ("mkdir -p $report/gradescope; for name in a b; do echo '{}' > $report/gradescope/$name.json; done", "left 2 results"),
    ("kill -9 $$", "ended with exit code -9 and left no results"),
    ("sleep 600 & wait", "had not ended after 0.3 seconds"),
])
def test_a_grader_that_fails_leaves_no_score_and_says_so(autograder, script, says):
    autograder.grader(script)
    ended = autograder.run(AUTOGRADER_SECONDS="0.3" if "sleep" in script else "30")
    assert ended.returncode == 0
    assert autograder.results.keys() == {"output"}, "neither a score nor tests, of which Gradescope would make one"
    assert says in autograder.results["output"] and "says nothing about your program" in autograder.results["output"]
    assert "hidden" not in autograder.results["output"]


def test_without_a_grader_too(autograder):
    autograder.run()
    assert autograder.results.keys() == {"output"} and "cannot be run here (No such file or directory)" in autograder.results["output"]


def test_an_autograder_that_is_killed_has_left_something_before(autograder):
    autograder.grader("cp $results $results.then; kill -9 $PPID")
    assert autograder.run().returncode == -signal.SIGKILL
    assert "did not come to its end" in autograder.results["output"] and autograder.results.keys() == {"output"}
    assert json.loads((autograder.root / "results/results.json.then").read_text()) == autograder.results


# ---- setup.sh


MAKES_A_VENV = '[ "$1" = -m ] && mkdir -p "$3/bin" && ln -sf "{stub}" "$3/bin/python"; exit 0'


@pytest.fixture
def image(autograder):
    """An image with an apt-get that installs nothing, and a Python that will do."""
    autograder.stub("stubs/apt-get", "")
    autograder.stub("stubs/python3", MAKES_A_VENV.format(stub=autograder.root / "stubs/python3"))
    return autograder


def test_setup_installs_the_kit_and_hides_the_checks(image):
    ended = image.run("source/setup.sh")
    assert ended.returncode == 0, ended.stderr
    called = image.commands.read_text().splitlines()
    assert any(line.startswith("apt-get") and "bubblewrap" in line and "python3-venv" in line for line in called)
    assert f"python3 -m venv {image.root}/venv" in called
    assert called[-1].endswith(f"-m pip install --quiet --disable-pip-version-check -e {image.root}/source/kit")
    for name, others in (("labs/03/hidden", 0), ("labs/03/hidden/test_killed_anywhere.py", 0), ("grader/results.py", 0),
                         ("labs/harness/keeper.py", 0o044)):
        assert stat.S_IMODE((image.root / "source/kit" / name).stat().st_mode) & 0o077 == others, name


def test_setup_takes_a_newer_python_where_the_images_own_is_too_old(image):
    image.stub("stubs/python3", "exit 1")
    image.stub("stubs/python3.11", MAKES_A_VENV.format(stub=image.root / "stubs/python3.11"))
    assert image.run("source/setup.sh").returncode == 0
    assert f"python3.11 -m venv {image.root}/venv" in image.commands.read_text()


def test_setup_says_which_image_will_do_where_there_is_no_such_python(image):
    for name in ("python3", "python3.11"):
        image.stub(f"stubs/{name}", "exit 1")
    ended = image.run("source/setup.sh")
    assert ended.returncode == 1 and ended.stderr == \
        "setup.sh: this image has no Python 3.11 or newer; choose Ubuntu 24.04 or newer as the base image\n"


def test_setup_fails_where_something_cannot_be_installed(image):
    image.stub("stubs/apt-get", "exit 100")
    assert image.run("source/setup.sh").returncode == 100
    assert not (image.root / "venv").exists()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_kit_of_the_zip_can_be_installed(autograder):
    """Needs a package index, and in the place of Ubuntu's packages those that are here."""
    autograder.stub("stubs/apt-get", "")
    autograder.stub("stubs/python3", f'exec {sys.executable} "$@"')
    autograder.environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "HTTP", "http", "SSL_", "REQUESTS_"))}
    ended = subprocess.run([autograder.root / "source/setup.sh"], cwd=autograder.root, env=autograder.environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    program = ("from labs.harness import manifest; import grader.grade; "
               "print(sum(check.hidden for folder in manifest.folders() for check in manifest.read(folder).checks))")
    counted = subprocess.run([autograder.root / "venv/bin/python", "-c", program], cwd="/", capture_output=True, text=True)
    assert counted.stdout == f"{sum(check.hidden for lab in LABS.values() for check in lab.checks)}\n", counted.stderr


def test_a_file_of_somebody_elses_is_not_overwritten(tmp_path):
    path = tmp_path / "theirs.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("flow.py", "theirs")
    with pytest.raises(Refused, match="is there already"):
        write_autograder(path)
    assert zipfile.ZipFile(path).namelist() == ["flow.py"]
