"""How many counts a Dirichlet prior of multinomial clusters is worth, chosen from the rows.

Rows of counts, such as words of texts, differ more than rows of a multinomial distribution do:
what is in a row once is soon there twice.  The likelier the prior makes single rows, the more
clusters describe the habits of single rows, not what rows have in common.  See docs/method.md,
eqs. (150)-(151), and decision 28.
"""

import numpy as np
from scipy import special

from pymc_dpsplit.data.sparse_rows import SparseRows, row_totals

# Most counts on average over columns: the share of an average column then differs between
# clusters by half of itself, the standard deviation of the Dirichlet.
_MOST_PER_COLUMN = 4.0
# Entries whose densities are computed at a time.
_BLOCK_SIZE = 2**20


def prior_counts(rows: SparseRows, shares: np.ndarray) -> float:
    """Choose the sum of the parameters of the Dirichlet, in counts.

    Parameters
    ----------
    rows : SparseRows
        Counts.
    shares : ndarray of float64, shape (V,)
        The mean of the Dirichlet; positive, with sum 1.

    Returns
    -------
    float
        The counts that each of ``E[K]`` clusters has on average, where ``E[K] = 1 + 1/2 + ... +
        1/N`` is the prior mean of the number of clusters for ``alpha = 1``, but at most four for
        each column; halved until a row by itself is likelier under the prior than under its mean
        by a factor of N, as long as that makes rows likelier.
    """
    n_rows = rows.shape[0]
    n_clusters = special.digamma(n_rows + 1.0) + np.euler_gamma
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
    """Log density of a row under the Dirichlet less that under its mean, on average over rows.

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
    """Log of ``start * (start + 1) * ... * (start + n - 1)``."""
    rising: np.ndarray = special.gammaln(start + n) - special.gammaln(start)
    return rising
