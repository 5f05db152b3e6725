"""Ways to end early. Given and complete: `__main__` turns each into one line on stderr and an exit code."""


class Exit(Exception):
    """End the program with `code` and one line that says what is wrong and how to mend it."""

    code = 1


class Refused(Exit):
    """Bad usage, a bad ticket, an unknown run: nothing was written."""

    code = 2


class Busy(Exit):
    """Another live process works on this run."""

    code = 5


class Unreadable(Exit):
    """There is a record, but it cannot be read: nothing is sent and nothing is begun anew."""

    code = 6
