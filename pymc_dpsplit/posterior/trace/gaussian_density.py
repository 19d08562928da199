"""Density of a Gaussian mixture in every draw, from recorded weights and parameters.

The marginal of one or two features of a Gaussian mixture is a Gaussian mixture.
"""

from collections.abc import Collection, Hashable, Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model
from scipy.special import logsumexp

from pymc_dpsplit.components.diag_normal import DiagNormal
from pymc_dpsplit.components.mv_normal.family import MvNormal
from pymc_dpsplit.components.spherical_normal import SphericalNormal
from pymc_dpsplit.posterior.trace.declared import kept_rows, refuse_other_order
from pymc_dpsplit.posterior.trace.draws import dropped_draws, has_dropped
from pymc_dpsplit.posterior.trace.groups import find_group, group_of
from pymc_dpsplit.posterior.trace.hierarchical import declared_mixture
from pymc_dpsplit.posterior.trace.places import spread_draws
from pymc_dpsplit.posterior.trace.recorded import counts_of, refuse_dims, refuse_weights

# Sets of all parameters of a family.  A mean alone, beside a known spread, is left out: every
# Gaussian family has one.
_GAUSSIAN: tuple[set[str], ...] = ({"mu", "sigma"}, {"mu", "cov"})
_OTHERS: tuple[set[str], ...] = ({"p"}, {"rate"}, {"scale"}, {"beta", "sigma"})
# Those that have a dimension beside that of clusters, whatever the data.
_OF_FEATURES = {"p", "rate", "scale", "beta"}


class GaussianDraws(NamedTuple):
    """Occupied clusters of S draws, in F features (one or two).

    Attributes
    ----------
    weights : ndarray, shape (S, K)
        Each row sums to 1; zero for unoccupied clusters.
    mu : ndarray, shape (S, K, F)
    cov : ndarray, shape (S, K, F, F)
        Positive definite, also for unoccupied clusters.
    """

    weights: np.ndarray
    mu: np.ndarray
    cov: np.ndarray


def gaussian_spread(idata: xr.DataTree, name: str, model: Model | None = None) -> str | None:
    """Return which parameter of Gaussian clusters a trace records beside their means.

    A model tells the family of its mixture.  Without it the family is told from the parameters that
    the trace records and from their dimensions.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The sampled model.

    Returns
    -------
    str or None
        ``"sigma"`` or ``"cov"``; None if the clusters are of another family, or may be.
    """
    drawn = group_of(idata, "posterior")
    mixture = None if model is None else declared_mixture(model, name)
    if mixture is None:
        # A `Component` of another distribution may have parameters of the same names.
        stats = find_group(idata, "sample_stats")
        flag = None if stats is None else stats.get(f"{name}_is_conjugate")
        return None if flag is not None and not flag.any() else _spread_told(drawn, name)
    if model is not None:
        refuse_other_order(drawn, model)
    component = mixture.component
    if not isinstance(component, DiagNormal | SphericalNormal | MvNormal):
        return None
    spread = "cov" if "cov" in component.parameters else "sigma"
    return spread if all(f"{name}_{of}" in drawn for of in ("mu", spread)) else None


def _spread_told(drawn: xr.Dataset, name: str) -> str | None:
    """Tell the parameter from the dimensions of all that is recorded for each cluster.

    A Deterministic of the user may have the name of a parameter, in a mixture of any family.
    """
    dims = _dims_of_parameters(drawn, name)
    mu, sigma, cov = (dims.get(key) for key in ("mu", "sigma", "cov"))
    if mu is None or len(mu) > 1 or _are_of_others(dims):
        return None
    # A sigma beside a covariance is most likely computed from it, but not the other way round.
    if cov is not None and len(mu) == 1 and len(cov) == 2 and set(mu) < set(cov):
        return "cov"
    return "sigma" if sigma in (mu, ()) else None


