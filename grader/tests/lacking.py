"""What a machine lacks for a test: elsewhere that test is skipped, where CI is set it fails, so that nothing goes untried there."""

import os

import pytest


def lacking(what):
    """End the test; `what` says what is not there, and how to get it."""
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)
