"""Iterations of rows in groups with the parameters of clusters in the state.

A sweep by slices opens and empties clusters, parameters move given their rows, and splits and
merges propose labels and parameters jointly; docs/method.md, (16.22).
"""

from pymc_dpsplit.hierarchical.split_merge import (
    Division,
    carry_out_division,
    count_sides,
    propose_shares,
)
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.acceptance_counts import MERGES_PROPOSED, SPLITS_PROPOSED
from pymc_dpsplit.moves.nonconjugate.joint_split import draw_anchors, propose_jointly
from pymc_dpsplit.moves.nonconjugate.parameters import update_parameters


@jitted
def attempt_jointly(target, labels, stats, weights, rng, acceptance_counts):
    """Attempt to split the cluster of two rows, or to merge their clusters, with parameters.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
        Global weights.
    rng : numpy.random.Generator
    acceptance_counts : ndarray of int64, shape (4,)
        Added to.

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    weights : ndarray of float64, shape (K',)
    """
    if labels.shape[0] < 2:
        return stats, weights
    prior, data, _ = target.of_rows
    anchors = draw_anchors(labels.shape[0], rng)
    a, b = labels[anchors[0]], labels[anchors[1]]
    is_split = a == b
    members, side, pair, union, log_q = propose_jointly(prior, data, labels, stats, anchors, rng)
    division = Division(side, count_sides(target, members, side), pair, log_q)
    log_shares, log_ratio = propose_shares(target, division, union, weights, a, b, rng)
    proposed = SPLITS_PROPOSED if is_split else MERGES_PROPOSED
    acceptance_counts[proposed] += 1
    # A NaN ratio compares false, so the proposal is rejected.
    if not (log_ratio if is_split else -log_ratio) > -rng.standard_exponential():
        return stats, weights
    acceptance_counts[proposed + 1] += 1
    stats, weights = carry_out_division(labels, stats, weights, a, b, members, division, log_shares)
    if not is_split:
        stats[min(a, b)] = union
    return stats, weights


@jitted
def move_parameters_and_clusters(
    target, labels, stats, weights, rng, n_attempts, acceptance_counts
):
    """Move the parameters of all clusters, then attempt splits and merges.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
        Changed.
    weights : ndarray of float64, shape (K,)
    rng : numpy.random.Generator
    n_attempts : int
    acceptance_counts : ndarray of int64, shape (4,)
        Added to.

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    weights : ndarray of float64, shape (K',)
    """
    stats = update_parameters(target.of_rows, labels, stats, rng)
    for _ in range(n_attempts):
        stats, weights = attempt_jointly(target, labels, stats, weights, rng, acceptance_counts)
    return stats, weights
