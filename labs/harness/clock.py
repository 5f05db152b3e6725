"""The clock that the program under test reads too."""

import threading
import time


def next_second():
    """Wait until the clock shows another second.

    Between the starts of two runs: whether their ids come apart must not hang on the speed of the machine. Before them:
    both are of one second.
    """
    threading.Event().wait(1 - time.time() % 1)
