"""`grader gradescope OUT.zip`: the autograder that Gradescope takes: setup.sh, run_autograder, and the kit that they use.

After https://gradescope-autograders.readthedocs.io/en/latest/specs/: the zip is unpacked to /autograder/source and setup.sh run once; then, for
each submission, run_autograder leaves /autograder/results/results.json. After 10 minutes, or those of the assignment's settings, all is ended.
"""

import os
import zipfile
from pathlib import Path

from rich.console import Console

from labs.command.refused import Refused
from labs.command.shipped import EPOCH, files_of
from labs.harness import manifest
from labs.harness.staging import KIT
from labs.harness.story import counted

from .grade import lab_numbers

SCRIPTS = Path(__file__).with_name("autograder")
KIT_FILES = ("LICENSE", "README.md", "pyproject.toml")
KIT_FOLDERS = ("grader", "labs", "starter")   # not solutions: nothing there needs them, and what is not there cannot be read


def write_autograder(path, labs="1-5"):
    """Write the zip to `path`, and say what to do with it. `labs` is like 1-5 or 1,3. Returns an exit code; raises Refused."""
    path, numbers = Path(path), lab_numbers(labs)
    if path.suffix != ".zip" or path.is_dir():
        raise Refused(f"{path} cannot be the autograder: name a file that ends in .zip")
    if path.exists() and not (zipfile.is_zipfile(path) and "run_autograder" in zipfile.ZipFile(path).namelist()):
        raise Refused(f"{path} is there already, and is no autograder: name another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    files = _contents(numbers)
    _write(path, files)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{path}[/]  {counted(len(files), 'file')}, {path.stat().st_size >> 10:,} KiB, for labs {', '.join(numbers)}")
    points = sum(manifest.read(KIT / "labs" / number).points for number in numbers)
    console.print(f"""
In Gradescope make a programming assignment of {counted(points, 'point')}, and under "Configure Autograder" choose and upload
  base image   Ubuntu 22.04 or newer: setup.sh installs a Python that the kit runs on
  autograder   this zip; it holds the hidden checks and no solutions
In the assignment's settings
  timeout      40 minutes, the most there is: what is ended before it is graded has no score
  container    2 CPUs and 3 GB or more: on the half CPU that is given otherwise all labs may take too long
Its containers may not allow bubblewrap; then programs are isolated less, and each result says how.""", markup=False)
    return 0


def _contents(numbers):
    """{name in the zip: bytes}."""
    files = {path.name: path.read_bytes() for path in SCRIPTS.iterdir() if path.is_file()}
    script = files["run_autograder"].decode()
    files["run_autograder"] = script.replace('LABS = "1-5"', f'LABS = "{",".join(numbers)}"').encode()
    files |= {f"kit/{name}": (KIT / name).read_bytes() for name in KIT_FILES}
    for folder in KIT_FOLDERS:
        files |= {f"kit/{folder}/{name}": content for name, content in files_of(KIT / folder).items()
                  if not (folder == "grader" and name.startswith("tests/"))}
    return files


def _write(path, files):
    """The zip, the same for the same files; whole or not at all."""
    making = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with zipfile.ZipFile(making, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(files.items()):
                member = zipfile.ZipInfo(name, EPOCH)
                member.external_attr = (0o755 if "/" not in name else 0o644) << 16
                archive.writestr(member, content, zipfile.ZIP_DEFLATED)
        making.replace(path)
    finally:
        making.unlink(missing_ok=True)
