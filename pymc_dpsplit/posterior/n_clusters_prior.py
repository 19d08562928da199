"""The prior of the number of clusters of the mixture of a trace."""

import numpy as np
import pymc as pm
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.trace import group_of
from pymc_dpsplit.prior.n_clusters import prior_n_clusters
from pymc_dpsplit.variables import find_mixtures

# Draws of alpha from its prior; given each of them the law is exact.
_N_DRAWS = 1000


def n_clusters_prior(idata: xr.DataTree, name: str, model: Model | None) -> xr.DataArray:
    """Prior law of the number of clusters, averaged over the prior of alpha.

    Parameters
    ----------
    idata : DataTree
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The model sampled; needed if `idata` has no draws from the prior.

    Returns
    -------
    DataArray of float64, dims (n_clusters,)
        As `prior_n_clusters` returns it; without a model, shares of the draws in the group
        ``prior`` of `idata`.

    Raises
    ------
    ValueError
        If there is neither.
    """
    mixture = None if model is None else find_mixtures(model).get(name)
    if mixture is not None:
        alpha = pm.draw(mixture.alpha, _N_DRAWS, random_seed=0)
        return prior_n_clusters(
            np.unique(alpha) if np.ptp(alpha) == 0 else alpha, _n_rows(idata, name)
        )
    drawn = idata["prior"].to_dataset() if "prior" in idata.children else {}
    if f"{name}_n_clusters" not in drawn:
        raise ValueError(
            f"idata has no draws of {name}_n_clusters in a group prior; give model=, with which "
            "idata was sampled, or as prior= what prior_n_clusters returns."
        )
    counts = np.bincount(drawn[f"{name}_n_clusters"].to_numpy().ravel())[1:]
    coords = {"n_clusters": np.arange(1, len(counts) + 1)}
    return xr.DataArray(counts / counts.sum(), dims="n_clusters", coords=coords)


def _n_rows(idata: xr.DataTree, name: str) -> int:
    """Number of rows of a mixture: of the data, or of a latent variable."""
    posterior = group_of(idata, "posterior")
    if name in posterior:
        return posterior[name].shape[2]
    if "observed_data" in idata.children and name in idata["observed_data"]:
        return len(idata["observed_data"][name])
    raise ValueError(
        f"neither observed_data nor posterior of idata has a variable {name}; give the trace "
        "as pm.sample returned it, sampled without var_names=."
    )
