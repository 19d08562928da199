"""Provisional partitions of standardised rows, by which priors are compared.

They need not be good: that of the true clusters has a much higher density than one cluster under a
suitable prior, so its neighbours have too.  But k-means finds clusters of equal extent alone, and a
prior of the variances cannot be judged by them where some clusters are narrow and others wide.  So
rows are also reassigned by the density of Gaussian clusters, in turns with the choice of the
numbers under which it is computed.  See decision 38.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import scipy

from pymc_dpsplit.components.arguments import real_scalar

# Rows that are looked at, fewer if they have many columns; more would not change the choice, and
# take time.
_MOST_ROWS, _MANY_ROWS, _MOST_ENTRIES = 2000, 1000, 50_000
_LEAST_ROWS = 16
# Numbers of clusters that are tried, with at least so many rows for each.
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24)
_ROWS_PER_CLUSTER = 4
_PASSES = 20
# Rows are reassigned so often under the same numbers, and numbers chosen so often.
_REASSIGNMENTS, _TURNS = 2, 8
# And the clusters of the best partition are divided so often.
_DIVISIONS = 6
# Larger numbers of clusters are not tried after so many that have not improved the best density.
_PATIENCE = 2
_SEED = 1
# Concentration of the law of partitions: the prior mean under the Gamma(2, 4) of the examples.
ALPHA = 0.5
# Candidates of kappa0, and factors of the shares.
KAPPAS = (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
# Defaults of kappa0 and of the share of the variances within clusters.
KAPPA0, WITHIN = 0.1, 0.1
# Steps of the iteration for the shares, and the least share: a spike may be as narrow as it likes.
SHARE_STEPS, LEAST_SHARE = 5, 1e-4


class Sums(NamedTuple):
    """Sizes (K,) and means (K, D) of clusters, and scatter about them (K, D, D) or (K, D)."""

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray


class Numbers(NamedTuple):
    """What is chosen.

    Attributes
    ----------
    kappa0 : float
    excess : float
        ``nu0 - D - 1`` or ``a0 - 1``, by which a prior mean is divided.
    shares : ndarray of float64, shape (D,) or (1,)
        Prior means of the variances within clusters, relative to those of the data.
    tie : float
        Factor of the correlations.
    """

    kappa0: float
    excess: float
    shares: np.ndarray
    tie: float = 0.0


class Scored(Protocol):
    """Log joint densities of partitions of some rows under a family, eq. (1.4) of method.md."""

    def score(self, labels: np.ndarray, numbers: Numbers) -> float:
        """Return the log joint density of the rows and labels (n,)."""

    def fitted(self, labels: np.ndarray, guess: Numbers) -> tuple[float, Numbers]:
        """Return numbers of a higher log joint density, near a guess, and this density."""

    def log_masses(self, numbers: Numbers, labels: np.ndarray) -> np.ndarray:
        """Return the log density of each row in each cluster, times its size, (K, n)."""

    def shares_within(self, labels: np.ndarray) -> np.ndarray:
        """Return the shares of the variances that are left within clusters."""


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
        At most 2000 rows, 1000 of 50 columns or more, always the same ones, and their columns that
        vary; no rows if there are too few to compare priors by, or if numbers overflow.  Rows with
        missing entries are left out, or zero there if they are more than half of the rows.
    varies : ndarray of bool, shape (D,)
        Which columns those are.
    """
    rng = np.random.default_rng(_SEED)
    most = min(_MOST_ROWS, max(_MANY_ROWS, _MOST_ENTRIES // rows.shape[1]), len(rows))
    chosen = rng.choice(len(rows), most, replace=False)
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
    """Return labels (n,) after each row has joined the cluster of highest mass twice.

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


def divided(z: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return labels after clusters are cut in two across the column where this gains most.

    The parts are separated by a number, such as a spike at the end of the range from the rest.  The
    gain is that of the log density of two normal distributions, with their weights, over one.
    Clusters stay whole without a gain by Schwarz's criterion for four numbers.

    Parameters
    ----------
    z : ndarray of float64, shape (n, D)
    labels : ndarray of int64, shape (n,)
        From 0 to K - 1.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    found, n_clusters = labels.copy(), int(labels.max()) + 1
    for k in range(n_clusters):
        members = np.flatnonzero(labels == k)
        gain, is_above = _best_cut(z[members])
        if gain > 2.0 * np.log(len(z)):
            found[members[is_above]] = n_clusters
            n_clusters += 1
    return found


def _best_cut(rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the gain of the best cut of rows (n, D) across one column, and which lie above it."""
    n = len(rows)
    if n < 2 * _ROWS_PER_CLUSTER:
        return 0.0, np.zeros(n, bool)
    ordered = np.sort(rows - rows.mean(0), axis=0)
    sums, squares = ordered.cumsum(0), (ordered**2).cumsum(0)
    below = np.arange(_ROWS_PER_CLUSTER, n - _ROWS_PER_CLUSTER + 1)[:, None]
    above = n - below
    at = below[:, 0] - 1
    total, own = squares[-1], squares[at]
    # The sum over both parts is zero.
    of_below = np.maximum(own / below - (sums[at] / below) ** 2, LEAST_SHARE)
    of_above = np.maximum((total - own) / above - (sums[at] / above) ** 2, LEAST_SHARE)
    gains = 0.5 * n * np.log(np.maximum(total / n, LEAST_SHARE))
    gains = gains + below * (np.log(below / n) - 0.5 * np.log(of_below))
    gains += above * (np.log(above / n) - 0.5 * np.log(of_above))
    # Equal numbers stay together.
    gains[ordered[at] == ordered[at + 1]] = -np.inf
    which, column = np.unravel_index(gains.argmax(), gains.shape)
    middle = np.sort(rows[:, column])[at[which]]
    return float(gains[which, column]), rows[:, column] > middle


def _in_turns(
    family: Scored, labels: np.ndarray, before: Numbers
) -> tuple[float, Numbers, np.ndarray]:
    """Choose numbers and reassign rows in turns, while the log joint density grows."""
    guess = before._replace(shares=family.shares_within(labels))
    score, numbers = family.fitted(labels, guess)
    for _ in range(_TURNS):
        changed = reassigned(labels, partial(family.log_masses, numbers))
        again, others = family.fitted(changed, numbers)
        gain = again - score
        if gain > 0.0:
            labels, numbers, score = changed, others, again
        if gain < _least_gain(labels, numbers):
            break
    return score, numbers, labels


def _least_gain(labels: np.ndarray, numbers: Numbers) -> float:
    """Return the gain for which it is worth to go on: that of as many numbers as shares."""
    return float(0.5 * len(numbers.shares) * np.log(len(labels)))


def likeliest(z: np.ndarray, family: Scored, default: Numbers) -> Numbers:
    """Return the numbers under which some partition of the rows has the highest log joint density.

    Parameters
    ----------
    z : ndarray of float64, shape (n, D)
    family : Scored
    default : Numbers
        What is returned if no other numbers exceed it by Schwarz's criterion.

    Returns
    -------
    Numbers
    """
    highest, best, labels = -np.inf, default, np.zeros(len(z), np.int64)
    of_default, n_worse, numbers = -np.inf, 0, default
    for start in provisional_partitions(z):
        of_default = max(of_default, family.score(start, default))
        score, numbers, reached = _in_turns(family, start, numbers)
        n_worse += 1
        if score > highest:
            highest, best, labels, n_worse = score, numbers, reached, 0
        if n_worse == _PATIENCE:
            break
    numbers, reached, n_worse = best, labels, 0
    for _ in range(_DIVISIONS):
        parts = divided(z, reached)
        if n_worse == _PATIENCE or (parts == reached).all():
            break
        score, numbers, reached = _in_turns(family, parts, numbers)
        n_worse = 0 if score > highest + _least_gain(labels, best) else n_worse + 1
        if score > highest:
            highest, best, labels = score, numbers, reached
    of_default = max(of_default, family.score(labels, default))
    n_numbers = len(default.shares) + 3
    return best if highest > of_default + 0.5 * n_numbers * np.log(len(z)) else default
