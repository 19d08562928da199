"""Sequentially allocated merge-split (Dahl 2003), and a collapsed sweep.

Like `jain_neal`, without a launch state: the split puts the members of the cluster on the sides of
the two anchors one after the other, in a random order.  Each goes to a side with its probability
given those that are on the sides already.
"""

import numpy as np

from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream, next_index
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
)


@jitted
def random_order(n, stream):
    """Draw a permutation of 0 .. n - 1, uniformly (Fisher & Yates).

    Parameters
    ----------
    n : int
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    order = np.arange(n)
    for last in range(n - 1, 0, -1):
        j = next_index(stream, last + 1)
        order[last], order[j] = order[j], order[last]
    return order


@jitted
def divide_in_sequence(target, members, anchors, side, goal, stream):
    """Allocate the members in a random order, or find the probability of a given division.

    Parameters
    ----------
    target : Target
    members : ndarray of int64, shape (n,)
    anchors : ndarray of int64, shape (2,)
        Members that found sides 0 and 1.
    side : ndarray of int8, shape (n,)
        Overwritten with the division.
    goal : ndarray of int8, shape (n,)
        Result of `sides_to_reach`.
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    float
        Log probability of the division given the order.
    """
    prior, data, law = target
    for j in range(members.shape[0]):
        side[j] = NO_SIDE
    sizes, caches = begin_sides(prior, data, members, anchors, side)
    log_q = 0.0
    for j in random_order(members.shape[0], stream):
        if side[j] == NO_SIDE:
            log_q += put_on_side(prior, data, law, members, side, j, goal[j], sizes, caches, stream)
    return log_q


@jitted
def decide_by_sequence(target, labels, stats, key):
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
    log_q = divide_in_sequence(target, members, anchors, side, goal, stream)
    return decide_by_ratio(target, stats, a, b, members, side, log_q, log_u)


@jitted
def sams_attempt(target, labels, stats, rng, acceptance_counts):
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
    decision = decide_by_sequence(target, labels, stats, draw_key(rng))
    return carry_out(labels, stats, decision, acceptance_counts)


@jitted
def iterate_sams(target, labels, stats, generator, schedule, acceptance_counts):
    """Run iterations of attempts and a collapsed sweep, see `FamilyMoves`."""
    rng = open_generator(generator)
    atoms = no_atoms(target.prior)
    for _ in range(schedule.n_iterations):
        for _ in range(whole(schedule.attempts, rng)):
            stats = sams_attempt(target, labels, stats, rng, acceptance_counts)
        stats = collapsed_sweep(target, labels, stats, rng)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    return stats
