"""Random measure given the partition: weights, remainder and cluster parameters."""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    draw_parameters,
    overrelax_parameters,
    params_size,
    stats_size,
)
from pymc_dpsplit.components.optional import can_overrelax
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.overrelaxation import overrelax_log_gamma
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.rows import copy_row, first_column_sum, lengthened, with_more_rows
from pymc_dpsplit.moves.cluster_order import cluster_keys, sort_keys
from pymc_dpsplit.moves.partition_law import (
    FULL_BELOW,
    draw_log_remainder,
    draw_stick,
    joining_mass,
    refuse_heavy_tail,
    total_mass,
)


class Atoms(NamedTuple):
    """Occupied atoms of a sweep, which the next sweep over-relaxes.

    Attributes
    ----------
    stats : ndarray of float64, shape (K, S)
        Sufficient statistics of the clusters after the sweep.
    log_weights : ndarray of float64, shape (K,)
    params : ndarray of float64, shape (K, P)
        Element 0, the log normaliser, is shifted by the weights of the sweep and is not read.
    """

    stats: np.ndarray
    log_weights: np.ndarray
    params: np.ndarray


@jitted
def no_atoms(prior):
    """Return empty `Atoms`, from which a sweep draws the whole measure independently."""
    return Atoms(np.empty((0, stats_size(prior))), np.empty(0), np.empty((0, params_size(prior))))


@jitted
def occupied_atoms(prior, log_weights, params, renumbered, stats):
    """Select the atoms of a sweep that have observations.

    The result is empty for families without over-relaxation.

    Parameters
    ----------
    prior : NamedTuple
    log_weights : ndarray of float64, shape (A,)
    params : ndarray of float64, shape (A, P)
    renumbered : ndarray of int32, shape (A,)
        Cluster of each atom, -1 for atoms without observations.
    stats : ndarray of float64, shape (K, S)
        Sufficient statistics after the sweep.

    Returns
    -------
    Atoms
    """
    if not can_overrelax(prior):
        return no_atoms(prior)
    atoms = Atoms(stats, np.empty(stats.shape[0]), np.empty((stats.shape[0], params.shape[1])))
    for k in range(renumbered.shape[0]):
        if renumbered[k] >= 0:
            atoms.log_weights[renumbered[k]] = log_weights[k]
            copy_row(params[k], atoms.params[renumbered[k]])
    return atoms


@jitted
def normalise(log_weights, log_rest, order):
    """Divide weights and a remainder by their sum, on the scale of logarithms.

    Parameters
    ----------
    log_weights : ndarray of float64, shape (K,)
        Changed in place.
    log_rest : float
    order : ndarray of int64, shape (K,)
        In which the weights are added, on which the last digits of the sum depend.

    Returns
    -------
    float
        Log of the normalised remainder.
    """
    highest = log_rest
    for k in range(log_weights.shape[0]):
        highest = max(highest, log_weights[k])
    total = math.exp(log_rest - highest)
    for k in order:
        total += math.exp(log_weights[k] - highest)
    log_total = highest + math.log(total)
    for k in range(log_weights.shape[0]):
        log_weights[k] -= log_total
    return log_rest - log_total


@jitted
def change_law(atoms, old, new, rng):
    """Change the weights of atoms from a draw under one law to a draw under another.

    The gamma variables of the occupied atoms, eq. (2.7), do not depend on the strength, so they are
    restored under the old law and normalised with a remainder drawn under the new one.  After
    clusters have merged a finite mixture may have fewer components than atoms, which are then not
    followed.

    Parameters
    ----------
    atoms : Atoms
        Changed in place; weights are NaN if they are not to be followed.
    old, new : PartitionLaw
        Laws of the same discount.
    rng : numpy.random.Generator
    """
    n_atoms = atoms.stats.shape[0]
    if n_atoms == 0:
        return
    if new.strength + n_atoms * new.discount < -FULL_BELOW * new.strength:
        atoms.log_weights[:] = np.nan
        return
    log_sum = draw_log_gamma(rng, total_mass(old, first_column_sum(atoms.stats)))
    log_rest = draw_log_remainder(new, n_atoms, rng)
    for k in range(n_atoms):
        atoms.log_weights[k] += log_sum
    normalise(atoms.log_weights, log_rest, np.arange(n_atoms))


@jitted
def _have_equal_statistics(stats, k, atoms, a):
    n_equal = 0
    for j in range(stats.shape[1]):
        n_equal += stats[k, j] == atoms.stats[a, j]
    return n_equal == stats.shape[1]


@jitted
def atoms_to_follow(stats, atoms):
    """Find the atom of the previous sweep that each cluster follows.

    A cluster follows the atom whose cluster had the same statistics, provided that no other cluster
    has them now or had them then.  The choice is a function of the two partitions, as the lemma
    before docs/method.md, eq. (2.10), requires.  It does not use the numbers of clusters, which
    depend on the measure.

    Parameters
    ----------
    stats : ndarray of float64, shape (K, S)
    atoms : Atoms

    Returns
    -------
    ndarray of int64, shape (K,)
        Row of `atoms`, or -1 for a cluster whose atom is drawn independently.
    """
    n_clusters, n_atoms = stats.shape[0], atoms.stats.shape[0]
    followed = np.full(n_clusters, -1)
    if n_atoms == 0 or math.isnan(atoms.log_weights[0]):
        return followed
    keys, old_keys = cluster_keys(stats), cluster_keys(atoms.stats)
    order, old_order = sort_keys(keys), sort_keys(old_keys)
    a = 0
    for p in range(n_clusters):
        key = keys[order[p]]
        while a < n_atoms and old_keys[old_order[a]] < key:
            a += 1
        if a == n_atoms:
            break
        is_single = p == 0 or keys[order[p - 1]] < key
        is_single &= p + 1 == n_clusters or key < keys[order[p + 1]]
        # The previous atom has a smaller key.
        was_single = a + 1 == n_atoms or key < old_keys[old_order[a + 1]]
        is_known = is_single and was_single
        if is_known and _have_equal_statistics(stats, order[p], atoms, old_order[a]):
            followed[order[p]] = old_order[a]
    return followed


