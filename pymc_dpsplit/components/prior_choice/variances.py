"""Choice of the inverse gamma prior of variances, for `DiagNormal` and `SphericalNormal`."""

from typing import Any, NamedTuple

import numpy as np
import scipy

from pymc_dpsplit.components.arguments import real_scalar
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

# Candidates of the excess a0 - 1.
_EXCESSES = (1.0, 2.0, 4.0, 8.0, 16.0)


class VariancesPrior(NamedTuple):
    """Hyperparameters: `b0` (D,), or one number, is the scale for a variance of the data of 1."""

    kappa0: float
    a0: float
    b0: Any


def shape_with_mean(a0: float) -> float:
    """Check the argument `a0` of `from_data`: above 1, so that the variance has a prior mean."""
    shape = real_scalar("a0", a0)
    if not shape > 1.0:
        raise ValueError(
            f"a0={shape:g} is too small for a prior mean of the variance; give more than 1."
        )
    return shape


def choose_variances(
    rows: np.ndarray,
    mean: np.ndarray,
    scale: np.ndarray,
    within: float | None = None,
    a0: float | None = None,
    spherical: bool = False,
) -> VariancesPrior:
    """Choose kappa0, a0 and b0 by the log joint density of provisional partitions.

    The prior means of a cluster's variances are shares of the variances of the data, a number for
    each column.  The shares, a0 and kappa0 are those under which some partition has the highest log
    joint density, eq. (7.3) or (7.30) of method.md.  The default is kept if there is no evidence
    against it, see `likeliest`.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)
        NaN where missing.
    mean, scale : ndarrays of float64, shape (D,)
        What rows are standardised by.
    within, a0 : float, optional
        Fixed values: a share for all columns; `a0` exceeds 1.
    spherical : bool
        Whether all columns of a cluster have one variance, and one share.

    Returns
    -------
    VariancesPrior
    """
    z, varies = standardised(rows, mean, scale)
    share = WITHIN if within is None else within
    best = Numbers(
        KAPPA0, 1.0 if a0 is None else a0 - 1.0, np.full(1 if spherical else z.shape[1], share)
    )
    shares = np.full(len(scale), share)
    if len(z):
        best = likeliest(z, _Variances(z, within, a0, spherical), best)
        # A column that does not vary keeps the default.
        shares[varies] = best.shares
    b0 = best.excess * (best.shares[0] if spherical else shares)
    return VariancesPrior(best.kappa0, best.excess + 1.0, b0)


class _Variances:
    """Log joint densities of partitions of standardised rows (n, D), see `partitions.Scored`."""

    def __init__(
        self, z: np.ndarray, within: float | None, a0: float | None, spherical: bool
    ) -> None:
        self._z, self._within, self._spherical = z, within, spherical
        factors = FACTORS if within is None else [1.0]
        excesses = _EXCESSES if a0 is None else [a0 - 1.0]
        grid = np.meshgrid(KAPPAS, excesses, factors, indexing="ij")
        self._grid = np.array(grid).reshape(3, -1).T

    def score(self, labels: np.ndarray, numbers: Numbers) -> float:
        one = np.array([[numbers.kappa0, numbers.excess, 1.0]])
        sums = sums_of(self._z, labels, by_column=True)
        return float(log_joint(sums, one, numbers.shares, self._spherical).item())

    def fitted(self, labels: np.ndarray, guess: Numbers) -> tuple[float, Numbers]:
        sums = sums_of(self._z, labels, by_column=True)
        shares = guess.shares
        if self._within is None:
            shares = shares_raised(sums, guess, self._spherical)
        scores = log_joint(sums, self._grid, shares, self._spherical)
        kappa0, excess, factor = map(float, self._grid[scores.argmax()])
        return float(scores.max()), Numbers(kappa0, excess, factor * shares)

    def shares_within(self, labels: np.ndarray) -> np.ndarray:
        scatter = sums_of(self._z, labels, by_column=True).scatter.sum(0) / len(self._z)
        found = np.full(scatter.shape, self._within) if self._within is not None else scatter
        return found.mean(keepdims=True) if self._spherical else found

    def log_masses(self, numbers: Numbers, labels: np.ndarray) -> np.ndarray:
        kappa0, excess = numbers.kappa0, numbers.excess
        sums = sums_of(self._z, labels, by_column=True)
        n = sums.n[:, None]
        half, repeats = _half_scatter(sums, kappa0, self._spherical)
        posterior = (excess * numbers.shares + half) / (excess + 0.5 * n * repeats)
        variance = np.broadcast_to(posterior, sums.mean.shape)
        mean = sums.mean * n / (kappa0 + n)
        # Expanded, so that no array has the rows, clusters and columns as axes.
        z = self._z
        distance = (z**2) @ (1.0 / variance).T - 2.0 * z @ (mean / variance).T
        constant = np.log(sums.n) - 0.5 * (np.log(variance) + mean**2 / variance).sum(1)
        found: np.ndarray = (constant - 0.5 * distance).T
        return found


