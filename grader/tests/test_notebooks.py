"""The notebooks: each shows what was committed, and `pytest notebooks` is red for one that does not."""

import ast
import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from labs.harness.staging import KIT

if not os.environ.get("CI"):   # there it may not be skipped
    pytest.importorskip("nbval", reason="no nbval: pip install -e '.[notebooks]'")

import nbformat  # noqa: E402
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook  # noqa: E402

NOTEBOOKS = sorted((KIT / "notebooks").glob("*.ipynb"))
SMALL = ("print(6 * 7)",
         "from experiment import source, trial\n\nwith trial() as one:\n    one.kill('refund', 'after')\n"
         "    print(len(one.outside.refunds), 'refund')",
         "from pictures import grid\n\ngrid('Moments', ['now'], {'a number': ['42']})")
LAST = "## Check your understanding\n\nPut in order" + "<details></details>" * 5


def run(folder, *command):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("ground", ["from experiment import trial as ground",
                                    "from functools import partial; from engines import on; ground = partial(on, 'sqlite')"])
def test_where_a_cell_raises_nothing_outlives_its_experiment(ground):
    ended = run(KIT / "notebooks", "-c", f"""
import subprocess, sys
{ground}
from labs.harness import descendants
try:
    with ground():
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        raise LookupError("the cell's own")
except LookupError as error:
    left = descendants.living()
    print(error.args[0], left)
    for process in left:
        process.kill()
""")
    assert ended.stdout == "the cell's own []\n", ended.stdout + ended.stderr


@pytest.mark.parametrize("path", [pytest.param(path, marks=[pytest.mark.slow] if path.stem[:2] > "01" else []) for path in NOTEBOOKS], ids=lambda path: path.stem)
def test_a_notebook_shows_what_was_committed(path):
    ended = run(KIT, "-m", "pytest", "-q", f"notebooks/{path.name}")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_notebook_that_is_asked_for_by_its_name_is_run():
    ended = run(KIT, "-m", "pytest", "-q", "--collect-only", f"notebooks/{NOTEBOOKS[0].name}")
    assert "::Cell 0" in ended.stdout and "as committed" in ended.stdout


@pytest.mark.slow
def test_jupyter_serves_the_notebooks():
    server = subprocess.Popen([Path(sys.executable).with_name("jupyter"), "lab", "notebooks", "--no-browser", "--allow-root", "--ServerApp.port=0"],
                              cwd=KIT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        said = next((line for line in server.stderr if "Serving notebooks from local directory" in line), "it has ended")
        assert said.strip().endswith(str(KIT / "notebooks"))
    finally:
        server.terminate()
        server.communicate(timeout=60)


def test_the_inventory_says_what_is_right_and_why():
    answers = "from inventory import FOUND, feedback; feedback({piece: %s for piece, (found, _) in FOUND.items()})"
    right, wrong = (run(KIT / "notebooks", "-c", answers % given).stdout.splitlines() for given in ("found", "'gone'"))
    assert right and all(line.startswith("✓") for line in right)
    assert [line for line in wrong if not line.startswith("✓")] == [
        "✗  the refund: it is not gone; the payment service made it, and no kill of ours takes it back"]


def test_the_picture_on_the_readmes_front_is_the_one_that_the_kit_draws():
    assert "](notebooks/front_door.svg)" in (KIT / "README.md").read_text()
    ended = run(KIT / "notebooks", "-c", "import front_door; assert front_door.picture() == front_door.FILE.read_text(encoding='utf-8'), 'python notebooks/front_door.py'")
    assert ended.returncode == 0, ended.stderr


def test_what_is_kept_of_a_conversation_is_judged_by_its_end():
    said = [{"role": ("user", "assistant")[place % 2], "content": f"turn {place}"} for place in range(8)]
    cut = {"role": "user", "content": "turn [cut]"}
    judged = {name: (kept, said) for name, kept in {
        "right": said[4:], "all": said, "nothing": [], "half": said[5:], "old": said[:4], "hole": said[:2] + said[6:], "too large": said[2:],
        "cut": [cut, said[7]], "cut of another's": [cut, {**said[7], "role": "user"}]}.items()}
    told = run(KIT / "notebooks", "-c", f"from conversing import tell_what_is_wrong; tell_what_is_wrong({judged}, 10)").stdout.splitlines()
    assert [line.split(": ", 1)[1] for line in told] == [
        "4 turns, 8 tokens; the end of the conversation",
        "8 turns, 16 tokens; it holds 16 tokens, and the budget is 10",
        "0 turns, 0 tokens; nothing is kept",
        "3 turns, 6 tokens; it begins with a reply whose question is gone",
        "4 turns, 8 tokens; what was said last is gone",
        "4 turns, 8 tokens; it has a hole: what now stands side by side was not said side by side",
        "6 turns, 12 tokens; it holds 12 tokens, and the budget is 10",
        "2 turns, 4 tokens; the end of the conversation",
        "2 turns, 4 tokens; what was said last is gone; it has a turn that nobody said like that, or not in this order"]
    assert [line[0] for line in told] == list("✓✗✗✗✗✗✗✓✗")


# ---- what a reader is told to try comes out as it is told


def texts(name):
    """The texts that the cells of a notebook give a name to."""
    cells = (cell for cell in nbformat.read(KIT / "notebooks" / name, as_version=4).cells if cell.cell_type == "code")
    return {node.targets[0].id: node.value.value for cell in cells for node in ast.parse(cell.source).body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)}


