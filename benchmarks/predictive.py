"""Predictive densities of a Gaussian DP mixture: given a partition, and given a stored measure."""

import numpy as np
import xarray as xr
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t

from benchmarks.workloads import Workload


def log_student(
    points: np.ndarray, n: float, mean: np.ndarray, scatter: np.ndarray, prior: Workload
) -> np.ndarray:
    """Log predictive density of a cluster of n rows with this mean and centred scatter."""
    d = points.shape[1]
    kappa, nu = prior.kappa0 + n, prior.nu0 + n
    gap = mean - prior.mu0
    psi = prior.psi0 + scatter + prior.kappa0 * n / kappa * np.outer(gap, gap)
    df = nu - d + 1.0
    location = prior.mu0 + n / kappa * gap
    shape = psi * (kappa + 1.0) / (kappa * df)
    return np.atleast_1d(multivariate_t.logpdf(points, location, shape, df))


def held_out_score(workload: Workload, labels: np.ndarray, alpha: float = 1.0) -> float:
    """Mean log predictive density of the test rows given a partition, parameters integrated out."""
    sizes = np.bincount(labels)
    terms = []
    for k in np.flatnonzero(sizes):
        rows = workload.rows[labels == k]
        mean = rows.mean(0)
        gaps = rows - mean
        density = log_student(workload.test, float(sizes[k]), mean, gaps.T @ gaps, workload)
        terms.append(np.log(sizes[k]) + density)
    nothing = np.zeros_like(workload.psi0)
    terms.append(np.log(alpha) + log_student(workload.test, 0.0, workload.mu0, nothing, workload))
    return float(np.mean(logsumexp(terms, axis=0)) - np.log(len(labels) + alpha))


def oracle_score(workload: Workload) -> float:
    """The same under the mixture the rows were drawn from."""
    assert workload.truth is not None
    weights, mu, cov = workload.truth
    terms = [
        np.log(w) + multivariate_normal.logpdf(workload.test, m, c)
        for w, m, c in zip(weights, mu, cov, strict=True)
    ]
    return float(np.mean(logsumexp(terms, axis=0)))


def log_density_of_draws(workload: Workload, posterior: xr.Dataset, name: str) -> np.ndarray:
    """Log density (chain, draw, point) of the stored random measures at the workload's points.

    The remainder counts with its weight and the prior predictive density.
    """
    weights = np.nan_to_num(posterior[f"{name}_weights"].to_numpy())
    mu = np.nan_to_num(posterior[f"{name}_mu"].to_numpy())
    if f"{name}_cov" in posterior:
        cov = posterior[f"{name}_cov"].to_numpy()
    else:
        mu, cov = mu[..., None], posterior[f"{name}_sigma"].to_numpy()[..., None, None] ** 2
    d = mu.shape[-1]
    cov = np.where((weights > 0.0)[..., None, None], cov, np.eye(d))
    root = np.linalg.inv(np.linalg.cholesky(cov))
    half_log_det = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
    nothing = np.zeros_like(workload.psi0)
    remainder = log_student(workload.points, 0.0, workload.mu0, nothing, workload)
    densities = []
    for point, unseen in zip(workload.points, remainder, strict=True):
        white = (root @ (point - mu)[..., None])[..., 0]
        log_density = half_log_det - 0.5 * (d * np.log(2.0 * np.pi) + (white**2).sum(-1))
        seen = (weights * np.exp(log_density)).sum(-1)
        densities.append(seen + posterior[f"{name}_new_weight"].to_numpy() * np.exp(unseen))
    return np.log(np.stack(densities, axis=-1))