@jitted
def draw_measure(target, stats, rng, order=None):
    """Draw the occupied part of the measure, eq. (1.5), an exact Gibbs step.

    Weights and remainder are Dirichlet(n_1, .., n_K, alpha), and under a law with discount sigma
    Dirichlet(n_1 - sigma, .., n_K - sigma, tau + K sigma).  Parameters are drawn from their
    posterior, cluster by cluster.

    Parameters
    ----------
    target : Target
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    order : ndarray of int64, shape (K,), optional
        Order in which clusters are drawn, a result of `cluster_order`; by default by number.

    Returns
    -------
    log_weights : ndarray of float64, shape (K,)
    log_rest : float
        Log weight of the remainder; finite however small alpha is, and -inf only if a finite
        mixture has no component left.
    params : ndarray of float64, shape (K, P)
    """
    # Not a call of `redraw_measure`: kernels without slices need not compile over-relaxation.
    n_clusters = stats.shape[0]
    in_order = np.arange(n_clusters) if order is None else order
    log_weights = np.empty(n_clusters)
    params = np.empty((n_clusters, params_size(target.prior)))
    for k in in_order:
        log_weights[k] = draw_log_gamma(rng, joining_mass(target.law, stats[k, 0]))
        draw_parameters(target.prior, stats[k], rng, params[k])
    log_rest = draw_log_remainder(target.law, n_clusters, rng)
    log_rest = normalise(log_weights, log_rest, in_order)
    return log_weights, log_rest, params


@jitted
def redraw_measure(target, stats, rng, atoms, order=None):
    """Like `draw_measure`, but over-relax the atoms that clusters follow.

    Weights are gamma variables divided by their sum.  The sum is independent of the weights, so an
    independent draw of it restores the gamma variables, eq. (2.7).

    Parameters
    ----------
    target : Target
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    atoms : Atoms
        Occupied atoms of the previous sweep, under the same law and hyperparameters; see
        `atoms_to_follow`.
    order : ndarray of int64, shape (K,), optional
        See `draw_measure`.

    Returns
    -------
    log_weights : ndarray of float64, shape (K,)
    log_rest : float
        Log weight of the remainder; finite however small alpha is, and -inf only if a finite
        mixture has no component left.
    params : ndarray of float64, shape (K, P)
    """
    prior, law = target.prior, target.law
    n_clusters = stats.shape[0]
    in_order = np.arange(n_clusters) if order is None else order
    log_weights = np.empty(n_clusters)
    params = np.empty((n_clusters, params_size(prior)))
    followed = atoms_to_follow(stats, atoms)
    log_sum = 0.0
    if atoms.stats.shape[0] > 0:
        log_sum = draw_log_gamma(rng, total_mass(law, first_column_sum(stats)))
    for k in in_order:
        a, mass = followed[k], joining_mass(law, stats[k, 0])
        if a >= 0:
            log_weight = atoms.log_weights[a] + log_sum
            log_weights[k] = overrelax_log_gamma(rng, mass, log_weight)
            copy_row(atoms.params[a], params[k])
            overrelax_parameters(prior, stats[k], rng, params[k])
        else:
            log_weights[k] = draw_log_gamma(rng, mass)
            draw_parameters(prior, stats[k], rng, params[k])
    log_rest = draw_log_remainder(law, n_clusters, rng)
    log_rest = normalise(log_weights, log_rest, in_order)
    return log_weights, log_rest, params


@jitted
def break_remainder(target, rng, log_weights, log_rest, params, log_floor, log_least=-math.inf):
    """Break sticks off the remainder until less than exp(log_floor) is left, eq. (2.1).

    Each stick is a share of what remains, Beta(1, alpha) for a Dirichlet process, see
    `draw_stick`.  Its parameters are drawn from the base measure.

    Parameters
    ----------
    target : Target
    rng : numpy.random.Generator
    log_weights : ndarray of float64, shape (K,)
    log_rest : float
        Log weight of the remainder.
    params : ndarray of float64, shape (K, P)
    log_floor : float
    log_least : float, optional
        Log weight below which a stick is broken but left out, and its parameters are not drawn.

    Returns
    -------
    log_weights : ndarray of float64, shape (K + M,)
    params : ndarray of float64, shape (K + M, P)
    log_rest : float
        Log weight of what is left.
    """
    prior, law = target.prior, target.law
    n_clusters = log_weights.shape[0]
    n_broken, n_atoms = 0, n_clusters
    empty = np.zeros(stats_size(prior))
    while log_rest >= log_floor:
        refuse_heavy_tail(law, n_atoms - n_clusters, n_broken)
        log_share, log_left = draw_stick(law, n_clusters + n_broken, rng)
        log_weight = log_rest + log_share
        log_rest += log_left
        n_broken += 1
        if log_weight >= log_least:
            if n_atoms == log_weights.shape[0]:
                n_added = max(8, n_atoms // 2)
                log_weights = lengthened(log_weights, n_added)
                params = with_more_rows(params, n_added)
            log_weights[n_atoms] = log_weight
            draw_parameters(prior, empty, rng, params[n_atoms])
            n_atoms += 1
    return log_weights[:n_atoms], params[:n_atoms], log_rest
