"""A session of checks, as plugins of pytest: `shared` is what all of its checks have in common and how it is told what to test, `outcomes`
records how each ends, and `failures` makes the story of one that failed. The fixtures of the checks are in labs/conftest.py.
"""
