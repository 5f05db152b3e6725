"""The report: its pages in a browser, its exports as other programs read them; with hostile submissions, in both."""

import csv
import io
import json
import re
from xml.etree import ElementTree

import pytest
from grader import reports
from grader.reports import exports, pages, shown, standing
from grader.diff import show_diff
from grader.results import Dropped, Figures, Isolation, Outcome, Result, Status, file_name, write
from grader.tests import made_up
from grader.tests.made_up import CONTROL, HOSTILE, LABS, WEAK

from labs.command.refused import Refused
from labs.harness.story import SAID

PLACES = [(number, place) for number, lab in LABS.items() for place in range(1, len(lab.checks) + 1)]
ALL = {place: Status.FAILED for place in PLACES}
NONE = {place: Status.NOT_APPLICABLE for place in PLACES}
FULL = sum(lab.points for lab in LABS.values())
LONG = "head " + "x" * 1_000_000 + " tail"


def failed(lab, place, **more):
    return made_up.check(LABS[lab].checks[place - 1], Status.FAILED, **more)


def expect(locator):
    from playwright.sync_api import expect
    return expect(locator)


@pytest.fixture
def open_report(browser, tmp_path):
    """Writes a report and opens a page of it. In the end: no page complained, none asked anybody for anything, no dialog was opened."""
    complaints, contexts = [], []

    def open_report(results, page="index.html", about=(), anchor="", **options):
        reports.write_reports(tmp_path, results, dict(about))
        context = browser.new_context(**options)
        contexts.append(context)
        opened = context.new_page()
        opened.set_default_timeout(30_000)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on("console", lambda message: complaints.append(message.text))
        opened.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        opened.on("request", lambda request: request.url.startswith((tmp_path.as_uri(), "data:", "about:srcdoc")) or complaints.append(request.url))
        opened.goto((tmp_path / page).as_uri() + anchor)
        return opened

    open_report.complaints = complaints
    yield open_report
    for context in contexts:
        context.close()
    assert not complaints


def names(opened):
    return opened.locator(".submissions tbody tr:visible bdi").all_inner_texts()


# ---- the class


def four():
    """Four submissions: 100 %, some less, one incomplete, one invalid."""
    return [made_up.result("Ana"), made_up.result("bo", {("03", 2): Status.FAILED}, figures=made_up.figures(10, 9, 2, 8)),
            made_up.result("Cy 10", {("01", 1): Status.COULD_NOT_CHECK}, outcome=Outcome.INCOMPLETE, reason="1 check could not be made here"),
            made_up.invalid("Cy 9")]


def test_words_of_code_in_the_kits_own_sentences_are_shown_as_such(open_report):
    opened = open_report(four())
    assert opened.locator(".figures code").all_inner_texts() == ["start", "resume"]
    assert "`" not in opened.locator("body").inner_text()
    opened.goto(opened.url.replace("index", "submissions/bo"))
    assert "`" not in opened.locator("body").inner_text()


def test_what_most_checks_failed_for_is_said_once_at_the_top(open_report):
    said = "“SyntaxError: invalid syntax” (starter/flow.py, line 1)"
    whys = ["another", *(f"`start {number}` ended with exit code 1{SAID}{said}" for number in range(1, len(PLACES)))]
    broken = made_up.result("carla", {place: made_up.check(LABS[place[0]].checks[place[1] - 1], Status.CRASHED, why=why) for place, why in zip(PLACES, whys)})
    opened = open_report([broken, *four()], "submissions/carla.html")
    expect(opened.locator("#lost + p")).to_have_text(f"{len(PLACES) - 1} of the {len(PLACES)} failed checks ended with the same last words of the program: {said}")
    expect(opened.locator(".check .why").nth(1)).to_have_text(f"start 1 ended with exit code 1{SAID}{said}")
    opened.goto(opened.url.replace("carla", "bo"))
    expect(opened.locator("#lost + p")).to_have_count(0)


def test_a_figure_is_marked_where_it_is_not_at_its_target(open_report):
    opened = open_report([made_up.result("bo", figures=made_up.figures(10, 9, 0, 10))], "submissions/bo.html")
    expect(opened.locator(".figures .bad")).to_contain_text(["resumption success"])
    opened = open_report([made_up.result("cy", figures=made_up.figures(10, 10, 0, 10))], "submissions/cy.html")
    expect(opened.locator(".figures .bad")).to_have_count(0)


def test_submissions_are_sorted_by_any_column_and_those_without_a_value_come_last(open_report):
    opened = open_report(four(), about={"unfinished": ["dan"]})
    score, status, duplicated = (opened.locator("thead th", has=opened.get_by_role("button", name=name))
                                 for name in ("score", "status", "duplicated"))
    assert names(opened) == ["Ana", "bo", "Cy 10", "Cy 9", "dan"]
    score.get_by_role("button").click()
    assert names(opened)[:2] == ["Ana", "bo"]
    expect(score).to_have_attribute("aria-sort", "descending")
    opened.keyboard.press("Enter")   # the button has the focus
    assert names(opened) == ["bo", "Ana", "Cy 10", "Cy 9", "dan"]
    expect(score).to_have_attribute("aria-sort", "ascending")
    duplicated.get_by_role("button").press("Space")
    assert names(opened)[0] == "bo"
    assert opened.locator("[aria-sort]").count() == 1
    status.get_by_role("button").click()
    assert names(opened) == ["Ana", "bo", "Cy 10", "Cy 9", "dan"]
    opened.get_by_role("button", name="name").click()
    assert names(opened) == ["Ana", "bo", "Cy 9", "Cy 10", "dan"]


def test_submissions_are_found_by_name_and_by_status(open_report):
    opened = open_report(four(), about={"unfinished": ["dan"]})
    opened.get_by_label("Find").fill("cY")
    assert names(opened) == ["Cy 10", "Cy 9"]
    expect(opened.get_by_role("status")).to_have_text("2 of 5 shown")
    opened.get_by_label("Status").select_option("invalid")
    assert names(opened) == ["Cy 9"]
    opened.get_by_label("Find").fill("")
    opened.get_by_label("Status").select_option("not graded yet")
    assert names(opened) == ["dan"]
    expect(opened.locator("tbody tr:visible a").filter(has_text="dan")).to_have_count(0)


