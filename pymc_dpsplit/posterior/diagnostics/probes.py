"""Log predictive density at a few rows, in every draw: a label-invariant quantity.

With the model it is computed for any family, docs/method.md, eq. (5.1).  Without the model it is
computed for Gaussian families, from the occupied clusters only.  The rows are the same with and
without the model, so that both verdicts refer to the same quantities.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import xarray as xr
from pymc.model import Model
from scipy.special import logsumexp

from pymc_dpsplit.data.fixed_rows import read_only
from pymc_dpsplit.posterior.trace.declared import as_floats
from pymc_dpsplit.posterior.trace.gaussian_density import (
    gaussian_spread,
    log_gaussian_mixture,
    refuse_parameters,
    refuse_shapes,
)
from pymc_dpsplit.posterior.trace.groups import group_of
from pymc_dpsplit.posterior.trace.log_density import log_density_by_model
from pymc_dpsplit.posterior.trace.places import all_places, spread_places
from pymc_dpsplit.posterior.trace.recorded import refuse_weights
from pymc_dpsplit.posterior.trace.values import plotted_values
from pymc_dpsplit.variables import find_mixtures

# Quantiles of the density at which rows are chosen: from nearly an outlier to a mode.
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# Largest number of candidate rows, and of draws over which their density is averaged.
_MOST_ROWS, _MOST_DRAWS = 1000, 25

Places = Sequence[tuple[int, ...]]
Densities = Callable[[np.ndarray, Places], np.ndarray]


def probe_densities(idata: xr.DataTree, name: str, model: Model | None) -> xr.Dataset | None:
    """Compute the log predictive density of every draw at five rows.

    Parameters
    ----------
    idata : DataTree
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The sampled model.

    Returns
    -------
    Dataset or None
        ``log_density[5 %]`` and so on, named after the quantile of the row, each (chain, draw) of
        float64; None if the trace lacks the required variables.
    """
    posterior = group_of(idata, "posterior")
    mixture = None if model is None else find_mixtures(model).get(name)
    if mixture is not None and mixture.component.has_covariates:
        return None
    values = _values(idata, name, model)
    rows = None if values is None else _candidates(values.to_numpy())
    if values is None or rows is None:
        return None
    of_trace = None
    spread = gaussian_spread(idata, name, model)
    if spread is not None:
        refuse_shapes(posterior, name, values.shape[1:], spread)
        of_trace = _of_trace(posterior, name, spread)
    densities = of_trace
    if model is not None and mixture is not None:
        densities = partial(log_density_by_model, posterior, mixture, model)
    if densities is None:
        return None
    # For Gaussian families rows are chosen without the remainder, so that they do not depend on
    # whether the model is given.
    choosing = densities if of_trace is None else of_trace
    height = logsumexp(choosing(rows, spread_places(posterior, _MOST_DRAWS)), axis=0)
    order = np.argsort(height)
    chosen = order[np.round(np.array(_LEVELS) * (len(order) - 1)).astype(int)]
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    found = densities(rows[chosen], all_places(posterior)).reshape(*shape, -1)
    return xr.Dataset(
        {
            f"log_density[{100 * level:g} %]": (("chain", "draw"), found[..., i])
            for i, level in enumerate(_LEVELS)
        },
        coords={"chain": posterior["chain"], "draw": posterior["draw"]},
    )


def _values(idata: xr.DataTree, name: str, model: Model | None) -> xr.DataArray | None:
    """Return the rows of the mixture, (n,) or (n, D), None if the trace does not contain them."""
    try:
        return plotted_values(idata, name, model, _MOST_DRAWS).values
    except ValueError:
        return None


def _candidates(values: np.ndarray) -> np.ndarray | None:
    """Complete rows (n, D), evenly spread; None if there are none."""
    rows = values.reshape(len(values), -1)
    complete = np.flatnonzero(~np.isnan(rows).any(1))
    if len(complete) == 0:
        return None
    taken = np.linspace(0, len(complete) - 1, min(_MOST_ROWS, len(complete))).round().astype(int)
    return read_only(np.ascontiguousarray(rows[complete[taken]], dtype=np.float64))


def _of_trace(posterior: xr.Dataset, name: str, spread: str) -> Densities:
    """Return the function of densities under the occupied Gaussian clusters."""
    keys = "weights", "mu", spread
    weights, mu, scale = (as_floats(posterior[f"{name}_{key}"]) for key in keys)
    refuse_weights(weights, name)
    refuse_parameters(mu[weights > 0], scale[weights > 0], name, spread)

    def densities(rows: np.ndarray, places: Places) -> np.ndarray:
        found = np.empty((len(places), len(rows)))
        for out, place in zip(found, places, strict=True):
            n_clusters = int((weights[place] > 0).sum())
            means = mu[place][:n_clusters].reshape(n_clusters, -1)
            spreads = scale[place][:n_clusters]
            if spread == "sigma":
                spreads = spreads.reshape(n_clusters, -1, 1) ** 2 * np.eye(means.shape[1])
            out[:] = log_gaussian_mixture(rows, weights[place][:n_clusters], means, spreads)
        return found

    return densities
