"""The kill map: how lines are marked, as data, in a terminal and as a page in a browser."""

import io
import itertools
import re

import pytest
from rich.console import Console

from labs.command.mapped import bad_lines
from labs.harness.killmap import LONGEST, Mapped, Struck, executable, page
from labs.harness.staging import KIT, shipped_texts
from labs.harness.story import wrapped

HOSTILE = """</script></code><script>window.hacked = "script"</script><img src=x onerror="window.hacked = 'img'">'"&amp;{{ 7 * 7 }}"""
CONTROL = "\x00\x1b[31m\x07\r\u202e\u2028\ud800[bold]"
STORY = (*wrapped("your program", "start → refund ✓ ✂ killed (SIGKILL)"),
         *wrapped("the outside", "refund R-2 of $44.10 for A-1009, ONE MORE for this order; " * 4))
FLOW = (KIT / "solutions/mistakes/act-then-record/flow.py").read_text()


def struck(line, outcome="safe", why="", file="flow.py", kind="line", story=STORY):
    return Struck(kind, "start", file, line, f"before {file}:{line}, the 2nd time", outcome, why, story if why else ())


def marks(source, *points):
    """The marks of the lines of one file, by number."""
    file, = Mapped({"flow.py": source}, points).files
    return {line.number: line.mark for line in file.lines}


def printed(sources, points, width=80):
    console = Console(width=width, color_system=None, file=io.StringIO())
    console.print(bad_lines(sources, points))
    return console.file.getvalue()


# ---- marks


def test_a_line_that_can_be_run_and_was_not_struck_was_never_reached():
    assert marks("x = 1\n\n# a comment\ny = 2\n", struck(1)) == {1: "safe", 2: None, 3: None, 4: "not reached"}


@pytest.mark.parametrize("outcomes, mark", [
    (["safe", "safe"], "safe"), (["safe", "not reached"], "not reached"), (["not reached", "broken"], "broken"),
    (["lost", "broken", "safe"], "lost"), (["safe", "lost", "repeated", "broken"], "repeated")])
def test_a_line_has_the_mark_of_its_worst_point(outcomes, mark):
    assert marks("x = 1", *(struck(1, outcome) for outcome in outcomes)) == {1: mark}


def test_the_lines_of_functions_classes_and_lambdas_can_be_run():
    assert executable("@f\ndef a():\n    '''doc'''\n\n    class B:\n        c = [\n            lambda: (\n                1)]\n") >= {1, 2, 5, 6, 7, 8}


@pytest.mark.parametrize("source", ["def", "x = '\0'", "\ud800", "(" * 5000, "x = 1\n  y = 2", "0" * 10 + "1"])
def test_of_a_file_that_is_no_python_no_line_can_be_run(source):
    assert executable(source) == set()
    assert set(marks(source).values()) == {None}
    assert marks(source, struck(1, "lost", "Gone."))[1] == "lost"


def test_lines_are_counted_as_python_counts_them():
    source = "a = 1\r\nb = 2\rc = '\x0b\x0c\u2028\x85'\nd = 4\n"
    assert executable(source) == {1, 2, 3, 4} == set(marks(source))


def test_a_warning_about_a_learners_source_is_not_ours(recwarn):
    assert executable("x = '\\d' is 3\n") == {1}
    assert not recwarn


def test_a_point_that_the_source_does_not_know_is_not_dropped():
    mapped = Mapped({"flow.py": "x = 1\n"}, [struck(10**9, "lost", "Gone."), struck(3, "broken", "Bad.", file="made/later.py")])
    assert [(file.name, [line.number for line in file.bad]) for file in mapped.files] == [("flow.py", [10**9]), ("made/later.py", [3])]


def test_files_with_bad_lines_come_first():
    sources = dict.fromkeys(["d.py", "c.py", "b.py", "a.py"], "x = 1\n")
    mapped = Mapped(sources, [struck(1, "lost", "Gone.", file="c.py"), struck(1, "lost", "Gone.", file="d.py"), struck(1, file="b.py")])
    assert [file.name for file in mapped.files] == ["c.py", "d.py", "a.py", "b.py"]


