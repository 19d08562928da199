"""Forward draws from a mixture in NumPy: partitions, weights and rows."""

from collections.abc import Mapping

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.moves.partition_law import (
    PartitionLaw,
    draw_seats,
    joining_mass,
    opening_mass,
)


def draw_block_sizes(rng: np.random.Generator, alpha: float, n_obs: int) -> np.ndarray:
    """Draw the cluster sizes of a Chinese restaurant process with `n_obs` customers, discount 0.

    The Feller coupling is used: with i customers left, the open cluster closes with probability
    alpha / (alpha + i - 1), and sizes are the distances between closings (Arratia, Barbour &
    Tavare 2003, section 1.3).  There is no loop over customers.

    Parameters
    ----------
    rng : numpy.random.Generator
    alpha : float
        Concentration; positive.
    n_obs : int
        At least 1.

    Returns
    -------
    ndarray of int64, shape (K,)
    """
    seated_later = np.arange(n_obs - 1.0, -1.0, -1.0)
    closes = np.flatnonzero(rng.random(n_obs) * (alpha + seated_later) < alpha)
    return np.diff(closes, prepend=-1)


def draw_seating(rng: np.random.Generator, alpha: float, n_obs: int) -> np.ndarray:
    """Draw the labels of a Chinese restaurant process with `n_obs` customers, discount 0.

    Each customer opens a cluster or points at an earlier customer and joins that one's cluster
    (Hoppe 1984).  Following all pointers at once takes about log2(n_obs) passes.

    Parameters
    ----------
    rng : numpy.random.Generator
    alpha : float
        Concentration; positive.
    n_obs : int
        May be 0.

    Returns
    -------
    ndarray of int64, shape (n_obs,)
        Labels 0 .. K - 1.
    """
    customers = np.arange(n_obs)
    opens = rng.random(n_obs) * (alpha + customers) < alpha
    # A customer i > 0 that opens no cluster points at one of 0 .. i - 1.
    earlier = (rng.random(n_obs) * customers).astype(np.int64)
    pointer = np.where(opens, customers, earlier)
    while True:
        further = pointer[pointer]
        if np.array_equal(further, pointer):
            break
        pointer = further
    return np.unique(pointer, return_inverse=True)[1].astype(np.int64)


def draw_partition(rng: np.random.Generator, law: PartitionLaw, n_obs: int) -> np.ndarray:
    """Draw the labels of `n_obs` observations from the law of a partition.

    Parameters
    ----------
    rng : numpy.random.Generator
    law : PartitionLaw
    n_obs : int

    Returns
    -------
    ndarray of int64, shape (n_obs,)
    """
    if law.discount == 0.0:
        return draw_seating(rng, law.strength, n_obs)
    drawn: np.ndarray = draw_seats(law, n_obs, rng)
    return drawn


def draw_new_weight(
    rng: np.random.Generator, law: PartitionLaw, n_obs: int, n_clusters: int
) -> float:
    """Draw the weight of the remainder, Beta(tau + K sigma, N - K sigma).

    The draw is made on the log scale, as a gamma variable of small shape underflows; the identity
    is that of `kernels.random.draw_log_gamma`.

    Parameters
    ----------
    rng : numpy.random.Generator
    law : PartitionLaw
    n_obs : int
    n_clusters : int
        Number of clusters of these observations; not used with discount 0.

    Returns
    -------
    float
    """
    mass = opening_mass(law, n_clusters)
    if mass == 0.0:
        return 0.0
    log_new = np.log(rng.standard_gamma(mass + 1.0)) - rng.standard_exponential() / mass
    log_seen = np.log(rng.standard_gamma(n_obs - n_clusters * law.discount))
    return float(np.exp(log_new - np.logaddexp(log_new, log_seen)))


def draw_occupied_weights(
    rng: np.random.Generator, law: PartitionLaw, sizes: np.ndarray, new_weight: float
) -> np.ndarray:
    """Draw the weights of the occupied clusters given that of the remainder.

    Parameters
    ----------
    rng : numpy.random.Generator
    law : PartitionLaw
    sizes : ndarray of int64, shape (K,)
        Cluster sizes.
    new_weight : float
        Weight of the remainder.

    Returns
    -------
    ndarray of float64, shape (K,)
        In the order of `sizes`; sums to 1 - new_weight.
    """
    mass = rng.standard_gamma(joining_mass(law, sizes))
    return (1.0 - new_weight) * mass / mass.sum()


def draw_labels(
    rng: np.random.Generator, n_rows: int, law: PartitionLaw, weights: np.ndarray
) -> np.ndarray:
    """Draw labels given the kept weights; labels in the remainder follow the urn of its law.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_rows : int
    law : PartitionLaw
        Law within the remainder, see `partition_law.remainder_law`.
    weights : ndarray of float64, shape (K,)

    Returns
    -------
    ndarray of int64, shape (n_rows,)
        Rows of `weights`, and K, K + 1, .. for new clusters.
    """
    n_kept = len(weights)
    labels = np.searchsorted(np.cumsum(weights), rng.random(n_rows), side="right")
    if law.discount < 0.0 and law.strength == 0.0:
        # No component is left; the weights miss one by rounding only.
        return np.minimum(labels, n_kept - 1)
    outside = labels == n_kept
    labels[outside] = n_kept + draw_partition(rng, law, int(outside.sum()))
    return labels


def with_new_clusters(
    rng: np.random.Generator,
    component: ComponentFamily,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    labels: np.ndarray,
) -> dict[str, np.ndarray]:
    """Append parameters drawn from the base measure for labels of new clusters.

    Parameters
    ----------
    rng : numpy.random.Generator
    component : ComponentFamily
    parameters : mapping
        Cluster parameters, each of shape (K, ...).
    values : mapping
        Hyperparameters.
    labels : ndarray of int64, shape (n,)

    Returns
    -------
    dict
        Cluster parameters, each of shape (max(K, largest label + 1), ...).
    """
    n_kept = len(next(iter(parameters.values())))
    n_new = int(labels.max(initial=n_kept - 1)) + 1 - n_kept
    fresh = component.draw_base(rng, values, n_new)
    return {name: np.concatenate((parameters[name], fresh[name])) for name in parameters}


def draw_labelled_rows(
    rng: np.random.Generator,
    component: ComponentFamily,
    labels: np.ndarray,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Draw a row for each label; parameters of new clusters come from the base measure.

    Parameters
    ----------
    rng : numpy.random.Generator
    component : ComponentFamily
    labels : ndarray of int64, shape (n,)
    parameters : mapping
        Cluster parameters, each of shape (K, ...).
    values : mapping
        Hyperparameters.

    Returns
    -------
    ndarray of float64, shape (n,) or (n, D)
    """
    joined = with_new_clusters(rng, component, parameters, values, labels)
    return with_values(component, values).draw_rows(rng, joined, labels)
