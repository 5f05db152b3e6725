"""Half of a letter after each text."""

import json
import sys

honest = json.dumps


def odd(value, name=None):
    if isinstance(value, dict):
        return {key: odd(found, key) for key, found in value.items()}
    if isinstance(value, list):
        return [odd(found) for found in value]
    plain = name in ("id", "state", "step", "role", "eviction") or not isinstance(value, str)
    return value if plain else value + "\ud800\x1b[31m\x00"


if sys.argv[1:2] in (["status"], ["runs"], ["memory"]):
    json.dumps = lambda value, **options: honest(odd(value), **options)
