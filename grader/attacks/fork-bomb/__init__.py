"""One, two, four, eight."""

import os
import time

until = time.monotonic() + 3
while time.monotonic() < until:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
