"""The records of a session: one JSON line, on the disk before anything else happens, for each thing that it did.

Whoever watches a session reads them while it runs; and one that was killed, by us or with us, is gone on with where it was. An item is one
test of pytest: a check has one, or one for each of its parameters. It is known by (lab, check, name), like ("03", "test_resume.py::test_x",
"test_x[before]"). The lines are

    {"of": [hash of the submission, …]}             the first one, of a grader's file alone: what was judged, and by what; see grader/batch.py
    {"collected": [item, …]}                        what there is to do, in order
    {"began": name, "in": check, "of": lab}         an item begins
    {"lab", "check", "item", "status", …}           an item has ended; see labs/session/outcomes.py
    {"sweep": kind, "scenario": name, …}            what came of the kills of a sweep
    {"trouble": why}                                the session came to no end
"""

import json
import os


def append(path, entry):
    """Write a line, and return when it is on the disk."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(path):
    """The lines of a file, each a dict; none where there is no file."""
    try:
        with open(path, "rb") as file:
            return parsed(file.read())
    except FileNotFoundError:
        return []


def parsed(data):
    """The lines in the text, or the bytes, of a file, each a dict. What is none of the above, like the torn last line of a session that was killed,
    is left out.
    """
    found = []
    for line in data.split(b"\n" if isinstance(data, bytes) else "\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and _is_a_record(entry):
            found.append(entry)
    return found


def _is_a_record(entry):
    if "collected" in entry:
        items = entry["collected"]
        return isinstance(items, list) and all(isinstance(item, list) and _are_words(item, 3) for item in items)
    return "began" not in entry or _are_words([entry.get(name) for name in ("of", "in", "began")], 3)


def _are_words(found, count):
    return len(found) == count and all(isinstance(word, str) for word in found)


def mend(path):
    """End a torn last line of a file, so that the next one is a line of its own. Raises FileNotFoundError."""
    with open(path, "rb+") as file:
        if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) is not None and file.read(1) != b"\n":
            file.write(b"\n")


def collected(found):
    """The items that there are, in order."""
    return [tuple(item) for item in next((entry["collected"] for entry in found if "collected" in entry), [])]


def began(found):
    """The items that began, once for each time."""
    return [(entry["of"], entry["in"], entry["began"]) for entry in found if "began" in entry]


def outcomes(found):
    """The lines of the items that have ended, in order."""
    return [entry for entry in found if all(isinstance(entry.get(name), str) for name in ("lab", "check", "status"))]


def ended(found):
    """The items that have ended."""
    return {(entry["lab"], entry["check"], entry.get("item")) for entry in outcomes(found)}


def waiting(found):
    """The items that have not ended. Before they were collected, one without a name stands for them: nothing is over yet."""
    items, done = collected(found), ended(found)
    return [item for item in items if item not in done] if items else [("", "", "")]


def under_way(found):
    """The item that began last and has not ended, or None."""
    last = began(found)[-1:]
    return last[0] if last and last[0] not in ended(found) else None
