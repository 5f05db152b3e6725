"""The battery of attacks: well described, and each scores what its honest part earns, through the same batch as any submission."""

import zipfile
from pathlib import Path

import pytest

from grader import battery, isolation, results, scoring, selftest
from grader.results import CheckResult, LabResult, Outcome, Result, Status
from grader.suites import LABS
from labs.harness.manifest import BadManifest

ATTACKS = battery.attacks()
CHECKS = {f"{lab}/{check.test}" for lab in LABS for check in LABS[lab].checks}
CHEAP = ("forged-pass-lines", "stray-config-files", "path-escape")
A_CHECK = "01/test_record.py::test_a_bad_ticket_is_refused"


def test_there_are_many_of_them_and_each_is_of_its_own_kind():
    assert len(ATTACKS) >= 25
    assert len({attack.attack for attack in ATTACKS.values()}) == len(ATTACKS)
    bases = {path.name for path in (battery.ATTACKS / "bases").iterdir()}
    assert {path.name for path in battery.ATTACKS.iterdir() if path.is_dir()} == {*ATTACKS, "bases"}, "a folder has no attack.toml"
    assert bases == {layer for attack in ATTACKS.values() for layer in attack.over if (battery.ATTACKS / "bases" / layer).is_dir()}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_names_checks_that_exist_and_nothing_else(name):
    attack = ATTACKS[name]
    assert set(attack.checks) <= CHECKS and len(set(attack.checks)) == len(attack.checks)
    assert bool(attack.checks) == (attack.outcome == Outcome.GRADED)
    assert not any(Status.PASSED in statuses or not statuses or any(status.is_unknown for status in statuses) for statuses in attack.fails.values())


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_makes_a_submission(name, tmp_path):
    battery.submit(name, ATTACKS[name], tmp_path / name)
    there = {path.name for path in (tmp_path / name).rglob("*")}
    assert "__main__.py" in there or {path for path in there if path.endswith((".zip", ".tar"))}
    assert not {"attack.toml", "mistake.toml", "make.py"} & there
    assert set(ATTACKS[name].drops) <= there


def test_an_attack_that_is_badly_described_is_named(tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "attack.toml").write_text('attack = "Does something that nobody described well."\nstopped = "x"\n')
    monkeypatch.setattr(battery, "ATTACKS", tmp_path)
    with pytest.raises(BadManifest, match=r"x/attack\.toml(.|\n)*stopped"):
        battery.attacks()


def a_result(status, outcome=Outcome.GRADED, **more):
    lab, _, test = A_CHECK.partition("/")
    check = CheckResult(test=test, does="Looks at it.", hidden=False, possible=1, points=int(status == Status.PASSED), status=status, why="because")
    return Result(name="x", source="x", outcome=outcome, labs=[LabResult(number=lab, title="t", checks=[check])], **more)


@pytest.mark.parametrize("attack, result, words", [
    ({"passes": [A_CHECK]}, a_result(Status.FAILED), "is failed, not passed"),
    ({"fails": {A_CHECK: ["timeout"]}}, a_result(Status.PASSED), "is passed, not timeout"),
    ({"fails": {A_CHECK: ["timeout"]}}, a_result(Status.GRADER_ERROR), "is grader error, not timeout"),
    ({"fails": {A_CHECK: ["failed"]}}, a_result(Status.FAILED, Outcome.INCOMPLETE), "it is incomplete"),
    ({"outcome": "invalid"}, a_result(Status.FAILED), "it is graded"),
    ({"passes": [A_CHECK], "drops": ["conftest.py"]}, a_result(Status.PASSED), "conftest.py was not left out"),
    ({"passes": [A_CHECK, "01/test_record.py::test_an_unknown_run_is_refused"]}, a_result(Status.PASSED), "other checks"),
    ({"passes": [A_CHECK]}, None, "no result"),
    (None, a_result(Status.FAILED), "is failed, not passed"),
])
def test_an_attack_that_ends_otherwise_than_it_has_to_is_told(attack, result, words):
    described = attack and battery.Attack(attack="It tries something or other.", stopped_by="Something that stands in its way.", **attack)
    told = battery.wrong(described, result)
    assert len(told) == 1 and words in told[0]


