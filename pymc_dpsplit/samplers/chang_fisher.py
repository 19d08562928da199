"""Parallel sampling by sub-cluster splits, as published (Chang & Fisher 2013); not exact.

An iteration draws weights and parameters of the clusters and of their sub-clusters, then the label
of every observation among the clusters that there are, and its side within the cluster.  Every
cluster whose sub-clusters have burned in is proposed to be split into them.  Then follows a random
split or merge.

The sweep may empty a cluster and never founds one, and the splits are accepted without the
probability of the division, while the merges that would be their reverse are never made;
docs/samplers.md has what comes of it.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import copy_row, with_more_rows
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.measure import draw_measure, no_atoms
from pymc_dpsplit.moves.n_attempts import whole
from pymc_dpsplit.moves.partition import gather_stats, members_of
from pymc_dpsplit.moves.split_merge.decision import carry_out
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.moves.sweep.redraw import choose_atoms
from pymc_dpsplit.samplers.random_split_merge import decide_by_prior
from pymc_dpsplit.samplers.repaired_chang_fisher import iterate_repaired
from pymc_dpsplit.samplers.sub_clusters import (
    BURNED_IN,
    STAGE,
    begin_sub_clusters,
    draw_sides,
    draw_sub_measure,
    forget_sub_clusters,
    gather_sub_stats,
    new_progress,
    note_burn_in,
)
from pymc_dpsplit.samplers.super_clusters import choose_within_groups, draw_super_clusters
from pymc_dpsplit.samplers.two_sides import decide_by_ratio

# Element of the settings that says whether the sampler is the repaired one.
REPAIRED = 2


@jitted
def _in_order(labels, stats, progress):
    """Give the clusters the numbers of their order, on which the draws then depend alone."""
    order = cluster_order(labels, stats)
    number = np.empty(order.shape[0], np.int32)
    sorted_stats, sorted_progress = np.empty_like(stats), np.empty_like(progress)
    for p in range(order.shape[0]):
        number[order[p]] = p
        copy_row(stats[order[p]], sorted_stats[p])
        copy_row(progress[order[p]], sorted_progress[p])
    for i in range(labels.shape[0]):
        labels[i] = number[labels[i]]
    return sorted_stats, sorted_progress


@jitted
def _without_empty(labels, stats, progress):
    """Leave out clusters without members; the others keep their sequence."""
    n_left, number = 0, np.empty(stats.shape[0], np.int32)
    for k in range(stats.shape[0]):
        number[k] = n_left
        if stats[k, 0] > 0.0:
            copy_row(stats[k], stats[n_left])
            copy_row(progress[k], progress[n_left])
            n_left += 1
    for i in range(labels.shape[0]):
        labels[i] = number[labels[i]]
    return stats[:n_left].copy(), progress[:n_left].copy()


@jitted
def restricted_sweep(target, labels, stats, side, progress, rng, has_groups=False, waits=True):
    """Redraw weights, parameters, labels and sides, eq. 7-9 and 13-15 of the paper.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    side : ndarray of int8, shape (N,)
    progress : ndarray of float64, shape (K, 2)
        Of the sub-clusters, see `sub_clusters`.
    rng : numpy.random.Generator
    has_groups : bool
        Whether observations move within super-clusters only, section 4.1.
    waits : bool
        Whether sub-clusters are open to a split only after they have burned in.

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
        K' <= K: a cluster that all its members leave is gone.
    progress : ndarray of float64, shape (K', 2)
    """
    prior, data, law = target
    stats, progress = _in_order(labels, stats, progress)
    n_clusters = stats.shape[0]
    sub_stats = gather_sub_stats(prior, data, labels, side, n_clusters)
    log_weights, _, params = draw_measure(target, stats, rng)
    sub_log_weights, sub_params = draw_sub_measure(prior, law.strength, sub_stats, rng)
    label_key, side_key = draw_key(rng), draw_key(rng)
    if has_groups:
        group = draw_super_clusters(prior, data, log_weights, params, rng)
        choose_within_groups(prior, data, labels, label_key, log_weights, params, group)
    else:
        choose_atoms(prior, data, labels, label_key, log_weights, params)
    likelihood = np.empty(n_clusters)
    draw_sides(prior, data, labels, sub_log_weights, sub_params, side_key, side, likelihood)
    note_burn_in(progress, likelihood)
    if not waits:
        progress[:, STAGE] = BURNED_IN
    return _without_empty(labels, gather_stats(prior, data, labels, n_clusters), progress)


@jitted
def _carry_out(labels, stats, progress, decision, acceptance_counts):
    """Carry out a decision; the sub-clusters of the clusters that it makes are new."""
    n_clusters = stats.shape[0]
    stats = carry_out(labels, stats, decision, acceptance_counts)
    if not decision.accepted:
        return stats, progress
    if decision.a == decision.b:
        progress = with_more_rows(progress, 1)
        forget_sub_clusters(progress, n_clusters)
    elif max(decision.a, decision.b) < n_clusters - 1:
        copy_row(progress[n_clusters - 1], progress[max(decision.a, decision.b)])
    progress = progress[: stats.shape[0]].copy()
    forget_sub_clusters(progress, min(decision.a, decision.b))
    return stats, progress


@jitted
def split_sub_clusters(target, labels, stats, side, progress, rng, acceptance_counts):
    """Propose to split every cluster whose sub-clusters have burned in, eq. 17-21 of the paper.

    The probability of acceptance is min(1, H), where eq. 21 has, for parameters drawn from their
    posterior, H = alpha Gamma(N_m) Gamma(N_n) m(x_m) m(x_n) / (Gamma(N_c) m(x_c)): that of
    `decide_by_ratio` for a division of probability one.  Merges of this kind are rejected without
    being proposed, section 5.5.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    side : ndarray of int8, shape (N,)
    progress : ndarray of float64, shape (K, 2)
    rng : numpy.random.Generator
    acceptance_counts : ndarray of int64, shape (4,)

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    progress : ndarray of float64, shape (K', 2)
    """
    for k in range(stats.shape[0]):
        if progress[k, STAGE] < BURNED_IN:
            continue
        log_u, a = math.log1p(-rng.random()), np.int64(k)
        members = members_of(labels, stats, a, a)
        own, n_right = np.empty(members.shape[0], np.int8), 0
        for j in range(members.shape[0]):
            own[j] = side[members[j]]
            n_right += own[j]
        if 0 < n_right < members.shape[0]:
            decision = decide_by_ratio(target, stats, a, a, members, own, 0.0, log_u)
            stats, progress = _carry_out(labels, stats, progress, decision, acceptance_counts)
    return stats, progress


@jitted
def random_attempt(target, labels, stats, progress, rng, acceptance_counts):
    """Attempt one random split or merge, section 5.5.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    progress : ndarray of float64, shape (K, 2)
    rng : numpy.random.Generator
    acceptance_counts : ndarray of int64, shape (4,)

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    progress : ndarray of float64, shape (K', 2)
    """
    decision = decide_by_prior(target, labels, stats, draw_key(rng))
    return _carry_out(labels, stats, progress, decision, acceptance_counts)


@jitted
def iterate_chang_fisher(
    target, labels, stats, generator, schedule, acceptance_counts, of_rows, of_clusters
):
    """Run iterations as published, see `FamilyMoves`.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    generator : result of `address_of`, or numpy.random.Generator
    schedule : Schedule
        Its settings: whether there are super-clusters, whether splits wait for the burn-in of
        sub-clusters, and whether the sampler is the repaired one, see `iterate_repaired`.
    acceptance_counts : ndarray of int64, shape (4,)
    of_rows : ndarray of int8, shape (N,) or (0,)
        Sides of the observations.
    of_clusters : ndarray of float64, shape (K, 2) or (0, 0)
        Progress of the sub-clusters; they begin anew if it is empty.

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    of_rows : ndarray of int8, shape (N,)
    of_clusters : ndarray of float64, shape (K', 2)
    """
    if schedule.settings[REPAIRED] != 0.0:
        return iterate_repaired(
            target, labels, stats, generator, schedule, acceptance_counts, of_rows, of_clusters
        )
    rng = open_generator(generator)
    side, progress = np.zeros(labels.shape[0], np.int8), new_progress(stats.shape[0])
    if of_clusters.shape[0] > 0:
        side, progress = of_rows.copy(), of_clusters.copy()
    else:
        begin_sub_clusters(labels, side, progress, rng)
    atoms = no_atoms(target.prior)
    has_groups, waits = schedule.settings[0] != 0.0, schedule.settings[1] != 0.0
    for _ in range(schedule.n_iterations):
        stats, progress = restricted_sweep(
            target, labels, stats, side, progress, rng, has_groups, waits
        )
        stats, progress = split_sub_clusters(
            target, labels, stats, side, progress, rng, acceptance_counts
        )
        for _ in range(whole(schedule.attempts, rng)):
            stats, progress = random_attempt(
                target, labels, stats, progress, rng, acceptance_counts
            )
        begin_sub_clusters(labels, side, progress, rng)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    return stats, side, progress
