"""Choice of the inverse gamma prior of variances, for `DiagNormal` and `SphericalNormal`."""

from typing import NamedTuple

import numpy as np
import scipy

from pymc_dpsplit.components.arguments import real_scalar
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

# Candidates.  The excess is a0 - 1.  The default is the first of each, and `KAPPA0`; it is kept
# without evidence against it.
_EXCESSES = (1.0, 2.0, 4.0, 8.0, 16.0)


class VariancesPrior(NamedTuple):
    """Hyperparameters: `b0` is the scale for a variance of the data of 1."""

    kappa0: float
    a0: float
    b0: float


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

    The prior mean of a cluster's variance is a share `within` of the variance of the data.  This
    share, a0 and kappa0 are those under which some partition has the highest log joint density,
    eq. (7.3) or (7.30) of method.md.  The default is kept if there
    is no evidence against it, see `likeliest`.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)
        NaN where missing.
    mean, scale : ndarrays of float64, shape (D,)
        What rows are standardised by.
    within, a0 : float, optional
        Fixed values; `a0` exceeds 1.
    spherical : bool
        Whether all columns of a cluster have one variance.

    Returns
    -------
    VariancesPrior
    """
    z, _ = standardised(rows, mean, scale)
    shares = WITHINS if within is None else [within]
    excesses = _EXCESSES if a0 is None else [a0 - 1.0]
    grid = np.array(np.meshgrid(KAPPAS, excesses, shares, indexing="ij")).reshape(3, -1).T
    default = int(np.flatnonzero(grid[:, 0] == KAPPA0)[0])
    best: tuple[int, ...] = (default,)

    def score(labels: np.ndarray) -> np.ndarray:
        return log_joint(sums_of(z, labels, by_column=True), grid, spherical)

    if len(z):
        best = likeliest(
            z, score, lambda labels, given: _reassigned(z, labels, grid[given[0]], spherical), best
        )
    kappa0, excess, share = map(float, grid[best[0]])
    return VariancesPrior(kappa0, excess + 1.0, excess * share)


def _reassigned(
    z: np.ndarray, labels: np.ndarray, given: np.ndarray, spherical: bool
) -> np.ndarray:
    """Return labels (n,) after reassignment to clusters with their posterior means, see `grid`."""
    kappa0, excess, share = given

    def log_masses(labels: np.ndarray) -> np.ndarray:
        sums = sums_of(z, labels, by_column=True)
        n = sums.n[:, None]
        half = 0.5 * (sums.scatter + kappa0 * n / (kappa0 + n) * sums.mean**2)
        repeats = 1
        if spherical:
            half, repeats = half.sum(1, keepdims=True), z.shape[1]
        variance = np.broadcast_to(
            (excess * share + half) / (excess + 0.5 * n * repeats), sums.mean.shape
        )
        mean = sums.mean * n / (kappa0 + n)
        # Expanded, so that no array has the rows, clusters and columns as axes.
        distance = (z**2) @ (1.0 / variance).T - 2.0 * z @ (mean / variance).T
        constant = np.log(sums.n) - 0.5 * (np.log(variance) + mean**2 / variance).sum(1)
        found: np.ndarray = (constant - 0.5 * distance).T
        return found

    return reassigned(labels, log_masses)


def log_joint(sums: Sums, grid: np.ndarray, spherical: bool) -> np.ndarray:
    """Return the log joint density of rows and partition, eq. (1.4) with (7.3) or (7.30).

    Parameters
    ----------
    sums : Sums
        Scatter (K, D), and means relative to mu0.
    grid : ndarray of float64, shape (G, 3)
        kappa0, a0 - 1 and the within-cluster share of each candidate.
    spherical : bool

    Returns
    -------
    ndarray of float64, shape (G,)
    """
    n_features = sums.mean.shape[1]
    n = sums.n[:, None]
    kappa0, excess, share = grid.T[:, :, None, None]
    a0, b0 = excess + 1.0, excess * share
    weight = kappa0 * n / (kappa0 + n)
    half = 0.5 * (sums.scatter + weight * sums.mean**2)
    repeats = 1
    if spherical:
        half, repeats = half.sum(2, keepdims=True), n_features
    a_n = a0 + 0.5 * n * repeats
    of_variance = (
        scipy.special.gammaln(a_n)
        - scipy.special.gammaln(a0)
        + a0 * np.log(b0)
        - a_n * np.log(b0 + half)
    )
    of_mean = 0.5 * np.log(weight / n) - 0.5 * n * np.log(2.0 * np.pi)
    total: np.ndarray = of_variance.sum((1, 2)) + n_features * of_mean.sum((1, 2))
    return total + log_partition(sums.n)
