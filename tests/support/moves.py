"""The table of moves and kernels under test: every one faces every test with every family.

A move is a function (target, state, rng) -> state that leaves the posterior of the partition
invariant.  A new move is one row here.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.collapsed.scan import (
    collapsed_scan,
    log_densities_alone,
)
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.split_merge.anchored import anchored_attempt
from pymc_dpsplit.moves.split_merge.informed import informed_attempt
from pymc_dpsplit.moves.split_merge.transfer import transfer_attempt
from pymc_dpsplit.moves.sweep import threaded_sweep as by_threads
from pymc_dpsplit.moves.sweep.assignment import next_sweep, slice_sweep
from pymc_dpsplit.samplers.jain_neal import jain_neal_attempt
from pymc_dpsplit.samplers.neal8 import auxiliary_sweep
from pymc_dpsplit.samplers.sams import sams_attempt
from tests.support.pruned import pruned_sweep

Move = Callable[[sampler.Target, sampler.ChainState, np.random.Generator], sampler.ChainState]


def sweep(compiled: Callable[..., np.ndarray]) -> Move:
    """Adapt a sweep (target, labels, stats, rng) -> stats."""

    def move(
        target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
    ) -> sampler.ChainState:
        labels = state.labels.copy()
        stats = compiled(target, labels, state.stats, rng)
        return sampler.ChainState(labels, stats)

    return move


def attempt(compiled: Callable[..., np.ndarray]) -> Move:
    """Adapt a split/merge attempt, which also counts what it did."""

    def counted(*arguments: object) -> np.ndarray:
        return compiled(*arguments, np.zeros(4, np.int64))

    return sweep(counted)


def overrelaxed_sweeps(target, labels, stats, rng):
    """Three sweeps, of which the second and third follow the atoms of the one before."""
    atoms = no_atoms(target.prior)
    for _ in range(3):
        stats, atoms = next_sweep(target, labels, stats, rng, atoms)
    return stats


def kernel(name: str, **options: Any) -> Move:
    """Two iterations of a kernel of the sampler: atoms outlive other moves between sweeps."""
    published = sampler.SAMPLERS.get(name)
    settings = np.empty(0) if published is None else published.settings(options)

    def move(
        target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
    ) -> sampler.ChainState:
        schedule = sampler.Schedule(2, 2.0, np.arange(0, len(state.labels), 2), settings=settings)
        return sampler.advance(name, target, state, rng, schedule)[0]

    return move


def three_transfers(kind: Callable[..., np.ndarray]) -> Move:
    """Three transfers, which leave the number of clusters as it is."""

    def transfers(target, labels, stats, rng):
        for _ in range(3):
            stats = kind(target, labels, stats, rng)
        return stats

    return sweep(transfers)


def random_window(
    target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
) -> sampler.ChainState:
    """Two iterations that scan half of the observations, from a random one on."""
    window = max(1, len(state.labels) // 2)
    schedule = sampler.Schedule(2, 1.0, np.empty(0, np.int64), window=window)
    return sampler.advance("exact", target, state, rng, schedule)[0]


def partial_scan(
    target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
) -> sampler.ChainState:
    """Two collapsed scans of two thirds of the observations, then of the rest by slices."""
    rows = np.tile(np.flatnonzero(np.arange(len(state.labels)) % 3 > 0), 2)

    def scan(target, labels, stats, rng):
        log_alone = log_densities_alone(target.prior, target.data, rows)
        stats = collapsed_scan(target, labels, stats, rng, rows, log_alone)
        return slice_sweep(target, labels, stats, rng)

    return sweep(scan)(target, state, rng)


@cache
def _pool() -> ThreadPoolExecutor:
    """Two threads for all tests of a process: to begin them costs more than a sweep."""
    return ThreadPoolExecutor(2)


def threaded_sweep(
    target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
) -> sampler.ChainState:
    """The sweep by a pool of threads."""
    labels, atoms = state.labels.copy(), no_atoms(target.prior)
    stats, _ = by_threads.threaded_sweep(target, labels, state.stats, rng, atoms, _pool())
    return sampler.ChainState(labels, stats)


# Those of the room `samplers`: the quick suite has few tests of them.
PUBLISHED: dict[str, Move] = {
    "Jain-Neal": attempt(jain_neal_attempt),
    "SAMS": attempt(sams_attempt),
    "Neal 2": kernel("neal2"),
    "Neal 8": sweep(auxiliary_sweep),
    "slice sampler": kernel("slice"),
    "processors": kernel("av-parallel", processors=3),
    "uneven processors": kernel("av-parallel", shares=(0.6, 0.3, 0.1)),
    "repaired sub-clusters": kernel("chang-fisher", repaired=True),
}
# Of these, the ones that take every law of the partition, not Dirichlet processes only.
PUBLISHED_FOR_EVERY_LAW = ("Jain-Neal", "SAMS", "Neal 2", "Neal 8")
MOVES: dict[str, Move] = {
    "slice": sweep(slice_sweep),
    "over-relaxed slice": sweep(overrelaxed_sweeps),
    "pruned slice": sweep(pruned_sweep),
    "anchored": attempt(anchored_attempt),
    "informed": attempt(informed_attempt),
    "collapsed": kernel("collapsed"),
    "threaded sweep": threaded_sweep,
    "partial scan": partial_scan,
    "exact kernel": kernel("exact"),
    "collapsed split/merge": kernel("collapsed-split-merge"),
    **PUBLISHED,
    "random window": random_window,
    "transfer": three_transfers(transfer_attempt),
}
