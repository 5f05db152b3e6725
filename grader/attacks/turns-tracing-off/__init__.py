"""Not to be followed."""

import sys
import threading

frame = sys._getframe()
while frame:
    frame.f_trace = None
    frame = frame.f_back
sys.settrace(None)
threading.settrace(None)
sys.settrace = lambda *_: None
