"""What a failed check leaves behind: it is complete, it breaks nothing whatever the program did, and the picture can be read."""

import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from random import Random

import pytest
from grader.suites import run_suites
from rich.cells import cell_len

from labs.harness import story
from labs.harness.events import events_of, read, sentences
from labs.harness.evidence import KEPT, Evidence
from labs.harness.outside import Account
from labs.harness.outside.answer import error
from labs.harness.staging import KIT
from labs.harness.timeline import draw
from labs.session.failures import _kind, _last_ended

SVG = "{http://www.w3.org/2000/svg}"


# ---- a program that never ran, and a real account


class FakeProcess:
    def __init__(self, number, *arguments):
        self.arguments, self.pid = arguments, 1000 + number
        self.begun, self.ended, self.code, self.killed = time.monotonic(), None, None, False
        self.stdout, self.stderr, self.end, self.complaint, self.outlived = "", "", "still runs", "", []

    @property
    def running(self):
        return self.ended is None

    def __str__(self):
        return f"`{' '.join(self.arguments)}`"


class FakeProgram:
    """What evidence needs of a Program; the requests of its processes are handed to a real Account, one by one."""

    def __init__(self, home=Path("/no/such/home")):
        self.home, self.outside, self.processes = home, Account("key", seed=7), []

    def start(self, *arguments):
        self.processes.append(FakeProcess(len(self.processes) + 1, *arguments))
        return self.processes[-1]

    def end(self, process, code=0, killed=False):
        process.ended, process.code, process.killed = time.monotonic(), code, killed
        process.end = "was killed" if killed else f"ended with exit code {code}"

    def send(self, process, kind, body=None, key=None, fate="answered"):
        """One request and its fate: answered, refused, unanswered, dropped, or held for ever. Returns the Request."""
        method, path = {"model": ("POST", "/v1/chat/completions"), "refund": ("POST", "/v1/refunds"), "mail": ("POST", "/v1/mails"),
                        "mail_lookup": ("GET", "/v1/mails")}.get(kind, ("GET", kind))
        body = body or {"model": {"model": "support-1", "messages": [{"role": "user", "content": "Order A-1, I paid $42.00"}]},
                        "refund": {"order_id": "A-1", "amount_cents": 4263},
                        "mail": {"message_id": "m-1", "to": "ana@example.com", "subject": "T-1", "body": "…"}}.get(kind)
        account = self.outside
        request, _ = account.receive(method, path, {"message_id": "m-1"}, body, False, key, process and process.pid)
        if fate in ("dropped", "held"):
            with account.changed:
                account._note(request, "held before")
        elif fate != "refused":
            account.act(request)
        if fate != "held":
            account.end(request, "answered" if fate == "refused" else fate,
                        {"refused": error(503, "out_of_order", "no"), "answered": request.made}.get(fate))
        return request


def killed_before_the_mail():
    program = FakeProgram()
    first = program.start("start", "ticket.json")
    program.send(first, "model")
    program.send(first, "refund")
    mail = program.send(first, "mail", fate="held")
    program.end(first, -9, killed=True)
    program.outside.end(mail, "dropped")
    second = program.start("resume", "8b70d16298a446ba84cc70e22437c797")
    program.send(second, "refund", {"order_id": "A-1", "amount_cents": 4410})
    program.send(second, "mail_lookup")
    program.send(second, "mail", fate="refused")
    program.end(second, 4)
    return program


def evened(events):
    """The same events a hundredth of a second apart, so that nothing depends on the machine."""
    return [{**event, "at": number / 100} for number, event in enumerate(events)]


# ---- the events


def test_the_events_have_the_fields_that_their_description_names():
    described = (KIT / "labs/harness/events.py").read_text().split('"""')[1]
    for event in events_of(killed_before_the_mail()):
        shared = {"at", "lane", "what"} | ({"request", "kind", "process", "key"} if "request" in event else set())
        entry = re.search(rf"^    {event['what']}  +(.*(?:\n {{20}}.*)*)", described, re.M).group(1)
        assert set(event) - shared == set(re.findall(r"`(\w+)`", entry)) - shared, event["what"]