def test_points_of_one_outcome_and_one_reason_are_one_group_the_worst_first():
    points = [struck(1), struck(1, "lost", "Gone."), struck(1, "repeated", "Twice."), struck(1), struck(1, "lost", "Gone."),
              struck(1, "lost", "Stuck."), struck(1, "not reached")]
    line, = Mapped({"flow.py": "x = 1"}, points).files[0].lines
    assert [(group[0].outcome, group[0].why, len(group)) for group in line.groups] == [
        ("repeated", "Twice.", 1), ("lost", "Gone.", 2), ("lost", "Stuck.", 1), ("not reached", "", 1), ("safe", "", 2)]
    assert line.groups[1][0] is points[1]
    assert (line.bad_kills, line.kills) == (4, 6)


def test_the_verdict_speaks_of_kills():
    def verdict(*points):
        return Mapped({"flow.py": "x = 1\ny = 2\n"}, points).verdict

    assert verdict() == verdict(struck(1, "not reached")) == "Nothing was killed here"
    assert verdict(struck(1)) == "1 kill at lines of the program, and none did harm"
    assert verdict(*[struck(1)] * 1199, struck(2, "broken", "Bad."), struck(2, "not reached")) == "1 of 1,200 kills at lines of the program did harm"


# ---- in a terminal


def test_files_that_are_as_the_starter_gave_them_come_last():
    given = shipped_texts()["outside.py"]
    bad = [struck(1, "lost", "Gone.", file=name) for name in ("outside.py", "record.py", "flow.py")]
    mapped = Mapped({"outside.py": given, "record.py": "x = 1\n", "flow.py": "x = 1\n", "fine.py": "x = 1\n"}, bad)
    assert [file.name for file in mapped.files] == ["flow.py", "record.py", "outside.py", "fine.py"]
    assert [file.name for file in Mapped({"outside.py": f"{given}\n", "record.py": "x = 1\n"}, bad).files][0] == "flow.py"


def test_a_call_that_does_harm_after_it_has_acted_is_shown_and_every_bad_line_says_how_often():
    kills = [*[struck(1, "lost", "Gone.")] * 11, *[struck(1)] * 19, struck(2, "lost", "Gone."), struck(3, "lost", "Gone."), *[struck(3)] * 9]
    mapped = Mapped({"flow.py": "act()\nrecord()\nmain()\n"}, kills)
    assert [line.number for line in mapped.where["flow.py"]] == [1, 2]
    shown = printed({"flow.py": "act()\nrecord()\nmain()\n"}, kills)
    assert all(f"✂ {times}, unrecorded or stuck: " in shown for times in ("11 of 30", "1 of 1", "1 of 10"))


def test_the_terminal_shows_bad_lines_with_what_is_around_them():
    source = "".join(f"line_{number}\n" for number in range(1, 41))
    points = [struck(10, "repeated", "Twice."), struck(10), struck(15, "repeated", "Twice."), struck(30, "lost", "Gone."), struck(8)]
    lines = [line.rstrip() for line in printed({"flow.py": source, "fine.py": "x = 1"}, points).splitlines()]
    assert [int(number) for line in lines for number in re.findall(r"line_(\d+)", line)] == [*range(7, 19), *range(27, 34)]
    assert lines.count("    ⋮") == 1 and "fine.py" not in lines
    at = lines.index("2× 10 line_10")
    assert lines[at + 1].strip() == "✂ 1 of 2, effect repeated: Twice."
    assert lines[lines.index("2× 15 line_15") + 1].strip() == "✂ 1 of 1, effect repeated: as above"
    assert lines[lines.index("∅  30 line_30") + 1].strip() == "✂ 1 of 1, unrecorded or stuck: Gone."
    assert "✓   8 line_8" in lines and lines[-3].startswith("✂ 2 of 9: two of") and lines[-2] == "3 of 5 kills at lines of the program did harm"