def test_without_javascript_there_is_no_control_that_does_nothing(open_report):
    opened = open_report(four(), java_script_enabled=False)
    assert len(names(opened)) == 4
    expect(opened.locator(".controls")).to_be_hidden()
    expect(opened.locator("thead button")).to_have_count(0)


def test_a_row_leads_to_its_page_and_a_cell_to_what_happened(open_report):
    name = "Élodie (late) #2"
    opened = open_report([made_up.result(name, {("02", 1): Status.FAILED, ("03", 2): Status.TIMEOUT})])
    opened.locator(".submissions").get_by_role("link", name=name).click()
    expect(opened.locator("h1")).to_have_text(name)
    expect(opened.locator("[id='03.2'] .story")).to_be_hidden()
    opened.go_back()
    opened.locator("table.map td.fault").click()
    expect(opened.locator("[id='03.2'] .story")).to_be_visible()


def test_each_cell_of_the_map_has_a_sign_besides_its_colour(open_report):
    results = [made_up.result("a", dict(zip(PLACES, Status))), *four()]
    opened = open_report(results)
    assert opened.locator("table.map tbody td:not([colspan])").count() == 4 * len(PLACES)
    assert len({sign for sign, _ in pages.SIGNS.values()}) == len(Status)
    row = opened.locator("table.map tbody tr").filter(has=opened.get_by_role("link", name="a", exact=True)).locator("td").all_inner_texts()
    assert row[:len(Status)] == [pages.SIGNS[status][0] for status in Status]
    expect(opened.locator("table.map thead [scope=colgroup]")).to_have_text([f"{number} {lab.title}" for number, lab in LABS.items()])
    for status in Status:
        expect(opened.locator(".legend")).to_contain_text(f"{pages.SIGNS[status][0]} {status}")


def test_what_is_seen_at_the_top(open_report):
    opened = open_report([*four(), made_up.result("Zoë", {("03", 2): Status.FAILED})],
                         about={"title": "Week 12", "submissions": "hand-ins", "seed": 7, "unfinished": ["dan", "eve"]})
    expect(opened.locator("h1")).to_have_text("Week 12")
    expect(opened.locator("header .dim").first).to_have_text("5 submissions from hand-ins · seed 7")
    expect(opened.locator(".counts li")).to_have_text(["✓ graded 3", "? incomplete 1", "✗ invalid 1", "… not graded yet 2"])
    expect(opened.locator(".banner")).to_have_count(0)
    first = opened.locator(".most").first.locator("li").first
    expect(first).to_contain_text("03.2")
    expect(first).to_contain_text(LABS["03"].checks[1].does.replace("`", ""))
    expect(first).to_contain_text("2 of 4")
    expect(opened.locator(".histogram .bar")).to_have_text([*[""] * 9, "3"])


def test_the_four_figures_are_explained_and_never_rounded_to_none_or_all(open_report):
    figures = Figures(kills=1000, resumed=999, duplicated=1, completed=1000, resume_seconds=[0.01] * 94 + [2.5] * 6)
    opened = open_report([made_up.result("a", figures=figures), made_up.result("b", figures=Figures(kills=9000, resumed=9000, completed=9000))])
    expect(opened.locator(".figures dd")).to_have_text([
        re.compile(r"^99\.9 %\s*9,999 of 10,000 kills\s*Of the runs that were killed: the next start ended well"),
        re.compile(r"^under 0\.1 %\s*1 of 10,000 kills\s.*The target is 0", re.DOTALL), re.compile(r"^100 %"),
        re.compile(r"^10 ms\s*median; 95 of 100 within 2\.5 s")])


@pytest.mark.parametrize("part, text", [(None, "–"), (0, "0 %"), (1, "100 %"), (0.99999, "99.9 %"), (0.00001, "under 0.1 %"), (0.5, "50 %"),
                                        (0.29, "29 %")])
def test_a_share(part, text):
    assert pages._share(part) == text


def test_a_name_stays_readable_as_the_name_of_a_file():
    names = ["Jörg Ångström", "Jorg Angstrom", "jörg", "田中", "a\udcff"]
    assert [file_name(name).rpartition("-")[0] for name in names] == ["Jorg_Angstrom", "Jorg_Angstrom", "jorg", "_", "a"]
    assert len({file_name(name) for name in names}) == len(names)


@pytest.mark.parametrize("page", ["index.html", "submissions/weak.html"])
def test_weak_isolation_is_seen(open_report, page):
    landlock = Isolation(level="landlock", detail="files and network", lacks=["it sees the other processes of this machine"])
    opened = open_report([made_up.result("ana"), made_up.result("weak", isolation=WEAK), made_up.result("half", isolation=landlock)], page)
    expect(opened.locator(".banner")).to_contain_text("; ".join(WEAK.lacks) + ".")
    if page == "index.html":
        expect(opened.locator(".banner h2")).to_contain_text("2 of 3 submissions")
        expect(opened.locator(".banner")).to_contain_text(landlock.lacks[0])
        expect(opened.locator(".submissions .weak")).to_have_text(["! landlock", "! process"])


@pytest.mark.parametrize("results", [[], [made_up.invalid()], [made_up.result("a", NONE, figures=Figures())], [made_up.result("a", labs=[])]])
def test_there_may_be_nothing_to_count(open_report, results):
    opened = open_report(results, about={"unfinished": ["dan"]})
    expect(opened.locator("main")).to_contain_text("There is no final score" if results else "Nothing has been graded yet")


def test_three_hundred_submissions_stay_one_light_page():
    some = made_up.class_of(20)
    everybody = [result.model_copy(update={"name": f"{result.name} {number}"}) for number in range(15) for result in some]
    assert len(pages.index(everybody, {})) < 1_000_000


