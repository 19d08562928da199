"""Iterators over the draws of a mixture in a trace."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.data.sparse_rows import Rows
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.posterior.trace.atoms import atoms_of
from pymc_dpsplit.posterior.trace.completed_draws import (
    Completion,
    labels_determine,
    with_recorded_labels,
)
from pymc_dpsplit.posterior.trace.declared import as_declared, as_variable, kept_rows
from pymc_dpsplit.posterior.trace.groups import find_group
from pymc_dpsplit.posterior.trace.recorded import counts_of, refuse_measure
from pymc_dpsplit.variables import MixtureVariables, evaluator_of_draws
from pymc_dpsplit.variables.conditioning import Conditioning


class MixtureDraw(NamedTuple):
    """One draw of a mixture.

    Attributes
    ----------
    weights, remainder, parameters
        As in `Atoms`.
    law : PartitionLaw
        Of the partition.
    values : dict
        Checked hyperparameters.
    rows : SparseRows, or ndarray of float64 or float32, shape (N, D)
        Observations without missing entries; must not be modified.
    """

    weights: np.ndarray
    remainder: float
    parameters: dict[str, np.ndarray]
    law: PartitionLaw
    values: dict[str, np.ndarray]
    rows: Rows


def draws_of(
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    places: Iterable[tuple[int, ...]],
) -> Iterator[MixtureDraw]:
    """Iterate over draws of a mixture.

    Parameters
    ----------
    posterior : Dataset
        From `recorded_posterior` if draws with unrecorded clusters must be completed or refused.
    mixture : MixtureVariables
    model : pymc.Model
    places : iterable of tuple
        Indices of chain and draw of each draw.

    Yields
    ------
    MixtureDraw

    Raises
    ------
    ValueError
        If the trace lacks a required variable, or is not of this model.
    """
    places = list(places)
    posterior = as_declared(posterior, mixture, model)
    atoms = atoms_of(posterior, mixture.name, mixture.component.parameters, places)
    conditionings = conditionings_of(posterior, mixture, model, places)
    completion = Completion(posterior, mixture, kept_rows(posterior, mixture.name))
    for place, measure, conditioning in zip(places, atoms, conditionings, strict=True):
        refuse_measure(*measure, mixture.name)
        yield MixtureDraw(*completion.completed(place, measure, conditioning), *conditioning)


def conditionings_of(
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    places: Iterable[tuple[int, ...]],
) -> Iterator[Conditioning]:
    """Iterate over the law of the partition, hyperparameters and observations of draws.

    Parameters
    ----------
    posterior : Dataset
    mixture : MixtureVariables
    model : pymc.Model
    places : iterable of tuple
        Indices of chain and draw of each draw.

    Yields
    ------
    Conditioning

    Raises
    ------
    ValueError
        If the trace lacks a required variable.
    """
    evaluator = evaluator_of_draws(mixture, model, [str(name) for name in posterior.data_vars])
    columns = {name: as_variable(posterior[name], model) for name in evaluator.inputs}
    for place in places:
        # Compiled functions take arrays, not the scalars of NumPy.
        yield evaluator.read({name: np.asarray(column[place]) for name, column in columns.items()})


def dropped_draws(counts: xr.DataArray, kept: int, remedy: str = "") -> str:
    """Return what is said of draws with more clusters than rows.

    Parameters
    ----------
    counts : DataArray of int, shape (chain, draw)
        Numbers of clusters, under the name of their variable.
    kept : int
        Number of rows.
    remedy : str
        What else than more rows would do.

    Returns
    -------
    str
    """
    name = str(counts.name).removesuffix("_n_clusters")
    return (
        f"{int((counts > kept).sum())} draws of {name} have more clusters than the {kept} "
        f"rows kept; sample with max_clusters={int(counts.max())} or more{remedy}."
    )


def has_dropped(posterior: xr.Dataset, name: str) -> bool:
    """Whether some draws of a mixture have more clusters than rows recorded."""
    return bool((counts_of(posterior, name) > kept_rows(posterior, name)).any())


def recorded_posterior(
    idata: xr.DataTree, mixture: MixtureVariables, labels_suffice: bool = False
) -> xr.Dataset:
    """Return the posterior group if all occupied clusters of a mixture can be had from it.

    Parameters
    ----------
    idata : DataTree
    mixture : MixtureVariables
    labels_suffice : bool
        Whether labels alone would do, also of a family that is not conjugate.

    Returns
    -------
    Dataset
        With recorded labels if draws have more clusters than rows; `draws_of` then completes them.

    Raises
    ------
    ValueError
        If a variable of the mixture is missing, or if draws have more clusters than rows, and
        either no labels or a family that is not conjugate.
    """
    name = mixture.name
    posterior = find_group(idata, "posterior")
    wanted = (f"{name}_weights", f"{name}_n_clusters")
    absent = [key for key in wanted if posterior is None or key not in posterior]
    if posterior is None or absent:
        raise ValueError(
            f"the posterior group holds no {absent[0]}; give the trace of this model, "
            "sampled without var_names=."
        )
    counts, kept = counts_of(posterior, name), kept_rows(posterior, name)
    kept = min(kept, mixture.max_clusters)
    if not (counts > kept).any():
        return posterior
    labelled = with_recorded_labels(posterior, idata, mixture)
    if labelled is not None:
        return labelled
    use_labels = labels_suffice or labels_determine(mixture)
    remedy = ', or with pm.sample(dpsplit={"keep_labels": True})' if use_labels else ""
    raise ValueError(dropped_draws(counts, kept, remedy))
