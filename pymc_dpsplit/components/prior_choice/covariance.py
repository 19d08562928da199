"""Choice of the inverse Wishart prior of a cluster's covariance, for `MvNormal`."""

from typing import NamedTuple

import numpy as np
import scipy

from pymc_dpsplit.components.prior_choice.partitions import (
    KAPPA0,
    KAPPAS,
    WITHINS,
    Sums,
    likeliest,
    log_partition,
    reassigned,
    standardised,
    sums_of,
)

# Candidates.  The excess nu0 - D - 1 is 1, 2, 4, ... up to `_MOST_EXCESS` times D.  The default is
# the first of each, and `KAPPA0`; it is kept without evidence against it.
_MOST_EXCESS = 4
_TIES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)


class CovariancePrior(NamedTuple):
    """Hyperparameters of `MvNormal`: two floats, and psi0 (D, D) in units of the data."""

    kappa0: float
    nu0: float
    psi0: np.ndarray


class _Candidates(NamedTuple):
    """Pairs of excess and within-cluster share (P,), and kappa0 (Q,); index of the default."""

    excess: np.ndarray
    within: np.ndarray
    kappa0: np.ndarray
    default: tuple[int, ...]


def choose_covariance(
    rows: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    within: float | None = None,
    nu0: float | None = None,
) -> CovariancePrior:
    """Choose kappa0, nu0 and psi0 by the log joint density of provisional partitions.

    The prior mean of a cluster's covariance is a share `within` of the covariance of the data,
    whose correlations are multiplied by a number below one.  This number, the share, nu0 and kappa0
    are those under which some partition has the highest log joint density, the marginal likelihood
    of eq. (7.7) of method.md included.  So that correlations cannot be fitted to the rows that they
    are judged by, either half of the rows is scored under the correlations of the other.  The
    default is kept if there is no evidence against it, see `likeliest`.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)
        NaN where missing.
    mean, variance : ndarrays of float64, shape (D,)
        See `data.blocks.moments_of`.
    within, nu0 : float, optional
        Fixed values; `nu0` exceeds D + 1.

    Returns
    -------
    CovariancePrior
    """
    scale, n_features = np.sqrt(variance), len(variance)
    z, varies = standardised(rows, mean, scale)
    candidates = _candidates(n_features, within, None if nu0 is None else nu0 - n_features - 1.0)
    best = candidates.default
    if len(z):
        best = likeliest(
            z,
            lambda labels: _scores(z, labels, candidates),
            lambda labels, given: _reassigned(z, labels, candidates, given),
            candidates.default,
        )
    tie, pair, which = _TIES[best[0]], *best[1:]
    excess, share = candidates.excess[pair], candidates.within[pair]
    psi0 = np.diag(excess * share * variance)
    if tie > 0.0:
        # A column that does not vary is independent of the others.
        block, own = np.ix_(varies, varies), scale[varies]
        psi0[block] = excess * share * np.outer(own, own) * tied(z, tie)
    nu0 = n_features + 1.0 + float(excess)
    return CovariancePrior(float(candidates.kappa0[which]), nu0, psi0)


def _candidates(n_features: int, within: float | None, excess: float | None) -> _Candidates:
    """Return the grid; numbers that are given leave no choice."""
    powers = 2.0 ** np.arange(1 + int(np.log2(_MOST_EXCESS * n_features)))
    excesses = powers if excess is None else np.array([excess])
    shares = np.array(WITHINS if within is None else [within])
    kappas = np.array(KAPPAS)
    default = (0, 0, int(np.flatnonzero(kappas == KAPPA0)[0]))
    return _Candidates(
        np.repeat(excesses, len(shares)), np.tile(shares, len(excesses)), kappas, default
    )


