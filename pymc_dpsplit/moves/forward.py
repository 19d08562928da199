"""Forward draws from a Dirichlet-process mixture, in numpy: partitions, weights, rows."""

from collections.abc import Mapping

import numpy as np

from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.components.given import given


def draw_block_sizes(rng: np.random.Generator, alpha: float, n_obs: int) -> np.ndarray:
    """Draw the cluster sizes of a Chinese restaurant with `n_obs` customers.

    By the Feller coupling: with i customers left, the open cluster closes with probability
    alpha / (alpha + i - 1); sizes are the distances between closings (Arratia, Barbour &
    Tavare 2003, section 1.3).  No loop over customers.

    Parameters
    ----------
    rng : numpy.random.Generator
    alpha : float
        Positive concentration.
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
    """Draw the labels of a Chinese restaurant with `n_obs` customers.

    Each customer opens a cluster or points at a customer before him, whose cluster he joins
    (Hoppe 1984); following all pointers at once takes about log2(n_obs) passes.

    Parameters
    ----------
    rng : numpy.random.Generator
    alpha : float
        Positive concentration.
    n_obs : int
        May be 0.

    Returns
    -------
    ndarray of int64, shape (n_obs,)
        Labels 0 .. K - 1.
    """
    customers = np.arange(n_obs)
    opens = rng.random(n_obs) * (alpha + customers) < alpha
    # Customer i > 0 that opens nothing points at one of 0 .. i - 1.
    earlier = (rng.random(n_obs) * customers).astype(np.int64)
    pointer = np.where(opens, customers, earlier)
    while True:
        further = pointer[pointer]
        if np.array_equal(further, pointer):
            break
        pointer = further
    return np.unique(pointer, return_inverse=True)[1].astype(np.int64)


def draw_new_weight(rng: np.random.Generator, alpha: float, n_obs: int) -> float:
    """Draw the weight of everything not yet seen after `n_obs` observations: Beta(alpha, N).

    On the log scale, as a gamma variable of small shape underflows; the identity is that of
    `kernels.random.draw_log_gamma`.
    """
    log_new = np.log(rng.standard_gamma(alpha + 1.0)) - rng.standard_exponential() / alpha
    log_seen = np.log(rng.standard_gamma(n_obs))
    return float(np.exp(log_new - np.logaddexp(log_new, log_seen)))


def draw_occupied_weights(
    rng: np.random.Generator, sizes: np.ndarray, new_weight: float
) -> np.ndarray:
    """Draw the weights of the occupied clusters.

    Parameters
    ----------
    rng : numpy.random.Generator
    sizes : ndarray of int64, shape (K,)
        Cluster sizes.
    new_weight : float
        Weight that the clusters leave over.

    Returns
    -------
    ndarray of float64, shape (K,)
        In the order of `sizes`; sums to 1 - new_weight.
    """
    mass = rng.standard_gamma(sizes)
    return (1.0 - new_weight) * mass / mass.sum()


def draw_labels(
    rng: np.random.Generator, n_rows: int, alpha: float, weights: np.ndarray
) -> np.ndarray:
    """Draw labels given the kept weights; those beyond share the rest by a Chinese restaurant.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_rows : int
    alpha : float
    weights : ndarray of float64, shape (K,)

    Returns
    -------
    ndarray of int64, shape (n_rows,)
        Rows of `weights`, and K, K + 1, .. for clusters that are new.
    """
    n_kept = len(weights)
    labels = np.searchsorted(np.cumsum(weights), rng.random(n_rows), side="right")
    outside = labels == n_kept
    labels[outside] = n_kept + draw_seating(rng, alpha, int(outside.sum()))
    return labels


def with_new_clusters(
    rng: np.random.Generator,
    component: Component,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    labels: np.ndarray,
) -> dict[str, np.ndarray]:
    """Add parameters drawn from the base measure for labels beyond the clusters there are.

    Parameters
    ----------
    rng : numpy.random.Generator
    component : Component
    parameters : mapping
        Cluster parameters (K, ...).
    values : mapping
        Hyperparameters.
    labels : ndarray of int64, shape (n,)

    Returns
    -------
    dict
        Cluster parameters (max(K, largest label + 1), ...).
    """
    n_kept = len(next(iter(parameters.values())))
    n_new = int(labels.max(initial=n_kept - 1)) + 1 - n_kept
    fresh = component.draw_base(rng, values, n_new)
    return {name: np.concatenate((parameters[name], fresh[name])) for name in parameters}


def draw_labelled_rows(
    rng: np.random.Generator,
    component: Component,
    labels: np.ndarray,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Draw a row for each label; clusters beyond the last get parameters of their own.

    Parameters
    ----------
    rng : numpy.random.Generator
    component : Component
    labels : ndarray of int64, shape (n,)
    parameters : mapping
        Cluster parameters (K, ...).
    values : mapping
        Hyperparameters.

    Returns
    -------
    ndarray of float64, shape (n,) or (n, D)
    """
    joined = with_new_clusters(rng, component, parameters, values, labels)
    return given(component, values).draw_rows(rng, joined, labels)
