"""The table of moves and kernels under test: every one faces every test with every family.

A move is a function (target, state, rng) -> state that leaves the posterior of the partition
invariant.  A new move is one row here.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.moves import threaded_sweep as by_threads
from pymc_dpsplit.moves.anchored import anchored_attempt
from pymc_dpsplit.moves.assignment import next_sweep, slice_sweep
from pymc_dpsplit.moves.collapsed import collapsed_scan, collapsed_sweep
from pymc_dpsplit.moves.informed import informed_attempt
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.side_by_side import Attempt, attempt_side_by_side, draw_attempts
from tests.support.pruned import pruned_sweep

Move = Callable[[sampler.Target, sampler.ChainState, np.random.Generator], sampler.ChainState]


def sweep(compiled: Callable[..., np.ndarray]) -> Move:
    """Adapt a sweep (prior, data, labels, stats, alpha, rng) -> stats."""

    def move(
        target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
    ) -> sampler.ChainState:
        labels = state.labels.copy()
        stats = compiled(target.prior, target.data, labels, state.stats, target.alpha, rng)
        return sampler.ChainState(labels, stats)

    return move


def attempt(compiled: Callable[..., np.ndarray]) -> Move:
    """Adapt a split/merge attempt, which also counts what it did."""

    def counted(*arguments: object) -> np.ndarray:
        return compiled(*arguments, np.zeros(4, np.int64))

    return sweep(counted)


def overrelaxed_sweeps(prior, data, labels, stats, alpha, rng):
    """Three sweeps, of which the second and third follow the atoms of the one before."""
    atoms = no_atoms(prior)
    for _ in range(3):
        stats, atoms = next_sweep(prior, data, labels, stats, alpha, rng, atoms)
    return stats


def kernel(name: str) -> Move:
    """Two iterations of a kernel of the sampler: atoms outlive other moves between sweeps."""

    def move(
        target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
    ) -> sampler.ChainState:
        plan = sampler.Plan(2, 2.0, np.arange(0, len(state.labels), 2))
        return sampler.advance(sampler.KERNELS[name], target, state, rng, plan)[0]

    return move


def partial_scan(
    target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
) -> sampler.ChainState:
    """A collapsed scan of two thirds of the observations, then of the rest by slices."""
    rows = np.flatnonzero(np.arange(len(state.labels)) % 3 > 0)

    def scan(prior, data, labels, stats, alpha, rng):
        stats = collapsed_scan(prior, data, labels, stats, rows, alpha, rng)
        return slice_sweep(prior, data, labels, stats, alpha, rng)

    return sweep(scan)(target, state, rng)


def threaded_sweep(
    target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
) -> sampler.ChainState:
    """The sweep by a pool of threads."""
    prior, data, alpha = target
    labels = state.labels.copy()
    with ThreadPoolExecutor(2) as pool:
        stats, _ = by_threads.threaded_sweep(
            prior, data, labels, state.stats, alpha, rng, no_atoms(prior), pool
        )
    return sampler.ChainState(labels, stats)


def side_by_side(draw: Callable[[int, np.random.Generator], list[Attempt]]) -> Move:
    """Four split/merge attempts made from one partition by two threads."""

    def made(prior, data, labels, stats, alpha, rng):
        tally = np.zeros(4, np.int64)
        with ThreadPoolExecutor(2) as pool:
            return attempt_side_by_side(
                prior, data, labels, stats, alpha, draw(4, rng), tally, pool, 4
            )

    return sweep(made)


MOVES: dict[str, Move] = {
    "slice": sweep(slice_sweep),
    "over-relaxed slice": sweep(overrelaxed_sweeps),
    "pruned slice": sweep(pruned_sweep),
    "anchored": attempt(anchored_attempt),
    "informed": attempt(informed_attempt),
    "side by side": side_by_side(draw_attempts),
    "collapsed": sweep(collapsed_sweep),
    "threaded sweep": threaded_sweep,
    "partial scan": partial_scan,
    "exact kernel": kernel("exact"),
}