def test_the_events_survive_being_written_down():
    events = events_of(killed_before_the_mail())
    stored = [json.loads(json.dumps(event, allow_nan=False)) for event in events]
    assert stored == events and draw(stored, "a", "b") == draw(events, "a", "b")
    assert [event["at"] for event in events] == sorted(event["at"] for event in events) and events[0]["at"] == 0


def test_the_story_of_a_timeline_in_words():
    assert sentences(evened(events_of(killed_before_the_mail()))) == [
        "process 1, start ticket.json: from 0.000 s, was killed at 0.090 s.",
        "request 1 of process 1 to model, 0.010 s to 0.030 s: 5 tokens; answered 200.",
        "request 2 of process 1 to payments, 0.040 s to 0.060 s: refund $42.63; answered 201.",
        "request 3 of process 1 to mail, 0.070 s to 0.100 s: mail; dropped, not acted on.",
        "process 2, resume 8b70d162…: from 0.110 s, ended with exit code 4 at 0.200 s.",
        "request 4 of process 2 to payments, 0.120 s to 0.140 s: 2nd refund $44.10; answered 201.",
        "request 5 of process 2 to mail, 0.150 s to 0.170 s: look-up, none there; answered 200.",
        "request 6 of process 2 to mail, 0.180 s to 0.190 s: mail; refused 503.",
    ]


def test_a_request_belongs_to_the_process_whose_group_sent_it_or_else_to_the_last_that_ran():
    program = FakeProgram()
    first, second = program.start("start"), program.start("resume")
    mine, unknown = program.send(first, "model"), program.send(None, "model")
    program.end(second)
    later = program.send(None, "model")
    program.end(first)
    stray = program.send(None, "model")
    assert [story.process_of(program, request) for request in (mine, unknown, later, stray)] == [first, second, first, None]
    assert [event["process"] for event in events_of(program) if event["what"] == "received"] == [1, 2, 1, None]


def test_of_very_many_requests_the_first_and_the_last_are_kept():
    program = FakeProgram()
    process = program.start("start")
    for _ in range(3000):
        program.send(process, "mail")
    events = events_of(program)
    left_out, = (event for event in events if event["what"] == "left out")
    assert {name: left_out[name] for name in ("lane", "requests", "effects", "nth")} == {
        "lane": "mail", "requests": 2000, "effects": 2000, "nth": 2500}
    numbers = {event["request"] for event in events if "request" in event}
    assert numbers == {*range(1, 501), *range(2501, 3001)}
    root = picture(events)
    assert_readable(root)
    shown = said(root).count("answered 202")
    assert f"… {3000 - shown} more {3000 - shown} mails, up to the {3000 - shown // 2}th" in said(root)


def test_a_story_stays_short_and_quick_whatever_was_sent():
    program = FakeProgram()
    process = program.start("start")
    for _ in range(20_000):
        program.send(process, "mail", {"message_id": "m" * 300, "to": "a" * 300, "subject": "T-1", "body": "…"})
    begun = time.monotonic()
    assert len(story.tell(program)) < 25
    assert time.monotonic() - begun < 5


def test_a_story_that_judges_no_resume_tells_it_in_a_word():
    program = FakeProgram()
    killed, asked, last = program.start("start", "ticket.json"), program.start("status", "run-7"), program.start("resume", "run-7")
    program.send(killed, "model")
    program.end(killed, -9, killed=True)
    program.end(asked, 0)
    program.send(last, "model")
    program.end(last, 2)
    told = "\n".join(story.tell(program))
    assert told.count("model") == 2 and "resume run-7 → model" in told
    without = "\n".join(story.tell(program, gone_on_with=False))
    assert without.count("model") == 1 and "status run-7 → ended with exit code 0" in without
    assert without.endswith("  then           resume run-7, which is not judged before lab 03")
    assert _last_ended(program, True) is last and _last_ended(program, False) is asked
    last.outlived = ["4242 (sleep)"]
    assert story.tell(program, gone_on_with=False) == story.tell(program)


