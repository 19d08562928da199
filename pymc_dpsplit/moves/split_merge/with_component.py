"""Split/merge in which the number of components M changes with that of clusters, for MFMs.

Given many observations M is rarely above the number of clusters K, and without an empty component
no cluster can split.  Here a split takes (K, M) to (K + 1, M + 1) and a merge takes it back, so
that the number of empty components stays; eq. (14.13).  Attempts are those of `anchored`, with
another mass of a new cluster.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.addresses import call_log_prior
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import first_column_sum
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.n_attempts import n_attempts
from pymc_dpsplit.moves.partition_law import PartitionLaw, log_number_factor
from pymc_dpsplit.moves.split_merge.anchored import (
    decide_given_opening,
    draw_anchors,
    n_clusters_when_whole,
)
from pymc_dpsplit.moves.split_merge.decision import carry_out


@jitted
def _log_weight(prior, law, n_components, n_clusters, n_obs):
    """Log of p(M) V(N, K | M), -inf if M is impossible; and the strength given M."""
    log_size, out = math.log(n_components + 0.5), np.array([-np.inf, np.nan])
    call_log_prior(prior.address, np.array([log_size]), prior.others, out)
    if not math.isfinite(out[0]):
        return -np.inf, out[1]
    of_number = log_number_factor(PartitionLaw(law.discount, out[1]), n_clusters, n_obs)
    # The density is that of log(M + U).
    return out[0] - log_size + of_number, out[1]


@jitted
def component_attempt(target, labels, stats, rng, strength, acceptance_counts):
    """Attempt one split or merge that takes a component with it; return the statistics.

    Parameters
    ----------
    target : Target
        Its strength is not read.
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    strength : StrengthPrior
        That of a number of components; what it has as present is changed.
    acceptance_counts : ndarray of int64, shape (4,)
        Added to.

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    n_items, n_clusters = labels.shape[0], stats.shape[0]
    if n_items < 2:
        return stats
    law, n_obs = target.law, first_column_sum(stats)
    size = math.exp(strength.present[0])
    stream = new_stream(draw_key(rng))
    anchors = draw_anchors(n_items, stream)
    whole = n_clusters_when_whole(labels, stats, anchors)
    # Numbers of components with the anchors in one cluster, and in two.
    few = int(size) - (n_clusters - whole)
    log_few, strength_of_few = _log_weight(strength, law, few, whole, n_obs)
    log_many, strength_of_many = _log_weight(strength, law, few + 1, whole + 1, n_obs)
    decision = decide_given_opening(target, labels, stats, stream, anchors, log_many - log_few)
    if decision.accepted:
        is_split = decision.a == decision.b
        strength.present[0] = math.log(size + (1.0 if is_split else -1.0))
        strength.present[1] = strength_of_many if is_split else strength_of_few
    return carry_out(labels, stats, decision, acceptance_counts)


@jitted
def attempt_with_components(target, labels, stats, rng, schedule, acceptance_counts):
    """Make as many attempts as an iteration has, if kernels move a number of components.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    schedule : Schedule
        What its strength has as present is changed.
    acceptance_counts : ndarray of int64, shape (4,)
        Added to.

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    if schedule.strength.address == 0 or target.law.discount >= 0.0:
        return stats
    for _ in range(n_attempts(schedule.attempts, labels.shape[0], rng)):
        stats = component_attempt(target, labels, stats, rng, schedule.strength, acceptance_counts)
    return stats
