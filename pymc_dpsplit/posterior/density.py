"""The density of a mixture at given points, draw by draw, from recorded weights and parameters.

Covers the families whose clusters are Gaussian, of which any one or two features have a
Gaussian marginal too.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.trace import group_of


@dataclass(frozen=True, eq=False)
class GaussianDraws:
    """Occupied clusters of S draws, in F features (one or two).

    Attributes
    ----------
    weights : ndarray, shape (S, K)
        Each row sums to 1; zero in rows not occupied.
    mu : ndarray, shape (S, K, F)
    cov : ndarray, shape (S, K, F, F)
        Positive definite, also in rows not occupied.
    """

    weights: np.ndarray
    mu: np.ndarray
    cov: np.ndarray


def is_gaussian(idata: xr.DataTree, name: str) -> bool:
    """Whether the clusters of a mixture are Gaussian, as far as the trace tells."""
    drawn = group_of(idata, "posterior")
    stats = idata["sample_stats"].to_dataset() if "sample_stats" in idata.children else {}
    # Components of other distributions may have parameters of the same names.
    is_other = f"{name}_is_conjugate" in stats and not stats[f"{name}_is_conjugate"].any()
    has_spread = any(f"{name}_{of}" in drawn for of in ("cov", "sigma"))
    return not is_other and has_spread and f"{name}_mu" in drawn


def gaussian_draws(
    idata: xr.DataTree, name: str, features: tuple[int, ...] | None, num_samples: int
) -> GaussianDraws:
    """Read weights and parameters of at most `num_samples` draws, evenly spread.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`, of a mixture that `is_gaussian`.
    name : str
        Name of the mixture.
    features : tuple of int, or None
        Positions of the features to keep; None for a mixture of scalars.
    num_samples : int
        Most draws to read, of all chains together.

    Returns
    -------
    GaussianDraws

    Raises
    ------
    ValueError
        If no draw records a weight.
    """
    drawn = group_of(idata, "posterior")
    spread = "cov" if f"{name}_cov" in drawn else "sigma"
    weights = _read(drawn[f"{name}_weights"], num_samples, ())
    is_occupied = weights > 0
    keep = features or ()
    # NaN in rows not occupied would spread, though their weight is zero.
    mu = np.nan_to_num(_read(drawn[f"{name}_mu"], num_samples, keep))
    scale = _read(drawn[f"{name}_{spread}"], num_samples, keep)
    if features is None:
        mu, scale = mu[..., None], scale[..., None]
    if scale.ndim < mu.ndim:
        scale = np.repeat(scale[..., None], mu.shape[-1], axis=-1)
    cov = scale if spread == "cov" else _diagonal(scale**2)
    cov = np.where(is_occupied[..., None, None], cov, np.eye(mu.shape[-1]))
    return GaussianDraws(_normalised(np.where(is_occupied, weights, 0.0)), mu, cov)


def spread_draws(
    drawn: xr.DataArray | xr.Dataset, num_samples: int
) -> tuple[xr.Variable, xr.Variable]:
    """Choose at most `num_samples` draws of all chains, evenly spread.

    Parameters
    ----------
    drawn : DataArray or Dataset
        With the dimensions chain and draw.
    num_samples : int

    Returns
    -------
    chain, draw : Variable of int, dims (sample,)
        Position of each.
    """
    per_chain = drawn.sizes["draw"]
    n_all = drawn.sizes["chain"] * per_chain
    taken = np.linspace(0, n_all - 1, min(num_samples, n_all)).round().astype(int)
    chain, draw = (xr.Variable("sample", of) for of in np.divmod(taken, per_chain))
    return chain, draw


def spread_places(drawn: xr.DataArray | xr.Dataset, num_samples: int) -> list[tuple[int, ...]]:
    """Return the chain and draw of each of those that `spread_draws` chooses."""
    axes = spread_draws(drawn, num_samples)
    return list(zip(*(axis.values.tolist() for axis in axes), strict=True))


def _read(values: xr.DataArray, num_samples: int, keep: tuple[int, ...]) -> np.ndarray:
    """Read at most `num_samples` draws of all chains, and the features `keep` of each.

    Nothing else is read, for a trace on disk may be much larger than what is shown.
    """
    chain, draw = spread_draws(values, num_samples)
    feature_dims = values.dims[3:]
    features = {dim: list(keep) for dim in feature_dims}
    return values.isel(features).isel(chain=chain, draw=draw).transpose("sample", ...).values


def _diagonal(variance: np.ndarray) -> np.ndarray:
    return variance[..., None] * np.eye(variance.shape[-1])


def _normalised(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(1, keepdims=True)
    if not (total > 0).all():
        raise ValueError("some draws of idata record no weight; give the trace of a finished run.")
    return weights / total


def density_at(points: np.ndarray, draws: GaussianDraws) -> np.ndarray:
    """Evaluate the mixture density of every draw.

    Parameters
    ----------
    points : ndarray, shape (G, F)
        Where.
    draws : GaussianDraws
        Of F features.

    Returns
    -------
    ndarray, shape (S, G)
    """
    n_features = points.shape[1]
    density = np.zeros((len(draws.weights), len(points)))
    precision = np.linalg.inv(draws.cov)
    norm = (2 * np.pi) ** (-n_features / 2) / np.sqrt(np.linalg.det(draws.cov))
    for s, k in zip(*np.nonzero(draws.weights), strict=True):
        deviation = points - draws.mu[s, k]
        distance = np.einsum("gi,ij,gj->g", deviation, precision[s, k], deviation)
        density[s] += draws.weights[s, k] * norm[s, k] * np.exp(-distance / 2)
    return density