# ---- what nobody may take for something else


def test_a_sampled_report_says_on_every_page_and_in_every_export_that_it_has_no_grades(open_report, tmp_path):
    results = [made_up.result("ana", sample=40), made_up.invalid("bo", sample=40)]
    opened = open_report(results)
    expect(opened.locator("main > *").first).to_contain_text("Not grades")
    expect(opened.locator("main > *").first).to_contain_text("--sample 40")
    expect(opened.locator(".counts li")).to_have_text(["≈ sampled, no grade 1", "✗ invalid 1"])
    expect(opened.locator(".submissions tbody tr").first).to_contain_text("sampled, no grade")
    opened.get_by_label("Status").select_option("sampled, no grade")
    assert names(opened) == ["ana"]
    opened.goto((tmp_path / "submissions/ana.html").as_uri())
    expect(opened.locator("main > *").first).to_contain_text("No grade")
    expect(opened.locator(".score")).to_contain_text("sampled, no grade")
    assert [row["status"] for row in read_table(results)[1:]] == ["sampled, no grade", "invalid"]
    assert json.loads(exports.json_lines(results).splitlines()[0])["status"] == "sampled, no grade"
    assert json.loads(exports.gradescope(results[0]))["output"].startswith("Not a grade: the sweeps tried one of 40 of their points only.")
    properties = {one.get("name"): one.get("value") for one in ElementTree.fromstring(exports.junit(results)).iter("property")}
    assert properties["sample"] == "40"
    whole = [made_up.result("ana")]
    assert "o grade" not in pages.index(whole, {}).partition("<main>")[2] and read_table(whole)[1]["status"] == "graded"


def test_a_late_or_doubtful_attempt_is_seen_in_the_table_and_in_the_spreadsheet(open_report):
    results = [made_up.result("ana", doubts=["late", "1 of 3 taken"], attempt="late; the newest of 3; not taken: a.zip, b.zip", notes=["taken: starter/"]),
               made_up.result("bo", attempt="2026-11-20 14:03")]
    opened = open_report(results)
    expect(opened.locator(".submissions .doubt")).to_have_text("⚑ late, 1 of 3 taken")
    expect(opened.locator(".counts")).to_contain_text("⚑ late, or one of several 1")
    _, ana, bo = read_table(results)
    assert (ana["doubts"], ana["attempt"], ana["notes"]) == ("late, 1 of 3 taken", "late, the newest of 3, not taken: a.zip, b.zip", "taken: starter/")
    assert (bo["doubts"], bo["attempt"]) == ("", "2026-11-20 14:03")


