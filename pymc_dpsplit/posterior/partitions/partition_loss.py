"""Losses between partitions, and the contribution of each observation to them.

Both losses are sums of a function of cluster sizes over the clusters of one partition, of the
other, and of their intersections, so the same kernels compute both (docs/method.md, section 10).
"""

from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.posterior.partitions.label_arrays import PartitionDraws

LOSSES = ("vi", "binder")


class Loss(NamedTuple):
    """A loss for partitions of N observations, eq. (10.1).

    Attributes
    ----------
    size_term : ndarray of float64, shape (N + 1,)
        F(n), the term of a cluster of n observations.
    weight : float
        Cost ``a``, between 0 and 2, of separating two observations that belong together.
    divisor : float
        Divisor of the sum of the terms.
    """

    size_term: np.ndarray
    weight: float
    divisor: float


def loss_of(name: str, n_obs: int, weight: Any = 1.0) -> Loss:
    """Return a loss by its name.

    Parameters
    ----------
    name : {"vi", "binder"}
    n_obs : int
        Number of observations N.
    weight : float
        Cost of separating two observations that belong together, between 0 and 2.

    Returns
    -------
    Loss

    Raises
    ------
    ValueError
        If there is no such loss or the weight is out of range.
    """
    if name not in LOSSES:
        listed = " or ".join(repr(known) for known in LOSSES)
        raise ValueError(f"loss={name!r} is not known; give {listed}.")
    is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
    if not is_number or not 0 <= weight <= 2:
        raise ValueError(f"a={weight!r} must be a number from 0 to 2; 1 weighs both errors alike.")
    sizes = np.arange(n_obs + 1.0)
    if name == "binder":
        return Loss(sizes * (sizes - 1) / 2, float(weight), max(n_obs * (n_obs - 1) / 2, 1.0))
    return Loss(sizes * np.log(np.maximum(sizes, 1)), float(weight), float(n_obs))


def distances(partition: np.ndarray, draws: PartitionDraws, loss: Loss) -> np.ndarray:
    """Compute the loss between one partition and each draw.

    Parameters
    ----------
    partition : ndarray of int, shape (N,)
        Labels 0, 1, ... without gaps.
    draws : PartitionDraws
        S draws.
    loss : Loss

    Returns
    -------
    ndarray of float64, shape (S,)
        Non-negative.  If the weight is 1 and the partition is numbered by appearance, exactly 0
        for draws equal to it.
    """
    counts = np.zeros((int(draws.n_clusters.max()), int(partition.max()) + 1), np.int32)
    found = np.empty(len(draws.labels))
    _fill_distances(partition, draws.labels, np.diff(loss.size_term), loss.weight, counts, found)
    return np.maximum(found, 0.0) / loss.divisor


@jitted
def _fill_distances(
    partition: np.ndarray,
    draws: np.ndarray,
    step: np.ndarray,
    weight: float,
    counts: np.ndarray,
    found: np.ndarray,
) -> None:
    """Fill `found` (S,); `step[n]` is F(n + 1) - F(n), and `counts` (K, J) is zero."""
    sizes = np.zeros(counts.shape[0], np.int32)
    own_sizes = np.zeros(counts.shape[1], np.int32)
    own = 0.0
    for j in partition:
        own += step[own_sizes[j]]
        own_sizes[j] += 1
    for draw in range(len(draws)):
        theirs = 0.0
        both = 0.0
        # All three terms are summed in the same order, so that equal partitions cancel exactly.
        for i_obs in range(len(partition)):
            k, j = draws[draw, i_obs], partition[i_obs]
            theirs += step[sizes[k]]
            both += step[counts[k, j]]
            sizes[k] += 1
            counts[k, j] += 1
        found[draw] = weight * theirs + (2.0 - weight) * own - 2.0 * both
        for i_obs in range(len(partition)):
            k = draws[draw, i_obs]
            sizes[k] = 0
            counts[k, partition[i_obs]] = 0


def contributions(partition: np.ndarray, draws: PartitionDraws, loss: Loss) -> np.ndarray:
    """Compute the contribution of each observation to the expected loss, eq. (10.4).

    Parameters
    ----------
    partition : ndarray of int, shape (N,)
        Labels 0, 1, ... without gaps.
    draws : PartitionDraws
    loss : Loss

    Returns
    -------
    ndarray of float64, shape (N,)
        Their mean is the expected loss.
    """
    n_draws, n_obs = draws.labels.shape
    share = loss.size_term / np.maximum(np.arange(n_obs + 1), 1)
    counts = np.zeros((int(draws.n_clusters.max()), int(partition.max()) + 1), np.int32)
    total = np.zeros(n_obs)
    _add_contributions(partition, draws.labels, share, loss.weight, counts, total)
    return np.maximum(total, 0.0) * (n_obs / (n_draws * loss.divisor))


@jitted
def _add_contributions(
    partition: np.ndarray,
    draws: np.ndarray,
    share: np.ndarray,
    weight: float,
    counts: np.ndarray,
    total: np.ndarray,
) -> None:
    """Add to `total` (N,) over draws; `share[n]` is F(n) / n, and `counts` (K, J) is zero."""
    sizes = np.zeros(counts.shape[0], np.int32)
    own_sizes = np.zeros(counts.shape[1], np.int32)
    for j in partition:
        own_sizes[j] += 1
    for draw in range(len(draws)):
        for i_obs in range(len(partition)):
            k = draws[draw, i_obs]
            sizes[k] += 1
            counts[k, partition[i_obs]] += 1
        for i_obs in range(len(partition)):
            k, j = draws[draw, i_obs], partition[i_obs]
            apart = weight * share[sizes[k]] + (2.0 - weight) * share[own_sizes[j]]
            total[i_obs] += apart - 2.0 * share[counts[k, j]]
        for i_obs in range(len(partition)):
            k = draws[draw, i_obs]
            sizes[k] = 0
            counts[k, partition[i_obs]] = 0
