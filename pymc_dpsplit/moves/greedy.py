"""Splits and merges for tuning only: they climb the joint density and are NOT invariant.

The informed move without the probability of the division: far from the posterior, where the
exact move refuses nearly every repair of an over-split cluster, it gets there in a few
iterations.  Draws made with it are discarded (docs/method.md, section 6).
"""

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.moves.informed import divide, log_choice_ratio, propose_split
from pymc_dpsplit.moves.partition import apply_merge, apply_split, log_split_ratio
from pymc_dpsplit.moves.selection import draw_cluster, draw_pair, log_marginals
from pymc_dpsplit.moves.tally import (
    MERGES_ACCEPTED,
    MERGES_PROPOSED,
    SPLITS_ACCEPTED,
    SPLITS_PROPOSED,
)


@kernel
def greedy_attempt(prior, data, labels, stats, alpha, rng, tally):
    """Attempt one split or merge; changes `labels` and `tally`, returns the statistics."""
    log_u = -rng.standard_exponential()
    if rng.random() < 0.5:
        tally[SPLITS_PROPOSED] += 1
        cluster = draw_cluster(stats, rng)
        members, side, pair, _ = propose_split(prior, data, labels, stats, cluster, rng)
        if pair[0, 0] == 0.0 or pair[1, 0] == 0.0:
            return stats
        log_accept = log_split_ratio(prior, alpha, pair[0], pair[1], stats[cluster])
        divided = divide(stats, cluster, pair)
        if log_u >= log_accept + log_choice_ratio(prior, divided, cluster, stats.shape[0]):
            return stats
        tally[SPLITS_ACCEPTED] += 1
        return apply_split(labels, stats, cluster, members, side, pair[0], pair[1])
    if stats.shape[0] == 1:
        return stats
    tally[MERGES_PROPOSED] += 1
    a, b = draw_pair(prior, stats, log_marginals(prior, stats), rng)
    log_accept = -log_split_ratio(prior, alpha, stats[a], stats[b], stats[a] + stats[b])
    if log_u >= log_accept - log_choice_ratio(prior, stats, a, b):
        return stats
    tally[MERGES_ACCEPTED] += 1
    return apply_merge(labels, stats, a, b)
