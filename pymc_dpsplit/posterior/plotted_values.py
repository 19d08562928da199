"""What a density is plotted over: the values of which it is the density.

These are the data only where they are observed and have no mean of their own.  Else they differ
by draw, and those of several draws are taken together: their histogram estimates the same
average over draws as the line of the posterior mean.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.density import spread_draws, spread_places
from pymc_dpsplit.posterior.readings import readings_of
from pymc_dpsplit.posterior.trace import group_of
from pymc_dpsplit.variables import MixtureVariables, find_mixtures


@dataclass(frozen=True, eq=False)
class PlottedValues:
    """Values of one mixture.

    Attributes
    ----------
    values : DataArray, shape (N,) or (N, D)
        NaN where missing.
    kind : str
        What they are, for a legend.
    suffix : str
        What to add to the name of an axis.
    """

    values: xr.DataArray
    kind: str
    suffix: str


def plotted_values(
    idata: xr.DataTree, name: str, model: Model | None, num_samples: int
) -> PlottedValues:
    """Return the data, the draws of a latent variable, or the errors of a regression.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The model sampled, from which a mean is computed.
    num_samples : int
        Most draws to read where values differ by draw.

    Returns
    -------
    PlottedValues

    Raises
    ------
    ValueError
        If there are no such values in the trace, or the model is needed.
    """
    posterior = group_of(idata, "posterior")
    if name in posterior:
        return PlottedValues(_pooled(posterior[name], num_samples), f"draws of {name}", "")
    observed = idata["observed_data"].to_dataset() if "observed_data" in idata.children else {}
    if name not in observed:
        raise ValueError(
            f"neither observed_data nor posterior of idata has a variable {name}; give the trace "
            "as pm.sample returned it, sampled without var_names=."
        )
    if f"{name}_labels" not in posterior:
        return PlottedValues(observed[name], "data", "")
    mixture = None if model is None else find_mixtures(model).get(name)
    if mixture is None or model is None:
        raise ValueError(
            f"the data of {name} may have a mean of other variables, which the density is without; "
            "give model=, with which idata was sampled."
        )
    if "mean" not in mixture.rows.owner.op.extras:
        return PlottedValues(observed[name], "data", "")
    errors = _errors(posterior, mixture, model, observed[name], num_samples)
    return PlottedValues(errors, "data less their mean", ", less its mean")


def mean_values(
    idata: xr.DataTree, name: str, model: Model | None, num_samples: int
) -> PlottedValues:
    """Return one row for each observation: what differs by draw is averaged over draws.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The model sampled, from which a mean is computed.
    num_samples : int
        Most draws to read where values differ by draw.

    Returns
    -------
    PlottedValues

    Raises
    ------
    ValueError
        If there are no such values in the trace, or the model is needed.
    """
    shown = plotted_values(idata, name, model, num_samples)
    if shown.kind == "data":
        return shown
    latent = group_of(idata, "posterior").get(name)
    n_obs = idata["observed_data"][name].shape[0] if latent is None else latent.shape[2]
    features = shown.values.shape[1:]
    rows = shown.values.to_numpy().reshape(-1, n_obs, *features).mean(0)
    named = shown.values[:n_obs].copy(data=rows)
    return PlottedValues(named, f"mean of {shown.kind}", shown.suffix)


def _pooled(drawn: xr.DataArray, num_samples: int) -> xr.DataArray:
    """Rows (N,) or (N, D) of several draws, one after the other."""
    chain, draw = spread_draws(drawn, num_samples)
    rows = drawn.isel(chain=chain, draw=draw).transpose("sample", ...)
    kept = rows.drop_vars(["chain", "draw"], errors="ignore")
    return kept.stack(value=("sample", kept.dims[1]), create_index=False).transpose("value", ...)


def _errors(
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    observed: xr.DataArray,
    num_samples: int,
) -> xr.DataArray:
    """Data less their mean in several draws, entries that were imputed left out."""
    places = spread_places(posterior, num_samples)
    is_missing = np.isnan(observed.to_numpy())
    found = [
        np.where(is_missing, np.nan, reading.rows.reshape(observed.shape))
        for _, reading in readings_of(posterior, mixture, model, places)
    ]
    dims = ("value", *observed.dims[1:])
    coords = {dim: observed.coords[dim] for dim in observed.dims[1:] if dim in observed.coords}
    return xr.DataArray(np.concatenate(found), dims=dims, coords=coords)
