"""What a sweep makes of its outcomes: the verdict, the rules it is judged by, the points that are tried, the lines that are shown."""

from types import SimpleNamespace

import pytest

from labs.harness import sweeps
from labs.harness.ground import Ground
from labs.harness.killmap import Mapped, Struck
from labs.harness.processes import ProgramFault
from labs.harness.side_by_side import side_by_side
from labs.harness.staging import stage
from labs.harness.story import more_like
from labs.harness.sweeps import result as result_module
from labs.harness.sweeps.result import STORIES, Outcome, Result, Stories
from labs.harness.sweeps.rules import OF_LAB

SAFE, LOST, TWICE = {}, {1: ("lost", "it is gone")}, {2: ("lost", "nothing was written"), 3: ("repeated", "twice")}


def result(*outcomes, **more):
    return Result("line", "start", [Outcome(f"before flow.py:{number}", *outcome) for number, outcome in enumerate(outcomes, 1)], **more)


def test_a_sweep_without_points_does_not_pass():
    assert result().fault == "there was no point to kill it at"


def test_the_first_bad_point_is_named_and_the_others_counted():
    assert result((SAFE,), (LOST,), (SAFE,), (LOST,)).fault == "before flow.py:2 (2 of 4 points failed): it is gone"


def test_what_other_points_failed_for_is_told_beside_the_first():
    crashed = [({3: ("lost", f"`resume` ended with exit code 1: JSONDecodeError: char {number}")},) for number in range(5)]
    found = result((LOST,), (TWICE,), *crashed, (LOST,), (SAFE,))
    assert found.fault == ("before flow.py:1 (8 of 9 points failed, 2 of them so): it is gone. "
                           "The others: 5 × `resume` ended with exit code 1: JSONDecodeError; 1 × twice")
    assert more_like(["x: “KeyError: 1”", "x: “KeyError: 2”", "x: “json.TypeError: 3”", ""]) == (", 2 of them so", ". The others: 1 × x: json.TypeError; 1 × without a word")
    assert more_like(["a: 1", "b", "b", "c", "d", "e: 2", "a: 3"])[1] == ". The others: 2 × b; 1 × c; 1 × d; 1 × something else"


def test_the_story_of_what_no_sweep_can_go_on_from_is_told_whole_whatever_is_judged(monkeypatch):
    def hangs():
        fault = ProgramFault("`resume` did not end")
        fault.program = "a program"
        raise fault
    monkeypatch.setattr(sweeps, "tell", lambda program: [f"the story of {program}"])
    outcome, = sweeps._whole("line", "start", hangs).outcomes
    assert outcome.told((1, 8)) == outcome.told((1, 2, 3)) == ("the story of a program",)


def test_of_several_broken_rules_the_worst_for_the_customer_is_told():
    assert Outcome("", TWICE).under((1, 2, 3)) == ("repeated", "twice")


def test_a_lab_is_judged_by_its_own_rules_alone():
    found = result((SAFE,), (TWICE,))
    assert found.under(OF_LAB["01"]).fault is None
    assert "nothing was written" in found.under(OF_LAB["02"]).fault and "twice" in found.under(OF_LAB["03"]).fault


@pytest.mark.parametrize("missed, passes", [(1, True), (2, False)])
def test_a_few_points_that_were_not_reached_again_are_no_fault(missed, passes):
    found = result(*[(SAFE, number >= missed) for number in range(10)])
    assert (found.fault is None) == passes and found.missed == missed


def test_a_loop_that_went_round_less_often_is_no_fault():
    rounds = [Outcome(f"before flow.py:7, the {number}th time", SAFE, number < 3, like=("flow.py", 7)) for number in range(40)]
    found = Result("line", "start", [*rounds, Outcome("before flow.py:8", SAFE, like=("flow.py", 8))])
    assert found.missed == 37 and found.never_struck == 0 and found.fault is None


def test_what_keeps_points_from_being_seen_is_a_fault_though_nothing_bad_was_seen():
    assert result((SAFE,), blind="it turned them off").fault == "it turned them off"


def test_what_could_not_be_checked_hides_no_bad_point_and_is_no_pass():
    assert result((SAFE,), could_not="no seccomp").fault is None and result(could_not="no seccomp").fault is None
    assert "it is gone" in result((LOST,), could_not="no seccomp").fault


def test_a_program_that_is_wrong_undisturbed_is_not_drawn_on_a_map():
    outcome = Outcome("before flow.py:3", TWICE, place=("line", "start", [("flow.py", 3), ("__main__.py", 9)]))
    assert [(struck.file, struck.inner) for struck in Result("line", "start", [outcome]).struck] == [("flow.py", True), ("__main__.py", False)]
    assert not list(Result("line", "start", [outcome], undisturbed=TWICE).struck)
    assert list(Result("line", "start", [outcome], undisturbed=TWICE).under(OF_LAB["01"]).struck), "of this rule it breaks nothing undisturbed"


