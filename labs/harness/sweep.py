"""Many experiments of one kind, each with a fresh home and account, on all cores."""

import os
from concurrent.futures import ThreadPoolExecutor


def sweep(programs, points, experiment):
    """Run `experiment(program, point)` for each of `points`, each on a fresh program from `programs()`.

    The experiments spend their time in other processes, so threads are enough to use every core. Raises the
    exception of the first point, in the order of `points`, that failed: its attribute `point` names the point and how
    many failed, `program` is the program it happened to.
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

    pool = ThreadPoolExecutor((os.cpu_count() or 1) + 1)
    try:
        results = list(pool.map(run, points))
    finally:
        # After Ctrl-C or a time-out nobody waits for the points that were not begun.
        pool.shutdown(wait=False, cancel_futures=True)
    failed = [(point, error) for point, error in zip(points, results) if error]
    if failed:
        point, error = failed[0]
        error.point = f"{point} ({len(failed)} of {len(points)} points failed)"
        raise error
