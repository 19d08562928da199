"""CPU time of this thread, in medians."""

import time
from collections.abc import Callable

import numpy as np

REPEATS = 5


def cpu_seconds(call: Callable[[], object]) -> float:
    """CPU seconds of this thread that one call takes."""
    began = time.thread_time()
    call()
    return time.thread_time() - began


def median_seconds(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median CPU seconds of a call, after one that is not counted."""
    call()
    return float(np.median([cpu_seconds(call) for _ in range(repeats)]))


def best_wall_seconds(
    calls: dict[str, Callable[[], object]], turns: int, least_seconds: float
) -> dict[str, float]:
    """Shortest wall time of each call, the calls taking turns; one turn is not counted.

    On a machine that others use too, the shortest is the least disturbed.  There are at least
    `turns` turns, and more until `least_seconds` have passed.
    """
    for call in calls.values():
        call()
    best = dict.fromkeys(calls, float("inf"))
    started, turn = time.perf_counter(), 0
    while turn < turns or time.perf_counter() - started < least_seconds:
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - began)
        turn += 1
    return best
