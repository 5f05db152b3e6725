"""`labs reset`: starter/ goes back to the state before a lab, and a kill at any moment loses nothing."""

import fcntl
import os
import re
import shutil
import signal
import sys

import pytest
from grader.tests.small_kit import SmallKit

from labs.command import reset as resetting
from labs.command.reset import mend, reset
from labs.command.shipped import files_of, shipped_starter, state_before
from labs.harness.staging import KIT

AUDITED = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"}
MINE = "# what I wrote, and would not like to lose\n"


@pytest.fixture
def kit(tmp_path):
    """A small kit whose learner has edited starter/."""
    kit = SmallKit(tmp_path / "kit")
    kit.write("starter/flow.py", MINE)
    kit.write("starter/notes/idea.txt", "a lock?")
    (kit.root / "starter/exits.py").unlink()
    return kit


def test_the_shipped_starter_is_the_starter():
    assert shipped_starter() == files_of(KIT / "starter"), \
        "starter/ was changed: `python -m labs.command.shipped` keeps it as the one that is shipped"


def test_the_state_before_a_lab_is_the_starter_under_the_solutions_before_it():
    assert state_before("01") == shipped_starter()
    third = state_before("03")
    assert third == shipped_starter() | files_of(KIT / "solutions/01") | files_of(KIT / "solutions/02")


def test_reset_asks_and_keeps_what_was_there(kit):
    mine = files_of(kit.root / "starter")
    code, output, errors = kit.run("reset", "2", stdin="n\n")
    assert code == 1 and not errors and output.endswith("Go on? [y/N]: nothing changed\n")
    assert files_of(kit.root / "starter") == mine and not list((kit.root / ".lab-backup").glob("*/"))
    code, output, errors = kit.run("reset", "2", stdin="")
    assert code == 1 and not errors and output.endswith("nobody answers here; with --yes nobody is asked\nnothing changed\n")

    code, output, errors = kit.run("reset", "2", stdin="y\n")
    assert code == 0 and not errors
    assert output.startswith("To be the starter before lab 02 (the shipped one under solutions/01), starter/ changes:\n"
                             "  exits.py comes\n  flow.py changes\n  notes/idea.txt goes\n  record.py comes\n"
                             "What it is now will be kept in .lab-backup/.\nGo on? [y/N]: \nstarter/ is now the starter before lab 02.\n")
    assert files_of(kit.root / "starter") == state_before("02", kit.root)
    assert kit.read("starter/flow.py") == "# mark 01\n" and (kit.root / "starter/exits.py").exists()
    backup = re.search(r"What it was is in (\.lab-backup/[\d-]+/starter)\n", output).group(1)
    assert files_of(kit.root / backup) == mine
    back = re.search(r"To have that back: (.*)\n", output).group(1)
    assert back == f"rm -r starter && cp -R {backup} starter"
    assert kit.run("reset", "02")[:2] == (0, "starter/ is the starter before lab 02 already; nothing to do\n")


def test_a_starter_that_was_thrown_away_is_there_again(kit, tmp_path_factory):
    shutil.rmtree(kit.root / "starter")
    code, output, errors = kit.run("reset", "01", "--yes", cwd=tmp_path_factory.mktemp("elsewhere"))
    assert code == 0 and not errors and "What it was is in" not in output
    assert files_of(kit.root / "starter") == shipped_starter(kit.root)


def test_reset_from_within_starter_says_where_the_shell_is_now(kit):
    assert "cd .. and into starter/ again" in kit.run("reset", "01", "--yes", cwd=kit.root / "starter")[1]


