"""Two threads against one, and a whole exact iteration against the sweep it contains.

Threads are compared by wall time, the shortest of several runs that take turns; an iteration with
its sweep by CPU time, in medians.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import pymc_dpsplit as dps
from benchmarks.environment import n_cores
from benchmarks.row import Row
from benchmarks.subject import Chain, make_target
from benchmarks.timing import Others, best_wall_seconds, median_seconds
from benchmarks.workloads import spheres

_TURNS, _LEAST_SECONDS = 9, 8.0
# Where others take more of the machine, wall time of two threads says nothing of them.
_MOST_TAKEN = 0.1
# N, D, K, spread of the centres.
_THREADED = ((1_000_000, 2, 10, 4.0), (100_000, 32, 30, 2.0))
_ITERATED = ((100_000, 2, 10, 4.0), (100_000, 8, 30, 4.0))


def _chain(case: tuple[int, int, int, float], pool: ThreadPoolExecutor | None = None) -> Chain:
    rows, labels, _ = spheres(*case)
    return Chain(make_target(rows, dps.MvNormal.from_data(rows)), labels, pool=pool)


def _name(case: tuple[int, int, int, float]) -> str:
    return f"N = {case[0]:.0e}, D = {case[1]}, K = {case[2]}"


def _two_against_one(kind: str, case: tuple[int, int, int, float]) -> Row:
    with ThreadPoolExecutor(2) as pool:
        one, two = _chain(case), _chain(case, pool)
        calls: dict[str, Callable[[], object]] = (
            {"one": one.sweep, "two": two.sweep}
            if kind == "sweep"
            else {"one": one.iterate, "two": two.iterate}
        )
        others = Others()
        best = best_wall_seconds(calls, _TURNS, _LEAST_SECONDS)
        taken = others.share()
    if not np.array_equal(one.state.labels, two.state.labels):
        raise RuntimeError("two threads drew other labels than one.")
    return Row(
        name=f"two threads against one, {kind}, {_name(case)}",
        measured=best["one"] / best["two"] if taken < _MOST_TAKEN else None,
        unit="x",
        must=1.7,
        aim=1.95,
        note=f"{1e3 * best['one']:.1f} and {1e3 * best['two']:.1f} ms, while other processes took "
        f"{100.0 * taken:.0f} % of the cores",
    )


def _iteration_to_sweep(case: tuple[int, int, int, float]) -> Row:
    chain = _chain(case)
    sweep = median_seconds(chain.sweep, 9)
    # Attempts differ much in cost with the clusters they choose.
    chain.iterate()
    whole = median_seconds(lambda: chain.iterate(10)) / 10.0
    return Row(
        name=f"exact iteration to sweep, {_name(case)}",
        measured=whole / sweep,
        unit="x",
        must=1.5,
        larger_is_better=False,
        note=f"{1e3 * whole:.1f} and {1e3 * sweep:.1f} ms; {chain.schedule.attempts:.2g} attempts, "
        f"{len(chain.schedule.scan_list)} observations scanned",
    )


def run() -> Iterator[Row]:
    """Threads first, if there are two cores."""
    for case in _THREADED:
        for kind in ("sweep", "iteration"):
            if n_cores() < 2:
                name = f"two threads against one, {kind}, {_name(case)}"
                yield Row(name=name, measured=None, unit="x", note="there is one core only")
            else:
                yield _two_against_one(kind, case)
    for case in _ITERATED:
        yield _iteration_to_sweep(case)
