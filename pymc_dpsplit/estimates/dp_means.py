"""DP-means: clustering by distance, with the number of clusters set by a penalty."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import (
    check_integer,
    generator_of,
    positive_scalar,
    rows_of,
)
from pymc_dpsplit.data.blocks import column_means
from pymc_dpsplit.estimates.numbering import largest_first
from pymc_dpsplit.kernels.centres import descend_by_centres, farthest_first


@dataclass(frozen=True, eq=False)
class DPMeansClusters:
    """Result of `dp_means`.

    Attributes
    ----------
    labels : ndarray of int64, shape (N,)
        Cluster of each row; cluster 0 is the largest.
    centres : ndarray of float64, shape (K, D), or (K,) if rows are scalars
    objective : float
        Sum of squared distances from the centres plus penalty times K, docs/method.md, eq. (12.4).
    n_iterations : int
        Number of passes over the rows in the best restart.
    objectives : ndarray of float64, shape (n_restarts,)
        Final objective of each restart.
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
    observed: Any,
    penalty: float,
    *,
    n_restarts: int = 10,
    max_iterations: int = 500,
    random_seed: Any = None,
) -> DPMeansClusters:
    """Cluster rows by distance, with a penalty on the number of clusters [1]_.

    The algorithm is a k-means that adds a cluster at every row whose squared distance from all
    centres exceeds the penalty.  The result depends on the units of the columns and does not
    estimate the posterior.  The partition can serve as a starting point,
    ``pm.sample(dpsplit={"start_labels": found})``.

    Parameters
    ----------
    observed : array-like, shape (N,) or (N, D)
        Rows without missing entries.  C-contiguous arrays of float64 or float32, and memory maps
        of them, are not copied.
    penalty : float
        Cost of a cluster, in squared units of `observed`; positive.  `dp_means_penalty` suggests
        one.
    n_restarts : int
        Number of runs; the best one is returned.  The first run starts at the mean of all rows
        and visits the rows in order, as published; the others start at a random row and visit
        the rows in random order.
    max_iterations : int
        Maximum number of passes over the rows in a run.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    DPMeansClusters

    Raises
    ------
    ValueError
        If an argument is out of range, or `observed` has missing or non-numeric entries.

    Warns
    -----
    UserWarning
        If the best run was stopped by `max_iterations`.

    References
    ----------
    .. [1] Kulis & Jordan (2012), Revisiting k-means: New Algorithms via Bayesian Nonparametrics,
       ICML; docs/method.md, eq. (12.4).

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> found = dps.dp_means([0.0, 0.2, 5.0, 5.2, 5.4], penalty=1.0, random_seed=1)
    >>> found.labels, found.n_clusters
    (array([1, 1, 0, 0, 0]), 2)
    """
    rng = generator_of("random_seed", random_seed)
    rows = _checked_rows(observed)
    cost = positive_scalar("penalty", penalty)
    check_integer("n_restarts", n_restarts, 1)
    check_integer("max_iterations", max_iterations, 1)
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
    return replace(
        best, labels=labels, centres=centres[:, 0] if np.ndim(observed) == 1 else centres
    )


def dp_means_penalty(observed: Any, n_clusters: int) -> float:
    """Suggest a penalty for `dp_means` from the expected number of clusters [1]_.

    Starting from the mean, the row farthest from all points selected so far is selected,
    `n_clusters` times; the squared distance of the last one is the penalty.  `dp_means` may find
    another number of clusters.

    Parameters
    ----------
    observed : array-like, shape (N,) or (N, D)
    n_clusters : int
        From 1 to N.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of range, or if there are too few distinct rows for a positive
        penalty.

    References
    ----------
    .. [1] Kulis & Jordan (2012), Revisiting k-means: New Algorithms via Bayesian Nonparametrics,
       ICML, section 4.1; docs/method.md, eq. (12.5).

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> observed = [0.0, 0.2, 5.0, 5.2, 5.4]
    >>> dps.dp_means(observed, dps.dp_means_penalty(observed, 2)).n_clusters
    2
    """
    rows = _checked_rows(observed)
    check_integer("n_clusters", n_clusters, 1)
    if n_clusters > len(rows):
        raise ValueError(
            f"n_clusters={n_clusters} exceeds the {len(rows)} rows of observed; give no more."
        )
    penalty = float(farthest_first(rows, n_clusters))
    if penalty == 0.0:
        raise ValueError(
            f"n_clusters={n_clusters} exceeds the number of different rows in observed; give fewer."
        )
    return penalty


def _checked_rows(observed: Any) -> np.ndarray:
    """Rows in the form that kernels take, shape (N, D)."""
    ndim = np.ndim(observed) if hasattr(observed, "ndim") else _depth_of(observed)
    if ndim not in (1, 2):
        raise ValueError(f"observed has {ndim} dimensions; give shape (N,) or (N, D).")
    return rows_of(observed, ndim - 1)


def _depth_of(nested: Any) -> int:
    """Number of dimensions of nested lists; 2 for ragged ones, which are rejected later."""
    try:
        return np.ndim(nested)
    except ValueError:
        return 2
