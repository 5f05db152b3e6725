"""Files that would be taken for the kit's own, if they lay there as they are."""

CONFTEST = """
import pytest

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
STARTUP = "import os; os._exit(0)\n"
FILES = {"conftest.py": CONFTEST, "pytest.ini": "[pytest]\naddopts = --collect-only -p evil\n", "tox.ini": "[pytest]\naddopts = --collect-only\n",
         "setup.cfg": "[tool:pytest]\naddopts = --collect-only\n", "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--collect-only'\n",
         "sitecustomize.py": STARTUP, "usercustomize.py": STARTUP, "evil.pth": STARTUP,
         "evil-1.0.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n"}


def make(program):
    for name, text in FILES.items():
        (program / name).parent.mkdir(exist_ok=True)
        (program / name).write_text(text)