def test_what_cannot_be_reset_is_one_line(kit):
    def refusal(*arguments):
        code, _, errors = kit.run("reset", *arguments, "--yes")
        assert code == 2 and len(errors.splitlines()) == 1
        return errors

    mine = files_of(kit.root / "starter")
    (kit.root / ".lab-backup").mkdir()
    with open(kit.root / ".lab-backup/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another `labs reset` is at work" in refusal("01")
    shutil.rmtree(kit.root / "solutions")
    assert "this kit has no solutions/: whoever gave it to you has them; `reset 01` needs none" in refusal("02")
    (kit.root / "labs/harness/starter.zip").write_bytes(b"no archive")
    assert "starter.zip, the starter as shipped, cannot be read" in refusal("01")
    assert files_of(kit.root / "starter") == mine


def test_a_link_is_not_reset(kit):
    (kit.root / "starter").rename(kit.root / "elsewhere")
    (kit.root / "starter").symlink_to("elsewhere")
    with pytest.raises(resetting.Refused, match="starter/ is a link to"):
        reset("01", lambda changes: True, kit.root)


# ---- killed on the way


def killed(work, point):
    """Call `work` in a process of its own that is killed before its `point`-th deed. Returns whether it was.

    A deed is a line of reset.py, or an event that the interpreter tells its auditors: a file that is opened, made,
    renamed or removed.
    """
    pid = os.fork()
    if pid == 0:
        left = point

        def deed():
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def line(*_):
            deed()
            return line

        code = 1
        try:
            sys.addaudithook(lambda event, _: event in AUDITED and deed())
            sys.settrace(lambda frame, *_: line if frame.f_code.co_filename == resetting.__file__ else None)
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "it raised"
    return os.WIFSIGNALED(status)


def backups(root):
    """The files of each backup."""
    return [files_of(path) for path in sorted((root / ".lab-backup").glob("*/starter"))]


def sound(root, mine, target):
    """Whether starter/ is wholly the old or wholly the new state, what the learner wrote is there, and nothing is half done."""
    now = files_of(root / "starter")
    assert now == mine or (now == target and mine in backups(root))
    assert not [path for path in (root / ".lab-backup").glob("*/*") if path.name != "starter"]
    return now


def test_a_reset_killed_anywhere_loses_nothing_and_is_finished_or_undone_by_the_next_call(kit):
    mine, target = files_of(kit.root / "starter"), state_before("02", kit.root)
    pristine, point, ends = kit.root.with_name("pristine"), 0, []
    shutil.copytree(kit.root / "starter", pristine)
    while killed(lambda: reset("02", lambda changes: True, kit.root), point):
        assert mine in (files_of(kit.root / "starter"), *backups(kit.root)), f"killed at {point}: what the learner wrote is gone"
        said = mend(kit.root)
        ends.append("new" if sound(kit.root, mine, target) == target else "old")
        assert len(said) <= 1 and (ends[-1] == "new" or not said or "undone: starter/ is as it was" in said[0]), said
        for folder in ("starter", ".lab-backup"):
            shutil.rmtree(kit.root / folder, ignore_errors=True)
        shutil.copytree(pristine, kit.root / "starter")
        point += 1
    assert files_of(kit.root / "starter") == target and backups(kit.root) == [mine]
    # It changes from the old state to the new one at one point, and there are points on both sides.
    assert ends == sorted(ends, reverse=True) and {"old", "new"} == set(ends) and point > 60


@pytest.mark.parametrize("moved", [False, True], ids=["before the swap", "within the swap"])
def test_the_mending_killed_anywhere_is_done_by_the_next_call(kit, moved):
    mine, target = files_of(kit.root / "starter"), state_before("02", kit.root)

    def half_done():
        for folder in ("starter", ".lab-backup"):
            shutil.rmtree(kit.root / folder, ignore_errors=True)
        backup = kit.root / ".lab-backup/20261129-120000"
        for place, files in ((backup / "ready", target), ((backup if moved else kit.root) / "starter", mine)):
            for name, content in files.items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(content)

    half_done()
    point = 0
    while killed(lambda: mend(kit.root), point):
        assert mine in (files_of(kit.root / "starter"), *backups(kit.root))
        mend(kit.root)
        assert sound(kit.root, mine, target) == (target if moved else mine)
        half_done()
        point += 1
    assert sound(kit.root, mine, target) == (target if moved else mine) and point > 15


def test_any_command_finishes_a_killed_reset_and_says_so(kit):
    mine, backup = files_of(kit.root / "starter"), kit.root / ".lab-backup/20261129-120000"
    shutil.copytree(kit.root / "solutions/01", backup / "ready")
    (kit.root / "starter").rename(backup / "starter")
    code, output, errors = kit.run("hint", "01")
    assert code == 0 and "hint 1 of 3" in output
    assert errors == "labs: a reset that was killed is finished: what starter/ was is in .lab-backup/20261129-120000/starter\n"
    assert files_of(kit.root / "starter") == files_of(kit.root / "solutions/01") and backups(kit.root) == [mine]
    assert kit.run("hint", "01")[2] == ""


def test_a_starter_made_anew_after_a_killed_reset_is_left_alone(kit):
    mine, backup = files_of(kit.root / "starter"), kit.root / ".lab-backup/20261129-120000"
    shutil.copytree(kit.root / "solutions/01", backup / "ready")
    (kit.root / "starter").rename(backup / "starter")
    kit.write("starter/flow.py", "# begun again by hand\n")
    said, = mend(kit.root)
    assert "given up" in said and ".lab-backup/20261129-120000/starter" in said
    assert files_of(kit.root / "starter") == {"flow.py": b"# begun again by hand\n"} and backups(kit.root) == [mine]


def test_two_resets_of_one_second_keep_both(kit, monkeypatch):
    monkeypatch.setattr(resetting.time, "strftime", lambda _: "20261129-120000")
    for number in ("01", "02", "01"):
        reset(number, lambda changes: True, kit.root)
    assert sorted(path.name for path in (kit.root / ".lab-backup").glob("*/")) == [f"20261129-120000{end}" for end in ("", "-2", "-3")]
