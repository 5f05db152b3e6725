"""The Pythons that the kit says it works with: each that this machine has gets a fresh virtual environment, and the labs and their harness in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labs.harness.staging import KIT


def python_of(version):
    """A Python of this version that this machine has, on PATH or of pyenv; None where it has none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for path in filter(None, [shutil.which(f"python{version}"), *of_pyenv]):
        if subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:   # one that pyenv put on PATH may be none
            return str(path)
    return None


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_labs_and_their_harness_work(version, tmp_path):
    base = python_of(version)
    if not base:
        pytest.skip(f"this machine has no Python {version}")
    run(base, "-m", "venv", str(tmp_path / "venv"))
    python = str(tmp_path / "venv/bin/python")
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-e", str(KIT), "-c", str(KIT / ".ci/constraints.txt"))
    assert run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip() == version
    assert "✓ one model call, one refund" in run(python, "-m", "labs", "demo")
    labs = sorted(path.parent.name for path in KIT.glob("labs/[0-9][0-9]/lab.toml"))
    said = run(python, "-m", "pytest", "-q", "--program", f"solutions/{labs[-1]}", "--lab-sample", "20", *(f"labs/{lab}" for lab in labs))
    assert all(f"lab {lab} " in said for lab in labs) and " failed" not in said and " skipped" not in said, said
    if base != sys.executable:   # here they run anyway
        run(python, "-m", "pytest", "-q", "grader/tests/test_kills.py", "grader/tests/test_processes.py", "grader/tests/test_outside.py")


def run(*command):
    """Run a command in the kit; returns what it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
    done = subprocess.run(command, cwd=KIT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout
