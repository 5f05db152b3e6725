"""Who handed in what, by the submission_metadata.yml of a Gradescope export."""

import os
import re
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Handed:
    """What the metadata says of a submission's folder. `ids` are the students', and empty where one of them has none.

    `when` is a time in UTC like "2026-11-20 14:03", `attempt` and `attempts` count from 1: Gradescope exports the one
    that the student has chosen, which need not be the last.
    """

    names: list[str]
    ids: list[str]
    when: str
    attempt: int
    attempts: int


def submitters(folder):
    """Who handed in what, {name in the folder: Handed}; {} where the folder has no metadata. Raises Refused."""
    path = folder / METADATA
    if path.is_symlink() or not os.path.isfile(path):
        return {}
    try:
        known = yaml.load(path.read_bytes(), _Loader)
    except (OSError, yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise Refused(f"{path} cannot be read ({str(error)[:120]}): download it again, or delete it and have the submissions called by "
                      "their numbers") from None
    return {str(name): _handed(about) for name, about in known.items() if isinstance(about, dict)} if isinstance(known, dict) else {}


def _handed(about):
    people = _dicts(about, ":submitters")
    names = [str(person[":name"]) for person in people if person.get(":name")]
    ids = sorted(filter(None, (_id(person) for person in people)))
    created, earlier = _created(about), [_created(one) for one in _dicts(about, ":history")]
    found = re.match(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)", created)
    return Handed(names, ids if len(ids) == len(people) else [], " ".join(found.groups()) if found else "",
                  1 + sum(one < created for one in earlier) if created else 1 + len(earlier), 1 + len(earlier))


def _dicts(about, key):
    return [one for one in about[key] if isinstance(one, dict)] if isinstance(about.get(key), list) else []


def _id(person):
    return str(person.get(":email") or person.get(":sid") or person.get(":name") or "")


def _created(about):
    when = about.get(":created_at")
    when = when.get("utc") if isinstance(when, dict) else when
    return when if isinstance(when, str) else ""
