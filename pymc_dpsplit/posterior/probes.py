"""Log predictive density at a few probe points, draw by draw: it does not depend on numbering.

With the model it is that of any family, docs/method.md, eq. (15); without, the trace alone gives
that of the occupied clusters of Gaussian families.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import xarray as xr
from pymc.model import Model
from scipy.special import logsumexp

from pymc_dpsplit.data.fixed_rows import read_only
from pymc_dpsplit.posterior.density import is_gaussian, spread_places
from pymc_dpsplit.posterior.model_density import log_density_by_model
from pymc_dpsplit.posterior.plotted_values import plotted_values
from pymc_dpsplit.posterior.trace import group_of
from pymc_dpsplit.variables import find_mixtures

# Probe points are rows at these quantiles of the density: from nearly an outlier to a mode.
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# They are chosen among so many rows, by the density averaged over so many draws.
_MOST_ROWS, _MOST_DRAWS = 1000, 25

Places = Sequence[tuple[int, ...]]
Densities = Callable[[np.ndarray, Places], np.ndarray]


def probe_densities(idata: xr.DataTree, name: str, model: Model | None) -> xr.Dataset | None:
    """Log predictive density of every draw at five rows, evenly spread over its quantiles.

    Parameters
    ----------
    idata : DataTree
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The model sampled.

    Returns
    -------
    Dataset or None
        ``log_density[5 %]`` and so on, each (chain, draw) of float64; None if the trace lacks
        what they are computed from.
    """
    posterior = group_of(idata, "posterior")
    mixture = None if model is None else find_mixtures(model).get(name)
    densities: Densities | None
    if model is None or mixture is None:
        densities = _of_trace(posterior, name) if is_gaussian(idata, name) else None
    elif mixture.component.has_covariates:
        return None
    else:
        densities = partial(log_density_by_model, posterior, mixture, model)
    rows = _candidates(idata, name, model)
    if densities is None or rows is None:
        return None
    height = logsumexp(densities(rows, spread_places(posterior, _MOST_DRAWS)), axis=0)
    order = np.argsort(height)
    chosen = order[np.round(np.array(_LEVELS) * (len(order) - 1)).astype(int)]
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    found = densities(rows[chosen], list(np.ndindex(shape))).reshape(*shape, -1)
    return xr.Dataset(
        {
            f"log_density[{100 * level:g} %]": (("chain", "draw"), found[..., i])
            for i, level in enumerate(_LEVELS)
        },
        coords={"chain": posterior["chain"], "draw": posterior["draw"]},
    )


def _candidates(idata: xr.DataTree, name: str, model: Model | None) -> np.ndarray | None:
    """Complete rows (n, D), evenly spread; None if the trace holds none."""
    try:
        values = plotted_values(idata, name, model, _MOST_DRAWS).values.to_numpy()
    except ValueError:
        return None
    rows = values.reshape(len(values), -1)
    complete = np.flatnonzero(~np.isnan(rows).any(1))
    if len(complete) == 0:
        return None
    taken = np.linspace(0, len(complete) - 1, min(_MOST_ROWS, len(complete))).round().astype(int)
    return read_only(np.ascontiguousarray(rows[complete[taken]], dtype=np.float64))


def _of_trace(posterior: xr.Dataset, name: str) -> Densities:
    """Densities under the occupied clusters, which are Gaussian."""
    spread = "cov" if f"{name}_cov" in posterior else "sigma"
    keys = "weights", "mu", spread
    weights, mu, scale = (posterior[f"{name}_{key}"].to_numpy() for key in keys)

    def densities(rows: np.ndarray, places: Places) -> np.ndarray:
        found = np.empty((len(places), len(rows)))
        for out, place in zip(found, places, strict=True):
            n_clusters = int((weights[place] > 0).sum())
            means = mu[place][:n_clusters].reshape(n_clusters, -1)
            spreads = scale[place][:n_clusters]
            if spread == "sigma":
                spreads = spreads.reshape(n_clusters, -1, 1) ** 2 * np.eye(means.shape[1])
            out[:] = _log_gaussian_mixture(rows, weights[place][:n_clusters], means, spreads)
        return found

    return densities


def _log_gaussian_mixture(
    rows: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray
) -> np.ndarray:
    """Log density (n,) of rows (n, D) under clusters (K,), (K, D), (K, D, D)."""
    factors = np.linalg.cholesky(covariances)
    deviations = (rows - means[:, None]).transpose(0, 2, 1)
    distance = (np.linalg.solve(factors, deviations) ** 2).sum(1)
    log_scale = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(1)
    log_norm = np.log(weights) - log_scale - rows.shape[1] / 2 * np.log(2 * np.pi)
    return logsumexp(log_norm[:, None] - distance / 2, axis=0)