def _scores(z: np.ndarray, labels: np.ndarray, candidates: _Candidates) -> np.ndarray:
    """Return the score (T, P, Q) of each factor of the correlations and each candidate."""
    halves = z[: len(z) // 2], z[len(z) // 2 :]
    labels_of = labels[: len(z) // 2], labels[len(z) // 2 :]
    sums = [sums_of(*half, by_column=False) for half in zip(halves, labels_of, strict=True)]
    return np.stack(
        [
            log_joint(sums[0], tied(halves[1], tie), candidates)
            + log_joint(sums[1], tied(halves[0], tie), candidates)
            for tie in _TIES
        ]
    )


def _reassigned(
    z: np.ndarray, labels: np.ndarray, candidates: _Candidates, given: tuple[int, ...]
) -> np.ndarray:
    """Return labels after reassignment to clusters with the posterior mean of mean and covariance.

    Parameters
    ----------
    z : ndarray of float64, shape (n, D)
    labels : ndarray of int64, shape (n,)
    candidates : _Candidates
    given : tuple of int
        Index of the candidate: of the factor of the correlations, the pair, and kappa0.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    tie, pair, which = given
    excess, kappa0 = candidates.excess[pair], candidates.kappa0[which]
    psi0 = excess * candidates.within[pair] * tied(z, _TIES[tie])

    def log_masses(labels: np.ndarray) -> np.ndarray:
        sums = sums_of(z, labels, by_column=False)
        weight = (kappa0 * sums.n / (kappa0 + sums.n))[:, None, None]
        of_mean = weight * sums.mean[:, :, None] * sums.mean[:, None, :]
        covariance = (psi0 + sums.scatter + of_mean) / (excess + sums.n)[:, None, None]
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        mean = sums.mean * (sums.n / (kappa0 + sums.n))[:, None]
        whitened = root @ z.T - (root @ mean[:, :, None])
        of_size = np.log(sums.n) + np.log(np.diagonal(root, axis1=1, axis2=2)).sum(1)
        found: np.ndarray = of_size[:, None] - 0.5 * (whitened**2).sum(1)
        return found

    return reassigned(labels, log_masses)


def tied(z: np.ndarray, tie: float) -> np.ndarray:
    """Return the correlations (D, D) of standardised rows times a number below 1, with diagonal 1.

    Parameters
    ----------
    z : ndarray of float64, shape (n, D)
    tie : float

    Returns
    -------
    ndarray of float64, shape (D, D)
        Positive definite.
    """
    gaps = z - z.mean(0)
    norm = np.sqrt((gaps**2).sum(0))
    gaps /= np.where(norm > 0.0, norm, 1.0)
    shape: np.ndarray = tie * (gaps.T @ gaps)
    np.fill_diagonal(shape, 1.0)
    return shape


def log_joint(sums: Sums, shape: np.ndarray, candidates: _Candidates) -> np.ndarray:
    """Return the log joint density of rows and partition under each candidate, eq. (1.4) and (7.7).

    With psi0 = c R and the scatter S' = L^-1 S L^-T, R = LL', all determinants follow from the
    eigenvalues of S', and from the means in its eigenvectors.

    Parameters
    ----------
    sums : Sums
        Scatter (K, D, D), and means relative to mu0.
    shape : ndarray of float64, shape (D, D)
        R, the prior mean of a covariance for a share of 1.
    candidates : _Candidates

    Returns
    -------
    ndarray of float64, shape (P, Q)
    """
    n_features = len(shape)
    root = np.linalg.cholesky(shape)
    whitening = np.linalg.inv(root)
    eigenvalues, vectors = np.linalg.eigh(whitening @ sums.scatter @ whitening.T)
    means = np.einsum("kij,ki->kj", vectors, sums.mean @ whitening.T) ** 2
    c = candidates.excess * candidates.within
    nu0 = (candidates.excess + n_features + 1.0)[:, None]
    nu_n = nu0 + sums.n
    # Rounding must not make an eigenvalue negative.
    posterior = c[:, None, None] + np.maximum(eigenvalues, 0.0)
    weight = candidates.kappa0[:, None] * sums.n / (candidates.kappa0[:, None] + sums.n)
    gaps = np.log1p((means / posterior).sum(2)[:, None] * weight)
    log_marginal = (
        _log_multigamma(0.5 * nu_n, n_features)
        - _log_multigamma(0.5 * nu0, n_features)
        + 0.5 * nu0 * n_features * np.log(c)[:, None]
        - 0.5 * nu_n * np.log(posterior).sum(2)
        - sums.n * np.log(np.diag(root)).sum()
        - 0.5 * sums.n * n_features * np.log(np.pi)
    )
    of_mean = 0.5 * n_features * np.log(weight / sums.n) - 0.5 * nu_n[:, None] * gaps
    total: np.ndarray = (log_marginal[:, None] + of_mean).sum(2) + log_partition(sums.n)
    return total


def _log_multigamma(a: np.ndarray, n_features: int) -> np.ndarray:
    """Return the log of the multivariate gamma function of an array, less a constant."""
    unique, where = np.unique(a, return_inverse=True)
    found: np.ndarray = scipy.special.gammaln(unique[:, None] - 0.5 * np.arange(n_features)).sum(1)
    return found[where].reshape(a.shape)
