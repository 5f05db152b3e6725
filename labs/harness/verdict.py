"""What a check's items come to: a check passes as a whole, and what could not be found out is no failure."""

#: How an item may end, as in the results file; of a check's items the first of these decides.
WORST_FIRST = ("failed", "error", "could not check", "skipped", "passed", "not applicable")


def of_check(statuses):
    """The status of a check from those of its items; "not run" where there is none."""
    return min(statuses, key=WORST_FIRST.index, default="not run")