def _dims_of_parameters(drawn: xr.Dataset, name: str) -> dict[str, tuple[Hashable, ...]]:
    """Return the dimensions, after that of clusters, of what is recorded for each cluster."""
    weights = drawn[f"{name}_weights"]
    refuse_dims(weights, 1)
    cluster = weights.dims[2]
    start = f"{name}_"
    recorded = {str(key).removeprefix(start): of for key, of in drawn.data_vars.items()
                if str(key).startswith(start) and str(key) != weights.name}  # fmt: skip
    if cluster != f"{name}_weights_dim_0":
        return {
            key: tuple(dim for dim in of.dims[2:] if dim != cluster)
            for key, of in recorded.items()
            if cluster in of.dims
        }
    # Only traces made by hand name no dimensions; the first of a parameter is then of clusters.
    recorded = {key: recorded[key] for key in ("mu", "sigma", "cov") if key in recorded}
    return {key: tuple(range(of.ndim - 3)) for key, of in recorded.items() if of.ndim > 2}


def _are_of_others(dims: Mapping[str, Collection[Hashable]]) -> bool:
    """Return whether what is recorded may be all parameters of another family.

    Parameters of the parts of a `Product` are prefixed by the name of the part.
    """
    by_part: dict[str, set[str]] = {}
    for key, features in dims.items():
        part, _, role = key.rpartition("_")
        if features or role not in _OF_FEATURES:
            by_part.setdefault(part, set()).add(role)
    own = by_part.pop("", set())
    return any(family <= own for family in _OTHERS) or any(
        family <= roles for roles in by_part.values() for family in (*_OTHERS, *_GAUSSIAN)
    )


def gaussian_draws(
    idata: xr.DataTree,
    name: str,
    features: tuple[int, ...] | None,
    num_samples: int,
    spread: str,
) -> GaussianDraws:
    """Read weights and parameters of at most `num_samples` evenly spaced draws.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    name : str
        Name of the mixture.
    features : tuple of int, or None
        Indices of the features to keep; None for a mixture of scalars.
    num_samples : int
        Largest number of draws to read, over all chains.
    spread : str
        Result of `gaussian_spread`.

    Returns
    -------
    GaussianDraws

    Raises
    ------
    ValueError
        If no draw records a weight, or some have more clusters than are recorded.
    """
    drawn = group_of(idata, "posterior")
    if f"{name}_n_clusters" in drawn and has_dropped(drawn, name):
        # Their other clusters would be left out.
        raise ValueError(dropped_draws(counts_of(drawn, name), kept_rows(drawn, name)))
    weights = _read(drawn[f"{name}_weights"], num_samples, ())
    refuse_weights(weights, name)
    is_occupied = weights > 0
    keep = features or ()
    mu = _read(drawn[f"{name}_mu"], num_samples, keep)
    scale = _read(drawn[f"{name}_{spread}"], num_samples, keep)
    refuse_parameters(mu[is_occupied], scale[is_occupied], name, spread)
    # NaN in rows not occupied would spread, though their weight is zero.
    mu = np.nan_to_num(mu)
    if features is None:
        mu, scale = mu[..., None], scale[..., None]
    if scale.ndim < mu.ndim:
        scale = np.repeat(scale[..., None], mu.shape[-1], axis=-1)
    cov = scale if spread == "cov" else _diagonal(scale**2)
    cov = np.where(is_occupied[..., None, None], cov, np.eye(mu.shape[-1]))
    return GaussianDraws(_normalised(np.where(is_occupied, weights, 0.0)), mu, cov)


def _read(values: xr.DataArray, num_samples: int, keep: tuple[int, ...]) -> np.ndarray:
    """Read at most `num_samples` draws of all chains, and the features `keep` of each.

    Other draws are not read, because a trace on disk may be much larger.
    """
    chain, draw = spread_draws(values, num_samples)
    feature_dims = values.dims[3:]
    features = {dim: list(keep) for dim in feature_dims}
    read = values.isel(features).isel(chain=chain, draw=draw)
    return np.asarray(read.transpose("sample", ...).values, dtype=np.float64)


