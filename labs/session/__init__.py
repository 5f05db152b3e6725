"""A session of checks, as plugins of pytest: `shared` is what all of its checks have in common and how it is told what to test, `outcomes`
records how each ends, and `failures` makes the story of one that failed. `items` is what all three know of one test of pytest, and `ahead` makes
the sweeps; they are no plugins.
The fixtures of the checks are in labs/conftest.py.
"""