def swapped(text, first, second):
    assert text.count(first) == text.count(second) == 1, text
    return text.replace(first, "FIRST").replace(second, first).replace("FIRST", second)


def seen(flows, script):
    """What `script` prints of each of these `flows`, as JSON a line."""
    ended = run(KIT / "notebooks", "-c", f"import json\nfor flow in {flows!r}:\n    {script}")
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("[")]


def test_two_lines_swapped_are_a_second_refund_or_a_lost_one():
    text = texts("02-record-before-you-act.ipynb")
    started, act, done = (line for line in text["MINE"].splitlines() if line.startswith("    ") and "return" not in line)
    keyed = text["MINE"].replace(act, act.replace("4200", "4200, run['id'] + '/refund'")).replace('return "waiting"', "return step(run)")
    flows = [text["FLOW"] + mine for mine in (text["MINE"], swapped(text["MINE"], started, act), swapped(text["MINE"], act, done),
                                              swapped(keyed, started, keyed.splitlines()[3]))]
    script = 'import restarts; print(json.dumps(restarts.in_each_gap(flow, "step", lambda one, second: [second.code, len(one.outside.refunds)])))'
    assert seen(flows, script) == [[[0, 1], [4, 0], [4, 1], [0, 1]],     # exit code and refunds of the second start, gap by gap
                                   [[0, 1], [0, 2], [4, 1], [0, 1]],
                                   [[0, 1], [4, 0], [0, 0], [0, 1]],
                                   [[0, 1], [0, 1], [0, 1], [0, 1]]]


def test_who_reads_before_the_claim_sends_a_second_mail():
    text = texts("03-resume-is-reading.ipynb")
    flow = "".join(text[name] for name in ("FLOW", "LOOK", "ALONE", "WAITING"))
    before = text["MINE"]
    after = swapped(before, "    run = read(run_id)\n", "    with claim(run_id):\n").replace("    run = read", "        run = read")
    script = "import resumes; print(json.dumps([resumes.with_a_second(flow, kind)[1].mails for kind in ('refund', 'mail')]))"
    assert seen([flow + before, flow + after], script) == [[2, 1], [1, 1]]


def test_who_acts_before_he_begins_does_not_know_of_the_mail():
    text = texts("03-resume-is-reading.ipynb")
    late = text["LOOK"].replace("    begin(run, name)\n    return finish(run, name, act())",
                                "    result = act()\n    begin(run, name)\n    return finish(run, name, result)")
    script = "import resumes; print(json.dumps([resumes.resumed(flow, 'mail', 'after').mails]))"
    assert seen([text["FLOW"] + text["LOOK"], text["FLOW"] + late], script) == [[1], [2]]


# ---- planted errors: what is done to a good notebook, which of its items is red, and what is said of it

PLANTED = {}


def planted(item, says):
    def keep(plant):
        PLANTED[plant.__name__] = (plant, item, says)
        return plant
    return keep


@planted("Cell 0", "43")
def a_changed_number(book):
    book.cells[0].outputs[0].text = "43\n"