def test_what_lay_beside_the_submissions_is_named_on_the_page_and_in_the_spreadsheet(open_report):
    ignored = ["=grades.xlsx: no folder and no archive", "old: a link"]
    opened = open_report(four(), about={"ignored": ignored})
    expect(opened.locator("#ignored li")).to_have_text(ignored)
    expect(opened.locator(".counts")).to_contain_text("beside them, not taken 2")
    *_, one, two = csv.DictReader(io.StringIO(exports.table(four(), (), ignored), newline=""))
    assert (one["name"], one["status"], one["score"], one["reason"]) == ("Not taken", "no submission", "", f"'{ignored[0]}")
    assert two["reason"] == ignored[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width, more", [(390, True), (1280, False)])
def test_a_map_that_goes_on_says_so_with_words_and_a_shade(open_report, width, more, scheme):
    opened = open_report(made_up.class_of(5), viewport={"width": width, "height": 900}, color_scheme=scheme)
    sides = opened.locator(".sides", has=opened.locator("table.map"))
    shade = "node => [getComputedStyle(node, '::before').content, getComputedStyle(node, '::after').content].map(content => content !== 'none')"
    if not more:
        expect(sides.locator(".more")).to_be_hidden()
        assert sides.evaluate(shade) == [False, False]
        return
    expect(sides.locator(".more")).to_have_text(re.compile(r"^\d\d more checks to the right →$"))
    assert sides.evaluate(shade) == [False, True]
    sides.locator(".scroll").evaluate("box => box.scrollTo(60, 0)")
    expect(sides).to_have_class(re.compile(r"right.* left"))
    sides.locator(".scroll").evaluate("box => box.scrollTo(box.scrollWidth, 0)")
    expect(sides.locator(".more")).to_have_text("← there is more to the left")
    assert sides.evaluate(shade) == [True, False]
    # Whose row it is stays in sight.
    row = sides.locator("tbody th").first
    assert row.bounding_box()["x"] == sides.locator(".scroll").bounding_box()["x"] + 1
    opened.emulate_media(media="print")
    expect(sides.locator(".more")).to_be_hidden()
    assert sides.evaluate("node => getComputedStyle(node, '::before').display") == "none"


def test_without_javascript_the_map_says_that_it_may_go_on(open_report):
    opened = open_report(four(), java_script_enabled=False)
    expect(opened.locator(".more").last).to_have_text("Where the map is wider than the page, scroll it sideways.")


# ---- a submission


@pytest.mark.parametrize("script", [True, False])
def test_the_first_failure_is_open_and_the_others_open_with_mouse_and_keyboard(open_report, tmp_path, script):
    passed = made_up.check(LABS["01"].checks[0], evidence=made_up.leave_evidence(tmp_path, "passed"))
    statuses = {("01", 1): passed, ("01", 2): Status.NOT_APPLICABLE, ("02", 3): Status.FAILED, ("03", 2): Status.TIMEOUT, ("05", 1): Status.CRASHED}
    opened = open_report([made_up.result("ana", statuses)], "submissions/ana.html", java_script_enabled=script)
    one, two, three = (opened.locator(f"[id='{id}']") for id in ("02.3", "03.2", "05.1"))
    expect(one.locator(".story dt")).to_have_text(["your program", "the outside", "then", "the outside", "why"])
    expect(one.locator(".story")).to_be_visible()
    expect(two.locator(".story")).to_be_hidden()
    two.locator("summary").click()
    expect(two.locator(".story")).to_be_visible()
    expect(two.locator("summary")).to_contain_text("timeout")
    expect(three.locator(".story")).to_be_hidden()
    three.locator("summary").press("Enter")
    expect(three.locator(".story")).to_be_visible()
    expect(opened.locator(".check")).to_have_count(len(PLACES))
    expect(opened.locator("details.check")).to_have_count(4)
    expect(opened.locator("details.check.passed .killmap")).to_be_hidden()   # it passed, and can be looked at


def test_what_to_look_at_first_is_of_the_first_lab_that_failed(tmp_path):
    text = pages.submission(made_up.result("ana", {("05", 1): Status.FAILED, ("02", 2): Status.FAILED, ("02", 1): Status.FAILED}), tmp_path)
    first = text.split("Look at these first")[1].split("</ol>")[0]
    points = {number: LABS["02"].checks[number - 1].points for number in (1, 2)}
    assert re.findall(r'class="id" href="#([^"]+)"', first) == [f"02.{number}" for number in sorted(points, key=lambda number: -points[number])] + ["05.1"]


def test_several_stories_of_a_check_are_told_apart():
    told = shown.told(made_up.story("Does this.") + "\n\n" + made_up.story("Does this.", why="the mail " + "came twice " * 20))
    assert [section[-2][0] for section in told] == ["why", "why"]
    assert told[1][-2][1] == ("the mail " + "came twice " * 20).strip()


def test_the_lines_that_a_sweep_adds_to_a_story_keep_to_themselves():
    story = made_up.story("Does this.")
    source = "flow.py\n2×  58    save(run)\n      ✂ 1 of 2: the customer was refunded twice\n\n    60    return"
    told = shown.told(f"{story}\n\n{source}\n\n{story}")
    assert [pair for pair in told[0] if pair[0] != shown.SOURCE] == shown.told(story)[0] == told[1]
    assert told[0][-1] == [shown.SOURCE, source]


@pytest.mark.parametrize("text, shown_as", [("2026-11-30T08:49:15.974014+00:00", "2026-11-30 08:49 UTC"), ("2026-11-30T08:49:15+02:00", "2026-11-30 06:49 UTC"),
                                            ("", ""), ("at noon", "at noon")])
def test_a_time_is_shown_to_the_minute(text, shown_as):
    assert pages._when(text) == shown_as


@pytest.mark.parametrize("text", ["", "Traceback (most recent call last):\n  File", "lab 03 · resume   FAIL\nsomething else",
                                  "  your program   no heading"])
def test_what_is_no_story_is_shown_as_it_is(text):
    assert shown.told(text) is None


def test_what_could_not_be_checked_is_no_zero(open_report):
    unknown = {("01", 1): Status.COULD_NOT_CHECK, ("02", 1): Status.GRADER_ERROR}
    opened = open_report([made_up.result("ana", unknown, outcome=Outcome.INCOMPLETE, reason="No seccomp here.")], "submissions/ana.html")
    expect(opened.locator(".score")).to_have_count(0)
    expect(opened.locator("header")).to_contain_text(f"? incomplete: 2 checks could not be made, of {sum(LABS[lab].checks[0].points for lab in ('01', '02'))} points; lab 01")
    expect(opened.locator(".labs a .n")).to_have_text([f"?/{LABS['01'].points}", f"?/{LABS['02'].points}", "30/30", "15/15", "15/15"])
    expect(opened.locator(".labs .meter")).to_have_count(3)
    expect(opened.locator("[id='01.1'] .points")).to_have_text(f"?/{LABS['01'].checks[0].points}")


def test_hidden_checks_are_announced_and_not_named(open_report):
    opened = open_report([made_up.result("ana", ALL)], "submissions/ana.html")
    text = opened.content()
    for lab in LABS.values():
        for check in lab.checks:
            assert (check.test in text) != check.hidden
    expect(opened.get_by_text("hidden check")).to_have_count(sum(check.hidden for lab in LABS.values() for check in lab.checks))


def handed_out(result, report):
    """All that a submission's author gets to read, but for pictures."""
    reports.write_reports(report, [result], {})
    return [path.read_text() for room in ("submissions", "gradescope") for path in (report / room).iterdir()]


def names_of(check):
    """What of a hidden check must not be handed out: its name, as in a suite and as in a folder of evidence, and its file's."""
    file, _, name = check.test.rpartition("::")
    return [name.removeprefix("test_"), name.removeprefix("test_").replace("_", "-"), file]


def source_of_a_hidden_check(status, why, tmp_path, story_has_it=True):
    lab, place = next(place for place in PLACES if LABS[place[0]].checks[place[1] - 1].hidden)
    of = LABS[lab].checks[place - 1]
    dashed = names_of(of)[1]
    story = made_up.story(of.does, why=why if story_has_it else "the customer was refunded twice")
    story = story.replace("  hint ", f"  look           ana/20261130-1/{lab}-{dashed}/timeline.svg\n  kill map       ana/20261130-1/{lab}-{dashed}/killmap.html\n  hint ")
    evidence = made_up.leave_evidence(tmp_path, f"ana/20261130-1/{lab}-{dashed}", why if story_has_it else "why")
    check = made_up.check(of, status, why=why, story=story, evidence=evidence)
    return of, made_up.result("ana", {(lab, place): check}, **({"outcome": Outcome.INCOMPLETE, "reason":
                              f"1 check could not be made, of 1 point; lab {lab}, {of.test}: {status}, {why}"} if status.is_unknown else {}))


@pytest.mark.parametrize("status, why", [
    (Status.GRADER_ERROR, "fixture broke: assert secret_line == 41"), (Status.GRADER_ERROR, "RuntimeError in labs/01/hidden/test_x.py"),
    (Status.COULD_NOT_CHECK, "this machine has no seccomp"), (Status.FAILED, "the customer was refunded twice"),
    (Status.FAILED, "assert secret_line == 41\n +  where secret_line = 7"), (Status.TIMEOUT, "the check did not end within 300 seconds")])
def test_nothing_that_is_handed_out_has_a_hidden_checks_name_or_source(tmp_path, status, why):
    of, result = source_of_a_hidden_check(status, why, tmp_path)
    for text in handed_out(result, tmp_path):
        assert not [name for name in names_of(of) if name in text]
        assert "secret_line" not in text and "/hidden/" not in text and "20261130-1" not in text
        assert of.does.replace("`", "")[:20] in text.replace("<code>", "").replace("</code>", "")   # it is announced
        if "assert" not in why and status != Status.GRADER_ERROR:
            assert why in text
    assert of.test in (tmp_path / "junit.xml").read_text()   # the instructor's
    if status.is_unknown:
        assert of.test in (tmp_path / "index.html").read_text()


def test_a_hidden_checks_story_kill_map_and_timeline_are_shown_without_its_name(open_report, tmp_path):
    of, result = source_of_a_hidden_check(Status.FAILED, "the customer was refunded twice", tmp_path)
    opened = open_report([result], "submissions/ana.html")
    expect(opened.locator(".check.failed .story dt").last).to_have_text("why")
    expect(opened.locator(".check.failed .timeline img")).to_be_visible()
    expect(opened.locator(".check.failed iframe")).to_have_count(1)
    expect(opened.locator(".check.failed .killmap a")).to_have_count(0)


def test_what_a_story_is_left_without_is_nothing_but_where_things_lie():
    story = made_up.story("Does this.", why="the mail " + "came twice " * 20)
    look = "\n  look           ana/1/03-a/timeline.svg\n  kill map       ana/1/03-a/killmap.html"
    check = failed("03", 2, story=story.replace("\n  hint", f"{look}\n  hint"))
    result = made_up.result("ana", {("03", 2): check})
    assert reports.handed_out.handed_out(result).labs[2].checks[1].story == story


def test_isolation_is_named_once(open_report):
    twice = Isolation(level="bubblewrap", detail="bubblewrap: process and network namespaces")
    opened = open_report([made_up.result("ana", isolation=twice)], "submissions/ana.html")
    expect(opened.locator(".facts")).to_contain_text("isolationbubblewrap: process and network namespaces")


def test_what_was_left_out_and_how_to_play_it_again(open_report):
    name = "it's -- mine"
    dropped = [Dropped(path=f"made/{number}.pyc", why="bytecode") for number in range(pages.DROPPED + 3)]
    opened = open_report([made_up.result(name, dropped=dropped, notes=["Found a folder deeper."], attempt="The newest of 3.", sample=5)],
                         f"submissions/{file_name(name)}.html")
    expect(opened.locator("section[aria-labelledby=taken]")).to_contain_text(f"Left out: {pages.DROPPED + 3} entries")
    expect(opened.locator(".key li")).to_have_count(pages.DROPPED + 1)
    expect(opened.locator(".facts")).to_contain_text("""grader grade SUBMISSIONS '--only=it'"'"'s -- mine' --labs 1,2,3,4,5 --seed 7 --sample 5 --out AGAIN""")
    for text in ("e0f7a3c4" * 8, "5b1d9c02" * 8, "at one of 5 points only"):
        expect(opened.locator(".facts")).to_contain_text(text)


def test_the_timeline_and_the_kill_map_are_in_the_page_and_nothing_in_them_runs(open_report, tmp_path):
    check = failed("03", 6, evidence=made_up.leave_evidence(tmp_path, "ana/03 any?#line"))
    opened = open_report([made_up.result("ana", {("03", 6): check})], "submissions/ana.html", color_scheme="dark")
    picture = opened.locator("[id='03.6'] .timeline img")
    expect(picture).to_be_visible()
    assert picture.evaluate("node => node.complete && node.naturalWidth") == 800
    opened.locator(".killmap > summary").click()
    frame = opened.frame_locator(".killmap iframe")
    expect(frame.locator("h1")).to_have_text(HOSTILE)
    frame.locator(".jumps a").first.click()   # stays within the map
    expect(frame.locator("[id='flow.py-57']")).to_be_in_viewport()
    assert opened.locator(".killmap iframe").get_attribute("sandbox") == ""
    assert all(frame.evaluate("window.hacked") is None for frame in opened.frames)
    assert opened.locator(".timeline svg, img[src=x]").count() == 0
    with opened.expect_popup() as popup:
        opened.locator(".killmap a").click()
    expect(popup.value.locator("h1")).to_have_text(HOSTILE)


@pytest.mark.parametrize("evidence", ["../secret", "evidence/../../secret", "evidence/link", "evidence/none", "evidence/\0", "/etc", "evidence/big"])
def test_nothing_but_the_reports_own_evidence_is_shown(tmp_path, evidence):
    report = tmp_path / "report"
    made_up.leave_evidence(tmp_path, "x")   # beside the report
    (tmp_path / "evidence" / "x").rename(tmp_path / "secret")
    (report / "evidence" / "big").mkdir(parents=True)
    (report / "evidence" / "link").symlink_to(tmp_path / "secret")
    for name in ("timeline.svg", "killmap.html"):
        (report / "evidence" / "big" / name).write_bytes(b"<head>" + b"x" * pages.EVIDENCE)
    text = pages.submission(made_up.result("ana", {("03", 6): failed("03", 6, evidence=evidence)}), report)
    assert "svg+xml;base64" not in text and "<iframe" not in text and "killmap.html" not in text


def test_a_page_holds_no_more_kill_maps_than_it_can_bear(tmp_path):
    for number in range(4):
        made_up.leave_evidence(tmp_path, str(number))
        (tmp_path / "evidence" / str(number) / "killmap.html").write_text("<head>" + "x" * (pages.EVIDENCE - 10))
    result = made_up.result("ana", {("03", number + 1): failed("03", number + 1, evidence=f"evidence/{number}") for number in range(4)})
    text = pages.submission(result, tmp_path)
    assert text.count("<iframe") == 2 and text.count("killmap.html") == 4


# ---- hostile submissions


def hostile(name=HOSTILE + CONTROL, text=HOSTILE + CONTROL, tmp_path=None):
    evidence = made_up.leave_evidence(tmp_path, "hostile", text) if tmp_path else None
    checks = {("03", 6): failed("03", 6, why=text, story=text, evidence=evidence),
              ("03", 2): failed("03", 2, why=text, story=made_up.story("Does this.", why=text, said=text))}
    return made_up.result(name, checks, source=text, attempt=text, notes=[text], began=text, grader_version=text, suite_hash=text,
                          submission_hash=text, dropped=[Dropped(path=text, why=text)], isolation=Isolation(level=text, detail=text, lacks=[text]))


@pytest.mark.parametrize("page", ["index.html", f"submissions/{file_name(HOSTILE + CONTROL)}.html"])
def test_hostile_text_is_text(open_report, tmp_path, page):
    about = {"title": HOSTILE + CONTROL, "submissions": HOSTILE, "began": CONTROL, "grader_version": HOSTILE,
             "unfinished": [HOSTILE + CONTROL + "\ud800"]}
    results = [hostile(tmp_path=tmp_path), made_up.invalid("bad", reason=HOSTILE + CONTROL)]
    opened = open_report(results, page, about)
    opened.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    expect(opened.locator("h1")).to_contain_text(HOSTILE)
    if page != "index.html":
        expect(opened.locator("pre.story")).to_contain_text(HOSTILE)
        expect(opened.locator(".why").first).to_contain_text(HOSTILE)
        expect(opened.locator("dl.story").first).to_contain_text("window.hacked")
        expect(opened.frame_locator("iframe").locator("h1")).to_contain_text(HOSTILE)
    assert opened.evaluate("window.hacked") is None
    assert opened.locator("img:not(.timeline img), script:not(body > script), svg, [onerror]").count() == 0
    assert opened.locator("script").count() == 1
    assert all(character.isprintable() for character in opened.content().replace("\n", ""))


def test_no_script_but_the_pages_own_runs(open_report):
    opened = open_report([made_up.result("ana")])
    opened.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hacked = 1'}))")
    assert opened.evaluate("window.hacked") is None
    assert "Content Security Policy" in open_report.complaints.pop()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_page(open_report, tmp_path, width, scheme):
    long = "W" * 3000
    results = [hostile(long, long, tmp_path), *made_up.class_of(30)]
    opened = open_report(results, about={"title": long, "submissions": long, "unfinished": [long]}, viewport={"width": width, "height": 800},
                         color_scheme=scheme)
    for _ in range(2):
        opened.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        # Nor does anything stick out of its box, but for what can be scrolled and the names that end in dots.
        wide = opened.locator("body *:not(.scroll, .timeline, table.map *, iframe)").evaluate_all(
            "nodes => nodes.filter(node => node.clientWidth && node.scrollWidth > node.clientWidth + 1).map(node => node.outerHTML.slice(0, 200))")
        assert not wide
        dark = sum(map(int, re.findall(r"\d+", opened.evaluate("getComputedStyle(document.body).backgroundColor")))) < 200
        assert dark == (scheme == "dark")
        opened.goto((tmp_path / "submissions" / f"{file_name(long)}.html").as_uri())


@pytest.mark.parametrize("script", [True, False])
def test_on_paper_every_story_is_told_and_nothing_sticks(open_report, tmp_path, script):
    checks = {("02", 3): Status.FAILED, ("03", 6): failed("03", 6, evidence=made_up.leave_evidence(tmp_path, "x"))}
    more = {"sample": 40, "doubts": ["late", "1 of 3 taken"]}   # all that may widen a row
    opened = open_report([made_up.result("ana", checks, **more), *made_up.class_of(20)[1:]], "submissions/ana.html", {"ignored": ["x" * 300]}, java_script_enabled=script,
                         color_scheme="dark")
    opened.emulate_media(media="print")
    expect(opened.locator("[id='03.6'] .story")).to_be_visible()
    expect(opened.locator("[id='03.6'] .timeline")).to_be_visible()
    expect(opened.locator("iframe")).to_be_hidden()
    assert opened.locator("body").evaluate("node => getComputedStyle(node).backgroundColor") == "rgb(255, 255, 255)"
    opened.goto((tmp_path / "index.html").as_uri())
    assert opened.locator("body *").evaluate_all("nodes => nodes.filter(node => getComputedStyle(node).position === 'sticky').length") == 0
    expect(opened.locator(".key .most").first).to_be_visible()
    opened.set_viewport_size({"width": 690, "height": 900})   # A4 less its margins
    assert opened.evaluate("document.documentElement.scrollWidth") <= 690


def test_what_is_opened_for_printing_is_closed_again(open_report, tmp_path):
    check = failed("03", 6, evidence=made_up.leave_evidence(tmp_path, "x"))
    opened = open_report([made_up.result("ana", {("02", 3): Status.FAILED, ("03", 6): check})], "submissions/ana.html")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")   # browsers that do not print what is closed say this first
    expect(opened.locator("details.check[open]")).to_have_count(2)
    expect(opened.locator(".killmap[open]")).to_have_count(0)
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(opened.locator("details.check[open]")).to_have_count(1)


# ---- long output


def test_of_a_long_output_head_and_tail_are_kept_everywhere(tmp_path):
    result = made_up.result("ana", {("03", 2): failed("03", 2, story=LONG, why=LONG)})
    for path in reports.write_reports(tmp_path, [result], {}):
        assert path.stat().st_size < 200_000
        text = path.read_text()
        if path.name not in ("index.html", "results.csv"):
            assert "head x" in text and "x tail" in text and "characters are cut out here" in text, path


@pytest.mark.parametrize("text", ["", "short", "a\tb\r\nc"])
def test_a_short_output_is_left_whole(text):
    assert shown.lines(text) == text.expandtabs(4).replace("\r", "")


# ---- results.csv


def read_table(results, unfinished=()):
    return list(csv.DictReader(io.StringIO(exports.table(results, unfinished), newline="")))


def test_the_table_has_what_is_possible_and_no_score_where_there_is_none():
    results = [*four(), made_up.result("na", {("03", 6): Status.NOT_APPLICABLE, ("03", 2): Status.FAILED})]
    possible, ana, bo, incomplete, invalid, na, unfinished = read_table(results, ["dan"])
    checks = {f"{number}/{check.test}": str(check.points) for number, lab in LABS.items() for check in lab.checks}
    assert ana["source"] == "Ana.zip"
    first, sixth = f"01/{LABS['01'].checks[0].test}", f"03/{LABS['03'].checks[5].test}"
    assert [*possible] == ["name", "id", "status", "score", "possible", "percent", *(f"lab {number}" for number in LABS), *checks, "reason", "doubts", "attempt", "notes", "source"]
    assert possible["name"] == "Points possible" and possible["score"] == str(FULL) and {name: possible[name] for name in checks} == checks
    assert all(ana[name] == possible[name] for name in ["score", "percent", "lab 01", *checks] if name != "percent") and ana["percent"] == "100.0"
    assert (bo["status"], bo["score"], bo["lab 03"]) == ("graded", str(FULL - 6), "24")
    assert incomplete["status"] == "incomplete" and not any(incomplete[name] for name in ["score", "percent", "lab 01", first])
    assert incomplete["lab 02"] == "20" and incomplete["reason"] == "1 check could not be made here"
    assert invalid["status"] == "invalid" and not any(invalid[name] for name in ["score", "possible", "percent", "lab 01", *checks])
    assert (na["possible"], na[sixth], na["score"]) == (str(FULL - 3), "", str(FULL - 9))
    assert unfinished == {**dict.fromkeys(possible, ""), "name": "dan", "id": "dan", "status": "not graded yet"}


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", "  =1", "'=1", "''", "\t=1", "\r=1", "a;=1", 'a",=1',
                                  "a,b", "O'Brien", "naïve"])
