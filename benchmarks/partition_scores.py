"""What is compared of samplers, computed from partitions alone, so that all have one estimator."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, multigammaln

from benchmarks.predictive import log_student
from benchmarks.workloads import Workload


class Scores(NamedTuple):
    """Number of clusters (draw,), log joint density (draw,), log predictive (draw, point)."""

    k: np.ndarray
    log_joint: np.ndarray
    points: np.ndarray


def scores_of(workload: Workload, partitions: np.ndarray, alpha: float | np.ndarray) -> Scores:
    """Score partitions with weights and parameters integrated out.

    Parameters
    ----------
    workload : Workload
    partitions : ndarray of int, shape (draw, N)
        Numbers of clusters may have gaps.
    alpha : float or ndarray of shape (draw,)
        The log joint density has that of alpha itself left out.

    Returns
    -------
    Scores
    """
    alphas = np.broadcast_to(np.asarray(alpha, float), len(partitions))
    each = [_score(workload, labels, a) for labels, a in zip(partitions, alphas, strict=True)]
    k, joint, points = (np.array(values) for values in zip(*each, strict=True))
    return Scores(k.astype(float), joint, points)


def _score(workload: Workload, labels: np.ndarray, alpha: float) -> tuple[int, float, np.ndarray]:
    """Score one partition."""
    _, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    n_clusters, n_rows, d = len(sizes), len(labels), workload.rows.shape[1]
    centred = workload.rows - workload.mu0
    means = np.stack([np.bincount(numbers, x, n_clusters) for x in centred.T], 1) / sizes[:, None]
    gaps = centred - means[numbers]
    scatters = np.empty((n_clusters, d, d))
    for a in range(d):
        for b in range(a + 1):
            scatters[:, a, b] = np.bincount(numbers, gaps[:, a] * gaps[:, b], n_clusters)
            scatters[:, b, a] = scatters[:, a, b]
    log_joint = gammaln(sizes).sum() + n_clusters * math.log(alpha)
    log_joint += gammaln(alpha) - gammaln(alpha + n_rows)
    log_joint += _log_marginals(workload, sizes, means, scatters).sum()
    terms = [
        np.log(n) + log_student(workload.points, float(n), workload.mu0 + mean, scatter, workload)
        for n, mean, scatter in zip(sizes, means, scatters, strict=True)
    ]
    nothing = np.zeros((d, d))
    terms.append(np.log(alpha) + log_student(workload.points, 0.0, workload.mu0, nothing, workload))
    return n_clusters, float(log_joint), logsumexp(terms, axis=0) - np.log(n_rows + alpha)


def _log_marginals(
    workload: Workload, sizes: np.ndarray, means: np.ndarray, scatters: np.ndarray
) -> np.ndarray:
    """Log marginal likelihood of each cluster; `means` are relative to mu0."""
    d, kappa0, nu0 = means.shape[1], workload.kappa0, workload.nu0
    weights = kappa0 * sizes / (kappa0 + sizes)
    psi = workload.psi0 + scatters + weights[:, None, None] * means[:, :, None] * means[:, None]
    found: np.ndarray = (
        np.array([multigammaln(0.5 * (nu0 + n), d) for n in sizes])
        - multigammaln(0.5 * nu0, d)
        + 0.5 * nu0 * np.linalg.slogdet(workload.psi0)[1]
        - 0.5 * (nu0 + sizes) * np.linalg.slogdet(psi)[1]
        + 0.5 * d * (math.log(kappa0) - np.log(kappa0 + sizes) - sizes * math.log(math.pi))
    )
    return found
