"""The slice sweep with its strips shared out to threads: the draws of `assignment.next_sweep`."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pymc_dpsplit.components.generic import keep_parameters
from pymc_dpsplit.components.optional import find_table
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.moves.assignment import (
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
from pymc_dpsplit.moves.by_table import gather_shares, new_stats
from pymc_dpsplit.moves.measure import Atoms, occupied_atoms
from pymc_dpsplit.moves.pruning import plan_pruning

# Observations from which on threads share what takes a nanosecond or two of each: to wake a thread
# takes a tenth of a millisecond.
_LEAST_SHARED = 1 << 17


@kernel
def _table_of(prior, params):
    return find_table(prior, params)


@kernel
def _keep(prior, log_weights, params, renumbered, stats):
    keep_parameters(prior, params, renumbered, stats)
    return occupied_atoms(prior, log_weights, params, renumbered, stats)


def threaded_sweep(
    prior: Any,
    data: Any,
    labels: np.ndarray,
    stats: np.ndarray,
    alpha: float,
    rng: np.random.Generator,
    atoms: Atoms,
    pool: ThreadPoolExecutor,
) -> tuple[np.ndarray, Atoms]:
    """One slice sweep by several threads.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        Overwritten.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    atoms : Atoms
        Of the sweep before.
    pool : ThreadPoolExecutor

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    atoms : Atoms
        For the next sweep.
    """
    n_obs = labels.shape[0]
    n_all = min(strip_count(n_obs), pool._max_workers)
    n_light = n_all if n_obs >= _LEAST_SHARED else 1

    def share(n_calls: int, task: Callable[..., Any], *args: Any) -> list[Any]:
        # One call per thread, which takes strips until none is left: calls cost more than strips.
        # This thread is one of them: it begins at once, and may be done before another wakes up.
        counter = new_counter()
        others = [pool.submit(task, *args, counter) for _ in range(n_calls - 1)]
        own = task(*args, counter)
        return [own, *(other.result() for other in others if not other.cancel())]

    *drawn, caps, slice_key, label_key = begin_sweep(prior, stats, n_obs, alpha, rng, atoms)
    # Out of a kernel a key is an int, which numba would take for a signed one.
    keys = np.uint64(slice_key), np.uint64(label_key)
    lowest = min(share(n_light, lowest_slice, labels, caps, keys[0]))
    log_weights, params, reach = complete_atoms(prior, *drawn, n_obs, alpha, lowest, rng)
    table = _table_of(prior, params)
    if table is None:
        strip_stats = new_strip_stats(prior, n_obs, len(reach.caps))
        pruning = plan_pruning(prior, stats, params, strip_count(n_obs))
        share(n_all, assign_strips, prior, data, labels, params, reach, pruning, *keys, strip_stats)
        totals, renumbered = total_strips(strip_stats)
    else:
        sizes = new_strip_sizes(n_obs, len(reach.caps))
        share(n_all, assign_strips_by_table, prior, data, labels, table, reach, *keys, sizes)
        totals, renumbered = total_strips(sizes)
    if is_renumbered(renumbered, len(totals)):
        share(n_light, renumber, labels, renumbered)
    if table is not None:
        totals = new_stats(prior, len(totals))
        share(n_all, gather_shares, prior, data, labels, n_all, totals)
    return totals, _keep(prior, log_weights, params, renumbered, totals)
