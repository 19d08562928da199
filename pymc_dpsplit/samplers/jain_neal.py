"""Split/merge by restricted Gibbs sampling, conjugate (Jain & Neal 2004), and a collapsed sweep.

Two observations are drawn.  If they share a cluster, a split with one of them on each side is
proposed; if not, the merge of their clusters.  The split comes from a launch state: a random
division, improved by Gibbs scans that are restricted to the two sides.  It is drawn by one more
scan, whose transition probability is that of the proposal.  For a merge the launch state is made
alike, and the scan is one that leads to the present division.
"""

import numpy as np

from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream, next_uniform
from pymc_dpsplit.moves.acceptance_counts import NOTHING_PROPOSED
from pymc_dpsplit.moves.collapsed.scan import collapsed_sweep
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.n_attempts import whole
from pymc_dpsplit.moves.split_merge.decision import carry_out, leave
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.samplers.two_sides import (
    NO_SIDE,
    begin_sides,
    decide_by_ratio,
    draw_allocation,
    put_on_side,
    take_from_side,
)

# Restricted scans that improve the launch state: 5, with one attempt and one sweep per iteration,
# is what the paper recommends.
RESTRICTED_SCANS = 5


@jitted
def restricted_scan(target, members, anchors, side, goal, sizes, caches, stream):
    """Redraw the sides of all members but the anchors in turn, or lead them to a division.

    Parameters
    ----------
    target : Target
    members : ndarray of int64, shape (n,)
    anchors : ndarray of int64, shape (2,)
    side : ndarray of int8, shape (n,)
        Changed.
    goal : ndarray of int8, shape (n,)
        Sides to take, or `NO_SIDE` to draw them.
    sizes : ndarray of float64, shape (2,)
    caches : ndarray of float64, shape (2, C)
        Both updated.
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    float
        Log probability of the sides taken.
    """
    prior, data, law = target
    log_q = 0.0
    for j in range(members.shape[0]):
        if members[j] != anchors[0] and members[j] != anchors[1]:
            take_from_side(prior, data, members, side, j, sizes, caches)
            log_q += put_on_side(prior, data, law, members, side, j, goal[j], sizes, caches, stream)
    return log_q


@jitted
def divide_from_launch(target, members, anchors, side, goal, stream):
    """Make a launch state and draw a division from it, or find the probability of a given one.

    Parameters
    ----------
    target : Target
    members : ndarray of int64, shape (n,)
    anchors : ndarray of int64, shape (2,)
        Members that stay on sides 0 and 1.
    side : ndarray of int8, shape (n,)
        Overwritten with the division.
    goal : ndarray of int8, shape (n,)
        Result of `sides_to_reach`.
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    float
        Log probability of the division given the launch state.
    """
    prior, data = target.prior, target.data
    for j in range(members.shape[0]):
        side[j] = 0 if next_uniform(stream) < 0.5 else 1
    sizes, caches = begin_sides(prior, data, members, anchors, side)
    free = np.full(members.shape[0], NO_SIDE, np.int8)
    for _ in range(RESTRICTED_SCANS):
        restricted_scan(target, members, anchors, side, free, sizes, caches, stream)
    return restricted_scan(target, members, anchors, side, goal, sizes, caches, stream)


@jitted
def decide_by_restricted_gibbs(target, labels, stats, key):
    """Decide on one split or merge; `key` determines all random numbers.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    key : uint64

    Returns
    -------
    Decision
    """
    if labels.shape[0] < 2:
        return leave(NOTHING_PROPOSED, 0, 0)
    stream = new_stream(key)
    anchors, log_u, a, b, members, side, goal = draw_allocation(labels, stats, stream)
    log_q = divide_from_launch(target, members, anchors, side, goal, stream)
    return decide_by_ratio(target, stats, a, b, members, side, log_q, log_u)


@jitted
def jain_neal_attempt(target, labels, stats, rng, acceptance_counts):
    """Attempt one split or merge in place; return the statistics.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    acceptance_counts : ndarray of int64, shape (4,)

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    decision = decide_by_restricted_gibbs(target, labels, stats, draw_key(rng))
    return carry_out(labels, stats, decision, acceptance_counts)


@jitted
def iterate_jain_neal(target, labels, stats, generator, schedule, acceptance_counts):
    """Run iterations of attempts and a collapsed sweep, see `FamilyMoves`."""
    rng = open_generator(generator)
    atoms = no_atoms(target.prior)
    for _ in range(schedule.n_iterations):
        for _ in range(whole(schedule.attempts, rng)):
            stats = jain_neal_attempt(target, labels, stats, rng, acceptance_counts)
        stats = collapsed_sweep(target, labels, stats, rng)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    return stats