@planted("Cell 2", "text/html")
def a_number_changed_in_a_picture(book):
    data = book.cells[2].outputs[0].data
    before, image = data["text/html"].split("base64,")
    image, after = image.split('"', 1)
    changed = base64.b64encode(base64.b64decode(image).replace(b">42<", b">43<")).decode()
    assert changed != image
    data["text/html"] = f'{before}base64,{changed}"{after}'


@planted("Cell 0", "Unexpected output")
def a_stripped_output(book):
    book.cells[0].outputs = []


@planted("as committed", "was not run in its place")
def all_outputs_stripped(book):
    for cell in book.cells:
        cell.outputs, cell.execution_count = [], None


@planted("as committed", "code cell 2 was not run in its place")
def a_cell_that_was_not_run(book):
    book.cells[1].outputs, book.cells[1].execution_count = [], None


@planted("Cell 0", "ZeroDivisionError")
def an_exception(book):
    book.cells[0].source += "\n1 / 0"


@planted("as committed", "raised an exception")
def an_exception_that_was_committed(book):
    book.cells[0].outputs = [nbformat.v4.new_output("error", ename="ZeroDivisionError", evalue="division by zero", traceback=[])]


@planted("Cell 1", "outlived the kill")
def a_child_that_survives_its_kill(book):
    leave = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)"
    book.cells[1].source = book.cells[1].source.replace("trial()", f'trial(source().replace("    print(", "    {leave}\\n    print("))')


@planted("Cell 2", "outlived")
def a_child_that_survives_the_kernel(book):
    book.cells[1].source += "\nimport subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)"


@planted("as committed", "keeps its output from being compared")
def a_number_that_is_not_compared(book):
    book.cells[0].source = "# NBVAL_IGNORE_OUTPUT\n" + book.cells[0].source


@planted("as committed", "keeps its output from being compared")
def a_cell_that_is_skipped(book):
    book.cells[0].metadata = {"tags": ["nbval-skip"]}


@planted("as committed", "names a place on one machine: /home/ana/lab")
def a_path_of_one_machine(book):
    book.cells[0].source, book.cells[0].outputs[0].text = "print('/home/ana/lab')", "/home/ana/lab\n"


@planted("as committed", "names a place on one machine: /home/ana/lab")
def a_path_of_one_machine_in_a_picture(book):
    book.cells[2].source = book.cells[2].source.replace("a number", "/home/ana/lab")
    data = book.cells[2].outputs[0].data
    before, image, after = re.fullmatch(r"(.*base64,)([^\"]+)(.*)", data["text/html"], re.S).groups()
    changed = base64.b64encode(base64.b64decode(image).replace(b"a number", b"/home/ana/lab")).decode()
    assert changed != image
    data["text/html"] = before + changed + after


@planted("as committed", "image/png, which is not compared")
def a_picture_that_is_not_compared(book):
    book.cells[0].source = "from IPython.display import Image, display\ndisplay(Image(b'42', format='png'))"
    book.cells[0].outputs = [nbformat.v4.new_output("display_data", {"image/png": base64.b64encode(b"43").decode(),
                                                                     "text/plain": "<IPython.core.display.Image object>"})]


@planted("Cell 1", "still ran at the end")
def a_child_that_outlives_its_run(book):
    a_child_that_survives_its_kill(book)
    book.cells[1].source = book.cells[1].source.replace("one.kill('refund', 'after')", "one.start()")


@planted("as committed", "should have less than")
def too_many_bytes(book):
    book.cells[0].outputs[0].text = "42" * 150_000


@planted("as committed", "metadata")
def the_metadata_of_an_editor(book):
    book.metadata["kernelspec"]["display_name"] = "mine"


@planted("as committed", "a line of more than")
def a_line_that_is_out_of_sight(book):
    book.cells[0].source += "  #" + "-" * 100


