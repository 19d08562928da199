"""All partitions of a small set, and exact laws over them.

A partition of n points is a row of labels in canonical form: 0 for the first point, and every
new block takes the smallest unused label.  Its index is its rank among all such rows in
lexicographic order, so row i of `enumerate_partitions(n)` has index i.
"""

from functools import cache
from typing import Protocol

import numpy as np
from scipy.special import gammaln, logsumexp

LARGEST = 9  # 21147 partitions


class HasMarginal(Protocol):
    """A component family, as far as the law of the partition needs it."""

    def log_marginal(self, rows: np.ndarray) -> float:
        """Log marginal likelihood of all rows as one cluster."""
        ...


@cache
def enumerate_partitions(n: int) -> np.ndarray:
    """All partitions of n points, int8 (Bell(n), n), read-only."""
    if not 1 <= n <= LARGEST:
        raise ValueError(f"n must lie between 1 and {LARGEST}, got {n}.")
    rows = [[0]]
    for _ in range(n - 1):
        rows = [[*row, label] for row in rows for label in range(max(row) + 2)]
    partitions = np.array(rows, dtype=np.int8)
    partitions.flags.writeable = False
    return partitions


def canonical(labels: np.ndarray) -> np.ndarray:
    """Labels (..., n) of any integers in canonical form, row by row, as int64."""
    labels = np.asarray(labels)
    n = labels.shape[-1]
    first = np.empty(labels.shape, np.int64)  # where the block of each point begins
    for j in range(n):
        first[..., j] = np.argmax(labels[..., : j + 1] == labels[..., j : j + 1], axis=-1)
    rank = np.cumsum(first == np.arange(n), axis=-1) - 1
    return np.take_along_axis(rank, first, axis=-1)


@cache
def _completions(n: int) -> np.ndarray:
    """Entry [r, m]: ways to go on for r more points after m blocks, int64 (n + 1, n + 1)."""
    table = np.zeros((n + 1, 2 * n + 2), np.int64)
    table[0] = 1
    for r in range(1, n + 1):
        table[r, :-1] = np.arange(2 * n + 1) * table[r - 1, :-1] + table[r - 1, 1:]
    return table[:, : n + 1]


def partition_index(labels: np.ndarray) -> np.ndarray:
    """Index (...) of the partition of each row of labels (..., n)."""
    rows = canonical(labels)
    n = rows.shape[-1]
    if n > LARGEST:
        raise ValueError(f"labels must have at most {LARGEST} columns, got {n}.")
    # Each smaller choice for a point, all of them old blocks, precedes with all it completes to.
    index = np.zeros(rows.shape[:-1], np.int64)
    n_blocks = np.zeros(rows.shape[:-1], np.int64)
    for j in range(n):
        index += rows[..., j] * _completions(n)[n - 1 - j, n_blocks]
        n_blocks = np.maximum(n_blocks, rows[..., j] + 1)
    return index


def n_clusters_of(n: int) -> np.ndarray:
    """Number of clusters of every partition of n points, (Bell(n),)."""
    return enumerate_partitions(n).max(axis=1).astype(np.int64) + 1


def subset_log_marginals(family: HasMarginal, rows: np.ndarray) -> np.ndarray:
    """Log marginal of every subset of the rows, (2^n,); bit i of the position means row i."""
    n = len(rows)
    table = np.zeros(2**n)
    for mask in range(1, 2**n):
        table[mask] = family.log_marginal(rows[[i for i in range(n) if mask >> i & 1]])
    return table


def exact_posterior(family: HasMarginal, rows: np.ndarray, alpha: float) -> np.ndarray:
    """Posterior probability of every partition of the rows (n, D), (Bell(n),).

    p(z | x) is proportional to alpha^K prod_k Gamma(n_k) m(x_k).
    """
    n = len(rows)
    partitions = enumerate_partitions(n)
    log_marginals = subset_log_marginals(family, rows)
    log_p = np.zeros(len(partitions))
    for k in range(n):
        block = partitions == k
        size = block.sum(axis=1)
        term = (
            np.log(alpha) + gammaln(np.maximum(size, 1)) + log_marginals[block @ 2 ** np.arange(n)]
        )
        log_p += np.where(size > 0, term, 0.0)
    return np.exp(log_p - logsumexp(log_p))


def n_clusters_law(probabilities: np.ndarray, n: int) -> np.ndarray:
    """P(K = k) for k = 0 .. n, (n + 1,), from probabilities of all partitions of n points."""
    return np.bincount(n_clusters_of(n), weights=probabilities, minlength=n + 1)


def coclustering(probabilities: np.ndarray, n: int) -> np.ndarray:
    """Probability (n, n) that two points share a cluster."""
    partitions = enumerate_partitions(n)
    together = partitions[:, :, None] == partitions[:, None, :]
    return np.einsum("p,pij->ij", probabilities, together)


def crp_n_clusters(alpha: float, n: int) -> np.ndarray:
    """P(K = k) for k = 0 .. n, (n + 1,), in n draws of the Chinese restaurant process.

    |s(n, k)| alpha^k Gamma(alpha) / Gamma(alpha + n), by the recursion of the Stirling numbers
    of the first kind, normalised at every step so that any n and alpha are safe.
    """
    law = np.zeros(n + 1)
    law[0] = 1.0
    for i in range(n):
        new = alpha / (alpha + i)
        law[1:] = (1.0 - new) * law[1:] + new * law[:-1]
        law[0] *= 1.0 - new
    return law
