"""Imputation of missing entries of Gaussian rows, conditional on the observed entries."""

from collections.abc import Iterator

import numpy as np


def complete_rows(
    rng: np.random.Generator,
    rows: np.ndarray,
    is_missing: np.ndarray,
    mu: np.ndarray,
    cov: np.ndarray,
    labels: np.ndarray,
) -> np.ndarray:
    """Draw missing entries from their conditional distribution, docs/method.md, eq. (7.41).

    Parameters
    ----------
    rng : numpy.random.Generator
    rows : ndarray of float64, shape (n, D)
        Values in missing entries are not used.
    is_missing : ndarray of bool, shape (n, D)
    mu, cov : ndarrays of float64, shapes (K, D) and (K, D, D)
        Mean and covariance of each cluster.
    labels : ndarray of int, shape (n,)
        Cluster of each row.

    Returns
    -------
    ndarray of float64, shape (n, D)
        A copy of `rows` with the missing entries drawn.
    """
    complete = rows.copy()
    for members in _groups(labels, is_missing):
        k, holes = labels[members[0]], is_missing[members[0]]
        # With the observed features first, their block of the Cholesky factor whitens the observed
        # entries, and the other blocks give the conditional mean and covariance of the missing.
        order = np.argsort(holes, kind="stable")
        n_present = len(holes) - np.count_nonzero(holes)
        present, missing = order[:n_present], order[n_present:]
        root = np.linalg.cholesky(cov[k][np.ix_(order, order)])
        gap = rows[np.ix_(members, present)] - mu[k, present]
        noise = rng.standard_normal((len(members), len(order)))
        noise[:, :n_present] = np.linalg.solve(root[:n_present, :n_present], gap.T).T
        complete[np.ix_(members, missing)] = mu[k, missing] + noise @ root[n_present:].T
    return complete


def _groups(labels: np.ndarray, is_missing: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the indices of incomplete rows, grouped by cluster and pattern of missing entries."""
    incomplete = np.flatnonzero(is_missing.any(1))
    kinds = np.column_stack([labels, is_missing])[incomplete]
    _, kind, sizes = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
    by_kind = incomplete[np.argsort(kind.reshape(-1), kind="stable")]
    ends = np.cumsum(sizes)
    for end, size in zip(ends, sizes, strict=True):
        yield by_kind[end - size : end]
