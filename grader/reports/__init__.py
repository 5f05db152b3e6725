"""The report: pages for people, files for other programs; made of Results and of the evidence that lies beside them."""

from pathlib import Path

from ..results import file_name, write_durably
from . import exports, pages


def write_reports(report, results, about):
    """Write all pages and exports into the folder `report`, each of them whole or not at all. Returns their paths.

    `about` may have `title`, `submissions` (where they came from, as text), `seed`, `began`, `grader_version`, `unfinished`
    (names that are not graded yet) and `ignored` (what lay beside the submissions and is none, each in words). Raises OSError.
    """
    report, results = Path(report), _sorted(results)
    texts = {
        "index.html": pages.index(results, about),
        "results.csv": exports.table(results, about.get("unfinished", ()), about.get("ignored", ())),
        "results.jsonl": exports.json_lines(results),
        "junit.xml": exports.junit(results),
    }
    for result in results:
        texts[f"submissions/{file_name(result.name)}.html"] = pages.submission(result, report)
        texts[f"gradescope/{file_name(result.name)}.json"] = exports.gradescope(result)
    _write(report, texts)
    for room in ("submissions", "gradescope"):   # of those that are not handed in any more
        for path in sorted((report / room).glob("*.*")):
            if f"{room}/{path.name}" not in texts:
                path.unlink()
    return [report / name for name in texts]


def write_first_pages(report, results, about, result):
    """While others are graded yet: write the page of the class, that of the submission whose Result has come, and such as lack theirs. Raises OSError."""
    report, texts = Path(report), {}
    for one in results:
        page = f"submissions/{file_name(one.name)}.html"
        if one is result or not (report / page).exists():
            texts[page] = pages.submission(one, report)
    _write(report, texts | {"index.html": pages.index(_sorted(results), about | {"under_way": True})})


def _sorted(results):
    return sorted(results, key=lambda result: result.name.casefold())


def _write(report, texts):
    for name, text in texts.items():
        (report / name).parent.mkdir(parents=True, exist_ok=True)
        write_durably(report / name, text)
