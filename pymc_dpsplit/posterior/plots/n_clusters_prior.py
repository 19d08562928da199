"""Prior distribution of the number of clusters, for the mixture of a trace."""

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.trace.groups import (
    find_group,
    find_latent,
    find_observed,
    number_of_items,
)
from pymc_dpsplit.posterior.trace.hierarchical import hierarchical_in
from pymc_dpsplit.posterior.trace.recorded import counts_of, refuse_many
from pymc_dpsplit.posterior.trace.replaced_data import refuse_replaced
from pymc_dpsplit.prior.n_clusters import n_clusters_under
from pymc_dpsplit.variables import find_mixtures

# Number of draws of the law from its prior; the distribution given the law is exact.
_N_DRAWS = 1000


def n_clusters_prior(idata: xr.DataTree, name: str, model: Model | None) -> xr.DataArray:
    """Compute the prior distribution of the number of clusters, averaged over that of the law.

    Parameters
    ----------
    idata : DataTree
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The sampled model; required if `idata` has no draws from the prior.

    Returns
    -------
    DataArray of float64, dims (n_clusters,)
        As `prior_n_clusters` returns it; of an `HDPMixture`, relative frequencies of draws from its
        prior, and without a model those of the group ``prior`` of `idata`.

    Raises
    ------
    ValueError
        If there is neither a model nor such a group, or if `pm.set_data` has replaced what the law
        of the model depends on.
    """
    mixture = None if model is None else find_mixtures(model).get(name)
    if mixture is not None:
        refuse_replaced(idata, mixture.law)
        discounts, strengths = pm.draw(list(mixture.law), _N_DRAWS, random_seed=0)
        return n_clusters_under(np.ravel(discounts), np.ravel(strengths), _n_rows(idata, name))
    grouped = None if model is None else hierarchical_in(model, name)
    if grouped is not None:
        refuse_replaced(idata, grouped.concentrations.values())
        counts: Any = pm.draw(grouped.measure["n_clusters"], _N_DRAWS, random_seed=0)
        return _shares(counts)
    drawn = find_group(idata, "prior")
    if drawn is None or f"{name}_n_clusters" not in drawn:
        raise ValueError(
            f"idata has no draws of {name}_n_clusters in a group prior; give model=, with which "
            "idata was sampled, or as prior= what prior_n_clusters returns."
        )
    numbers = counts_of(drawn, name)
    refuse_many(numbers)
    return _shares(numbers.to_numpy().ravel())


def _shares(numbers: np.ndarray) -> xr.DataArray:
    """Return relative frequencies of numbers of clusters."""
    counts = np.bincount(numbers)[1:]
    coords = {"n_clusters": np.arange(1, len(counts) + 1)}
    return xr.DataArray(counts / counts.sum(), dims="n_clusters", coords=coords)


def _n_rows(idata: xr.DataTree, name: str) -> int:
    """Return the number of rows, or groups of rows, of the data or of the latent variable."""
    latent, observed = find_latent(idata, name), find_observed(idata, name)
    if latent is not None:
        return latent.shape[2]
    if observed is not None:
        return number_of_items(idata, name, len(observed))
    raise ValueError(
        f"neither observed_data nor posterior of idata has a variable {name}; give the trace "
        "as pm.sample returned it, sampled without var_names=."
    )
