"""Slice sweep with its strips distributed over threads; draws equal those of `next_sweep`."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pymc_dpsplit.components.nonconjugate.compiled_prior import keep_parameters
from pymc_dpsplit.components.optional import find_table
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.measure import Atoms, occupied_atoms
from pymc_dpsplit.moves.sweep.assignment import (
    assign_strips,
    assign_strips_by_table,
    begin_sweep,
    complete_atoms,
    is_renumbered,
    lowest_slice,
    new_counter,
    new_strip_sizes,
    new_strip_stats,
    renumber,
    strip_count,
    total_strips,
)
from pymc_dpsplit.moves.sweep.by_table import gather_shares, new_stats
from pymc_dpsplit.moves.sweep.pruning import plan_pruning
from pymc_dpsplit.moves.target import Target

# Number of observations above which threads share passes of a nanosecond or two per observation;
# waking a thread takes a tenth of a millisecond.
_LEAST_SHARED = 1 << 17


@jitted
def _table_of(prior, params):
    return find_table(prior, params)


@jitted
def _keep(prior, log_weights, params, renumbered, stats):
    keep_parameters(prior, params, renumbered, stats)
    return occupied_atoms(prior, log_weights, params, renumbered, stats)


def threaded_sweep(
    target: Target,
    labels: np.ndarray,
    stats: np.ndarray,
    rng: np.random.Generator,
    atoms: Atoms,
    pool: ThreadPoolExecutor,
) -> tuple[np.ndarray, Atoms]:
    """Run one slice sweep by several threads.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Overwritten.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    atoms : Atoms
        Occupied atoms of the previous sweep.
    pool : ThreadPoolExecutor

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    atoms : Atoms
        Occupied atoms for the next sweep.
    """
    prior, data, n_obs = target.prior, target.data, labels.shape[0]
    n_all = min(strip_count(n_obs), pool._max_workers)
    n_light = n_all if n_obs >= _LEAST_SHARED else 1

    def share(n_calls: int, task: Callable[..., Any], *args: Any) -> list[Any]:
        # One call per thread, which takes strips until none is left: a call costs more than a
        # strip.  This thread takes part as well; it may finish before another one wakes up.
        counter = new_counter()
        others = [pool.submit(task, *args, counter) for _ in range(n_calls - 1)]
        own = task(*args, counter)
        return [own, *(other.result() for other in others if not other.cancel())]

    *drawn, slice_bounds, slice_key, label_key = begin_sweep(target, labels, stats, rng, atoms)
    # A kernel returns a key as a Python int, which numba would type as signed.
    keys = np.uint64(slice_key), np.uint64(label_key)
    lowest = min(share(n_light, lowest_slice, labels, slice_bounds, keys[0]))
    log_weights, params, reach = complete_atoms(target, rng, *drawn, lowest)
    table = _table_of(prior, params)
    if table is None:
        strip_stats = new_strip_stats(prior, n_obs, len(reach.slice_bounds))
        pruning = plan_pruning(prior, stats, params, strip_count(n_obs))
        share(n_all, assign_strips, prior, data, labels, params, reach, pruning, *keys, strip_stats)
        totals, renumbered = total_strips(strip_stats)
    else:
        sizes = new_strip_sizes(n_obs, len(reach.slice_bounds))
        share(n_all, assign_strips_by_table, prior, data, labels, table, reach, *keys, sizes)
        totals, renumbered = total_strips(sizes)
    if is_renumbered(renumbered, len(totals)):
        share(n_light, renumber, labels, renumbered)
    if table is not None:
        totals = new_stats(prior, len(totals))
        share(n_all, gather_shares, prior, data, labels, n_all, totals)
    return totals, _keep(prior, log_weights, params, renumbered, totals)
