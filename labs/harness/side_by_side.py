"""Many experiments of one kind at once, on all cores."""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

from .story import counted, more_like

THREADS = 3 * (os.cpu_count() or 1)  # the experiments spend their time in other processes


def side_by_side(experiment, points, done=lambda result: None, threads=THREADS):
    """`experiment(point)` for each of `points`; returns the results in the order of the points.

    `done(result)` is called as each ends, in the order of the points. An exception is raised when its turn comes, that of
    Ctrl-C at once; what was not begun then is not begun any more.
    """
    pool = ThreadPoolExecutor(threads)
    results = []
    try:
        for result in pool.map(experiment, points):
            results.append(result)
            done(result)
        return results
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def each_done(progress, total):
    """A `done` for side_by_side() that calls `progress(done, total)` with the number of those that have ended."""
    numbers = itertools.count(1)
    return lambda _: progress(next(numbers), total)


def on_fresh_programs(programs, points, experiment, threads=THREADS):
    """Run `experiment(program, point)` for each of `points`, each on a fresh program from `programs()`.

    Raises the exception of the first point, in the order of `points`, that failed: its attribute `point` names the
    point and how many failed, `others` how the others did where it was not the same way, `program` is the program it happened to.
    """
    points = list(points)

    def run(point):
        program = programs()
        try:
            experiment(program, point)
        except Exception as error:
            error.program = program
            return error
        program.discard()
        return None

    results = side_by_side(run, points, threads=threads)
    failed = [(point, error) for point, error in zip(points, results) if error]
    if failed:
        point, error = failed[0]
        alike, error.others = more_like([str(error) for _, error in failed])
        error.point = f"{point} ({len(failed)} of {counted(len(points), 'point')} failed{alike})"
        raise error
