"""Collapsed Gibbs: one observation at a time, weights and parameters integrated out.

Algorithm 3 of Neal (2000), eq. (4.1), over all observations or any fixed list of them.  An
observation that stays where it is, as most do, changes nothing: the density given the others of its
own cluster is found from the cache that includes it.  Caches are recomputed at every scan of a list
and after a number of sweeps, and whenever rounding spoils one, so that errors do not accumulate.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import log_predictive
from pymc_dpsplit.components.collapsed import fill_log_predictives
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.kernels.cluster_choice import choose_position
from pymc_dpsplit.kernels.jit import (
    jitted,
    jitted_beside,
    jitted_inlined_uncounted,
    jitted_uncounted,
)
from pymc_dpsplit.kernels.rows import first_column_sum
from pymc_dpsplit.moves.collapsed.positions import (
    kept_totals,
    log_joining_one,
    move_between,
    open_position,
    place_clusters,
    refill,
    renumber,
    with_more_room,
)
from pymc_dpsplit.moves.collapsed.unfinished_densities import (
    finish_choice,
    limit_of_bounds,
    limits_of_densities,
)
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import (
    log_cluster_factor,
    log_joining_factor,
    log_opening_mass,
)
from pymc_dpsplit.moves.strength import move_strength_given
from pymc_dpsplit.moves.sweep.density import log_prior_predictive_of_rows
from pymc_dpsplit.moves.target import Target

# Sweeps after which everything is computed anew, against rounding.
SWEEPS_UNTIL_FRESH = 16


@jitted
def density_of_rest(prior, data, labels, i, clusters):
    """Log predictive density of an observation given the others of its cluster, from these.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    i : int
        The observation.
    clusters : Clusters
        Its workspace is overwritten.

    Returns
    -------
    float
    """
    refill(prior, data, labels, labels[i], i, clusters.spare)
    return log_predictive(prior, data, i, clusters.spare)


@jitted
def _add_masses_of_several(law, n_joining, positions):
    """Turn log prior masses of one observation into those of several that join together."""
    sizes = positions.clusters.sizes
    for p in range(positions.counts[0]):
        if sizes[p] > 0.0:
            factor = log_joining_factor(law, sizes[p], n_joining)
            positions.log_density[p] += factor - positions.log_sizes[p]


@jitted_inlined_uncounted
def _log_mass_of_joining(law, positions, size, n_joining):
    """Log prior mass with which some observations together join a cluster."""
    if n_joining == 1.0:
        return log_joining_one(law, positions, size)
    return log_joining_factor(law, size, n_joining)


@jitted_inlined_uncounted
def _draw_position(prior, data, labels, i, law, log_alone, log_open, positions, rng):
    """Draw the position of the cluster that observation i joins; the next one for a new cluster.

    An observation that is alone opens a new cluster by staying where it is.  `log_open` are the log
    masses of a new cluster beside all clusters, and beside all but one.
    """
    clusters, log_density, n = positions.clusters, positions.log_density, positions.counts[0]
    own, n_joining = positions.position_of[labels[i]], multiplicity(prior, data, i)
    n_others, log_new = clusters.sizes[own] - n_joining, log_alone
    is_alone, log_own = n_others <= 0.0, -math.inf
    shared = -1 if is_alone else own
    log_new += log_open[1] if is_alone else log_open[0]
    if n_joining != 1.0:
        log_new += log_cluster_factor(law, n_joining)
    if not is_alone:
        log_own = _log_mass_of_joining(law, positions, n_others, n_joining)
    least, drop = -math.inf, math.inf
    if n_joining == 1.0:
        least, drop = limits_of_densities(log_new, log_own, positions.log_largest)
    if fill_log_predictives(prior, data, i, clusters, n, shared, least, drop, log_density):
        limit = limit_of_bounds(log_density, shared, least, drop)
    else:
        log_density[own], limit = density_of_rest(prior, data, labels, i, clusters), math.inf
    if n_joining != 1.0:
        limit = -math.inf
        _add_masses_of_several(law, n_joining, positions)
        if not is_alone:
            of_all = log_joining_factor(law, clusters.sizes[own], n_joining)
            log_own += positions.log_sizes[own] - of_all
    u, weights = rng.random(), positions.weights
    p = choose_position(
        log_density, positions.log_sizes, own, log_own, n, log_new, log_alone, u, weights
    )
    if p < n and p != own and log_density[p] < limit:
        given = own, log_own, log_new, log_alone, limit, p
        p = finish_choice(prior, data, i, positions, positions.log_sizes, *given, rng)
    return own if is_alone and p == n else p


@jitted_inlined_uncounted
def _log_masses_of_opening(law, n_clusters):
    return log_opening_mass(law, n_clusters), log_opening_mass(law, n_clusters - 1)


@jitted_uncounted
def _visit_some(target, labels, rng, rows, log_alone, first, positions):
    """Redraw the labels of rows[first:] while there is room; return how far it came.

    Nothing is allocated here, so that no references need be counted.
    """
    prior, data, law = target
    counts, capacity = positions.counts, positions.log_sizes.shape[0]
    log_open = _log_masses_of_opening(law, counts[1])
    j = first
    while j < rows.shape[0] and counts[0] < capacity:
        i, log_new = rows[j], log_alone[j]
        j += 1
        origin, n_clusters = positions.position_of[labels[i]], counts[1]
        goal = _draw_position(prior, data, labels, i, law, log_new, log_open, positions, rng)
        if goal == origin:
            continue
        if goal == counts[0]:
            goal = open_position(positions)
        move_between(prior, data, labels, i, law, positions, origin, goal)
        if counts[1] != n_clusters:
            log_open = _log_masses_of_opening(law, counts[1])
    return j


@jitted
def _visit(target, labels, rng, rows, log_alone, positions):
    """Redraw the labels of `rows` in turn; return the positions, which may have more room."""
    first = _visit_some(target, labels, rng, rows, log_alone, 0, positions)
    while first < rows.shape[0]:
        positions = with_more_room(target.prior, positions)
        first = _visit_some(target, labels, rng, rows, log_alone, first, positions)
    return positions


@jitted
def collapsed_scan(target, labels, stats, rng, rows, log_alone):
    """Redraw the labels of `rows` in turn.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed; -1 for observations that are in none of the clusters, and not in `rows`.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    rows : ndarray of int64, shape (M,)
        Observations; the list must not depend on the partition.
    log_alone : ndarray of float64, shape (M,)
        Their log prior predictive densities.

    Returns
    -------
    ndarray of float64, shape (K', S)
        Sufficient statistics.
    """
    positions = place_clusters(target.prior, target.law, labels, stats, True)
    positions = _visit(target, labels, rng, rows, log_alone, positions)
    renumber(labels, positions)
    return kept_totals(positions)


@jitted
def _period(rows):
    """Return the length of the list that `rows` repeats, in part the last time."""
    n_rows = rows.shape[0]
    for period in range(1, n_rows):
        j = period
        while j < n_rows and rows[j] == rows[j - period]:
            j += 1
        if j == n_rows:
            return period
    return n_rows


@jitted
def log_densities_alone(prior, data, rows):
    """Log prior predictive densities of the observations `rows`, shape (M,).

    Those of a list that is repeated are computed once.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    rows : ndarray of int64, shape (M,)

    Returns
    -------
    ndarray of float64, shape (M,)
    """
    out = np.empty(rows.shape[0])
    period = _period(rows)
    out[:period] = log_prior_predictive_of_rows(prior, data, rows[:period])
    for j in range(period, rows.shape[0]):
        out[j] = out[j - period]
    return out


@jitted
def successive_rows(n_obs, n_rows, rng):
    """Choose successive observations; the first one, which follows the last one, at random.

    Parameters
    ----------
    n_obs : int
    n_rows : int
        More than `n_obs` are several passes; exactly as many begin with the first observation.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n_rows,)
    """
    if n_rows == n_obs:
        return np.arange(n_obs)
    return (np.int64(rng.random() * n_obs) + np.arange(n_rows)) % n_obs


@jitted
def linked_sweeps(target, labels, stats, rng, rows, log_alone, n_sweeps, strength):
    """Redraw the labels of `rows` in turn, several times over, and the strength after each time.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    rows : ndarray of int64, shape (M,)
        Observations; the list must not depend on the partition.
    log_alone : ndarray of float64, shape (M,)
        Their log prior predictive densities.
    n_sweeps : int
    strength : StrengthPrior

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
        Sufficient statistics.
    target : Target
        With the present law.
    """
    prior, data, law = target
    n_obs = first_column_sum(stats)
    positions = place_clusters(prior, law, labels, stats, False)
    for _ in range(n_sweeps):
        now = Target(prior, data, law)
        positions = _visit(now, labels, rng, rows, log_alone, positions)
        law = move_strength_given(strength, law, positions.counts[1], n_obs, rng)
    n_clusters = renumber(labels, positions)
    return gather_stats(prior, data, labels, n_clusters), Target(prior, data, law)


@jitted_beside("stats")
def collapsed_sweep(target, labels, stats, rng):
    """Redraw every label in turn, once.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    prior, data, law = target
    everyone = np.arange(labels.shape[0])
    log_alone = log_densities_alone(prior, data, everyone)
    positions = place_clusters(prior, law, labels, stats, False)
    positions = _visit(target, labels, rng, everyone, log_alone, positions)
    return gather_stats(prior, data, labels, renumber(labels, positions))
