"""What a split/merge attempt decides, apart from doing it.

An attempt reads the partition and decides; only `carry_out` changes the partition.  So attempts
may decide side by side, and what they decided is carried out in turn (`moves/side_by_side.py`).
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.moves.partition import apply_merge, apply_split


class Decision(NamedTuple):
    """To split a cluster, to merge two, or to leave them.

    Attributes
    ----------
    proposed : int
        Position in the tally of what was proposed, that of what is accepted being the next one;
        or -1 if nothing was proposed.
    accepted : bool
    a, b : int
        The clusters, as int64; a == b for a split.
    members : ndarray of int64, shape (n,)
        Members of a cluster to split; of no meaning otherwise.
    side : ndarray of int8, shape (n,)
        0 for those that stay, 1 for those that get a new cluster.
    pair : ndarray of float64, shape (2, S)
        Statistics of both sides.
    """

    proposed: int
    accepted: bool
    a: int
    b: int
    members: np.ndarray
    side: np.ndarray
    pair: np.ndarray


@kernel
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


@kernel
def leave(proposed, a, b):
    """Decide to change nothing."""
    return _without_division(proposed, False, a, b)


@kernel
def join(proposed, a, b):
    """Decide to merge two clusters."""
    return _without_division(proposed, True, a, b)


@kernel
def divide_into(proposed, cluster, members, side, pair):
    """Decide to split a cluster."""
    return Decision(proposed, True, cluster, cluster, members, side, pair)


@kernel
def carry_out(labels, stats, decision, tally):
    """Do what was decided; changes `labels` and `tally`, returns the statistics."""
    if decision.proposed >= 0:
        tally[decision.proposed] += 1
    if not decision.accepted:
        return stats
    tally[decision.proposed + 1] += 1
    if decision.a != decision.b:
        return apply_merge(labels, stats, decision.a, decision.b)
    left, right = decision.pair[0], decision.pair[1]
    return apply_split(labels, stats, decision.a, decision.members, decision.side, left, right)
