"""Control of mixtures of finite mixtures: collapsed Gibbs with Miller & Harrison's coefficients.

Scalars with a normal-inverse-gamma prior.  The number of components M is summed out, so that the
conditional of a label has V(K + 1) / V(K), where

    V(K) = sum_M p(M) M! / (M - K)! Gamma(gamma M) / Gamma(gamma M + N),

as in Miller & Harrison (2018), and M is drawn given K when it is recorded.  It shares no code with
the package, which moves M and never sums over it.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from scipy.special import gammaln, logsumexp


def coefficients(prior: np.ndarray, gamma: float, n_obs: int) -> np.ndarray:
    """Log terms (S, N + 2) of V(K) for M = 0 .. S - 1 and K = 0 .. N + 1.

    Parameters
    ----------
    prior : ndarray of float64, shape (S,)
        Probabilities of M.
    gamma : float
    n_obs : int

    Returns
    -------
    ndarray of float64
    """
    m, k = np.arange(len(prior))[:, None], np.arange(n_obs + 2)[None]
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = gammaln(gamma * m) - gammaln(gamma * m + n_obs)
        ways = gammaln(m + 1) - gammaln(m - k + 1)
        terms = np.log(prior)[:, None] + ways + whole
    return np.where((m >= np.maximum(k, 1)) & (prior[:, None] > 0), terms, -np.inf)


def _compiled(function: Any) -> Any:
    return njit(function)


@_compiled
def _log_predictive(
    x: float,
    n: float,
    total: float,
    squares: float,
    mu0: float,
    kappa0: float,
    a0: float,
    b0: float,
) -> float:
    """Log density of a scalar beside n others: Student's t."""
    kappa, a = kappa0 + n, a0 + 0.5 * n
    mu = (kappa0 * mu0 + total) / kappa
    b = b0
    if n > 0:
        mean = total / n
        b += 0.5 * (squares - n * mean * mean) + 0.5 * kappa0 * n * (mean - mu0) ** 2 / kappa
    scale = b * (kappa + 1.0) / (a * kappa)
    df = 2.0 * a
    constant = math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * df)
    constant -= 0.5 * math.log(df * math.pi * scale)
    return constant - 0.5 * (df + 1.0) * math.log1p((x - mu) ** 2 / (df * scale))


@_compiled
def _sweep(
    rows: np.ndarray,
    labels: np.ndarray,
    sums: np.ndarray,
    log_v: np.ndarray,
    gamma: float,
    hyperparameters: tuple[float, float, float, float],
    rng: np.random.Generator,
) -> int:
    """Redraw every label; `sums` (N + 1, 3) are sizes, sums and sums of squares of clusters."""
    mu0, kappa0, a0, b0 = hyperparameters
    n_clusters = labels.max() + 1
    log_mass = np.empty(len(rows) + 1)
    for i in range(len(rows)):
        x, own = rows[i], labels[i]
        sums[own] -= np.array([1.0, x, x * x])
        if sums[own, 0] < 0.5:
            last = n_clusters - 1
            sums[own] = sums[last]
            labels[labels == last] = own
            sums[last] = 0.0
            n_clusters = last
        for k in range(n_clusters):
            n, total, squares = sums[k]
            log_mass[k] = math.log(n + gamma)
            log_mass[k] += _log_predictive(x, n, total, squares, mu0, kappa0, a0, b0)
        opening = math.log(gamma) + log_v[n_clusters + 1] - log_v[n_clusters]
        log_mass[n_clusters] = opening + _log_predictive(x, 0.0, 0.0, 0.0, mu0, kappa0, a0, b0)
        mass = np.exp(log_mass[: n_clusters + 1] - log_mass[: n_clusters + 1].max())
        target, chosen = rng.random() * mass.sum(), 0
        while chosen < n_clusters and target >= mass[chosen]:
            target -= mass[chosen]
            chosen += 1
        labels[i] = chosen
        sums[chosen] += np.array([1.0, x, x * x])
        n_clusters = max(n_clusters, chosen + 1)
    return n_clusters


def draw_numbers(
    rows: np.ndarray,
    hyperparameters: tuple[float, float, float, float],
    gamma: float,
    prior: np.ndarray,
    n_draws: int,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the numbers of clusters and of components of a mixture of finite mixtures.

    Parameters
    ----------
    rows : ndarray of float64, shape (N,)
    hyperparameters : tuple of float
        mu0, kappa0, a0 and b0 of the normal-inverse-gamma prior.
    gamma : float
    prior : ndarray of float64, shape (S,)
        Probabilities of M = 0 .. S - 1.
    n_draws : int
        Number of sweeps after a fifth as many that are left out.
    seed : int

    Returns
    -------
    n_clusters, n_components : ndarray of int64, shape (n_draws,)
    """
    rng = np.random.default_rng(seed)
    rows = rows - hyperparameters[0]
    centred = (0.0, *hyperparameters[1:])
    terms = coefficients(prior, gamma, len(rows))
    log_v = logsumexp(terms, axis=0)
    with np.errstate(invalid="ignore"):
        of_m = np.exp(terms - log_v)
    labels, sums = np.zeros(len(rows), np.int64), np.zeros((len(rows) + 1, 3))
    sums[0] = len(rows), rows.sum(), (rows**2).sum()
    n_clusters, n_components = np.empty((2, n_draws), np.int64)
    for draw in range(-n_draws // 5, n_draws):
        k = _sweep(rows, labels, sums, log_v, gamma, centred, rng)
        if draw >= 0:
            n_clusters[draw] = k
            n_components[draw] = rng.choice(len(prior), p=of_m[:, k])
    return n_clusters, n_components
