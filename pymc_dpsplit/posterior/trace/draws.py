"""Iterators over the draws of a mixture in a trace."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.data.sparse_rows import Rows
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.posterior.trace.declared import as_declared, as_floats, as_variable, kept_rows
from pymc_dpsplit.posterior.trace.groups import find_group
from pymc_dpsplit.posterior.trace.recorded import counts_of, refuse_measure, refuse_weights
from pymc_dpsplit.variables import MixtureVariables, evaluator_of_draws
from pymc_dpsplit.variables.conditioning import Conditioning
from pymc_dpsplit.variables.log_density import kept_weights


class Atoms(NamedTuple):
    """The random measure of one draw, as the trace records it.

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
        From `recorded_posterior` if draws with unrecorded clusters must be refused.
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
    for measure, conditioning in zip(atoms, conditionings, strict=True):
        refuse_measure(*measure, mixture.name)
        yield MixtureDraw(*measure, *conditioning)


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


def has_dropped(posterior: xr.Dataset, name: str) -> bool:
    """Whether some draws of a mixture have more clusters than rows recorded."""
    return bool((counts_of(posterior, name) > kept_rows(posterior, name)).any())


def recorded_posterior(
    idata: xr.DataTree, mixture: MixtureVariables, labels_suffice: bool = False
) -> xr.Dataset:
    """Return the posterior group if it records all occupied clusters of a mixture.

    Parameters
    ----------
    idata : DataTree
    mixture : MixtureVariables
    labels_suffice : bool
        Whether stored labels would do in place of the clusters, which the message then says.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If a variable of the mixture is missing, or if draws have more clusters than rows.
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
    dropped = int((counts > kept).sum())
    if dropped:
        remedy = ', or with pm.sample(dpsplit={"keep_labels": True})' if labels_suffice else ""
        raise ValueError(
            f"{dropped} draws of {name} have more clusters than the {kept} "
            f"rows kept; sample with max_clusters={int(counts.max())} or more{remedy}."
        )
    return posterior
