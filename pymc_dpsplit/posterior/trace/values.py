"""Values that a mixture models: data, draws of a latent variable, or errors.

Observed data without a mean are the same in every draw.  Other values differ between draws; they
are pooled over several draws, so that their histogram estimates the posterior mean of the density.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.trace.draws import conditionings_of
from pymc_dpsplit.posterior.trace.groups import find_group, find_latent, find_observed, group_of
from pymc_dpsplit.posterior.trace.places import spread_draws, spread_places
from pymc_dpsplit.posterior.trace.replaced_data import refuse_replaced
from pymc_dpsplit.variables import MixtureVariables, find_mixtures
from pymc_dpsplit.variables.observed import values_of


@dataclass(frozen=True, eq=False)
class PlottedValues:
    """Values of one mixture.

    Attributes
    ----------
    values : DataArray, shape (N,) or (N, D)
        NaN where missing.
    kind : str
        Description for a legend.
    suffix : str
        Suffix of the names of axes.
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
        The sampled model, from which a mean is computed.
    num_samples : int
        Largest number of draws to read if values differ between draws.

    Returns
    -------
    PlottedValues

    Raises
    ------
    ValueError
        If the trace lacks the values, if the model is required, or if `pm.set_data` has replaced
        the data or their mean.
    """
    posterior = group_of(idata, "posterior")
    latent = find_latent(idata, name)
    if latent is not None:
        return PlottedValues(_pooled(latent, num_samples), f"draws of {name}", "")
    observed = _observed(idata, name, model)
    if observed is None:
        if find_group(idata, "observed_data") is None and not _is_latent(name, model):
            raise ValueError(
                f"idata has no group observed_data, which has the data of {name}; give model=, "
                "with which idata was sampled, or the DataTree that pm.sample returns, whole."
            )
        raise ValueError(
            f"neither observed_data nor posterior of idata has a variable {name}; give the trace "
            "as pm.sample returned it, sampled without var_names=."
        )
    if f"{name}_labels" not in posterior:
        return PlottedValues(observed, "data", "")
    mixture = None if model is None else find_mixtures(model).get(name)
    if mixture is None or model is None:
        raise ValueError(
            f"the data of {name} may have a mean of other variables, which the density is without; "
            "give model=, with which idata was sampled."
        )
    if "mean" not in mixture.rv.owner.op.extras:
        return PlottedValues(observed, "data", "")
    errors = _errors(idata, mixture, model, observed, num_samples)
    return PlottedValues(errors, "data less their mean", ", less its mean")


def mean_values(
    idata: xr.DataTree, name: str, model: Model | None, num_samples: int
) -> PlottedValues:
    """Return one row per observation; values that differ between draws are averaged.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The sampled model, from which a mean is computed.
    num_samples : int
        Largest number of draws to read if values differ between draws.

    Returns
    -------
    PlottedValues

    Raises
    ------
    ValueError
        If the trace lacks the values, if the model is required, or if `pm.set_data` has replaced
        the data or their mean.
    """
    shown = plotted_values(idata, name, model, num_samples)
    if shown.kind == "data":
        return shown
    latent, observed = find_latent(idata, name), _observed(idata, name, model)
    n_obs = len(observed) if observed is not None else 0
    n_obs = n_obs if latent is None else latent.shape[2]
    features = shown.values.shape[1:]
    rows = shown.values.to_numpy().reshape(-1, n_obs, *features).mean(0)
    named = shown.values[:n_obs].copy(data=rows)
    return PlottedValues(named, f"mean of {shown.kind}", shown.suffix)


def _observed(idata: xr.DataTree, name: str, model: Model | None) -> xr.DataArray | None:
    """Return the data of a mixture as the trace has them, or else the model."""
    observed = find_observed(idata, name)
    if observed is not None or model is None or name not in model.named_vars:
        return observed
    rv = model.named_vars[name]
    values = values_of(model.rvs_to_values[rv]) if rv in model.observed_RVs else None
    if not isinstance(values, np.ndarray):  # sparse, or none
        return None
    dims = model.named_vars_to_dims.get(name) or [f"{name}_dim_{i}" for i in range(values.ndim)]
    coords = {dim: list(model.coords[dim]) for dim in dims if model.coords.get(dim) is not None}
    return xr.DataArray(values, dims=dims, coords=coords, name=name)


def _is_latent(name: str, model: Model | None) -> bool:
    return model is not None and name in {rv.name for rv in model.free_RVs}


def _pooled(drawn: xr.DataArray, num_samples: int) -> xr.DataArray:
    """Concatenate the rows of several draws."""
    chain, draw = spread_draws(drawn, num_samples)
    rows = drawn.isel(chain=chain, draw=draw).transpose("sample", ...)
    kept = rows.drop_vars(["chain", "draw"], errors="ignore")
    return kept.stack(value=("sample", kept.dims[1]), create_index=False).transpose("value", ...)


def _errors(
    idata: xr.DataTree,
    mixture: MixtureVariables,
    model: Model,
    observed: xr.DataArray,
    num_samples: int,
) -> xr.DataArray:
    """Return data less their mean in several draws, without imputed entries."""
    posterior = group_of(idata, "posterior")
    places = spread_places(posterior, num_samples)
    refuse_replaced(idata, [mixture.data])
    is_missing = np.isnan(observed.to_numpy())
    found = [
        np.where(is_missing, np.nan, conditioning.rows.reshape(observed.shape))
        for conditioning in conditionings_of(posterior, mixture, model, places)
    ]
    dims = ("value", *observed.dims[1:])
    coords = {dim: observed.coords[dim] for dim in observed.dims[1:] if dim in observed.coords}
    return xr.DataArray(np.concatenate(found), dims=dims, coords=coords)
