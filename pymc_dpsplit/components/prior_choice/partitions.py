"""Provisional partitions of standardised rows, by which priors are compared.

They need not be good: that of the true clusters has a much higher density than one cluster under a
suitable prior, so its neighbours have too.  But k-means finds clusters of equal extent alone, and a
prior of the variances cannot be judged by them where some clusters are narrow and others wide.  So
rows are also reassigned by the density of Gaussian clusters.  See decision 38.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy

from pymc_dpsplit.components.arguments import real_scalar

# Rows that are looked at; more would not change the choice, and take time.
_MOST_ROWS = 2000
_LEAST_ROWS = 16
# Numbers of clusters that are tried, with at least so many rows for each.
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24)
_ROWS_PER_CLUSTER = 4
_PASSES = 20
_REASSIGNMENTS = 5
# With more columns no row leaves its cluster under the weak default.
_NARROW = 16
# Larger numbers of clusters are not tried after so many that have not improved the best density.
_PATIENCE = 2
_SEED = 1
# Concentration of the law of partitions: the prior mean under the Gamma(2, 4) of the examples.
ALPHA = 0.5
# Candidates of kappa0, their default, and candidates of the share of the variances within clusters.
KAPPAS, KAPPA0 = (0.03, 0.1, 0.3, 1.0), 0.1
WITHINS = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)


class Sums(NamedTuple):
    """Sizes (K,) and means (K, D) of clusters, and scatter about them (K, D, D) or (K, D)."""

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray


def share_given(within: float | None) -> float | None:
    """Check the argument `within` of `from_data`: None, or a share above 0 and at most 1."""
    if within is None:
        return None
    share = real_scalar("within", within)
    if not 0.0 < share <= 1.0:
        raise ValueError(
            f"within={share:g} is no share of a variance; give a number above 0 and at most 1."
        )
    return share


def standardised(
    rows: np.ndarray, mean: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows in random order, less the mean and divided by the scale.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)
        NaN where missing.
    mean, scale : ndarrays of float64, shape (D,)

    Returns
    -------
    z : ndarray of float64, shape (n, D')
        At most 2000 rows, always the same ones, and their columns that vary; no rows if there are
        too few to compare priors by, or if numbers overflow.  Rows with missing entries are left
        out, or zero there if they are more than half of the rows.
    varies : ndarray of bool, shape (D,)
        Which columns those are.
    """
    rng = np.random.default_rng(_SEED)
    chosen = rng.choice(len(rows), min(len(rows), _MOST_ROWS), replace=False)
    with np.errstate(over="ignore", invalid="ignore"):
        found = (np.asarray(rows[chosen], np.float64) - mean) / scale
    is_complete = ~np.isnan(found).any(1)
    found = found[is_complete] if 2 * is_complete.sum() >= len(found) else np.nan_to_num(found)
    varies = np.ptp(found, axis=0) > 0.0
    if len(found) < _LEAST_ROWS or not varies.any() or not np.isfinite(found).all():
        return found[:0], np.zeros(len(mean), bool)
    return found[:, varies], varies


def provisional_partitions(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield labels (n,) of rows (n, D): one cluster, then more and more by k-means."""
    rng = np.random.default_rng(_SEED)
    for n_clusters in _SIZES:
        if n_clusters == 1 or n_clusters * _ROWS_PER_CLUSTER <= len(rows):
            yield _k_means(rows, n_clusters, rng)


def _k_means(rows: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels by k-means, started far apart (k-means++); fewer clusters if rows are equal."""
    squares = (rows**2).sum(1)
    chosen = rows[rng.integers(len(rows), size=1)]
    distance = ((rows - chosen[0]) ** 2).sum(1)
    while len(chosen) < n_clusters and distance.sum() > 0.0:
        new = rows[rng.choice(len(rows), p=distance / distance.sum())]
        chosen = np.concatenate([chosen, new[None]])
        distance = np.minimum(distance, ((rows - new) ** 2).sum(1))
    centres, labels = chosen, np.zeros(len(rows), np.int64)
    for _ in range(_PASSES):
        before = labels
        nearest = ((centres**2).sum(1) - 2.0 * rows @ centres.T + squares[:, None]).argmin(1)
        labels = np.unique(nearest, return_inverse=True)[1]
        if (labels == before).all():
            break
        centres = np.stack([rows[labels == k].mean(0) for k in range(labels.max() + 1)])
    return labels


def sums_of(rows: np.ndarray, labels: np.ndarray, by_column: bool) -> Sums:
    """Return sizes, means and scatter of the clusters that have rows.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, D)
    labels : ndarray of int64, shape (n,)
    by_column : bool
        Whether the scatter is that of each column (K, D), or the matrices (K, D, D).

    Returns
    -------
    Sums
    """
    clusters = [rows[labels == k] for k in np.unique(labels)]
    mean = np.stack([cluster.mean(0) for cluster in clusters])
    gaps = [cluster - m for cluster, m in zip(clusters, mean, strict=True)]
    scatter = [(gap**2).sum(0) if by_column else gap.T @ gap for gap in gaps]
    return Sums(np.array([float(len(one)) for one in clusters]), mean, np.stack(scatter))


def log_partition(n: np.ndarray) -> float:
    """Return the log probability of a partition with cluster sizes (K,), eq. (1.2) of method.md."""
    log_gamma = scipy.special.gammaln
    constant = log_gamma(ALPHA) - log_gamma(ALPHA + n.sum())
    return float(len(n) * np.log(ALPHA) + log_gamma(n).sum() + constant)


def reassigned(labels: np.ndarray, log_masses: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return labels (n,) after each row has joined the cluster of highest mass a few times.

    Parameters
    ----------
    labels : ndarray of int64, shape (n,)
        From 0 to K - 1, none without rows.
    log_masses : callable
        From labels to the log density of each row in each cluster, times its size, (K, n).

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    for _ in range(_REASSIGNMENTS):
        before = labels
        labels = np.unique(log_masses(before).argmax(0), return_inverse=True)[1]
        if (labels == before).all():
            break
    return labels


def _highest_of(scores: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(scores.argmax(), scores.shape))


def likeliest(
    z: np.ndarray,
    score: Callable[[np.ndarray], np.ndarray],
    reassign: Callable[[np.ndarray, tuple[int, ...]], np.ndarray],
    default: tuple[int, ...],
) -> tuple[int, ...]:
    """Return the candidate under which some partition of the rows has the highest log joint.

    Parameters
    ----------
    z : ndarray of float64, shape (n, D)
    score : callable
        From labels (n,) to the log joint densities under all candidates, an array.
    reassign : callable
        From labels and the index of a candidate to labels, see `reassigned`.
    default : tuple of int
        Index of the candidate that is returned if none exceeds it by Schwarz's criterion for four
        numbers, ``2 log n``.

    Returns
    -------
    tuple of int
        Index of an entry of the scores.
    """
    best, highest, of_default, n_worse = default, -np.inf, -np.inf, 0
    for start in provisional_partitions(z):
        scores, n_worse = score(start), n_worse + 1
        tried = [scores]
        if start.any():
            found = {_highest_of(scores)} | ({default} if z.shape[1] <= _NARROW else set())
            tried += [score(reassign(start, given)) for given in sorted(found)]
        for scores in tried:
            of_default = max(of_default, float(scores[default]))
            if scores.max() > highest:
                best, highest, n_worse = _highest_of(scores), float(scores.max()), 0
        if n_worse == _PATIENCE:
            break
    return best if highest > of_default + 2.0 * np.log(len(z)) else default
