"""Choice of the inverse Wishart prior of a cluster's covariance, for `MvNormal`."""

from typing import NamedTuple

import numpy as np
import scipy

from pymc_dpsplit.components.prior_choice.partitions import (
    FACTORS,
    KAPPA0,
    KAPPAS,
    LEAST_SHARE,
    SHARE_STEPS,
    WITHIN,
    Numbers,
    Sums,
    likeliest,
    log_partition,
    standardised,
    sums_of,
)

# Candidates.  The excess nu0 - D - 1 is 1, 2, 4, ... up to `_MOST_EXCESS` times D.
_MOST_EXCESS = 4
_TIES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)


class CovariancePrior(NamedTuple):
    """Hyperparameters of `MvNormal`: two floats, and psi0 (D, D) in units of the data."""

    kappa0: float
    nu0: float
    psi0: np.ndarray


class Candidates(NamedTuple):
    """Pairs of an excess and a factor of the shares (P,), and kappa0 (Q,)."""

    excess: np.ndarray
    factor: np.ndarray
    kappa0: np.ndarray


def choose_covariance(
    rows: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    within: float | None = None,
    nu0: float | None = None,
) -> CovariancePrior:
    """Choose kappa0, nu0 and psi0 by the log joint density of provisional partitions.

    The prior means of a cluster's variances are shares of the variances of the data, a number for
    each column, and its correlations are those of the data times a number below one.  This number,
    the shares, nu0 and kappa0 are those under which some partition has the highest log joint
    density, the marginal likelihood of eq. (7.7) of method.md included.  So that correlations
    cannot be fitted to the rows that they are judged by, either half of the rows is scored under
    the correlations of the other.  The default is kept if there is no evidence against it, see
    `likeliest`.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)
        NaN where missing.
    mean, variance : ndarrays of float64, shape (D,)
        See `data.blocks.moments_of`.
    within, nu0 : float, optional
        Fixed values: a share for all columns; `nu0` exceeds D + 1.

    Returns
    -------
    CovariancePrior
    """
    scale, n_features = np.sqrt(variance), len(variance)
    z, varies = standardised(rows, mean, scale)
    excess = None if nu0 is None else nu0 - n_features - 1.0
    share = WITHIN if within is None else within
    best = Numbers(KAPPA0, excess or 1.0, np.full(z.shape[1], share))
    shape = np.eye(n_features)
    shares = np.full(n_features, share)
    if len(z):
        family = _Covariances(z, within, excess)
        best = likeliest(z, family, best)
        # A column that does not vary is independent of the others.
        shape[np.ix_(varies, varies)] = tied(correlations(z), best.tie)
        shares[varies] = best.shares
    root = np.sqrt(shares) * scale
    psi0 = best.excess * shape * np.outer(root, root)
    return CovariancePrior(best.kappa0, n_features + 1.0 + best.excess, psi0)


class _Covariances:
    """Log joint densities of partitions of standardised rows (n, D), see `partitions.Scored`."""

    def __init__(self, z: np.ndarray, within: float | None, excess: float | None) -> None:
        self._z = z
        self._within = within
        powers = 2.0 ** np.arange(1 + int(np.log2(_MOST_EXCESS * z.shape[1])))
        self._excesses = powers if excess is None else np.array([excess])
        self._middle = len(z) // 2
        self._correlations = correlations(z)
        halves = z[: self._middle], z[self._middle :]
        # Of the other half.
        self._correlations_of = [correlations(half) for half in halves[::-1]]

    def score(self, labels: np.ndarray, numbers: Numbers) -> float:
        one = Candidates(np.array([numbers.excess]), np.ones(1), np.array([numbers.kappa0]))
        return float(self._scores(labels, numbers.shares, (numbers.tie,), one).item())

    def fitted(self, labels: np.ndarray, guess: Numbers) -> tuple[float, Numbers]:
        shares, factors = guess.shares, np.ones(1)
        if self._within is None:
            sums = sums_of(self._z, labels, by_column=False)
            shares = shares_raised(sums, self._correlations, guess)
            factors = np.array(FACTORS)
        excesses = np.repeat(self._excesses, len(factors))
        candidates = Candidates(excesses, np.tile(factors, len(self._excesses)), np.array(KAPPAS))
        where = _TIES.index(guess.tie)
        ties = _TIES[max(0, where - 1) : where + 2]
        scores = self._scores(labels, shares, ties, candidates)
        tie, pair, which = np.unravel_index(scores.argmax(), scores.shape)
        chosen = Numbers(
            float(candidates.kappa0[which]),
            float(candidates.excess[pair]),
            shares * candidates.factor[pair],
            ties[tie],
        )
        return float(scores.max()), chosen

    def _scores(
        self,
        labels: np.ndarray,
        shares: np.ndarray,
        ties: tuple[float, ...],
        candidates: Candidates,
    ) -> np.ndarray:
        """Return the log joint density (T, P, Q) of both halves of the rows."""
        root = np.outer(np.sqrt(shares), np.sqrt(shares))
        halves = slice(None, self._middle), slice(self._middle, None)
        found = []
        for half, correlated in zip(halves, self._correlations_of, strict=True):
            sums = sums_of(self._z[half], labels[half], by_column=False)
            shapes = [root * tied(correlated, tie) for tie in ties]
            found.append(np.stack([log_joint(sums, shape, candidates) for shape in shapes]))
        return found[0] + found[1]

    def shares_within(self, labels: np.ndarray) -> np.ndarray:
        if self._within is not None:
            return np.full(self._z.shape[1], self._within)
        scatter = sums_of(self._z, labels, by_column=True).scatter
        return np.asarray(scatter.sum(0) / len(self._z))

    def log_masses(self, numbers: Numbers, labels: np.ndarray) -> np.ndarray:
        kappa0, excess = numbers.kappa0, numbers.excess
        sums = sums_of(self._z, labels, by_column=False)
        psi0 = _scale_matrix(numbers, self._correlations)
        covariance = (psi0 + _scatter_about_zero(sums, kappa0)) / (excess + sums.n)[:, None, None]
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        mean = sums.mean * (sums.n / (kappa0 + sums.n))[:, None]
        whitened = root @ self._z.T - (root @ mean[:, :, None])
        of_size = np.log(sums.n) + np.log(np.diagonal(root, axis1=1, axis2=2)).sum(1)
        found: np.ndarray = of_size[:, None] - 0.5 * (whitened**2).sum(1)
        return found


