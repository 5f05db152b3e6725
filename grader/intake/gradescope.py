"""Who handed in what, by the submission_metadata.yml of a Gradescope export."""

import re

import yaml

from labs.command.refused import Refused

METADATA = "submission_metadata.yml"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Knows plain values only; what Ruby calls objects is read as what it is written with."""


def _plain(loader, _, node):
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node)
    return loader.construct_sequence(node) if isinstance(node, yaml.SequenceNode) else loader.construct_scalar(node)


_Loader.add_multi_constructor("", _plain)
# Times stay as they are written: the one of Ruby has forms that YAML's has not.
_Loader.yaml_implicit_resolvers = {first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
                                   for first, resolvers in _Loader.yaml_implicit_resolvers.items()}


def submitters(folder):
    """What the metadata in a folder says, {name of a submission's folder: (names, ids, when, attempt)}, or {} where there is none.

    `names` and `ids` are lists of who handed it in, `when` a time in UTC like "2026-11-20 14:03" or "", `attempt` a number from 1.
    Raises Refused.
    """
    path = folder / METADATA
    try:
        if path.is_symlink() or not path.is_file():
            return {}
        text = path.read_bytes()
        # A document may end in itself (`&a [*a]`), and nest deeper than Python goes; neither is looked at below.
        known = yaml.load(text, _Loader)
    except (OSError, yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise Refused(f"{path} cannot be read ({str(error)[:120]}): download it again, or delete it and have the submissions called by "
                      "their numbers") from None
    return {folder: _told(about) for folder, about in known.items() if isinstance(about, dict)} if isinstance(known, dict) else {}


def _told(about):
    people = [person for person in _list(about, ":submitters") if isinstance(person, dict)]
    names = [str(person[":name"]) for person in people if isinstance(person.get(":name"), (str, int))]
    ids = [str(next((person[key] for key in (":email", ":sid", ":name") if person.get(key)), "")) for person in people]
    when = about.get(":created_at")
    when = when.get("utc") if isinstance(when, dict) else when
    found = re.match(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)", when if isinstance(when, str) else "")
    return names, sorted(ids), " ".join(found.groups()) if found else "", len(_list(about, ":history")) + 1


def _list(about, key):
    return about[key] if isinstance(about.get(key), list) else []