def test_what_is_repeated_for_a_trial_is_told_as_it_ended_the_first_time():
    first, again = FakeProgram(), FakeProgram()
    process = first.start("start", "ticket.json")
    for kind, fate in (("model", "refused"), ("model", "answered"), ("refund", "unanswered"), ("refund", "dropped")):
        first.send(process, kind, fate=fate)
    first.end(process, -9, killed=True)
    again.processes.append(process)
    again.outside.repeat(first.outside.requests)
    assert story.tell(again) == story.tell(first) and "model 503 → model ✓ → refund, acted on and unanswered" in story.tell(again)[0]
    what = [[(event["what"], event.get("status")) for event in events_of(program)] for program in (again, first)]
    assert [entry for entry in what[0] if entry[0] != "ended"] == [entry for entry in what[1] if entry[0] not in ("ended", "held before")]


# ---- the picture


def picture(events, **sentences_over_it):
    return ElementTree.fromstring(draw(events, **sentences_over_it))


def texts(root):
    """Every text of a picture with its box: (text, left, top, right, bottom), reckoned from a monospaced font."""
    found = []
    for element in root.iter(f"{SVG}text"):
        size, x, y = (float(element.get(name)) for name in ("font-size", "x", "y"))
        wide = cell_len(element.text) * size * 0.6
        left = x - {"end": wide, "middle": wide / 2}.get(element.get("text-anchor"), 0)
        found.append((element.text, left, y - 0.75 * size, left + wide, y + 0.2 * size))
    return found


def uprights(root):
    """Every upright arrow of a picture: (x, top, bottom)."""
    found = []
    for element in root.iter(f"{SVG}path"):
        if match := re.fullmatch(r"M([\d.]+) ([\d.]+)V([\d.]+)", element.get("d")):
            x, *ends = map(float, match.groups())
            found.append((x, min(ends), max(ends)))
    return found


def assert_readable(root):
    boxes = texts(root)
    width, height = float(root.get("width")), float(root.get("height"))
    assert width == 800
    for text, left, top, right, bottom in boxes:
        assert 0 <= left and right <= width and 0 <= top and bottom <= height, text
        for x, upper, lower in uprights(root):
            assert not (left < x < right and upper < bottom and top < lower), f"an arrow goes through {text!r}"
    for one, two in itertools.combinations(boxes, 2):
        assert one[3] <= two[1] or two[3] <= one[1] or one[4] <= two[2] or two[4] <= one[2], f"{one[0]!r} lies on {two[0]!r}"


def said(root):
    """All that stands in a picture, with the lines of its labels joined."""
    return " ".join(text for text, *_ in texts(root))


def test_the_picture_shows_a_kill_a_refusal_and_a_doubled_effect_in_words():
    root = picture(evened(events_of(killed_before_the_mail())), title="Kills it.", why="the customer was refunded twice")
    assert_readable(root)
    for words in ("Kills it.", "Why: the customer was refunded twice", "process 1 start ticket.json", "✂ killed (SIGKILL)",
                  "process 2 resume 8b70d162…", "exit 4: waiting", "refund $42.63 answered 201", "mail dropped, not acted on",
                  "2nd refund $44.10 answered 201", "look-up, none there answered 200", "mail refused 503", "0.090 s"):
        assert words in said(root), words
    assert root.get("role") == "img" and root.find(f"{SVG}title").text == "Kills it."
    assert "2nd refund $44.10" in root.find(f"{SVG}desc").text


def test_a_picture_needs_nothing_else_and_knows_light_and_dark():
    text = draw(events_of(killed_before_the_mail()))
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"<(script|image|use|a|foreignObject)\b|\b(href|src|on\w+)=|url\(|@import", text)
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]


def test_of_forty_requests_the_picture_shows_the_first_and_the_last_and_says_how_many_more():
    program = FakeProgram()
    process = program.start("start", "ticket.json")
    for _ in range(40):
        program.send(process, "refund")
    program.end(process, 1)
    root = picture(evened(events_of(program)))
    assert_readable(root)
    shown = len(re.findall("answered 201", said(root)))
    assert shown >= 6 and f"… {40 - shown} more" in said(root)
    assert "40th refund" in said(root) and f"{40 - shown} refunds, up to the" in said(root)