def test_without_a_bad_line_the_terminal_says_so():
    assert printed({"flow.py": "x = 1\n"}, [struck(1)]) == "1 kill at lines of the program, and none did harm\nlines: ✓ safe 1\n"


def test_hostile_text_stays_within_its_line_of_the_terminal():
    sources = {f"{CONTROL}.py": f"x = '{CONTROL}{'W' * 5000}'\n" * 3}
    points = [Struck("line", CONTROL, f"{CONTROL}.py", 2, CONTROL, "lost", CONTROL, (CONTROL,))]
    text = printed(sources, points)
    assert all(len(line) <= 80 for line in text.split("\n"))
    assert all(character.isprintable() for character in text.replace("\n", "")) and "[bold]" in text


# ---- as a page


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens a kill map in a browser. In the end: no page complained, and none asked anybody for anything."""
    complaints, contexts, path = [], [], tmp_path / "map.html"

    def open_page(sources, points, anchor="", title="Where it can be killed", about="act-then-record", **options):
        path.write_text(page(sources, points, title, about))
        context = browser.new_context(**options)
        contexts.append(context)
        opened = context.new_page()
        opened.set_default_timeout(30_000)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on("console", lambda message: complaints.append(message.text))
        opened.on("request", lambda request: request.url.startswith((path.as_uri(), "data:")) or complaints.append(request.url))
        opened.goto(path.as_uri() + anchor)
        return opened

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


def expect(locator):
    from playwright.sync_api import expect
    return expect(locator)


POINTS = [struck(57, "repeated", "The customer was refunded twice."), struck(57), struck(57, "not reached"), struck(70),
          struck(57, "repeated", "The customer was refunded twice."), struck(94, "lost", "The run is gone.", kind="system call")]
SOURCES = {"flow.py": FLOW, "fine.py": "x = 1\n"}


@pytest.mark.parametrize("script", [True, False])
def test_a_bad_line_opens_with_the_mouse_and_with_the_keyboard(open_page, script):
    opened = open_page(SOURCES, POINTS, java_script_enabled=script)
    line, other = opened.locator("[id='flow.py-57']"), opened.locator("[id='flow.py-94']")
    expect(line.locator("summary")).to_have_text(re.compile(r'57\s*2×\s*run\["step"\] = NEXT\[step\]\s*effect repeated ✂ 2 of 3'))
    expect(line.locator(".story")).to_be_hidden()
    line.locator("summary").click()
    expect(line.locator(".story")).to_be_visible()
    expect(line.locator(".story dt")).to_have_text(["your program", "the outside"])
    expect(line.locator(".told section")).to_have_text([
        re.compile(r"2× effect repeated, 2 kills\. The customer was refunded twice\.\s+The first of them: start, killed before flow.py:57"),
        "○ not killed, 1 point.", "✓ safe, 1 kill."])

    expect(other.locator(".story")).to_be_hidden()
    opened.keyboard.press("Tab")
    expect(other.locator("summary")).to_be_focused()
    opened.keyboard.press("Enter")
    expect(other.locator(".story")).to_be_visible()


def test_the_page_says_at_the_top_what_was_found(open_page):
    opened = open_page(SOURCES, POINTS)
    expect(opened.locator("header")).to_contain_text("3 of 5 kills at lines of the program did harm")
    expect(opened.locator("header")).to_contain_text("4 before a line; 1 before a system call")
    expect(opened.locator(".counts li")).to_have_text([
        re.compile(r"2× effect repeated\s+1 line, 2 kills"), re.compile(r"∅ unrecorded or stuck\s+1 line, 1 kill"),
        re.compile(r"○ not killed\s+\d+ lines"), re.compile(r"✓ safe\s+1 line, 2 kills")])
    expect(opened.locator(".jumps a")).to_have_text([re.compile(r"57\s+2× effect repeated\s.*2 of 3", re.S), re.compile("94")])
    expect(opened.locator("[id='flow.py-70'] .sign")).to_have_attribute("aria-label", "safe")
    expect(opened.locator("[id='fine.py-1']")).to_be_hidden()


def test_a_link_to_a_line_opens_it(open_page):
    opened = open_page(SOURCES, POINTS, "#flow.py-94")
    expect(opened.locator("[id='flow.py-94'] .story")).to_be_in_viewport()
    link = opened.locator(".jumps a").first
    for _ in range(2):  # the second time the address has the hash already
        link.focus()
        opened.keyboard.press("Enter")
        expect(opened.locator("[id='flow.py-57'] .story")).to_be_in_viewport()
        expect(opened.locator("[id='flow.py-57'] summary")).to_be_focused()
        opened.keyboard.press("Enter")
        expect(opened.locator("[id='flow.py-57'] .story")).to_be_hidden()
    opened.evaluate("location.hash = '#fine.py-1'")
    expect(opened.locator("[id='fine.py-1']")).to_be_in_viewport()


def test_hostile_text_is_text(open_page):
    name = f"{HOSTILE}/{CONTROL}.py"
    sources = {name: f"# {HOSTILE}\nx = 1  # {HOSTILE}{CONTROL}\n"}
    story = (*wrapped("your program", HOSTILE), HOSTILE, CONTROL)
    opened = open_page(sources, [Struck(HOSTILE, HOSTILE, name, 2, HOSTILE, "lost", HOSTILE, story)], title=HOSTILE, about=HOSTILE)
    opened.locator(".jumps a").click()
    expect(opened.locator(".story")).to_be_visible()
    expect(opened.locator("h1")).to_have_text(HOSTILE)
    expect(opened.locator(".told p").first).to_contain_text(HOSTILE)
    expect(opened.locator(".line code").first).to_have_text(f"# {HOSTILE}")
    expect(opened.locator(".story dd").first).to_contain_text(HOSTILE.replace(" ", "")[:20])
    assert opened.locator("img, script:not(body > script)").count() == 0
    assert opened.evaluate("window.hacked") is None
    assert all(character.isprintable() for character in opened.content().replace("\n", ""))


def test_nothing_is_wider_than_the_page(open_page):
    long = "W" * 20_000
    source = FLOW + "".join(f"{' ' * (number % 200)}# {long if number % 500 == 0 else number}\n" for number in range(3000))
    points = [*POINTS, *(Struck("line", long, "flow.py", number, long, "broken", long, (long, *wrapped(long[:30], long)))
                         for number in range(1, 3000, 500))]
    opened = open_page({"flow.py": source, f"{long}.py": "x = 1\n"}, points, title=long, about=long)
    opened.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    for width, scheme in itertools.product([390, 1280], ["light", "dark"]):
        opened.set_viewport_size({"width": width, "height": 800})
        opened.emulate_media(color_scheme=scheme)
        assert opened.evaluate("innerWidth") == width and opened.evaluate("document.documentElement.scrollWidth") <= width
        # Nor is anything cut off, but for the one line of code of a jump.
        wide = opened.locator("body *:not(.jumps code, .strip)").evaluate_all(
            "nodes => nodes.filter(node => node.clientWidth && node.scrollWidth > node.clientWidth + 1).map(node => node.outerHTML.slice(0, 200))")
        assert not wide, width
        dark = sum(map(int, re.findall(r"\d+", opened.evaluate("getComputedStyle(document.body).backgroundColor")))) < 200
        assert dark == (scheme == "dark")


def test_a_single_bad_line_of_thousands_is_seen_in_the_strip(open_page):
    opened = open_page({"flow.py": "x = 1\n" * 3000}, [struck(1500, "lost", "Gone.")], viewport={"width": 390, "height": 800})
    cell = opened.locator(".strip .bad")
    assert cell.bounding_box()["height"] > 15
    assert cell.evaluate("node => getComputedStyle(node).boxShadow").endswith("1px")


def test_a_page_does_not_grow_with_what_one_line_holds():
    text = page({"flow.py": "x = 1\n" + "y" * 1_000_000}, [struck(2, "lost", "z" * 1_000_000)] * 500, "t" * 1_000_000, "")
    assert len(text) < 60_000 + 10 * LONGEST
