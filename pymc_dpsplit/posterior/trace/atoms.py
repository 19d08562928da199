"""Atoms and weights of the draws of a mixture, as a trace records them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.trace.declared import as_floats
from pymc_dpsplit.posterior.trace.recorded import refuse_weights
from pymc_dpsplit.variables.log_density import kept_weights


class Atoms(NamedTuple):
    """The random measure of one draw.

    Attributes
    ----------
    weights : ndarray of float64, shape (K,)
    remainder : float
        Mass outside the atoms, including that of clusters that the trace does not record.
    parameters : dict
        Name to ndarray (K, ...).
    """

    weights: np.ndarray
    remainder: float
    parameters: dict[str, np.ndarray]


def atoms_of(
    posterior: xr.Dataset,
    name: str,
    parameters: Iterable[str],
    places: Iterable[tuple[int, ...]],
) -> Iterator[Atoms]:
    """Iterate over the random measures of draws, without a model.

    Parameters
    ----------
    posterior : Dataset
        With the variables of `DPMixture` or `finite_mixture`; weights of the latter sum to one.
    name : str
        Name of the mixture.
    parameters : iterable of str
        Names of the parameters of its component.
    places : iterable of tuple
        Indices of chain and draw of each draw.

    Yields
    ------
    Atoms
    """
    keys = ["weights", *parameters]
    is_infinite = f"{name}_new_weight" in posterior
    if is_infinite:
        keys += ["n_clusters", "new_weight"]
    columns = {
        key: as_floats(posterior[f"{name}_{key}"].transpose("chain", "draw", ...)) for key in keys
    }
    refuse_weights(columns["weights"], name)
    for place in places:
        drawn = {key: column[place] for key, column in columns.items()}
        recorded = drawn.pop("weights")
        n_clusters, left = len(recorded), 0.0
        if is_infinite:
            n_clusters, left = drawn.pop("n_clusters"), drawn.pop("new_weight")
        weights, remainder = kept_weights(n_clusters, left, recorded)
        yield Atoms(weights, remainder, {key: of[: len(weights)] for key, of in drawn.items()})