def test_an_attack_that_ends_as_it_has_to_is_no_fault():
    described = battery.Attack(attack="It tries something or other.", stopped_by="Something that stands in its way.",
                               fails={A_CHECK: ["failed", "timeout"]})
    assert battery.wrong(described, a_result(Status.TIMEOUT)) == []


@pytest.fixture(scope="module")
def full_isolation():
    rung, _, reasons = isolation.strongest()
    if rung not in isolation.STRONG:
        pytest.skip("; ".join(reasons))


@pytest.fixture(scope="module")
def told(full_isolation):
    """{name: what is wrong with how it ended} of the cheap attacks, and of one that earns more than it says; with the report, which is there meanwhile."""
    modest = ATTACKS["shadowed-stdlib"].model_copy(update={"passes": [], "fails": {A_CHECK: [Status.FAILED]}})
    attacks = {**{name: ATTACKS[name] for name in CHEAP}, "shadowed-stdlib": modest}
    told = {name: wrong for name, _, wrong in selftest.graded(attacks, jobs=2)}
    yield told
    selftest.shutil.rmtree(Path(told["the report"][0]).parent)


@pytest.mark.timeout(300)
def test_cheap_attacks_score_what_they_earn(told):
    assert {name: told[name] for name in (*CHEAP, battery.HONEST, "the machine")} == dict.fromkeys([*CHEAP, battery.HONEST, "the machine"], [])


@pytest.mark.timeout(300)
def test_the_self_test_tells_of_an_attack_that_earns_more_than_it_says(told):
    assert told.keys() == {*CHEAP, "shadowed-stdlib", battery.HONEST, "the machine", "the report"} and len(told["shadowed-stdlib"]) == 1
    report = Path(told["the report"][0])
    assert report.is_file()
    results.read(report.parent / "results" / "shadowed-stdlib.json")


def test_what_an_attack_leaves_on_the_machine_is_found(tmp_path, monkeypatch):
    before = selftest._machine()
    monkeypatch.setattr(selftest.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "killproof-abandoned").mkdir()
    (tmp_path / "killproof-abandoned" / "lock").touch()
    (tmp_path / "killproof-escaped").touch()
    assert selftest._machine() - before == {f"folder {tmp_path / 'killproof-abandoned'}", f"folder {tmp_path / 'killproof-escaped'}"}


def test_the_bomb_is_small(tmp_path):
    battery.submit("zip-bomb", ATTACKS["zip-bomb"], tmp_path / "bomb")
    path = tmp_path / "bomb" / "bomb.zip"
    assert path.stat().st_size < 1 << 20 < sum(member.file_size for member in zipfile.ZipFile(path).infolist()) >> 7


# ---- what the battery needs of the grader

def records_of(*checks, **entry):
    return [{"collected": [[check[:2], check[3:], check.rpartition("::")[2]] for check in checks]},
            *({"lab": check[:2], "check": check[3:], "item": check.rpartition("::")[2], "seconds": 0, "status": "failed", "kind": "failed", **entry}
              for check in checks)]


def test_half_a_letter_in_a_story_does_not_keep_a_result_from_being_written(tmp_path):
    labs = scoring.lab_results(records_of(A_CHECK, why="it says \ud800", story="\ud800\x00"), ("01",), checks=[A_CHECK])
    written = results.read(results.write(Result(name="x", source="x", outcome=Outcome.GRADED, labs=labs), tmp_path))
    assert written.labs[0].checks[0].why == "it says \\ud800" and written.labs[0].checks[0].story == "\\ud800\x00"


def test_of_chosen_checks_alone_there_are_results():
    chosen = [A_CHECK, "03/test_resume.py::test_a_killed_run_is_finished"]
    labs = scoring.lab_results(records_of(*chosen), ("01", "02", "03"), checks=chosen)
    assert [f"{lab.number}/{check.test}" for lab in labs for check in lab.checks] == chosen
