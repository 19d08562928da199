"""CPU time of this thread, in medians; wall time, and who else used the machine meanwhile."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

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


class Ratio(NamedTuple):
    """CPU seconds of a call over those of another.

    Attributes
    ----------
    name : str
    median : float
    note : str
        Both in milliseconds, and the range over the turns.
    """

    name: str
    median: float
    note: str


def ratios_to_first(calls: dict[str, Callable[[], object]], turns: int) -> Iterator[Ratio]:
    """Compare all calls with the first one, the calls taking turns; one turn is not counted."""
    taken = {name: np.empty(turns) for name in calls}
    for call in calls.values():
        call()
    for turn in range(turns):
        for name, call in calls.items():
            taken[name][turn] = cpu_seconds(call)
    (_, own), *others = taken.items()
    for name, seconds in others:
        ratios = seconds / own
        note = (
            f"{1e3 * np.median(seconds):.1f} and {1e3 * np.median(own):.1f} ms; "
            f"turns from {ratios.min():.2f} to {ratios.max():.2f}"
        )
        yield Ratio(name, float(np.median(ratios)), note)


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


class Others:
    """What other processes take of the machine from now on; 0 where the system does not tell."""

    def __init__(self) -> None:
        self._ticks = _ticks()
        self._own = time.process_time()

    def share(self) -> float:
        """Share of all cores' time."""
        (busy_then, total_then), (busy_now, total_now) = self._ticks, _ticks()
        busy, total = busy_now - busy_then, total_now - total_then
        own = (time.process_time() - self._own) * os.sysconf("SC_CLK_TCK") if total else 0.0
        return max(0.0, busy - own) / total if total else 0.0


def _ticks() -> tuple[int, int]:
    """Clock ticks in which some core worked, or was taken from us, and all of them."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0, 0
    # user, nice, system, idle, waiting, interrupts (two), stolen
    counts = [int(count) for count in stat.read_text(encoding="ascii").split()[1:9]]
    return sum(counts) - counts[3] - counts[4], sum(counts)
