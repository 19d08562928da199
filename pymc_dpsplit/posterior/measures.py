"""The random measure in draws of a trace: what its posterior group records of each."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr

from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.log_density import kept_weights


class Measure(NamedTuple):
    """Atoms of one draw, and the mass outside them.

    Attributes
    ----------
    weights : ndarray of float64, shape (K,)
    remainder : float
    parameters : dict
        Name to ndarray (K, ...).
    """

    weights: np.ndarray
    remainder: float
    parameters: dict[str, np.ndarray]


def recorded_posterior(idata: xr.DataTree, mixture: MixtureVariables) -> xr.Dataset:
    """Return the posterior group, if it records every occupied cluster of a mixture.

    Parameters
    ----------
    idata : DataTree
    mixture : MixtureVariables

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If a variable of the mixture is missing, or draws have more clusters than rows.
    """
    name = mixture.name
    if "posterior" not in idata.children or f"{name}_weights" not in idata["posterior"]:
        raise ValueError(
            f"the posterior group holds no {name}_weights; give the trace of this model, "
            "sampled without var_names=."
        )
    posterior = idata["posterior"].to_dataset()
    counts = posterior[f"{name}_n_clusters"]
    dropped = int((counts > mixture.max_clusters).sum())
    if dropped:
        raise ValueError(
            f"{dropped} draws of {name} have more clusters than the {mixture.max_clusters} "
            f"rows kept; sample with max_clusters={int(counts.max())} or more, or with "
            'pm.sample(dpsplit={"keep_labels": True}).'
        )
    return posterior


def measures_of(
    posterior: xr.Dataset, mixture: MixtureVariables, places: Iterable[tuple[int, ...]]
) -> Iterator[Measure]:
    """Read the random measure of some draws.

    Parameters
    ----------
    posterior : Dataset
        Clusters that have no row are part of what is outside the atoms.
    mixture : MixtureVariables
    places : iterable of tuple
        Position of chain and draw of each.

    Yields
    ------
    Measure
    """
    name = mixture.name
    keys = ["n_clusters", "new_weight", "weights", *mixture.component.parameters]
    columns = {key: posterior[f"{name}_{key}"].to_numpy() for key in keys}
    for place in places:
        weights, remainder = kept_weights(
            columns["n_clusters"][place], columns["new_weight"][place], columns["weights"][place]
        )
        parameters = {
            key: columns[key][place][: len(weights)] for key in mixture.component.parameters
        }
        yield Measure(weights, remainder, parameters)
