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
    return error.status is None or error.status == 500  # 502, 503 and 504 come from the gateway: it never got there


def times(count):
    return "1 attempt" if count == 1 else f"{count} attempts"


def pause(failures, error):
    """Wait after the `failures`-th failure: twice as long each time, and as long as the outside asked for."""
    delay = float(os.environ.get("LAB_RETRY_DELAY", "1"))
    if delay > 0:
        time.sleep(max(delay * 2 ** (failures - 1), error.retry_after or 0))
