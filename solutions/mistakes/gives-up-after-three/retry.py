"""When to try again, and when to stop."""

import os
import time

MOST_FAILURES = 3
WORTH_A_RETRY = {408, 409, 425, 429}


def is_final(error):
    """Whether the outside's answer can never turn out well: the request itself is refused."""
    return error.status is not None and 400 <= error.status < 500 and error.status not in WORTH_A_RETRY


def pause(failures, error):
    """Wait after the `failures`-th failure: twice as long each time, and as long as the outside asked for."""
    delay = float(os.environ.get("LAB_RETRY_DELAY", "1"))
    if delay > 0:
        time.sleep(max(delay * 2 ** (failures - 1), error.retry_after or 0))
