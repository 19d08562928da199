"""Signs that the fit, not the chain, is doubtful: priors and families that do not suit the data."""

import numpy as np
import pymc as pm
import xarray as xr
from pymc.model import Model
from pytensor.graph.basic import Constant

from pymc_dpsplit.components.column_kinds import LARGE_DISPERSION, LARGE_MEAN
from pymc_dpsplit.components.independent_parts import IndependentParts
from pymc_dpsplit.components.poisson import Poisson
from pymc_dpsplit.components.spherical_normal import SphericalNormal
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.posterior.diagnostics.likelier_partition import likelier_partition
from pymc_dpsplit.posterior.trace.groups import find_observed
from pymc_dpsplit.posterior.trace.recorded import counts_of
from pymc_dpsplit.prior.n_clusters import n_clusters_under
from pymc_dpsplit.variables import MixtureVariables, find_mixtures

# More clusters than this many times the prior mode, and improbable ones, are surprising.
_MANY_TIMES = 5.0
_IMPROBABLE = 1e-3
_N_ALPHAS = 200
# Standard deviations of columns that differ more are on different scales.
_APART = 1e3
# Hyperparameters that set the scale of each column; one is a matrix.
_SCALES = ("b0", "psi0")


def doubts_of(
    idata: xr.DataTree, posterior: xr.Dataset, name: str, model: Model | None
) -> list[str]:
    """Return the reasons to doubt the fit, each with its remedy.

    Parameters
    ----------
    idata : DataTree
    posterior : Dataset
        Its group posterior.
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The sampled model, without which nothing is known of priors and families.

    Returns
    -------
    list of str
    """
    mixture = None if model is None else find_mixtures(model).get(name)
    observed = find_observed(idata, name)
    if model is None or mixture is None or observed is None:
        return []
    rows = observed.to_numpy().reshape(len(observed), -1)
    names = _names_of_columns(observed, rows.shape[1])
    return [
        *_doubts_of_number(posterior, mixture, mixture.items.number_of_observations(rows)),
        *_doubts_of_one_cluster(posterior, mixture, model),
        *_doubts_of_columns(rows, names, mixture),
    ]


def _doubts_of_columns(rows: np.ndarray, names: list[str], mixture: MixtureVariables) -> list[str]:
    """Return what the moments of columns tell, unless rows stand for different numbers of rows."""
    shared = mixture.items.shared
    if shared is not None and shared.has_counts:
        return []
    return [*_doubts_of_scales(rows, names, mixture), *_doubts_of_counts(rows, names, mixture)]


def _names_of_columns(observed: xr.DataArray, width: int) -> list[str]:
    if observed.ndim < 2 or observed.dims[1] not in observed.coords:
        return [str(d) for d in range(width)]
    return [str(name) for name in observed.coords[observed.dims[1]].values]


def _doubts_of_number(posterior: xr.Dataset, mixture: MixtureVariables, n_obs: int) -> list[str]:
    """Compare the number of clusters with its prior."""
    try:
        discounts, strengths = pm.draw(list(mixture.law), _N_ALPHAS, random_seed=0)
        law = n_clusters_under(np.ravel(discounts), np.ravel(strengths), n_obs)
    except (NotImplementedError, ValueError):  # an improper prior, or one that cannot be drawn from
        return []
    found, mode = float(counts_of(posterior, mixture.name).median()), int(law.idxmax())
    tail = float(law.sel(n_clusters=slice(int(found), None)).sum())
    if found < _MANY_TIMES * mode or tail > _IMPROBABLE:
        return []
    what, function = "alpha", "elicit_alpha"
    if mixture.is_finite:
        what, function = "the number of components", "prior_n_clusters"
    return [
        f"{found:.0f} clusters, where the prior of {what} expects {mode} (its mode; as many have "
        f"probability {tail:.0e}): the clusters of the family may be too narrow or of the wrong "
        f"shape for groups of these data; try another family or base measure, or give {what} a "
        f"prior that expects more, see {function}."
    ]


def _doubts_of_one_cluster(
    posterior: xr.Dataset, mixture: MixtureVariables, model: Model
) -> list[str]:
    """Say that chains in one cluster have missed a likelier partition, if k-means finds one."""
    found = likelier_partition(posterior, mixture, model)
    if found is None:
        return []
    return [
        f"one cluster in most draws, but a partition by k-means into {found.n_clusters} clusters "
        f"has a log joint density that is higher by {found.gain:.3g}, under the same alpha and "
        "hyperparameters: the chains have not found it; start them there or at a better one, with "
        'pm.sample(dpsplit={"start_labels": dps.find_map(model)}).'
    ]


def _doubts_of_scales(rows: np.ndarray, names: list[str], mixture: MixtureVariables) -> list[str]:
    """Compare the scales of columns with those that the base measure gives them."""
    scales = _prior_scales(mixture, rows.shape[1])
    if scales is None:
        return []
    sd = np.sqrt(moments_of(rows)[1])
    if not (sd > 0).any():
        return []
    relative = np.where(sd > 0, sd, np.nan) / scales
    high, low = int(np.nanargmax(relative)), int(np.nanargmin(relative))
    if not relative[high] > _APART * relative[low]:
        return []
    return [
        f"columns {names[high]} and {names[low]} have standard deviations {sd[high]:.3g} and "
        f"{sd[low]:.3g}, but the base measure gives them scales as if they were alike: clusters "
        "follow the first only; standardise the columns, or give the base measure of from_data."
    ]


def _prior_scales(mixture: MixtureVariables, n_features: int) -> np.ndarray | None:
    """Return a scale (D,) of each column in the base measure, None if it is not known."""
    if isinstance(mixture.component, SphericalNormal):
        return np.ones(n_features)
    for key in _SCALES:
        value = mixture.hyperparameters.get(key)
        if isinstance(value, Constant) and "mu0" in mixture.hyperparameters:
            numbers = np.asarray(value.data, np.float64)
            numbers = np.diagonal(numbers) if numbers.ndim == 2 else numbers
            return np.sqrt(np.broadcast_to(numbers, (n_features,)))
    return None


def _doubts_of_counts(rows: np.ndarray, names: list[str], mixture: MixtureVariables) -> list[str]:
    """Name the columns of a product that are too dispersed for the Poisson family."""
    component = mixture.component
    if not isinstance(component, IndependentParts):
        return []
    mean, variance = moments_of(rows)
    columns = component.columns_in_data(rows.shape[1])
    poisson = [d for part, of in columns.items() for d in of
               if isinstance(component.families[part], Poisson)]  # fmt: skip
    faulty = [d for d in poisson if variance[d] > LARGE_DISPERSION * mean[d]]
    if not faulty:
        return []
    worst = max(faulty, key=lambda d: variance[d] / mean[d])
    kind = "numeric" if mean[worst] > LARGE_MEAN else "overdispersed"
    more = f" (and {len(faulty) - 1} more columns like it)" if len(faulty) > 1 else ""
    return [
        f"column {names[worst]}{more} is taken for Poisson counts, but its variance is "
        f"{variance[worst] / mean[worst]:.3g} times its mean, so that it may be split into many "
        f'clusters: give kinds={{"{names[worst]}": "{kind}"}} to Product.from_data.'
    ]
