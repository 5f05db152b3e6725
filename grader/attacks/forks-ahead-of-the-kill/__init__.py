"""Always one ahead."""

import os

if os.fork() == 0:
    os.setsid()
    os.closerange(0, 64)
    while True:
        if os.fork():
            os._exit(0)
