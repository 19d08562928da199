"""Splits and merges for tuning only: they climb the joint density and are NOT invariant.

This is the informed move without the probability of the division.  Far from the posterior the
exact move rejects nearly every repair of an over-split cluster; this move needs a few
iterations.  Draws made with it are discarded (docs/method.md, section 6).
"""

from pymc_dpsplit.kernels.jit import jitted, jitted_beside
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.moves.split_merge.decision import carry_out
from pymc_dpsplit.moves.split_merge.informed import decide


@jitted
def decide_greedily(target, labels, stats, key):
    """Decide on one split or merge, see `informed.decide`."""
    return decide(target, labels, stats, key, False)


@jitted_beside("stats")
def greedy_attempt(target, labels, stats, rng, acceptance_counts):
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
    decision = decide_greedily(target, labels, stats, draw_key(rng))
    return carry_out(labels, stats, decision, acceptance_counts)
