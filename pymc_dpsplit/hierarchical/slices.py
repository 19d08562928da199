"""Sweep by slices on the global weights: rows are independent given weights and parameters.

Row i has a slice u_i ~ U(0, g(beta_{z_i})), where g(t) = min(t, c), see `floor_of_groups`.  Its new
label is k with probability proportional to pi_{jk} / g(beta_k) f(x_i; theta_k) over the clusters
with g(beta_k) > u_i, eq. (16.12)-(16.13), where pi_j are the weights of its group.  One remainder
is enough: a cluster whose global weight is below every slice cannot be chosen in any group.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import draw_parameters, params_size, stats_size
from pymc_dpsplit.components.nonconjugate.compiled_prior import keep_parameters
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, count_groups
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key, draw_log_gamma
from pymc_dpsplit.kernels.sorting import ascending
from pymc_dpsplit.kernels.special import log_sum_of_two
from pymc_dpsplit.moves.sweep.assignment import lowest_slice, new_counter, strip_count
from pymc_dpsplit.moves.sweep.density import add_log_factors
from pymc_dpsplit.moves.sweep.group_factors import GroupFactors
from pymc_dpsplit.moves.sweep.threaded_sweep import assign_in_threads
from pymc_dpsplit.moves.sweep.tile_labels import Reach
from pymc_dpsplit.moves.sweep.visits import saves_by_slice
from pymc_dpsplit.moves.tables import break_global_remainder


class GroupedMeasure(NamedTuple):
    """Global weights, weights of groups and parameters of all clusters within reach of a slice.

    Attributes
    ----------
    weights : ndarray of float64, shape (A,)
        Those of the K clusters with rows, then of new ones.
    log_rest : float
        Log of the global weight of all others.
    bounds : ndarray of float64, shape (A,)
        Upper ends g(beta_k) of the slices.
    log_factors : ndarray of float64, shape (A, J)
        Log of pi_{jk} / g(beta_k), up to a constant of each group.
    params : ndarray of float64, shape (A, P)
    slice_key, label_key : uint64
    floor : float
        The floor c of the slices.
    """

    weights: np.ndarray
    log_rest: float
    bounds: np.ndarray
    log_factors: np.ndarray
    params: np.ndarray
    slice_key: np.uint64
    label_key: np.uint64
    floor: float


@jitted
def floor_of_groups(target):
    """Floor c of the slices: one over the number of tables to be expected, eq. (16.12).

    Any function of the sizes and of alpha is exact.  A cluster with one table has a weight of this
    order; with a lower floor a tile would reach many new clusters that none of its rows joins.

    Parameters
    ----------
    target : GroupedTarget

    Returns
    -------
    float
    """
    n_tables, alpha = 1.0, target.alpha
    for size in target.sizes:
        # The first row of a group opens a table, row i + 1 with probability alpha / (alpha + i).
        if size > 0:
            n_tables += min(float(size), 1.0 + alpha * math.log1p((size - 1) / alpha))
    return 1.0 / n_tables


@jitted
def bounds_of_slices(weights, floor):
    """Upper end g(beta_k) = min(beta_k, c) of the slices in each cluster, shape (A,)."""
    return np.minimum(weights, floor)


@jitted
def log_factor_of(log_gamma, bound):
    """Log of the factor pi_{jk} / g(beta_k) of eq. (16.13)."""
    return log_gamma - math.log(bound)


@jitted
def draw_grouped_measure(target, labels, stats, weights, log_rest, rng):
    """Draw parameters, new clusters within reach of a slice, and the weights of all groups.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
    log_rest : float
    rng : numpy.random.Generator

    Returns
    -------
    GroupedMeasure
    """
    prior, _, law = target.of_rows
    n_clusters, floor = weights.shape[0], floor_of_groups(target)
    slice_key, label_key = draw_key(rng), draw_key(rng)
    lowest = lowest_slice(labels, bounds_of_slices(weights, floor), slice_key, new_counter())
    more, log_rest = break_global_remainder(rng, law, log_rest, math.log(lowest))
    counts = count_groups(target, labels, n_clusters)
    # A stick below every slice cannot be chosen; what it holds goes back to the remainder.
    reached = more[more > lowest]
    for weight in more:
        if 0.0 < weight <= lowest:
            log_rest = log_sum_of_two(log_rest, math.log(weight))
    every = np.concatenate((weights, reached))
    n_atoms, nothing = every.shape[0], np.zeros(stats_size(prior))
    bounds = bounds_of_slices(every, floor)
    params = np.empty((n_atoms, params_size(prior)))
    log_factors = np.empty((n_atoms, counts.shape[0]))
    for k in range(n_atoms):
        draw_parameters(prior, stats[k] if k < n_clusters else nothing, rng, params[k])
        for j in range(counts.shape[0]):
            n_rows = counts[j, k] if k < n_clusters else 0
            log_gamma = draw_log_gamma(rng, target.alpha * every[k] + n_rows)
            log_factors[k, j] = log_factor_of(log_gamma, bounds[k])
    keys = slice_key, label_key
    return GroupedMeasure(every, log_rest, bounds, log_factors, params, *keys, floor)


@jitted
def reach_of_groups(target, measure):
    """Ends and order of the slices, and the factors of groups, for the labels of a sweep.

    Parameters
    ----------
    target : GroupedTarget
    measure : GroupedMeasure

    Returns
    -------
    Reach
    """
    bounds, floor = measure.bounds, measure.floor
    factors = GroupFactors(measure.log_factors, target.group_of_row)
    by_slice = saves_by_slice(bounds, floor)
    return Reach(bounds, ascending(measure.weights), floor, by_slice, factors)


@jitted
def params_of_groups(prior, measure):
    """Parameters for the labels of a sweep, and those from which bounds on masses are found.

    Parameters
    ----------
    prior : NamedTuple
    measure : GroupedMeasure

    Returns
    -------
    params, bounding : ndarray of float64, shape (A, P)
        Without weights, and with the largest log factor of all groups.
    """
    n_atoms = measure.weights.shape[0]
    nothing, largest = np.zeros(n_atoms), np.empty(n_atoms)
    for k in range(n_atoms):
        largest[k] = measure.log_factors[k].max()
    params = add_log_factors(prior, measure.params, nothing, nothing)
    return params, add_log_factors(prior, measure.params, largest, nothing)


@jitted
def end_slices(prior, measure, renumbered, stats):
    """Keep the weights of the clusters that have rows, and return the others to the remainder.

    Parameters
    ----------
    prior : NamedTuple
    measure : GroupedMeasure
    renumbered : ndarray of int32, shape (A,)
        Cluster of each row of the measure, -1 for those without rows.
    stats : ndarray of float64, shape (K, S)
        Of families that keep parameters these are written into it.

    Returns
    -------
    weights : ndarray of float64, shape (K,)
    log_rest : float
    """
    keep_parameters(prior, measure.params, renumbered, stats)
    weights, log_rest = np.empty(stats.shape[0]), measure.log_rest
    for a in range(renumbered.shape[0]):
        if renumbered[a] >= 0:
            weights[renumbered[a]] = measure.weights[a]
        else:
            log_rest = log_sum_of_two(log_rest, math.log(measure.weights[a]))
    return weights, log_rest


def sweep_groups(
    target: GroupedTarget, state: GroupedState, rng: np.random.Generator, threads: int
) -> GroupedState:
    """Redraw the labels of all rows by slices, by one thread or several with the same result.

    Parameters
    ----------
    target : GroupedTarget
    state : GroupedState
        Its labels are modified.
    rng : numpy.random.Generator
    threads : int

    Returns
    -------
    GroupedState
    """
    of_rows, labels = target.of_rows, state.labels
    measure = GroupedMeasure(*draw_grouped_measure(target, *state, rng))
    # A kernel returns a key as a Python int, which numba would type as signed.
    keys = np.uint64(measure.slice_key), np.uint64(measure.label_key)
    measure = measure._replace(slice_key=keys[0], label_key=keys[1])
    params, bounding = params_of_groups(of_rows.prior, measure)
    task = of_rows, labels, state.stats, params, bounding, reach_of_groups(target, measure), keys
    n_threads = min(threads, strip_count(len(labels)))
    if n_threads == 1:
        stats, renumbered = assign_in_threads(*task, None)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            stats, renumbered = assign_in_threads(*task, pool)
    weights, log_rest = end_slices(of_rows.prior, measure, renumbered, stats)
    return GroupedState(labels, stats, weights, log_rest)