def test_a_sample_is_never_empty_and_all_points_are_all_points(tmp_path):
    def sample(every, count, seed=1):
        return list(Ground(None, None, tmp_path, seed, every).sample(range(count)))
    assert sample(1, 5) == [0, 1, 2, 3, 4] and sample(100, 3) and not sample(3, 0)
    assert len(sample(7, 70)) == 10 and {tuple(sample(7, 70, seed)) for seed in range(30)} == {tuple(range(first, 70, 7)) for first in range(7)}


def struck(line, outcome, inner=True):
    return Struck("line", "start", "flow.py", line, f"before flow.py:{line}", outcome, "" if outcome == "safe" else "why", (), inner)


def test_the_map_points_at_the_lines_where_most_kills_do_harm_and_not_at_those_that_are_under_way_for_long():
    points = [struck(2, "repeated"), struck(2, "repeated"), struck(3, "safe")]
    points += [struck(1, "repeated", inner=False)] * 2 + [struck(1, "safe", inner=False)] * 7
    mapped = Mapped({"flow.py": "main()\na = 1\nb = 2\n"}, points)
    assert [line.number for line in mapped.where["flow.py"]] == [2] and [line.number for line in mapped.files[0].bad] == [1, 2]
    assert mapped.harmful == 2 and mapped.kinds == {"line": 3}, "each point is one kill, however many lines were under way"


def test_where_no_line_is_mostly_bad_the_map_points_at_all_bad_ones():
    mapped = Mapped({"flow.py": "a = 1\n"}, [struck(1, "lost"), struck(1, "safe"), struck(1, "safe")])
    assert [line.number for line in mapped.where["flow.py"]] == [1]


def test_the_source_of_a_program_is_read_from_its_own_files_alone(tmp_path):
    (tmp_path / "secret.py").write_text("SECRET = 1")
    folder = tmp_path / "submitted"
    folder.mkdir()
    (folder / "__main__.py").write_text("import antigravity, json, os.path, unittest.__main__, requests, sched, queue\n")
    (folder / "sched.py").write_text("# its own, of a name that the library has too")
    (folder / "queue").mkdir()
    (folder / "link.py").symlink_to(tmp_path / "secret.py")
    (folder / "empty.py").touch()
    (folder / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (folder / "folder.py").mkdir()
    staged = stage(folder, tmp_path / "staged")
    assert list(staged.sources) == ["__main__.py", "sched.py"], "no line runs in an empty file, and `__init__.py` is none of the program's own"
    assert staged.imports == ["json", "os.path"], "what is loaded for all must not do anything when it is loaded"


def test_the_first_point_has_its_story_and_its_program_whoever_ended_first(monkeypatch):
    monkeypatch.setattr(result_module, "tell", lambda program, gone_on_with=True: [f"the story of {program}", *["and its end"] * gone_on_with])
    ground = SimpleNamespace(discard=lambda program: discarded.append(program))
    stories, discarded = Stories(ground), []
    broken = {1: ("lost", "the run is unknown")}
    ended = [stories.outcome(str(number), f"program {number}", {} if number == 7 else broken) for number in reversed(range(10))]
    assert discarded == ["program 7"], "what broke no rule is needed no more"
    side_by_side(lambda outcome: outcome, list(reversed(ended)), stories.taking(lambda outcome: None))
    assert [outcome.point for outcome in stories.outcomes] == [str(number) for number in range(10)]
    assert [outcome.told((1, 2)) for outcome in stories.outcomes if outcome.to_the_kill] == [(f"the story of program {number}",) for number in range(STORIES)]
    assert [outcome.told((1, 2, 3))[1:] for outcome in stories.outcomes if outcome.story] == [("and its end",)] * STORIES
    assert [outcome.program for outcome in stories.outcomes if outcome.program] == ["program 0"]
    assert sorted(discarded) == [f"program {number}" for number in range(1, 10)]


@pytest.mark.parametrize("gone_on_with", [(True, False, False), (True, True, True), (False, True, False)])
def test_kills_that_left_nothing_count_as_one_however_many_threads_went_on_with_theirs(gone_on_with):
    stories, after = Stories(None), (True, False, True, 0.5)
    for gone_on in gone_on_with:
        stories.take(Outcome("a point", SAFE, after=after if gone_on else None, trace_free=True))
    stories.take(Outcome("a point", SAFE, after=after))
    assert Result("line", "start", stories.outcomes).figures["kills"] == 2