def test_of_many_starts_the_picture_shows_the_first_and_the_last_and_says_how_many_more():
    program = FakeProgram()
    for _ in range(30):
        process = program.start("start", "ticket.json")
        program.send(process, "model")
        program.end(process, -9, killed=True)
    root = picture(evened(events_of(program)))
    assert_readable(root)
    assert "process 1 " in said(root) and "process 30 " in said(root) and "… 26 more starts" in said(root)


def test_a_process_killed_before_any_request_is_a_picture_too():
    program = FakeProgram()
    program.end(program.start("start", "ticket.json"), -9, killed=True)
    root = picture(events_of(program))
    assert_readable(root)
    assert "✂ killed (SIGKILL)" in said(root)


def test_a_question_that_nothing_came_of_is_not_in_the_picture():
    program = FakeProgram()
    for verb in ("start", "status", "resume"):
        program.end(program.start(verb, "run-7"))
    assert "process 1 start run-7" in said(picture(events_of(program))) or "process 3" in said(picture(events_of(program)))
    assert "process 2" not in said(picture(events_of(program)))


def test_two_processes_at_once_with_requests_to_one_service_at_once():
    program = FakeProgram()
    first = program.start("start", "run-7")
    held = program.send(first, "refund", fate="held")
    second = program.start("start", "run-7")
    program.send(second, "refund")
    program.send(second, "mail")
    program.end(second)
    program.outside.act(held)
    program.outside.end(held, "answered", held.made)
    program.end(first)
    root = picture(evened(events_of(program)))
    assert_readable(root)
    assert "2nd refund $42.63 held, answered 201" in said(root) and "process 2" in said(root)


def test_what_still_runs_or_is_held_at_the_end_is_said_to():
    program = FakeProgram()
    program.send(program.start("start", "run-7"), "refund", fate="held")
    root = picture(events_of(program))
    assert_readable(root)
    assert "still runs" in said(root) and "refund held, not acted on" in said(root)


def test_no_events_are_an_empty_picture():
    assert_readable(picture([]))


NASTY = "</text><script>alert(1)</script>\x00\x1b[2J\n\ud800\u202e\ufffe&<'\"] ]]> {{ 7*7 }} {% raw %} 漢字漢字漢字漢字漢字漢字漢字漢字 " + "x" * 5000


def test_whatever_a_program_is_called_or_sends_is_text_in_the_picture():
    program = FakeProgram()
    process = program.start(NASTY, NASTY)
    program.send(process, NASTY)
    program.send(process, "refund", {"order_id": NASTY, "amount_cents": 10**4000}, key=NASTY)
    program.send(None, "mail", {"message_id": NASTY, "to": NASTY, "subject": NASTY, "body": NASTY})
    program.end(process, 1)
    process.end = NASTY
    text = draw(events_of(program), title=NASTY, why=NASTY)
    root = ElementTree.fromstring(text)
    assert_readable(root)
    assert {element.tag for element in root.iter()} <= {f"{SVG}{tag}" for tag in ("svg", "title", "desc", "style", "g", "rect", "path", "text")}
    assert "\u202e" not in text and "49" not in said(root) and len(text) < 60_000


@pytest.mark.parametrize("seed", range(60))
def test_labels_never_overlap(seed):
    random, program, running = Random(seed), FakeProgram(), []
    held = []
    for _ in range(random.randrange(2, 40)):
        deed = random.random()
        if deed < 0.15 or not running:
            running.append(program.start(random.choice(["start", "resume"]), "run-7" * random.randrange(5)))
        elif deed < 0.25:
            program.end(running.pop(random.randrange(len(running))), *random.choice([(0,), (2,), (-9, True), (-11,), (137,)]))
        elif deed < 0.35 and held:
            program.outside.end(held.pop(random.randrange(len(held))), "dropped")
        else:
            fate = random.choice(["answered", "answered", "refused", "unanswered", "dropped", "held"])
            request = program.send(random.choice([*running, None]), random.choice(["model", "refund", "mail", "mail_lookup", "/v1/nothing"]), fate=fate)
            held += [request] if fate == "held" else []
    # Pauses, and moments that are close together.
    times = itertools.accumulate(random.choice([0.0001, 0.003, 0.06, 12]) for _ in itertools.count())
    events = [{**event, "at": at} for event, at in zip(events_of(program), times)]
    assert_readable(picture(events, title="word " * random.randrange(60), why="word " * random.randrange(60)))


