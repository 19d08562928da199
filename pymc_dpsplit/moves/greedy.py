"""Splits and merges for tuning only: they climb the joint density and are NOT invariant.

The informed move without the probability of the division: far from the posterior, where the
exact move refuses nearly every repair of an over-split cluster, it gets there in a few
iterations.  Draws made with it are discarded (docs/method.md, section 6).
"""

import math

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream, next_uniform
from pymc_dpsplit.moves.decision import carry_out, divide_into, join, leave
from pymc_dpsplit.moves.informed import divide, log_choice_ratio, propose_split
from pymc_dpsplit.moves.partition import log_split_ratio
from pymc_dpsplit.moves.selection import draw_cluster, draw_pair, log_marginals
from pymc_dpsplit.moves.tally import MERGES_PROPOSED, NOTHING_PROPOSED, SPLITS_PROPOSED


@kernel
def decide_greedily(prior, data, labels, stats, alpha, key):
    """Decide on one split or merge; all that is random comes from `key`.

    Returns
    -------
    Decision
    """
    stream = new_stream(key)
    log_u = math.log(next_uniform(stream))
    if next_uniform(stream) < 0.5:
        return _split(prior, data, labels, stats, alpha, log_u, stream)
    if stats.shape[0] == 1:
        return leave(NOTHING_PROPOSED, 0, 0)
    a, b = draw_pair(prior, stats, log_marginals(prior, stats), stream)
    log_accept = -log_split_ratio(prior, alpha, stats[a], stats[b], stats[a] + stats[b])
    if log_u >= log_accept - log_choice_ratio(prior, stats, a, b):
        return leave(MERGES_PROPOSED, a, b)
    return join(MERGES_PROPOSED, a, b)


@kernel
def greedy_attempt(prior, data, labels, stats, alpha, rng, tally):
    """Attempt one split or merge; changes `labels` and `tally`, returns the statistics."""
    decision = decide_greedily(prior, data, labels, stats, alpha, draw_key(rng))
    return carry_out(labels, stats, decision, tally)


@kernel
def _split(prior, data, labels, stats, alpha, log_u, stream):
    cluster = draw_cluster(stats, stream)
    members, side, pair, _ = propose_split(prior, data, labels, stats, cluster, stream)
    if pair[0, 0] == 0.0 or pair[1, 0] == 0.0:
        return leave(SPLITS_PROPOSED, cluster, cluster)
    log_accept = log_split_ratio(prior, alpha, pair[0], pair[1], stats[cluster])
    divided = divide(stats, cluster, pair)
    if log_u >= log_accept + log_choice_ratio(prior, divided, cluster, stats.shape[0]):
        return leave(SPLITS_PROPOSED, cluster, cluster)
    return divide_into(SPLITS_PROPOSED, cluster, members, side, pair)
