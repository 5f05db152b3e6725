"""The bank of mistakes: each is caught by the checks that it names, and no check of another lab cries wolf."""

import difflib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grader import suites
from grader.suites import LABS, MISTAKES, failed_checks, run_suites
from labs.harness import records
from labs.harness.staging import KIT

pytestmark = pytest.mark.timeout(900)  # the first test waits for all suites of its kind

CHECKS = {f"{lab}/{check.test}" for lab in LABS for check in LABS[lab].checks}
SWEEPS = ("test_killed_anywhere.py", "test_killed_at_every_line.py")
#: Mistakes that fail at very many points of their sweeps: every fifth shows it. Of the others every point is tried; of these too by the slow proof.
AT_MANY_POINTS = ("act-then-record", "attempts-in-a-variable", "folder-not-synced", "lost-reply-retried-blindly", "mail-sent-again-blindly",
                  "nobody-claims-the-run", "rename-without-sync", "result-and-step-in-two-commits", "synchronous-off")
#: Takes as long as half a lab; nothing that a chat runs is in these files.
LONG_CHAT, NOT_OF_CHAT = "labs/04/hidden/test_memory_closely.py::test_nothing_grows_over_3000_exchanges", {"flow.py", "record.py"}
SEEDS = int(os.environ.get("KILLPROOF_SEEDS", 3))   # how often each sweep has to catch what names it; ten is half an hour
GOLDEN = Path(__file__).parent / "golden"
#: The stories that are kept word by word, by the mistake that they are told of.
STORIES = {path.stem: path for path in sorted(GOLDEN.glob("*.txt"))}


def side_by_side(function, names):
    """{name: function(name)}, on every core: the work is done in other processes."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(function, names)))


@pytest.fixture(scope="module")
def records_of(tmp_path_factory):
    """`records_of(name)`: the file with the records of the checks that a mistake names."""
    folder = tmp_path_factory.mktemp("mistakes")
    return lambda name: folder / f"{name}.jsonl"


@pytest.fixture(scope="module")
def named_checks(records_of):
    """For each mistake the outcome of the checks that it names."""
    def run(name):
        return suites.named_checks(name, records_of(name), *(["--lab-sample", "5"] if name in AT_MANY_POINTS else []))
    return side_by_side(run, MISTAKES)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_fails_every_check_that_it_names(named_checks, name):
    _, output, results = named_checks[name]
    assert failed_checks(results) == set(MISTAKES[name].caught_by), output


def test_every_check_catches_a_mistake():
    caught = {check for mistake in MISTAKES.values() for check in mistake.caught_by}
    assert caught <= CHECKS, f"these checks do not exist: {caught - CHECKS}"
    assert caught == CHECKS, f"no mistake exercises: {CHECKS - caught}"


def test_the_bank_is_large_and_spread_over_the_labs():
    assert len(MISTAKES) >= 24
    for lab in LABS:
        assert sum(check.startswith(lab) for mistake in MISTAKES.values() for check in mistake.caught_by[:1]) >= 4, lab


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_small_change_of_the_finished_program(name):
    """So that an overlay does not lag behind when the finished program changes."""
    for path in (KIT / "solutions" / "mistakes" / name).iterdir():
        if path.name == "mistake.toml":
            continue
        finished = [layer / path.name for layer in (KIT / "starter", *sorted((KIT / "solutions").glob("[0-9][0-9]")))]
        original = [file for file in finished if file.is_file()][-1]
        lines = difflib.unified_diff(original.read_text().splitlines(), path.read_text().splitlines(), n=0, lineterm="")
        changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        assert 0 < len(changed) <= 80, f"{path.name} differs from {original.parent.name}/{path.name} in {len(changed)} lines"


@pytest.mark.parametrize("name", STORIES)
def test_a_failure_is_told_in_these_words(named_checks, records_of, name):
    told = story_of(name, records_of(name))
    if os.environ.get("GOLDEN") == "write":
        STORIES[name].write_text(told)
    assert told == STORIES[name].read_text(), "to accept the new words: GOLDEN=write pytest grader/tests/test_mistakes.py -k told"


def test_at_least_twelve_stories_are_kept():
    assert len(STORIES) >= 12 and set(STORIES) <= set(MISTAKES)


def story_of(name, path):
    """The story of the first check that a mistake names, from its records, with random ids blanked."""
    lab, check = MISTAKES[name].caught_by[0].split("/", 1)
    story = next(entry["story"] for entry in records.outcomes(records.read(path)) if entry["story"] and (entry["lab"], entry["check"]) == (lab, check))
    story = re.sub(r"\b[0-9a-f]{8}(…|[0-9a-f]{24}\b)", "xxxxxxxx…", story)
    return re.sub(r"\.lab-evidence/[^/]+/", ".lab-evidence/latest/", story) + "\n"  # another session may be the latest


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_no_mistake_fails_a_check_of_a_lab_that_it_does_not_touch(tmp_path):
    others = {name: sorted(set(LABS) - {check[:2] for check in mistake.caught_by} - set(mistake.touches)) for name, mistake in MISTAKES.items()}
    others = {name: labs for name, labs in others.items() if labs}

    def run(name):
        chats = not {path.name for path in (KIT / "solutions" / "mistakes" / name).glob("*.py")} <= NOT_OF_CHAT
        _, output, results = run_suites(*(f"labs/{lab}" for lab in others[name]), "--program", f"solutions/mistakes/{name}", "--lab-sample", "12",
                                        "--lab-preload", "json", *([] if chats else ["--deselect", LONG_CHAT]),   # what is preloaded is forked, which is quicker
                                        results=tmp_path / f"{name}.jsonl")
        assert set(results) == set(others[name]), output
        return failed_checks(results)

    assert {name: failed for name, failed in side_by_side(run, others).items() if failed} == {}


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_each_sweep_catches_every_mistake_that_names_it_every_time(tmp_path):
    names = {name: swept for name, mistake in MISTAKES.items()
             if (swept := [check for check in mistake.caught_by if check.split("::")[0].endswith(SWEEPS)])}

    def run(number):
        name, seed = list(names)[number // SEEDS], number % SEEDS
        sample = ["--lab-sample", "5"] if seed and name in AT_MANY_POINTS else []   # to catch it at fewer points is the harder task
        _, output, results = run_suites(*(f"labs/{check}" for check in names[name]), "--program", f"solutions/mistakes/{name}",
                                        "--lab-seed", str(seed), *sample, results=tmp_path / f"{number}.jsonl")
        assert failed_checks(results) == set(names[name]), output
    side_by_side(run, range(SEEDS * len(names)))
