"""Sweep by slices on the global weights: rows are independent given weights and parameters.

Row i has a slice u_i ~ U(0, g(beta_{z_i})), where g(t) = min(t, c), see `floor_of_groups`.  Its new
label is k with probability proportional to pi_{jk} / g(beta_k) f(x_i; theta_k) over the clusters
with g(beta_k) > u_i, eq. (16.12)-(16.13), where pi_j are the weights of its group.  One remainder
is enough: a cluster whose global weight is below every slice cannot be chosen in any group.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    add_groups,
    draw_parameters,
    fill_log_density,
    load_tile,
    params_size,
    stats_size,
)
from pymc_dpsplit.components.nonconjugate.compiled_prior import keep_parameters
from pymc_dpsplit.components.optional import begin_tile, find_table
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, count_groups
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key, draw_log_gamma, hash_uniform
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.special import log_sum_of_two
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.sweep.all_atoms import begin_masses, new_masses
from pymc_dpsplit.moves.sweep.assignment import (
    is_renumbered,
    lowest_slice,
    new_counter,
    new_strip_stats,
    renumber,
    strip_bounds,
    strip_count,
    total_strips,
)
from pymc_dpsplit.moves.sweep.density import add_log_factors
from pymc_dpsplit.moves.sweep.tile_labels import choose_in_tile, group_by_label, smallest
from pymc_dpsplit.moves.tables import break_global_remainder

# Rows sorted at a time: by group, so that a factor is loaded once for a run of them, and by label,
# so that the statistics of a cluster are.
_CHUNK = 4096
# Neighbours in a tile that take one factor if they are of one group.
_RUN = 8


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
    """

    weights: np.ndarray
    log_rest: float
    bounds: np.ndarray
    log_factors: np.ndarray
    params: np.ndarray
    slice_key: np.uint64
    label_key: np.uint64


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
    return GroupedMeasure(every, log_rest, bounds, log_factors, params, slice_key, label_key)


@jitted
def fill_slices_of_groups(target, labels, measure, rows, groups, are_alike, slices):
    """Write the group and the slice of each row of a tile; return the smallest slice.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
    measure : GroupedMeasure
    rows, groups : ndarray of int64, shape (TILE,)
        `groups` is overwritten.
    are_alike : ndarray of bool, shape (TILE // _RUN,)
        Whether the rows of each run are of one group; overwritten.
    slices : ndarray of float64, shape (TILE,)
        Overwritten.

    Returns
    -------
    float
    """
    bounds, group_of_row = measure.bounds, target.group_of_row
    for t in range(TILE):
        slices[t] = hash_uniform(measure.slice_key, rows[t])
    for t in range(TILE):
        slices[t] *= bounds[labels[rows[t]]]
        groups[t] = group_of_row[rows[t]]
    for r in range(are_alike.shape[0]):
        n_other = 0
        for t in range(r * _RUN, (r + 1) * _RUN):
            n_other += groups[t] != groups[r * _RUN]
        are_alike[r] = n_other == 0
    return smallest(slices)


