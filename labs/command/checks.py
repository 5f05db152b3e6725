"""The public checks of labs, run afresh by pytest in a process of its own."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from labs.harness import descendants, records
from labs.harness.scratch import scratch
from labs.harness.staging import KIT, NoProgram, stage

from .refused import Refused

PATIENCE = 20  # seconds that pytest has, after Ctrl-C, to end its programs and itself


def run_public(labs, ran, program=None):
    """Run the public checks of `labs`, calling `ran(entry)` as each item ends. The hidden ones are left alone.

    `program` is what --program names, from here; without it, starter/. Raises Refused where the checks could not be
    run. Whatever ends this call, KeyboardInterrupt among it, also ends pytest and the programs that it started.
    """
    files = [str(path.relative_to(KIT)) for lab in labs for path in sorted((KIT / "labs" / lab.number).glob("test_*.py"))]
    if not files:
        raise Refused(f"there are no checks in {KIT / 'labs'}: unpack the kit again")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.jsonl"
        results.touch()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_timeout", "-p", "no:cacheprovider",
                   "--lab-results", str(results), *(["--program", _from_kit(program)] if program else []), *files]
        code, output = _follow(command, results, ran)
    if code not in (0, 1):  # all passed, some failed
        _why_not(code, output, program)


def _from_kit(program):
    path = Path(program).resolve()
    return str(path.relative_to(KIT)) if path.is_relative_to(KIT) else str(path)


def _follow(command, results, ran):
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    descendants.adopt_orphans()
    # In a group of its own, so that Ctrl-C reaches it once, from here, and not a second time while it tidies up.
    process = subprocess.Popen(command, cwd=KIT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, process_group=0)
    output, unread = bytearray(), ""
    try:
        with open(results, encoding="utf-8") as file:
            # pytest prints something after each item, and the item's line is written before: no need to look by the clock.
            while chunk := process.stdout.read1():
                output += chunk
                *lines, unread = (unread + file.read()).split("\n")
                for entry in records.outcomes(records.parsed("\n".join(lines))):
                    ran(entry)
        return process.wait(), output.decode(errors="replace")
    finally:
        _end(process)


def _end(process):
    try:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        descendants.survivors()


def _why_not(code, output, program):
    try:
        with scratch() as folder:
            stage(Path(program) if program else KIT / "starter", folder / "staged")
    except NoProgram as error:
        raise Refused(error) from None
    last = (output.strip().splitlines() or ["nothing"])[-1]
    raise Refused(f"the checks could not be run: pytest ended with exit code {code} and said “{last.strip('= ')}”; "
                  "`pytest labs` shows more")