# ---- the folder


@pytest.fixture
def evidence(tmp_path):
    return Evidence(tmp_path / ".lab-evidence")


def test_everything_of_a_failed_check_is_kept(evidence, tmp_path):
    program = killed_before_the_mail()
    program.home = tmp_path / "home"
    (program.home / "runs").mkdir(parents=True)
    (program.home / "runs" / "run-7.json").write_bytes(b"\x00\xff")
    program.processes[0].stdout, program.processes[1].stderr = "run-7\n", "it is\ud800 broken\n"
    shown = evidence.keep("03-a-check", ["lab 03", "  why  it broke \ud800"], program, "Kills it.", "it broke")
    assert shown == Path(".lab-evidence", evidence.folder.name, "03-a-check/timeline.svg")
    folder = (tmp_path / shown).parent
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "01-start.stdout", "02-resume.stderr", "events.jsonl", "lab-home/runs/run-7.json", "story.txt", "timeline.svg"]
    assert (folder / "lab-home/runs/run-7.json").read_bytes() == b"\x00\xff"
    stored = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert len(read(stored)[1]) == 6
    assert draw(stored, "Kills it.", "it broke") == (tmp_path / shown).read_text()


def test_what_cannot_be_copied_of_a_home_is_named_and_the_rest_is_copied(evidence, tmp_path):
    program = killed_before_the_mail()
    home = program.home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret").write_text("not the program's")
    os.mkfifo(home / "pipe")
    os.symlink("loop", home / "loop")
    os.symlink(tmp_path, home / "up")
    os.symlink(tmp_path / "secret", home / "link")
    with open(home / "huge", "wb") as file:
        file.truncate(1 << 40)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / "socket"))
    for name in ("new\nline", b"\xff\xfe".decode(errors="surrogateescape"), "state.json", "z" * 255):
        (home / name).write_text("kept")
    deep = home
    for _ in range(60):
        deep = deep / "deep"
        deep.mkdir()
    (home / "locked").mkdir(mode=0)
    (home / "unreadable").touch(mode=0)
    shown = evidence.keep("check", ["story"], program)
    folder = (tmp_path / shown).parent
    copied = {path.relative_to(folder / "lab-home").as_posix() for path in (folder / "lab-home").rglob("*") if path.is_file()}
    assert {"new\nline", "\udcff\udcfe", "state.json", "z" * 255} <= copied
    assert not {"pipe", "loop", "link", "huge", "socket"} & copied and not any("secret" in name for name in copied)
    left_out = (folder / "left-out.txt").read_text().splitlines()
    for line in ("lab-home/pipe: a pipe", "lab-home/loop: a link", "lab-home/up: a link", "lab-home/link: a link",
                 "lab-home/socket: no regular file", "lab-home/huge: too big: 8 MiB of a home are kept"):
        assert line in left_out, line
    assert any("too many folders" in line for line in left_out)
    if os.geteuid():
        assert {"lab-home/locked: Permission denied", "lab-home/unreadable: Permission denied"} <= set(left_out)


def test_a_home_with_very_many_files_is_copied_in_part(evidence, tmp_path):
    program = killed_before_the_mail()
    home = program.home = tmp_path / "home"
    for name in range(1500):
        (home / f"{name // 50:02}").mkdir(parents=True, exist_ok=True)
        (home / f"{name // 50:02}" / f"{name:04}").touch()
    folder = (tmp_path / evidence.keep("check", ["story"], program)).parent
    assert 900 < len([path for path in (folder / "lab-home").rglob("*") if path.is_file()]) < 1001
    assert "only 1000 files and folders are kept" in (folder / "left-out.txt").read_text()


