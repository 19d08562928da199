"""Data-dependent choice of the total of the Dirichlet prior of multinomial clusters.

Rows of counts, such as words of texts, are overdispersed relative to the multinomial: a word that
occurs once in a row is likely to occur again.  The higher the prior density of single rows, the
more clusters describe single rows instead of features that rows share.  See docs/method.md,
eqs. (7.27)-(7.28), and decision 28.
"""

import numpy as np
import scipy

from pymc_dpsplit.data.sparse_rows import SparseRows, row_totals

# Largest average pseudo-count per column.  The standard deviation of the share of an average column
# between clusters is then half of its mean.
_MOST_PER_COLUMN = 4.0
# Number of entries whose densities are computed at a time.
_BLOCK_SIZE = 2**20


def prior_counts(rows: SparseRows, shares: np.ndarray) -> float:
    """Choose the sum of the parameters of the Dirichlet from the data.

    Parameters
    ----------
    rows : SparseRows
        Counts.
    shares : ndarray of float64, shape (V,)
        Mean of the Dirichlet; positive, with sum 1.

    Returns
    -------
    float
        The average number of counts per cluster if there are ``1 + 1/2 + ... + 1/N`` clusters, the
        prior mean for ``alpha = 1``, but at most four per column.  It is halved until the average
        log density of a row under the prior exceeds that under the prior mean by ``log N``, or
        until halving no longer increases it.
    """
    n_rows = rows.shape[0]
    n_clusters = scipy.special.digamma(n_rows + 1.0) + np.euler_gamma
    per_cluster = max(1.0, float(rows.values.sum(dtype=np.float64)) / n_clusters)
    total = min(per_cluster, _MOST_PER_COLUMN * len(shares))
    gain = mean_gain(rows, shares, total)
    while gain < np.log(n_rows):
        more = mean_gain(rows, shares, total / 2.0)
        if more <= gain:
            break
        total, gain = total / 2.0, more
    return total


def mean_gain(rows: SparseRows, shares: np.ndarray, total: float) -> float:
    """Return the average log ratio of row densities under the Dirichlet and under its mean.

    Parameters
    ----------
    rows : SparseRows
    shares : ndarray of float64, shape (V,)
    total : float
        Sum of the parameters of the Dirichlet.

    Returns
    -------
    float
    """
    gain = -float(_log_rising(np.full(rows.shape[0], total), row_totals(rows)).sum())
    for start in range(0, len(rows.values), _BLOCK_SIZE):
        block = slice(start, start + _BLOCK_SIZE)
        counts, share = rows.values[block], shares[rows.indices[block]]
        gain += float((_log_rising(total * share, counts) - counts * np.log(share)).sum())
    return gain / rows.shape[0]


def _log_rising(start: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the log of ``start * (start + 1) * ... * (start + n - 1)``."""
    rising: np.ndarray = scipy.special.gammaln(start + n) - scipy.special.gammaln(start)
    return rising
