"""Numbers that describe a state and do not depend on the numbering of clusters."""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import log_marginal
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, count_groups
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.sorting import sum_by_size
from pymc_dpsplit.moves.franchise import log_rising


class Summary(NamedTuple):
    """Summary of the clusters of all groups.

    Attributes
    ----------
    entropy : float
        Of the shares of clusters in all rows.
    group_entropy : float
        Mean over rows of the entropy within their group.
    largest_share : float
        Of all rows.
    shared : int
        Number of clusters with rows of two groups or more.
    """

    entropy: float
    group_entropy: float
    largest_share: float
    shared: int


def summary_of(target: GroupedTarget, state: GroupedState) -> Summary:
    """Summarise the clusters of all groups."""
    counts = count_groups(target, state.labels, len(state.weights))
    sizes, n_rows = counts.sum(axis=0), len(state.labels)
    within = sum(_entropy(row) * row.sum() for row in counts)
    shared = int(((counts > 0).sum(axis=0) > 1).sum())
    return Summary(_entropy(sizes), within / n_rows, sizes.max() / n_rows, shared)


def log_joint(target: GroupedTarget, state: GroupedState) -> float:
    """Return the log density of rows and labels given the global weights, eq. (16.5).

    Weights of groups and parameters are integrated out.  There is no factor of the density of the
    global weights, so that states with different numbers of clusters can be compared.
    """
    counts = count_groups(target, state.labels, len(state.weights))
    terms = log_rising(target.alpha * state.weights, counts).sum(axis=0)
    terms += log_marginals(target.of_rows.prior, state.stats)
    # Renumbering the clusters must not change the last digits.
    of_clusters = float(sum_by_size(terms))
    return of_clusters - float(np.sum(log_rising(target.alpha, target.sizes)))


@jitted
def log_marginals(prior, stats):
    """Log marginal densities of the rows of each cluster, shape (K,)."""
    out = np.empty(stats.shape[0])
    for k in range(stats.shape[0]):
        out[k] = log_marginal(prior, stats[k])
    return out


def _entropy(sizes: np.ndarray) -> float:
    """Return the entropy of shares that are proportional to `sizes`, 0 without any."""
    shares = np.sort(sizes[sizes > 0]) / max(sizes.sum(), 1)
    return -float(np.sum(shares * np.log(shares)))