@planted("as committed", "Check your understanding")
def four_questions(book):
    book.cells[-1].source = book.cells[-1].source.replace("<details></details>", "", 1)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Every planted notebook and the good one, in a kit without others, through `pytest notebooks`: {(stem, item): what is said, or None}."""
    kit = tmp_path_factory.mktemp("kit")
    shutil.copytree(KIT / "notebooks", kit / "notebooks", ignore=shutil.ignore_patterns("*.ipynb", "__pycache__", ".*"))
    (kit / "labs").symlink_to(KIT / "labs")
    good = kit / "notebooks" / "good.ipynb"
    nbformat.write(new_notebook(cells=[*map(new_code_cell, SMALL), new_markdown_cell(LAST)]), good)
    renewed = run(kit, "notebooks/renew.py", str(good))
    assert renewed.returncode == 0, renewed.stderr
    for name, (plant, _, _) in PLANTED.items():
        notebook = nbformat.read(good, as_version=4)
        plant(notebook)
        nbformat.write(notebook, kit / "notebooks" / f"{name}.ipynb")
    ended = run(kit, "-m", "pytest", "notebooks", "--junitxml", "judged.xml")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    found = {}
    for case in ElementTree.parse(kit / "judged.xml").iter("testcase"):
        said = "".join(part.get("message", "") + (part.text or "") for part in case if part.tag in ("failure", "error"))
        key = case.get("classname").split(".")[-2], case.get("name")
        found[key] = (found.get(key) or "") + said or None
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)   # for whichever comes first
def test_a_good_notebook_is_green(judged):
    assert {item: said for (name, item), said in judged.items() if name == "good"} == dict.fromkeys(["as committed", "Cell 0", "Cell 1", "Cell 2"])


@pytest.mark.slow
@pytest.mark.timeout(300)   # for whichever comes first
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_red(judged, name):
    _, item, says = PLANTED[name]
    assert says in (judged[name, item] or "nothing")


# ---- the second inventory, and programs of a notebook's own: kills at a counted place, and races

def test_the_second_inventory_says_what_is_right_and_why():
    answers = "from belongs import FOUND, feedback; feedback({piece: %s for piece, (found, _) in FOUND.items()})"
    right, wrong, none = (run(KIT / "notebooks", "-c", answers % given).stdout.splitlines() for given in ("found", "'no'", "'?'"))
    assert right and all(line.startswith("✓") for line in right)
    assert len(wrong) == len(right) and any(line.startswith("✗  the messages so far: it is not no; ") for line in wrong)
    assert none[0] == '·  the messages so far: not answered yet; write "value" or "reference" or "no"'


# A program of a notebook's own: it prints its word, passes the gate as often as it says, and refunds.
OWN = r"""
from programs import *

def text(passes):
    return ("from . import gate, outside\n\n\ndef main(word):\n    print(word, flush=True)\n" + "    gate.passed()\n" * passes
            + "    outside.refund('A-1', 100, word)\n    print('refunded', flush=True)\n")
"""


def own(*lines):
    return run(KIT / "notebooks", "-c", OWN + "\n".join(lines))


def test_a_kill_at_a_pass_comes_there_and_at_no_later_start():
    ended = own("with running(text(2)) as one:",
                "    first, second = [killed_at_pass(one, name, nth=nth) for nth, name in enumerate(('first', 'second'), 1)]",
                "    third = one.program.ask('third')",
                "    print([(process.stdout.split(), process.code) for process in (first, second, third)])",
                "    print([request.key for request in one.outside.of('refund')])")
    assert ended.stdout.splitlines() == ["[(['first'], -9), (['second'], -9), (['third', 'refunded'], 0)]", "['third']"], ended.stderr


def test_a_kill_at_a_pass_that_never_comes_is_an_error():
    ended = own("with running(text(2)) as one:", "    killed_at_pass(one, 'word', nth=3)")
    assert ended.returncode == 1 and "nobody was killed at pass 3" in ended.stderr


def test_a_kill_in_each_gap_of_a_program_of_its_own_is_followed_by_a_start():
    ended = own("def look(one, words, process):",
                "    return words, len(one.outside.refunds), process.code",
                "for seen in in_each_gap(text(0), 'main', lambda gap: [f'key-{gap}'], look): print(*seen)")
    assert ended.stdout.splitlines() == ["['key-0'] 1 0", "['key-1'] 2 0", "['key-2'] 3 0"], ended.stderr


def test_a_race_begins_when_all_are_there():
    ended = own("with running(text(0)) as one:",
                "    processes = race(one, 'refund', ('one',), ('two',))",
                "    print([event.what for event in one.outside.events if event.what in ('held before', 'acted')][:3])",
                "    print([process.code for process in processes], len(one.outside.refunds))")
    assert ended.stdout.splitlines() == ["['held before', 'held before', 'acted']", "[0, 0] 2"], ended.stderr