def gone(home):
    pass


def a_file(home):
    home.write_text("no folder")


def a_link(home):
    home.symlink_to("/etc")


@pytest.mark.parametrize("become", [gone, a_file, a_link])
def test_a_home_that_is_no_folder_any_more_costs_nothing_else(evidence, tmp_path, become):
    program = killed_before_the_mail()
    program.home = tmp_path / "home"
    become(program.home)
    folder = (tmp_path / evidence.keep("check", ["story"], program)).parent
    assert (folder / "timeline.svg").exists() and (folder / "events.jsonl").exists() and not (folder / "lab-home").exists()
    assert (folder / "left-out.txt").read_text().startswith("lab-home/.: ")


def test_bodies_that_are_no_proper_json_are_left_out_of_the_events(evidence, tmp_path):
    program = FakeProgram()
    nested = []
    for _ in range(100_000):
        nested = [nested]
    process = program.start("start")
    for value in (float("nan"), nested, "x" * 100_000):
        program.send(process, "refund", {"order_id": "A-1", "amount_cents": 1, "more": value})
    folder = (tmp_path / evidence.keep("check", ["story"], program)).parent
    bodies = [event["body"] for event in map(json.loads, (folder / "events.jsonl").read_text().splitlines()) if "body" in event]
    assert len(bodies) == 3 and all(body.startswith("left out: ") for body in bodies)
    assert (folder / "timeline.svg").exists()


def test_a_picture_that_cannot_be_drawn_costs_nothing_else(evidence, tmp_path, monkeypatch):
    monkeypatch.setattr("labs.harness.timeline.draw", lambda *_: 1 / 0)
    shown = evidence.keep("check", ["story"], killed_before_the_mail())
    assert shown == Path(".lab-evidence", evidence.folder.name, "check/story.txt") and (tmp_path / shown).read_text() == "story\n"
    assert (tmp_path / shown).with_name("events.jsonl").exists()
    assert "ZeroDivisionError" in (tmp_path / shown).with_name("left-out.txt").read_text()


def test_two_checks_of_one_name_do_not_mix(evidence):
    names = [evidence.keep("check", [f"story {number}"]).parent.name for number in range(3)]
    assert names == ["check", "check-2", "check-3"]
    assert [(evidence.folder / name / "story.txt").read_text() for name in names] == [f"story {number}\n" for number in range(3)]


def test_old_sessions_go_and_those_that_run_stay(tmp_path):
    root = tmp_path / ".lab-evidence"
    for number in range(KEPT + 5):
        (root / f"20200101-0000{number:02}-7" / "check").mkdir(parents=True)
    (root / "my notes").mkdir()
    running = Evidence(root)
    running.folder = root / "19990101-000000-1"
    running.keep("check", ["story"])
    newest = Evidence(root)
    newest.keep("check", ["story"])
    left = sorted(path.name for path in root.iterdir())
    expected = ["19990101-000000-1", *(f"20200101-0000{number:02}-7" for number in range(6, KEPT + 5)), newest.folder.name, "latest", "my notes"]
    assert left == sorted(expected)
    running._lock.close()
    last = Evidence(root)
    last.folder = root / "20991231-235959-1"
    last.keep("check", ["story"])
    assert not running.folder.exists()


def test_a_clock_that_was_ahead_does_not_cost_the_newest_session(tmp_path):
    root = tmp_path / ".lab-evidence"
    for number in range(KEPT + 5):
        (root / f"2099010{number % 10}-0000{number:02}-7").mkdir(parents=True)
    evidence = Evidence(root)
    assert (tmp_path / evidence.keep("check", ["story"])).exists()


def test_of_two_sessions_at_once_each_names_a_path_that_holds_its_own(tmp_path):
    root = tmp_path / ".lab-evidence"
    one, two = Evidence(root), Evidence(root)
    two.folder = two.folder.with_name("20991231-235959-1")
    shown = [session.keep(f"check-{number}", [f"story {number}"]) for number, session in enumerate((one, two, one, two))]
    assert [path.parts[1] for path in shown] == 2 * [one.folder.name, two.folder.name]
    assert [(tmp_path / path).read_text() for path in shown] == [f"story {number}\n" for number in range(4)]
    assert (root / "latest").resolve() == two.folder.resolve()
    assert sorted(path.name for path in root.iterdir()) == sorted([one.folder.name, two.folder.name, "latest"])


