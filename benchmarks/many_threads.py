"""Sweeps, whole iterations and topics by 2, 4, 8, ... threads against one, by wall time.

The shortest of several runs in turn; every number of threads has to draw the same labels.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import pymc_dpsplit as dps
from benchmarks.data_folder import path_of, why_not
from benchmarks.environment import n_cores
from benchmarks.row import Row
from benchmarks.subject import Chain, make_target
from benchmarks.timing import Others, best_wall_seconds
from benchmarks.topic_systems import Ours
from benchmarks.workloads import spheres
from pymc_dpsplit.components.sparse_counts import rows_of_sparse

_TURNS, _LEAST_SECONDS = 7, 5.0
# N, D, K, spread of the centres.
_CASES = (
    (1_000_000, 2, 10, 4.0),
    (1_000_000, 8, 30, 4.0),
    (100_000, 32, 30, 2.0),
    (1_000_000, 32, 30, 2.0),
)
_TEXT, _N_TOPICS, _N_EARLY = "kos_bow.npz", 50, 20


class Work(NamedTuple):
    """What one number of threads does, and what it has drawn so far."""

    call: Callable[[], object]
    drawn: Callable[[], np.ndarray]


# Work of a pool; that of no pool is done by the caller's thread.
Maker = Callable[[ThreadPoolExecutor | None], Work]


def numbers_of_threads() -> list[int]:
    """2, 4, 8, ... up to the number of cores."""
    return [2**power for power in range(1, n_cores().bit_length()) if 2**power <= n_cores()]


def _chain(kind: str, case: tuple[int, int, int, float], pool: ThreadPoolExecutor | None) -> Work:
    rows, labels, _ = spheres(*case)
    chain = Chain(make_target(rows, dps.MvNormal.from_data(rows)), labels, pool=pool)
    return Work(chain.sweep if kind == "sweep" else chain.iterate, lambda: chain.state.labels)


def _topics(rows: Any, pool: ThreadPoolExecutor | None) -> Work:
    system = Ours(rows, _N_TOPICS, 1, pool)
    system.advance(_N_EARLY)
    return Work(partial(system.advance, 1), lambda: system.tokens().topics)


def _against_one(name: str, make: Maker) -> Iterator[Row]:
    with ExitStack() as pools:
        work = {"one": make(None)}
        for n_threads in numbers_of_threads():
            work[str(n_threads)] = make(pools.enter_context(ThreadPoolExecutor(n_threads)))
        others = Others()
        calls = {number: one.call for number, one in work.items()}
        best = best_wall_seconds(calls, _TURNS, _LEAST_SECONDS)
        taken = others.share()
    for number, one in work.items():
        if not np.array_equal(one.drawn(), work["one"].drawn()):
            raise RuntimeError(f"{number} threads drew other labels than one.")
        if number != "one":
            yield Row(
                name=f"{name}: {number} threads against one",
                measured=best["one"] / best[number],
                unit="x",
                note=f"{1e3 * best['one']:.1f} and {1e3 * best[number]:.1f} ms, while other "
                f"processes took {100.0 * taken:.0f} % of the cores",
            )


def run() -> Iterator[Row]:
    """Normal clusters of several sizes, then topics of a text."""
    for case in _CASES:
        for kind in ("sweep", "iteration"):
            name = f"{kind}, N = {case[0]:.0e}, D = {case[1]}, K = {case[2]}"
            yield from _against_one(name, partial(_chain, kind, case))
    path = path_of(_TEXT)
    if path is None:
        yield Row(name="KOS", measured=None, note=why_not(_TEXT))
    else:
        rows = rows_of_sparse(sparse.load_npz(path).tocsr())
        name = f"topics of KOS, from {_N_TOPICS}"
        yield from _against_one(name, partial(_topics, rows))