def test_no_text_becomes_a_formula_and_all_of_it_can_be_had_back(name):
    text = exports.table([made_up.invalid(name, reason=f"{name};{name}")], [name])
    for row in list(csv.reader(io.StringIO(text, newline="")))[2:]:
        assert len(row) == len(text.split("\r\n")[0].split(","))
        assert not any(cell.lstrip().startswith(tuple("=+-@＝＋－＠")) for cell in row)
        assert row[0].removeprefix("'") == shown.line(name)
    # As a spreadsheet reads it that parts cells at semicolons.
    for row in list(csv.reader(io.StringIO(text, newline=""), delimiter=";"))[2:]:
        assert not any(cell.lstrip('" ').startswith(tuple("=+-@")) for cell in row)


def test_hostile_names_keep_to_their_rows():
    results = [hostile(name, name) for name in (HOSTILE, CONTROL, "a\nb", 'say "x"', "a,b", "..", "/etc/passwd", "-rf")]
    rows = read_table(results)[1:]
    assert [row["id"] for row in rows] == [file_name(result.name) for result in results] and len({row["id"] for row in rows}) == len(results)
    assert all(character.isprintable() for row in rows for cell in row.values() for character in cell)


# ---- results.jsonl


def test_a_line_of_json_is_the_whole_result():
    results = [hostile(), *four()]
    lines = exports.json_lines(results).splitlines()
    assert exports.json_lines(results).isascii() and len(lines) == len(results)
    for text, result in zip(lines, results):
        found = json.loads(text)
        assert [found.pop(key) for key in ("id", "score", "possible", "status")] == [file_name(result.name), result.points, result.possible, result.outcome]
        again = Result.model_validate(found)
        assert again.name == result.name
        # Only stories are made fit to be shown.
        assert again.model_copy(update={"labs": []}) == result.model_copy(update={"labs": []})
    assert Result.model_validate({key: value for key, value in json.loads(lines[1]).items() if key not in ("id", "score", "possible", "status")}) == results[1]