@jitted
def add_factors(factors, groups, are_alike, log_mass):
    """Add the log factors of a cluster, shape (J,), to its log densities in a tile."""
    for r in range(TILE // _RUN):
        first = r * _RUN
        if are_alike[r]:
            factor = factors[np.uint64(groups[first])]
            for t in range(first, first + _RUN):
                log_mass[t] += factor
        else:
            for t in range(first, first + _RUN):
                # A loop with an index that may be negative is not made vector code.
                log_mass[t] += factors[np.uint64(groups[t])]


@jitted
def exclude(slices, bound, log_mass):
    """Write -inf where the slice is not below the bound of the cluster."""
    for t in range(TILE):
        log_mass[t] = log_mass[t] if slices[t] < bound else -np.inf


@jitted
def fill_order(target, table, start, stop, ends, order):
    """Sort the rows start .. stop - 1 by group, unless their densities stand in a table.

    Rows of one group share a factor; and the labels do not depend on the order, for each row has
    its own uniforms.
    """
    rows = np.arange(start, stop)
    if table is None:
        group_by_label(target.group_of_row, rows, ends, order)
    else:
        order[: stop - start] = rows
    return order[: stop - start]


@jitted
def _assign_strip(target, labels, start, stop, measure, params, table, stats):
    """Redraw the labels of a strip, and add its rows to the statistics of the clusters."""
    prior, data, _ = target.of_rows
    bounds, log_factors = measure.bounds, measure.log_factors
    n_atoms, floor = measure.weights.shape[0], floor_of_groups(target)
    rows, chosen, active = new_rows(), new_rows(), np.arange(n_atoms)
    tile, scratch, log_mass = begin_tile(prior, data), new_scratch(4), new_masses(table, n_atoms, 1)
    groups, are_alike, slices = new_rows(), np.empty(TILE // _RUN, np.bool_), new_scratch(1)
    size = min(_CHUNK, stop - start)
    members, ends = np.empty(size, np.int64), np.empty(n_atoms + 1, np.int64)
    visits, ends_of_groups = np.empty(size, np.int64), np.empty(target.sizes.shape[0] + 1, np.int64)
    for chunk in range(start, stop, _CHUNK):
        chunk_stop = min(stop, chunk + _CHUNK)
        order = fill_order(target, table, chunk, chunk_stop, ends_of_groups, visits)
        for first in range(chunk, chunk_stop, TILE):
            if table is None:
                fill_members(rows, order, first - chunk)
                load_tile(prior, data, rows, tile)
            else:
                begin_masses(prior, data, first, table, rows, tile, log_mass)
            lowest = fill_slices_of_groups(target, labels, measure, rows, groups, are_alike, slices)
            n_active = 0
            for k in range(n_atoms):
                # With a table the densities of all atoms are there, each in its place.
                if table is not None or bounds[k] > lowest:
                    mass = row_of(log_mass[0], n_active)
                    if table is None:
                        fill_log_density(prior, tile, row_of(params, k), mass, scratch)
                    add_factors(row_of(log_factors, k), groups, are_alike, mass)
                    if bounds[k] < floor:
                        exclude(slices, bounds[k], mass)
                    active[n_active] = k
                    n_active += 1
            choose_in_tile(log_mass[0], n_active, rows, measure.label_key, chosen, scratch)
            for t in range(min(TILE, chunk_stop - first)):
                labels[rows[t]] = active[chosen[t]]
        group_by_label(labels, np.arange(chunk, chunk_stop), ends, members)
        add_groups(prior, data, members, ends, stats)


@jitted
def assign_strips_of_groups(target, labels, measure, strip_stats, counter):
    """Redraw the labels of the strips that this thread takes from `counter`.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Overwritten by rows of the weights of the measure.
    measure : GroupedMeasure
    strip_stats : ndarray of float64, shape (strips, A, S)
        Overwritten by the sufficient statistics of each strip.
    counter : ndarray of int64, shape (1,)
    """
    prior, _, _ = target.of_rows
    n_atoms = measure.weights.shape[0]
    params = add_log_factors(prior, measure.params, np.zeros(n_atoms), np.zeros(n_atoms))
    table = find_table(prior, params)
    s = take_next(counter)
    while s < strip_stats.shape[0]:
        start, stop = strip_bounds(labels.shape[0], s)
        strip_stats[s] = 0.0
        _assign_strip(target, labels, start, stop, measure, params, table, strip_stats[s])
        s = take_next(counter)


@jitted
def new_stats_of_strips(target, n_atoms):
    """Allocate the statistics of every strip and cluster."""
    return new_strip_stats(target.of_rows.prior, target.group_of_row.shape[0], n_atoms)


@jitted
def end_slices(prior, labels, measure, strip_stats):
    """Number the clusters that have rows, and return the weights of others to the remainder.

    Parameters
    ----------
    prior : NamedTuple
    labels : ndarray of int32, shape (N,)
        Rows of the weights of the measure; replaced by numbers of clusters.
    measure : GroupedMeasure
    strip_stats : ndarray of float64, shape (strips, A, S)

    Returns
    -------
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
    log_rest : float
    """
    stats, renumbered = total_strips(strip_stats)
    keep_parameters(prior, measure.params, renumbered, stats)
    weights, log_rest = np.empty(stats.shape[0]), measure.log_rest
    for a in range(renumbered.shape[0]):
        if renumbered[a] >= 0:
            weights[renumbered[a]] = measure.weights[a]
        else:
            log_rest = log_sum_of_two(log_rest, math.log(measure.weights[a]))
    if is_renumbered(renumbered, stats.shape[0]):
        renumber(labels, renumbered, new_counter())
    return stats, weights, log_rest


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
    labels = state.labels
    measure = GroupedMeasure(*draw_grouped_measure(target, *state, rng))
    # A kernel returns a key as a Python int, which numba would type as signed.
    keys = np.uint64(measure.slice_key), np.uint64(measure.label_key)
    measure = measure._replace(slice_key=keys[0], label_key=keys[1])
    strip_stats = new_stats_of_strips(target, len(measure.weights))
    task: tuple[Any, ...] = target, labels, measure, strip_stats, new_counter()
    n_threads = min(threads, strip_count(len(labels)))
    if n_threads == 1:
        assign_strips_of_groups(*task)
    else:
        with ThreadPoolExecutor(n_threads - 1) as pool:
            others = [pool.submit(assign_strips_of_groups, *task) for _ in range(n_threads - 1)]
            assign_strips_of_groups(*task)
            for other in others:
                other.result()
    prior = target.of_rows.prior
    return GroupedState(labels, *end_slices(prior, labels, measure, strip_stats))