def _scatter_about_zero(sums: Sums, kappa0: float) -> np.ndarray:
    """Return the scatter (K, D, D), with that of the means about the prior mean."""
    weight = (kappa0 * sums.n / (kappa0 + sums.n))[:, None, None]
    found: np.ndarray = sums.scatter + weight * sums.mean[:, :, None] * sums.mean[:, None, :]
    return found


def _scale_matrix(numbers: Numbers, correlated: np.ndarray) -> np.ndarray:
    root = np.sqrt(numbers.shares)
    found: np.ndarray = numbers.excess * np.outer(root, root) * tied(correlated, numbers.tie)
    return found


def shares_raised(sums: Sums, correlated: np.ndarray, guess: Numbers) -> np.ndarray:
    """Return shares under which the log joint density is higher, by steps of an EM algorithm.

    With Sigma_k as the missing data, the expectation of inv(Sigma_k) given the rows is
    nu_n inv(psi_n).  A step then maximises, one column after another, over the square roots d of
    the diagonal of psi0 = diag(d) R diag(d), the expected log density of all Sigma_k.

    Parameters
    ----------
    sums : Sums
        Scatter (K, D, D), and means relative to mu0.
    correlated : ndarray of float64, shape (D, D)
    guess : Numbers

    Returns
    -------
    ndarray of float64, shape (D,)
    """
    shape, excess = tied(correlated, guess.tie), guess.excess
    nu0 = excess + len(shape) + 1.0
    total = len(sums.n) * nu0
    scatter, nu_n = _scatter_about_zero(sums, guess.kappa0), (nu0 + sums.n)[:, None, None]
    least = np.sqrt(excess * LEAST_SHARE)
    root = np.maximum(np.sqrt(excess * guess.shares), least)
    for _ in range(SHARE_STEPS):
        precision = (nu_n * np.linalg.inv(np.outer(root, root) * shape + scatter)).sum(0)
        quadratic = shape * precision
        for d, own in enumerate(quadratic.diagonal()):
            linear = quadratic[d] @ root - own * root[d]
            # The positive root, without a difference of numbers that are nearly equal.
            both = np.sqrt(linear**2 + 4.0 * own * total)
            above = 2.0 * total / (linear + both) if linear > 0.0 else (both - linear) / (2.0 * own)
            root[d] = max(above, least)
    found: np.ndarray = root**2 / excess
    return found


def correlations(z: np.ndarray) -> np.ndarray:
    """Return the correlations (D, D) of rows (n, D); 0 for a column that does not vary."""
    gaps = z - z.mean(0)
    norm = np.sqrt((gaps**2).sum(0))
    gaps /= np.where(norm > 0.0, norm, 1.0)
    found: np.ndarray = gaps.T @ gaps
    return found


def tied(correlated: np.ndarray, tie: float) -> np.ndarray:
    """Return correlations (D, D) times a number below 1, with diagonal 1: positive definite."""
    shape: np.ndarray = tie * correlated
    np.fill_diagonal(shape, 1.0)
    return shape


def log_joint(sums: Sums, shape: np.ndarray, candidates: Candidates) -> np.ndarray:
    """Return the log joint density of rows and partition under each candidate, eq. (1.4) and (7.7).

    With psi0 = c R and the scatter S' = L^-1 S L^-T, R = LL', all determinants follow from the
    eigenvalues of S', and from the means in its eigenvectors.

    Parameters
    ----------
    sums : Sums
        Scatter (K, D, D), and means relative to mu0.
    shape : ndarray of float64, shape (D, D)
        R, the prior mean of a covariance for a factor of 1.
    candidates : Candidates

    Returns
    -------
    ndarray of float64, shape (P, Q)
    """
    n_features = len(shape)
    root = np.linalg.cholesky(shape)
    whitening = np.linalg.inv(root)
    eigenvalues, vectors = np.linalg.eigh(whitening @ sums.scatter @ whitening.T)
    means = np.einsum("kij,ki->kj", vectors, sums.mean @ whitening.T) ** 2
    c = candidates.excess * candidates.factor
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