# ---- gradescope


def test_gradescope_gets_a_score_for_each_check_and_hidden_ones_wait_for_publication():
    found = json.loads(exports.gradescope(made_up.result("ana", {("03", 2): Status.FAILED, ("03", 14): Status.TIMEOUT})))
    assert found["score"] == sum(test["score"] for test in found["tests"]) == FULL - 7
    assert sum(test["max_score"] for test in found["tests"]) == FULL
    checks = [check for lab in LABS.values() for check in lab.checks]
    assert [test["visibility"] for test in found["tests"]] == ["after_published" if check.hidden else "visible" for check in checks]
    failures = [test for test in found["tests"] if test["status"] == "failed"]
    assert [(test["number"], test["score"], test["max_score"]) for test in failures] == [("3.2", 0, 6), ("3.14", 0, 1)]
    assert "timeout" in failures[1]["output"] and "ONE MORE for this order" in failures[1]["output"]
    assert "output" not in found and found["stdout_visibility"] == "hidden"   # both would say the total before its time


def test_gradescopes_score_is_scaled_where_checks_do_not_apply():
    result = made_up.result("ana", {("03", 2): Status.NOT_APPLICABLE, ("01", 1): Status.FAILED})
    found = json.loads(exports.gradescope(result))
    assert found["score"] == round(FULL * (FULL - 6 - 2) / (FULL - 6), 2)
    assert "Checks worth 6 of 100 points do not apply" in found["output"]
    test, = (test for test in found["tests"] if test["number"] == "3.2")
    assert not {"score", "max_score", "status"} & set(test)


