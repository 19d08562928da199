"""Decisions of split/merge attempts, separate from their execution.

An attempt reads the partition and decides; only `carry_out` changes the partition.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.partition import apply_merge, apply_split


class Decision(NamedTuple):
    """Decision to split a cluster, to merge two clusters, or to change nothing.

    Attributes
    ----------
    proposed : int
        Position in `acceptance_counts` of the kind of proposal, followed by that of its acceptance;
        -1 if nothing was proposed.
    accepted : bool
    a, b : int
        The clusters, as int64; a == b for a split.
    members : ndarray of int64, shape (n,)
        Members of the cluster to split; empty otherwise.
    side : ndarray of int8, shape (n,)
        0 for members that stay, 1 for members that get a new cluster.
    pair : ndarray of float64, shape (2, S)
        Sufficient statistics of both sides.
    """

    proposed: int
    accepted: bool
    a: int
    b: int
    members: np.ndarray
    side: np.ndarray
    pair: np.ndarray


@jitted
def _without_division(proposed, accepted, a, b):
    return Decision(
        proposed,
        accepted,
        a,
        b,
        np.empty(0, np.int64),
        np.empty(0, np.int8),
        np.empty((0, 0)),
    )


@jitted
def leave(proposed, a, b):
    """Decide to change nothing.

    Parameters
    ----------
    proposed : int
        See `Decision`.
    a, b : int

    Returns
    -------
    Decision
    """
    return _without_division(proposed, False, a, b)


@jitted
def join(proposed, a, b):
    """Decide to merge clusters `a` and `b`.

    Parameters
    ----------
    proposed : int
        See `Decision`.
    a, b : int

    Returns
    -------
    Decision
    """
    return _without_division(proposed, True, a, b)


@jitted
def divide_into(proposed, cluster, members, side, pair):
    """Decide to split a cluster.

    Parameters
    ----------
    proposed : int
        See `Decision`.
    cluster : int
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
    pair : ndarray of float64, shape (2, S)

    Returns
    -------
    Decision
    """
    return Decision(proposed, True, cluster, cluster, members, side, pair)


@jitted
def carry_out(labels, stats, decision, acceptance_counts):
    """Carry out a decision in place; return the statistics.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    decision : Decision
    acceptance_counts : ndarray of int64, shape (4,)
        Added to.

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    if decision.proposed >= 0:
        acceptance_counts[decision.proposed] += 1
    if not decision.accepted:
        return stats
    acceptance_counts[decision.proposed + 1] += 1
    if decision.a != decision.b:
        return apply_merge(labels, stats, decision.a, decision.b)
    left, right = decision.pair[0], decision.pair[1]
    return apply_split(labels, stats, decision.a, decision.members, decision.side, left, right)
