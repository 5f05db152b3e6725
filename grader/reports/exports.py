"""The results for other programs: a spreadsheet, JSON Lines, Gradescope, JUnit. Where there is no score, none is written: never a zero."""

import csv
import io
import json
from xml.etree import ElementTree

from labs.harness.story import counted

from ..results import Outcome, Status, file_name
from .handed_out import handed_out
from .shown import line, lines
from .standing import NOT_YET, columns, percent, status

NOT_TAKEN = "no submission"
# What makes a cell a formula, also in full width; and the apostrophe, so that a leading one is always ours.
_FORMULA = tuple("=+-@\t\r＝＋－＠'")


# ---- results.csv

def table(results, unfinished=(), ignored=()):
    """A spreadsheet in a string: what is possible in its first row, then one row for each submission, and for what was `ignored` beside them.

    Text that a spreadsheet would take for a formula has an apostrophe before it; names as they are stand in results.jsonl under the same id.
    """
    checks = columns(results)
    labs = sorted({lab for lab, _ in checks})
    text = io.StringIO()
    # Every text is quoted: where a spreadsheet parts cells at semicolons, one in a name must not begin a new cell.
    rows = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    rows.writerow(["name", "id", "status", "score", "possible", "percent", *(f"lab {lab}" for lab in labs),
                   *(f"{lab}/{test}" for lab, test in checks), "reason", "doubts", "attempt", "notes", "source"])
    full = sum(check.possible for check in checks.values())
    rows.writerow(["Points possible", "", "", full, full, 100,
                   *(sum(check.possible for check in checks.values() if check.lab == lab) for lab in labs),
                   *(check.possible for check in checks.values()), *[""] * 5])
    for result in results:
        of_labs = {lab.number: None if any(check.status.is_unknown for check in lab.checks) else lab.points for lab in result.labs}
        of_checks = {(lab.number, check.test): None if check.status.is_unknown or check.status == Status.NOT_APPLICABLE else check.points
                     for lab, check in result.checks}
        score = percent(result)
        said = [result.reason or "", ", ".join(result.doubts), result.attempt or "", " / ".join(result.notes), result.source]
        rows.writerow([_cell(result.name), file_name(result.name), status(result), result.points, result.possible or None,
                       None if score is None else round(score, 2), *map(of_labs.get, labs), *map(of_checks.get, checks), *map(_sentence, said)])
    for name in unfinished:
        rows.writerow([_cell(name), file_name(name), NOT_YET, *[None] * (3 + len(labs) + len(checks)), *[""] * 5])
    for what in ignored:
        rows.writerow(["Not taken", "", NOT_TAKEN, *[None] * (3 + len(labs) + len(checks)), _sentence(what), *[""] * 4])
    return text.getvalue()


def _sentence(text):
    # A spreadsheet that parts cells at semicolons honours quotes in the first cell of a row only.
    return _cell(text.replace(";", ","))


def _cell(text):
    text = line(text)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


# ---- results.jsonl

def json_lines(results):
    """One JSON object a line, in ASCII: each Result as the schema has it, with `id`, `score`, `possible` and `status`; long stories are cut."""
    return "".join(json.dumps({"id": file_name(result.name), "score": result.points, "possible": result.possible, "status": status(result), **_short(result)}) + "\n"
                   for result in results)


def _short(result):
    dump = result.model_dump(mode="json")
    for lab in dump["labs"]:
        for check in lab["checks"]:
            for field in ("why", "story"):
                check[field] = check[field] and lines(check[field])
    return dump


# ---- gradescope/NAME.json

def gradescope(result):
    """A results.json as Gradescope's autograders write it (gradescope-autograders.readthedocs.io, "Output format").

    Hidden checks count, so they are `after_published`: `hidden` is for what earns no points. Gradescope's maximum is one number for all, so
    a score is scaled where checks do not apply. A submission without a final score has neither `score` nor `tests`: Gradescope takes that
    for an autograder that did not come to an end and records no score, where anything else would record a zero. What hidden checks have in
    them is not handed out.
    """
    result = handed_out(result)
    output = {"execution_time": round(result.seconds, 3), "output_format": "text", "test_output_format": "text", "test_name_format": "text",
              "stdout_visibility": "hidden", "extra_data": {"id": file_name(result.name), "outcome": result.outcome, "seed": result.seed, "sample": result.sample,
                                                            "grader_version": result.grader_version, "suite_hash": result.suite_hash,
                                                            "submission_hash": result.submission_hash}}
    full = sum(check.possible for _, check in result.checks)
    score = percent(result)
    if score is None:
        unknown = [f"lab {lab.number}: {line(check.does)} ({check.status})" for lab, check in result.checks if check.status.is_unknown]
        output["output"] = "\n".join([f"No score, {result.outcome}: {line(result.reason or 'no check applies to this program')}", *unknown])
        return json.dumps(output, indent=1)
    output["score"] = round(score * full / 100, 2)
    said = [f"Not a grade: the sweeps tried one of {result.sample} of their points only."] if result.is_sampled else []
    if full != result.possible:   # no total in words: a learner would see it before the hidden checks are published
        said.append(f"Checks worth {full - result.possible} of {counted(full, 'point')} do not apply to this program; the score of the others is scaled.")
    if said:
        output["output"] = "\n".join(said)
    output["tests"] = [_gradescope_test(lab, number, check) for lab in result.labs for number, check in enumerate(lab.checks, 1)]
    return json.dumps(output, indent=1)


def _gradescope_test(lab, number, check):
    test = {"name": f"{line(lab.title)}: {line(check.does)}", "number": f"{int(lab.number)}.{number}",
            "output": "\n\n".join([check.status, *(lines(text) for text in (check.why, check.story) if text)]),
            "tags": [f"lab {lab.number}"], "visibility": "after_published" if check.hidden else "visible"}
    if check.status != Status.NOT_APPLICABLE:
        test |= {"score": check.points, "max_score": check.possible, "status": "passed" if check.status == Status.PASSED else "failed"}
    return test


# ---- junit.xml

def junit(results):
    """JUnit XML in a string: a test suite for each submission. What could not be checked is an error, what was not applicable is skipped."""
    root = ElementTree.Element("testsuites", name="killproof")
    for result in results:
        suite = ElementTree.SubElement(root, "testsuite", name=line(result.name), time=f"{result.seconds:.3f}")
        if result.began:
            suite.set("timestamp", line(result.began))
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in (("id", file_name(result.name)), ("outcome", result.outcome), ("score", result.points), ("possible", result.possible),
                            ("seed", result.seed), ("sample", result.sample), ("status", status(result)), ("isolation", result.isolation and result.isolation.level)):
            ElementTree.SubElement(properties, "property", name=name, value="" if value is None else line(value))
        if result.outcome == Outcome.INVALID:
            case = ElementTree.SubElement(suite, "testcase", name="intake", classname=line(result.name), time="0")
            ElementTree.SubElement(case, "error", message=line(result.reason or ""), type=result.outcome)
        for lab, check in result.checks:
            _junit_case(suite, result, lab, check)
        suite.set("tests", str(len(suite.findall("testcase"))))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _junit_case(suite, result, lab, check):
    case = ElementTree.SubElement(suite, "testcase", name=line(check.test), classname=f"{line(result.name)}.lab{lab.number}",
                                  time=f"{check.seconds:.3f}")
    if check.status == Status.PASSED:
        return
    tag = "error" if check.status.is_unknown else "skipped" if check.status == Status.NOT_APPLICABLE else "failure"
    ending = ElementTree.SubElement(case, tag, message=line(check.why or check.status), type=check.status)
    ending.text = lines(check.story) if check.story else None
