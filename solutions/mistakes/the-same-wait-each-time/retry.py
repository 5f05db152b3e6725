"""When to try again, and when to stop."""

import os
import time

MOST_FAILURES = 5
WORTH_A_RETRY = {408, 409, 425, 429}


def is_final(error):
    """Whether the outside's answer can never turn out well: the request itself is refused."""
    return error.status is not None and 400 <= error.status < 500 and error.status not in WORTH_A_RETRY


def may_have_acted(error):
    """Whether the outside may have done what it was asked, though its answer says otherwise or never came."""
    return error.status is None or error.status == 408 or error.status >= 500 and error.status != 503


def times(count):
    return "1 attempt" if count == 1 else f"{count} attempts"


def pause(failures, error):
    """Wait after the `failures`-th failure: LAB_RETRY_DELAY seconds."""
    delay = float(os.environ.get("LAB_RETRY_DELAY", "1"))
    if delay > 0:
        time.sleep(delay)
