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
from pymc_dpsplit.moves.sweep.tile_labels import Reach
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


def share_out(
    pool: ThreadPoolExecutor | None, n_calls: int, task: Callable[..., Any], *args: Any
) -> list[Any]:
    """Call `task` with a common counter in this thread and others; return all results.

    One call per thread, which takes strips until none is left: a call costs more than a strip.
    This thread takes part as well; it may finish before another one wakes up.
    """
    counter, others = new_counter(), []
    if pool is not None:
        others = [pool.submit(task, *args, counter) for _ in range(n_calls - 1)]
    own = task(*args, counter)
    return [own, *(other.result() for other in others if not other.cancel())]


def n_threads_of(n_obs: int, pool: ThreadPoolExecutor | None) -> tuple[int, int]:
    """Return the number of threads for long passes, and that for short ones."""
    n_all = 1 if pool is None else min(strip_count(n_obs), pool._max_workers)
    return n_all, n_all if n_obs >= _LEAST_SHARED else 1


def assign_in_threads(
    target: Target,
    labels: np.ndarray,
    stats: np.ndarray,
    params: np.ndarray,
    bounding: np.ndarray,
    reach: Reach,
    keys: tuple[np.uint64, np.uint64],
    pool: ThreadPoolExecutor | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Redraw all labels given the atoms of a sweep.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Overwritten by numbers of clusters.
    stats : ndarray of float64, shape (K, S)
        Sufficient statistics before the sweep.
    params, bounding : ndarray of float64, shape (A, P)
        Parameters of the atoms; and the same with the largest log factor that an observation may
        have, from which bounds are found.
    reach : Reach
    keys : tuple of uint64
        Those of slices and of labels.
    pool : ThreadPoolExecutor, optional

    Returns
    -------
    totals : ndarray of float64, shape (K', S)
    renumbered : ndarray of int32, shape (A,)
        Cluster of each atom, -1 for atoms without observations.
    """
    prior, data, n_obs = target.prior, target.data, labels.shape[0]
    n_all, n_light = n_threads_of(n_obs, pool)
    table = _table_of(prior, params)
    if table is None:
        strip_stats = new_strip_stats(prior, n_obs, len(reach.slice_bounds))
        pruning = plan_pruning(prior, stats, bounding, strip_count(n_obs))
        task: tuple[Any, ...] = prior, data, labels, params, reach, pruning, *keys, strip_stats
        share_out(pool, n_all, assign_strips, *task)
        totals, renumbered = total_strips(strip_stats)
    else:
        sizes = new_strip_sizes(n_obs, len(reach.slice_bounds))
        task = prior, data, labels, table, reach, *keys, sizes
        share_out(pool, n_all, assign_strips_by_table, *task)
        totals, renumbered = total_strips(sizes)
    if is_renumbered(renumbered, len(totals)):
        share_out(pool, n_light, renumber, labels, renumbered)
    if table is not None:
        totals = new_stats(prior, len(totals))
        share_out(pool, n_all, gather_shares, prior, data, labels, n_all, totals)
    return totals, renumbered


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
    *drawn, slice_bounds, slice_key, label_key = begin_sweep(target, labels, stats, rng, atoms)
    # A kernel returns a key as a Python int, which numba would type as signed.
    keys = np.uint64(slice_key), np.uint64(label_key)
    _, n_light = n_threads_of(labels.shape[0], pool)
    lowest = min(share_out(pool, n_light, lowest_slice, labels, slice_bounds, keys[0]))
    log_weights, params, reach = complete_atoms(target, rng, *drawn, lowest)
    totals, renumbered = assign_in_threads(target, labels, stats, params, params, reach, keys, pool)
    return totals, _keep(target.prior, log_weights, params, renumbered, totals)