def test_a_folder_that_is_removed_during_the_session_is_made_again(evidence, tmp_path):
    evidence.keep("check", ["story"])
    shutil.rmtree(evidence.root)
    assert (tmp_path / evidence.keep("check", ["story"])).exists()


def test_a_latest_that_is_no_link_is_left_alone(evidence, tmp_path):
    (evidence.root / "latest").mkdir(parents=True)
    shown = evidence.keep("check", ["story"])
    assert shown.parts[1] == evidence.folder.name and (tmp_path / shown).exists()


def test_where_nothing_can_be_written_there_is_no_path(tmp_path):
    (tmp_path / "file").touch()
    assert Evidence(tmp_path / "file" / ".lab-evidence").keep("check", ["story"], killed_before_the_mail()) is None


# ---- as a learner meets it


def test_an_unwritable_kit_tells_the_story_without_the_look_line(tmp_path):
    kit = tmp_path / "kit"
    shutil.copytree(KIT, kit, ignore=shutil.ignore_patterns(".*", "__pycache__", "notebooks"))
    (kit / ".lab-evidence").touch()
    done = subprocess.run([sys.executable, "-m", "pytest", "labs/03", "-k", "two_and_three", "-p", "no:cacheprovider"], cwd=kit,
                          capture_output=True, text=True, timeout=60)
    assert "  why  " in done.stdout and "  again  " in done.stdout and "Traceback" not in done.stdout, done.stdout + done.stderr
    assert "  look  " not in done.stdout


MAD = '''
import os, socket, sys
from . import outside

def start(ticket, run_id=None):
    home = os.environ["LAB_HOME"]
    os.mkfifo(home + "/pipe")
    os.symlink("loop", home + "/loop")
    open(os.fsencode(home) + b"/\\xff\\n", "w").close()
    print("run\\x1b[2J-7", flush=True)
    sys.stderr.buffer.write(b"\\x1b]0;owned\\x07 \\xff</text><script>\\n")
    sys.stderr.flush()
    outside.refund("\\ud800</text><script>alert(1)</script>" + "A" * 50000, 4263)
    os.kill(os.getpid(), 40)
'''


def test_a_mad_program_fails_its_check_and_breaks_nothing(tmp_path):
    shutil.copytree(KIT / "starter", tmp_path / "starter", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "starter" / "flow.py").write_text(MAD)
    _, output, results = run_suites("labs/03", "-k", "two_and_three", "--program", str(tmp_path), results=tmp_path / "results.jsonl")
    assert {status for items in results["03"].values() for status in items.values()} == {"failed"}, output
    assert "died of signal 40" in output and "\x1b" not in output and "Traceback" not in output
    shown = KIT / re.search(r"  look +(\S+)", output).group(1)
    assert_readable(ElementTree.fromstring(shown.read_text()))
    assert {"pipe", "loop"} <= set(re.findall(r"lab-home/(\w+): a", shown.with_name("left-out.txt").read_text()))


@pytest.mark.parametrize("others, kind", [
    ([], "failed"), ([{"code": 1}], "error in the program"), ([{"code": 1}, {"running": True}], "error in the program"),
    ([{"code": 1}, {"code": -9, "killed": True}], "failed"), ([{"code": 0}, {"running": True}], "failed"),
    ([{"code": -9, "excess": "memory"}, {"running": True}], "out of memory")])
def test_how_a_check_failed_is_said_of_the_process_that_ended_last(others, kind):
    processes = [SimpleNamespace(**{"running": False, "code": None, "killed": False, "excess": None, "last_words": ""} | other) for other in others]
    last = _last_ended(SimpleNamespace(processes=processes), True)
    assert _kind(AssertionError("it should send a refund request"), last) == kind
