"""Talks."""

import os
import sys

if sys.argv[1:2] == ["start"]:
    while True:
        os.write(1, b"PASSED " * 9000)
        os.write(2, b"\x1b[2J\x00\xff" * 9000)
