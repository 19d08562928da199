"""DP-means: clusters by distance alone, as many as their cost allows."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import positive_scalar, rows_of
from pymc_dpsplit.data.blocks import column_means
from pymc_dpsplit.estimates.numbering import largest_first
from pymc_dpsplit.kernels.centres import descend_by_centres, farthest_first
from pymc_dpsplit.options import check_integer


@dataclass(frozen=True, eq=False)
class DPMeansClusters:
    """What `dp_means` found.

    Attributes
    ----------
    labels : ndarray of int64, shape (N,)
        Cluster of each row, 0 the largest.
    centres : ndarray of float64, shape (K, D), or (K,) if rows are scalars
    objective : float
        Sum of squared distances from the centres plus penalty times K, docs/method.md, eq. (128).
    n_iterations : int
        Passes over the rows in the best restart.
    objectives : ndarray of float64, shape (n_restarts,)
        What each restart ended with.
    """

    labels: np.ndarray
    centres: np.ndarray
    objective: float
    n_iterations: int
    objectives: np.ndarray

    @property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return len(self.centres)


def dp_means(
    X: Any,  # noqa: N803
    penalty: float,
    *,
    n_restarts: int = 10,
    max_iterations: int = 500,
    random_seed: Any = None,
) -> DPMeansClusters:
    """Cluster rows by distance, with as many clusters as the cost of one allows [1]_.

    A k-means that founds a cluster at every row whose squared distance from all centres exceeds
    the penalty.  It depends on the units of the columns, and has no notion of how likely a
    cluster is; the partition may serve as a start,
    ``pm.sample(dpsplit={"start_labels": found})``.

    Parameters
    ----------
    X : array-like, shape (N,) or (N, D)
        Rows, complete; float32 stays where it is, as do memory maps.
    penalty : float
        Cost of a cluster, in squared units of `X`; positive.  `dp_means_penalty` suggests one.
    n_restarts : int
        Runs, of which the best is returned: the first as published, from the mean of all rows and
        in their order; each further one from one of them and in a random order.
    max_iterations : int
        Most passes over the rows in a run.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    DPMeansClusters

    Raises
    ------
    ValueError
        If an argument is out of range, or `X` is not of complete numbers.

    Warns
    -----
    UserWarning
        If the best run was stopped by `max_iterations`.

    References
    ----------
    .. [1] Kulis & Jordan (2012), Revisiting k-means: New Algorithms via Bayesian Nonparametrics,
       ICML; docs/method.md, eq. (128).

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> found = dps.dp_means([0.0, 0.2, 5.0, 5.2, 5.4], penalty=1.0, random_seed=1)
    >>> found.labels, found.n_clusters
    (array([1, 1, 0, 0, 0]), 2)
    """
    rows = _checked_rows(X)
    cost = positive_scalar("penalty", penalty)
    check_integer("n_restarts", n_restarts, 1)
    check_integer("max_iterations", max_iterations, 1)
    rng = np.random.default_rng(random_seed)
    best, settled, ends = None, True, np.empty(n_restarts)
    for run in range(n_restarts):
        order = rng.permutation(len(rows)) if run else np.arange(len(rows))
        first = rows[order[:1]].astype(np.float64) if run else column_means(rows)[None]
        labels = np.empty(len(rows), np.int64)
        centres, path, has_settled = descend_by_centres(
            rows, order, first, cost, max_iterations, labels
        )
        ends[run] = path[-1]
        if best is None or ends[run] < best.objective:
            settled = has_settled
            best = DPMeansClusters(labels, centres, float(path[-1]), len(path), ends)
    assert best is not None
    if not settled:
        warnings.warn(
            f"dp_means was stopped after {max_iterations} iterations; raise max_iterations.",
            stacklevel=2,
        )
    labels, order = largest_first(best.labels)
    centres = best.centres[order]
    return replace(best, labels=labels, centres=centres[:, 0] if np.ndim(X) == 1 else centres)


def dp_means_penalty(X: Any, n_clusters: int) -> float:  # noqa: N803
    """Suggest a penalty for `dp_means` from the number of clusters that is expected [1]_.

    Starting from the mean, the row farthest from all points taken so far is taken, `n_clusters`
    times; the squared distance of the last is the penalty.  The number of clusters found
    may differ.

    Parameters
    ----------
    X : array-like, shape (N,) or (N, D)
    n_clusters : int
        From 1 to N.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of range, or so many rows coincide that the penalty would be 0.

    References
    ----------
    .. [1] Kulis & Jordan (2012), Revisiting k-means: New Algorithms via Bayesian Nonparametrics,
       ICML, section 4.1; docs/method.md, eq. (129).

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> X = [0.0, 0.2, 5.0, 5.2, 5.4]
    >>> dps.dp_means(X, dps.dp_means_penalty(X, 2)).n_clusters
    2
    """
    rows = _checked_rows(X)
    check_integer("n_clusters", n_clusters, 1)
    if n_clusters > len(rows):
        raise ValueError(
            f"n_clusters={n_clusters} exceeds the {len(rows)} rows of X; give at most as many."
        )
    penalty = float(farthest_first(rows, n_clusters))
    if penalty == 0.0:
        raise ValueError(
            f"n_clusters={n_clusters} exceeds the number of different rows in X; give fewer."
        )
    return penalty


def _checked_rows(observed: Any) -> np.ndarray:
    """Rows (N, D) as kernels take them."""
    ndim = np.ndim(observed) if hasattr(observed, "ndim") else _depth_of(observed)
    if ndim not in (1, 2):
        raise ValueError(f"X has {ndim} dimensions; give shape (N,) or (N, D).")
    try:
        return rows_of(observed, ndim - 1)
    except ValueError as error:
        raise ValueError(str(error).replace("observed", "X")) from None


def _depth_of(nested: Any) -> int:
    """Number of dimensions of nested lists; that of a table if they are ragged, to be refused."""
    try:
        return np.ndim(nested)
    except ValueError:
        return 2