@pytest.mark.parametrize("result", [*four()[2:], made_up.result("none", NONE)])
def test_without_a_final_score_gradescope_gets_none(result):
    found = json.loads(exports.gradescope(result))
    assert "score" not in found and "tests" not in found
    reason = "1 check could not be made" if result.outcome == Outcome.INCOMPLETE else result.reason or "no check"
    assert found["output"].startswith(f"No score, {result.outcome}: {reason}")
    if result.outcome == Outcome.INCOMPLETE:
        assert LABS["01"].checks[0].does in found["output"]


def test_what_gradescope_shows_is_plain_text():
    text = exports.gradescope(hostile())
    found = json.loads(text)
    assert {found[key] for key in ("output_format", "test_output_format", "test_name_format")} == {"text"}
    shown_text = "".join(test["name"] + test["output"] for test in found["tests"]).replace("\n", "")
    assert HOSTILE in shown_text and all(character.isprintable() for character in shown_text)


# ---- junit.xml


def test_junit_has_a_suite_for_each_submission():
    statuses = {("01", 1): Status.FAILED, ("01", 2): Status.TIMEOUT, ("02", 1): Status.COULD_NOT_CHECK, ("02", 2): Status.NOT_APPLICABLE,
                ("02", 3): Status.GRADER_ERROR}
    root = ElementTree.fromstring(exports.junit([made_up.result("ana", statuses, outcome=Outcome.INCOMPLETE), made_up.invalid("bo")]))
    ana, bo = root
    counts = {name: int(ana.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": len(PLACES), "failures": 2, "errors": 2, "skipped": 1}
    assert [case.find("failure").get("type") for case in ana.iter("testcase") if case.find("failure") is not None] == ["failed", "timeout"]
    assert "ONE MORE for this order" in ana.find("testcase/failure").text
    assert (bo.get("tests"), bo.get("errors"), bo.find("testcase/error").get("message")) == ("1", "1", made_up.invalid().reason)
    assert {one.get("name"): one.get("value") for one in ana.iter("property")}["score"] == ""


def test_junit_can_be_parsed_whatever_a_program_wrote():
    everything = "".join(map(chr, [*range(0x20), *range(0x7f, 0xa0), 0xfffe, 0xffff, 0x1fffe])) + "]]>" + HOSTILE
    root = ElementTree.fromstring(exports.junit([hostile(everything, everything)]).encode())
    texts = [text for element in root.iter() for text in (*element.attrib.values(), element.text or "")]
    assert any(HOSTILE in text for text in texts)
    assert all(character.isprintable() or character == "\n" for text in texts for character in text)


# ---- grader diff


def graded_into(report, *found):
    (report / "results").mkdir(parents=True)
    for result in found:
        write(result, report / "results")
    return report


def test_a_partly_graded_report_is_compared_as_far_as_it_goes(tmp_path, capsys):
    everybody = [made_up.result(name) for name in ("ana", "bo", "cy", "dan")]
    old = graded_into(tmp_path / "old", *everybody)
    new = graded_into(tmp_path / "new", everybody[0], made_up.result("bo", {("03", 2): Status.FAILED}))
    assert show_diff(old, new) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{new} has no result of 2 submissions (cy, dan): not graded there yet, or not handed in; compared is the rest"
    assert said[1] == f"bo: {FULL} of {FULL} → {FULL - 6} of {FULL}" and said[2].startswith("  03/") and len(said) == 4
    assert said[3] == "the same: 1 of 2 submissions that both have"


def test_labs_that_only_one_report_has_are_one_line(tmp_path, capsys):
    whole = made_up.result("ana", {("01", 1): Status.FAILED})
    part = made_up.result("ana")
    old, new = graded_into(tmp_path / "old", whole), graded_into(tmp_path / "new", part.model_copy(update={"labs": part.labs[:2]}))
    assert show_diff(old, new) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"{new} has no lab 03, 04, 05: compared is the rest", "ana: 38 of 40 → 40 of 40"] and len(said) == 4
    assert said[3] == "the same: 0 of 1 submission"


def test_reports_that_are_the_same_and_one_of_which_nothing_is_graded(tmp_path, capsys):
    old = graded_into(tmp_path / "old", made_up.result("ana"))
    assert show_diff(old, old) == 0 and capsys.readouterr().out == "the same: 1 of 1 submission\n"
    begun = graded_into(tmp_path / "begun")
    (begun / "journal.sqlite").touch()
    with pytest.raises(Refused, match="has no result yet"):
        show_diff(old, begun)


# ---- all of it


def test_the_report_is_written_whole_file_by_file(tmp_path, monkeypatch):
    results = [*four(), made_up.result("a/b"), made_up.result("../../up"), made_up.result("-rf *")]
    written = []
    monkeypatch.setattr(reports, "write_durably", lambda path, text: (written.append(path), path.write_text(text)))
    paths = reports.write_reports(tmp_path, results, {})
    assert paths == written and {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == {
        "index.html", "results.csv", "results.jsonl", "junit.xml", *(f"submissions/{file_name(result.name)}.html" for result in results),
        *(f"gradescope/{file_name(result.name)}.json" for result in results)}


def test_the_same_results_make_the_same_report(tmp_path):
    results = made_up.class_of(6)
    one, two = (reports.write_reports(tmp_path / name, order, {}) for name, order in (("one", results), ("two", results[::-1])))
    assert {path.name: path.read_text() for path in one} == {path.name: path.read_text() for path in two}


def test_every_status_and_outcome_has_a_sign():
    assert set(pages.SIGNS) == set(Status) and set(pages.OUTCOMES) == {*Outcome, standing.NOT_YET, standing.SAMPLED}


def test_a_check_that_some_submissions_lack_has_its_column():
    short = made_up.result("short")
    short = short.model_copy(update={"labs": short.labs[:2]})
    counted = standing.Standing([short, made_up.result("whole")])
    assert counted.full == FULL and [len(checks) for checks in counted.labs.values()] == [len(lab.checks) for lab in LABS.values()]
    assert pages.index([short, made_up.result("whole")], {}).count("<td class=none>") + 3 == sum(len(lab.checks) for lab in list(LABS.values())[2:])