def _half_scatter(sums: Sums, kappa0: Any, spherical: bool) -> tuple[np.ndarray, int]:
    """Return what a cluster's rows add to b0, by column or (with one) of all, and their number.

    The scatter of the means about the prior mean is included.
    """
    n = sums.n[:, None]
    half: np.ndarray = 0.5 * (sums.scatter + kappa0 * n / (kappa0 + n) * sums.mean**2)
    if spherical:
        return half.sum(-1, keepdims=True), sums.mean.shape[1]
    return half, 1


def shares_raised(sums: Sums, guess: Numbers, spherical: bool) -> np.ndarray:
    """Return shares under which the log joint density is higher, by steps of an EM algorithm.

    With the variances as the missing data, a step sets b0 to a0 divided by the mean over clusters
    of the expected inverse variance, a_n / b_n.

    Parameters
    ----------
    sums : Sums
        Scatter (K, D), and means relative to mu0.
    guess : Numbers
    spherical : bool

    Returns
    -------
    ndarray of float64, shape (D,) or (1,)
    """
    half, repeats = _half_scatter(sums, guess.kappa0, spherical)
    a0 = guess.excess + 1.0
    a_n = a0 + 0.5 * sums.n[:, None] * repeats
    b0 = guess.excess * np.maximum(guess.shares, LEAST_SHARE)
    for _ in range(SHARE_STEPS):
        b0 = a0 / (a_n / (b0 + half)).mean(0)
        b0 = np.maximum(b0, guess.excess * LEAST_SHARE)
    found: np.ndarray = b0 / guess.excess
    return found


def log_joint(sums: Sums, grid: np.ndarray, shares: np.ndarray, spherical: bool) -> np.ndarray:
    """Return the log joint density of rows and partition, eq. (1.4) with (7.3) or (7.30).

    Parameters
    ----------
    sums : Sums
        Scatter (K, D), and means relative to mu0.
    grid : ndarray of float64, shape (G, 3)
        kappa0, a0 - 1 and the factor of the shares of each candidate.
    shares : ndarray of float64, shape (D,) or (1,)
    spherical : bool

    Returns
    -------
    ndarray of float64, shape (G,)
    """
    n_features = sums.mean.shape[1]
    n = sums.n[:, None]
    kappa0, excess, factor = grid.T[:, :, None, None]
    a0, b0 = excess + 1.0, excess * factor * shares
    half, repeats = _half_scatter(sums, kappa0, spherical)
    a_n = a0 + 0.5 * n * repeats
    of_variance = (
        scipy.special.gammaln(a_n)
        - scipy.special.gammaln(a0)
        + a0 * np.log(b0)
        - a_n * np.log(b0 + half)
    )
    of_mean = 0.5 * np.log(kappa0 / (kappa0 + n)) - 0.5 * n * np.log(2.0 * np.pi)
    total: np.ndarray = of_variance.sum((1, 2)) + n_features * of_mean.sum((1, 2))
    return total + log_partition(sums.n)
