"""Control of laws of the partition: collapsed Gibbs by predictive rules.

Scalars with a normal-inverse-gamma prior.  Beside K clusters, a row joins one of size n with weight
n + shift and opens another with a weight that depends on K alone: -d and alpha + d K under a
Pitman-Yor process, gamma and gamma V(K + 1) / V(K) under a mixture of finite mixtures.  There the
number of components M is summed out:

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
    log_opening: np.ndarray,
    shift: float,
    hyperparameters: tuple[float, float, float, float],
    rng: np.random.Generator,
) -> int:
    """Redraw every label; `sums` (N + 1, 3) are sizes, sums and sums of squares of clusters.

    `log_opening` (N + 1,) are the log weights of another cluster beside K = 0 .. N.
    """
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
            log_mass[k] = math.log(n + shift)
            log_mass[k] += _log_predictive(x, n, total, squares, mu0, kappa0, a0, b0)
        log_mass[n_clusters] = log_opening[n_clusters]
        log_mass[n_clusters] += _log_predictive(x, 0.0, 0.0, 0.0, mu0, kappa0, a0, b0)
        mass = np.exp(log_mass[: n_clusters + 1] - log_mass[: n_clusters + 1].max())
        target, chosen = rng.random() * mass.sum(), 0
        while chosen < n_clusters and target >= mass[chosen]:
            target -= mass[chosen]
            chosen += 1
        labels[i] = chosen
        sums[chosen] += np.array([1.0, x, x * x])
        n_clusters = max(n_clusters, chosen + 1)
    return n_clusters


def _draw_n_clusters(
    rows: np.ndarray,
    hyperparameters: tuple[float, float, float, float],
    log_opening: np.ndarray,
    shift: float,
    n_draws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Numbers of clusters after sweeps, a fifth as many left out before."""
    rows = rows - hyperparameters[0]
    centred = (0.0, *hyperparameters[1:])
    labels, sums = np.zeros(len(rows), np.int64), np.zeros((len(rows) + 1, 3))
    sums[0] = len(rows), rows.sum(), (rows**2).sum()
    before = n_draws // 5
    n_clusters = [
        _sweep(rows, labels, sums, log_opening, shift, centred, rng)
        for _ in range(before + n_draws)
    ]
    return np.array(n_clusters[before:])


def draw_finite_mixtures(
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
    terms = coefficients(prior, gamma, len(rows))
    log_v = logsumexp(terms, axis=0)
    with np.errstate(invalid="ignore"):
        of_m = np.exp(terms - log_v)
        log_opening = math.log(gamma) + np.diff(log_v)
    n_clusters = _draw_n_clusters(rows, hyperparameters, log_opening, gamma, n_draws, rng)
    n_components = [rng.choice(len(prior), p=of_m[:, k]) for k in n_clusters]
    return n_clusters, np.array(n_components)


def draw_pitman_yor(
    rows: np.ndarray,
    hyperparameters: tuple[float, float, float, float],
    alpha: float,
    discount: float,
    n_draws: int,
    seed: int,
) -> np.ndarray:
    """Draw the number of clusters under a Pitman-Yor process.

    Parameters
    ----------
    rows : ndarray of float64, shape (N,)
    hyperparameters : tuple of float
        mu0, kappa0, a0 and b0 of the normal-inverse-gamma prior.
    alpha, discount : float
    n_draws : int
        Number of sweeps after a fifth as many that are left out.
    seed : int

    Returns
    -------
    ndarray of int64, shape (n_draws,)
    """
    rng = np.random.default_rng(seed)
    # Some cluster is there whenever the rule is needed, but for the only row of a data set.
    n_before = np.maximum(np.arange(len(rows) + 1), 1)
    log_opening = np.log(alpha + discount * n_before)
    return _draw_n_clusters(rows, hyperparameters, log_opening, -discount, n_draws, rng)