def refuse_shapes(drawn: xr.Dataset, name: str, shape: tuple[int, ...], spread: str) -> None:
    """Refuse Gaussians of other features than those of the values they describe.

    Parameters
    ----------
    drawn : Dataset
        The posterior group.
    name : str
        Name of the mixture.
    shape : tuple of int
        () for values that are single numbers, or (D,).
    spread : str
        Result of `gaussian_spread`.

    Raises
    ------
    ValueError
        If the shapes do not agree.
    """
    kept = (kept_rows(drawn, name),)
    allowed = {"mu": {shape}, "cov": {shape * 2}, "sigma": {shape, ()}}
    for key in ("mu", spread):
        found = drawn[f"{name}_{key}"].shape[2:]
        if found not in {kept + of for of in allowed[key]}:
            raise ValueError(
                f"{name}_{key} has shape {found} in each draw of idata, which does not suit values "
                f"of shape {shape}; give the trace as pm.sample returned it."
            )


def refuse_parameters(mu: np.ndarray, scale: np.ndarray, name: str, spread: str) -> None:
    """Refuse parameters (K, ...) of clusters in use that are none of Gaussians.

    Whether a covariance is positive definite is seen where it is decomposed.
    """
    faults = {
        "mu": ~np.isfinite(mu),
        spread: ~np.isfinite(scale) | ((scale <= 0) & (spread == "sigma")),
    }
    for key, is_wrong in faults.items():
        if is_wrong.any():
            raise ValueError(
                f"{name}_{key} is not finite{' and positive' if key == 'sigma' else ''} for a "
                "cluster in use in some draws of idata; give the trace as pm.sample returned it."
            )


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
        Points at which to evaluate.
    draws : GaussianDraws
        Draws in F features.

    Returns
    -------
    ndarray, shape (S, G)
    """
    density = np.empty((len(draws.weights), len(points)))
    for out, weights, mu, cov in zip(density, *draws, strict=True):
        is_occupied = weights > 0
        law = weights[is_occupied], mu[is_occupied], cov[is_occupied]
        out[:] = np.exp(log_gaussian_mixture(points, *law))
    return density


def conditioned(draws: GaussianDraws, values: np.ndarray) -> GaussianDraws:
    """Return the law of the first features given the others, eq. (11.11).

    Parameters
    ----------
    draws : GaussianDraws
        Draws in F + B features.
    values : ndarray, shape (B,)
        Of the last features.

    Returns
    -------
    GaussianDraws
        Draws in F features.
    """
    first, other = np.split(np.arange(draws.mu.shape[-1]), [draws.mu.shape[-1] - len(values)])
    of_other = draws.cov[..., other[:, None], other]
    gap = values - draws.mu[..., other]
    across = draws.cov[..., other[:, None], first]
    slopes = np.linalg.solve(of_other, across)
    mu = draws.mu[..., first] + (gap[..., None] * slopes).sum(-2)
    cov = draws.cov[..., first[:, None], first] - np.swapaxes(across, -1, -2) @ slopes
    distance = (gap * np.linalg.solve(of_other, gap[..., None])[..., 0]).sum(-1)
    with np.errstate(divide="ignore"):
        log_weights = np.log(draws.weights)
    log_weights -= 0.5 * (distance + np.linalg.slogdet(of_other)[1])
    # Weights relative to the largest: far from all clusters each density underflows.
    weights = np.exp(log_weights - log_weights.max(1, keepdims=True))
    return GaussianDraws(_normalised(weights), mu, cov)


def log_gaussian_mixture(
    points: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray
) -> np.ndarray:
    """Evaluate the log density of one mixture of Gaussians.

    Parameters
    ----------
    points : ndarray, shape (G, F)
    weights : ndarray, shape (K,)
        Positive.
    means : ndarray, shape (K, F)
    covariances : ndarray, shape (K, F, F)
        Positive definite.

    Returns
    -------
    ndarray, shape (G,)

    Raises
    ------
    ValueError
        If a covariance is not positive definite.
    """
    try:
        factors = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        raise ValueError(
            "the covariance of a cluster is not positive definite in some draws of idata; give the "
            "trace as pm.sample returned it."
        ) from None
    deviations = (points - means[:, None]).transpose(0, 2, 1)
    distance = (np.linalg.solve(factors, deviations) ** 2).sum(1)
    log_scale = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(1)
    log_norm = np.log(weights) - log_scale - points.shape[1] / 2 * np.log(2 * np.pi)
    return logsumexp(log_norm[:, None] - distance / 2, axis=0)
