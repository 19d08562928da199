"""The last draw of every chain of a trace, as values from which a chain can go on."""

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.hierarchical_model.continuation import LastDraws
from pymc_dpsplit.hierarchical_model.lookup import find_hierarchical
from pymc_dpsplit.posterior.trace.declared import (
    as_variable,
    dims_of,
    kept_rows,
    refuse_other_order,
)
from pymc_dpsplit.posterior.trace.draws import draws_of
from pymc_dpsplit.posterior.trace.groups import find_labels, group_of
from pymc_dpsplit.posterior.trace.labels import refuse_other_data, refuse_too_many_atoms
from pymc_dpsplit.posterior.trace.places import all_places
from pymc_dpsplit.posterior.trace.recorded import counts_of
from pymc_dpsplit.posterior.trace.replaced_data import refuse_other_values
from pymc_dpsplit.posterior.trace.rows_in_groups import rows_in_groups
from pymc_dpsplit.topic_model.lookup import find_topic_models
from pymc_dpsplit.variables import MixtureVariables, find_mixtures


def last_draws(idata: xr.DataTree, model: Model) -> list[dict[str, np.ndarray]]:
    """Return the values of all free variables in the last draw of every chain.

    Parameters
    ----------
    idata : DataTree
    model : pymc.Model

    Returns
    -------
    list of dict
        Name of variable to ndarray, one dict for each chain.

    Raises
    ------
    ValueError
        If the model has topics; if the trace is of another model or of other data, lacks a free
        variable or draws between those that it holds, or does not hold all clusters of a last draw.
    """
    mixtures = find_mixtures(model)
    grouped = find_hierarchical(model)
    for name in find_topic_models(model):
        raise ValueError(
            f"{name} is an HDPTopics, the topics of whose tokens are not in a trace, so that no "
            "chain can go on from it; sample with step=Checkpoint(folder), which keeps them."
        )
    if not mixtures and not grouped:
        raise ValueError(
            "model has no mixture, and only those with one can be extended; give the model of a "
            "DPMixture with which idata was sampled."
        )
    posterior = group_of(idata, "posterior")
    _refuse_other_variables(posterior, model)
    _refuse_other_dims(posterior, model)
    _refuse_gaps(posterior)
    refuse_other_values(idata, model)
    last = posterior.isel(draw=[-1])
    for mixture in mixtures.values():
        refuse_other_data(idata, mixture, find_labels(idata, mixture.name))
        _refuse_dropped(last, mixture)
        for draw in draws_of(last, mixture, model, all_places(last)):
            refuse_too_many_atoms(draw.law, "sample anew, with more draws")
    for of_rows in grouped.values():
        refuse_other_data(idata, of_rows.as_mixture)
        _refuse_dropped(last, of_rows.as_mixture)
    columns = {str(rv.name): as_variable(last[rv.name], model)[:, 0] for rv in model.free_RVs}
    for name in (*mixtures, *grouped):
        # A weight that underflowed has no logarithm.
        rest = columns[f"{name}_new_weight"]
        np.maximum(rest, np.finfo(np.float64).tiny, out=rest)
    return [
        {name: np.asarray(column[chain]) for name, column in columns.items()}
        for chain in range(posterior.sizes["chain"])
    ]


def last_draws_in_groups(idata: xr.DataTree, model: Model) -> dict[str, LastDraws]:
    """Return weights and labels of the last draws of all hierarchical mixtures.

    Parameters
    ----------
    idata : DataTree
    model : pymc.Model

    Returns
    -------
    dict
        Name of mixture to `LastDraws`.

    Raises
    ------
    ValueError
        If the trace lacks labels, or has others than its numbers of clusters tell.
    """
    posterior, found = group_of(idata, "posterior"), {}
    for name in find_hierarchical(model):
        rows = rows_in_groups(idata, name)
        labels = rows.labels[:, -1]
        if (labels.max(axis=1) + 1 != counts_of(posterior, name).to_numpy()[:, -1]).any():
            raise ValueError(
                f"{name}_labels has other clusters than {name}_n_clusters in idata; give the trace "
                "as pm.sample returned it."
            )
        weights = posterior[f"{name}_weights"].transpose("chain", "draw", ...).to_numpy()
        found[name] = LastDraws(weights[:, -1], labels)
    return found


def _refuse_other_variables(posterior: xr.Dataset, model: Model) -> None:
    """Refuse a trace that lacks a free variable, or holds variables that the model lacks."""
    for rv in model.free_RVs:
        if rv.name not in posterior:
            raise ValueError(
                f"the posterior group holds no {rv.name}, from which a chain could go on; give the "
                "trace of this model, sampled without var_names=."
            )
    known = {str(variable.name) for variable in model.unobserved_RVs}
    for name in posterior.data_vars:
        if name not in known:
            raise ValueError(
                f"the posterior group holds {name}, of which the model can make no more draws; "
                "drop it, or give the model with which idata was sampled."
            )


def _refuse_other_dims(posterior: xr.Dataset, model: Model) -> None:
    """Refuse dimensions of other names, or values along them in another order, than new draws have.

    Draws over both would be a table of all pairs.  Dimensions that have numbers only, as in traces
    made by hand, have no other names.
    """
    for name, values in posterior.data_vars.items():
        own = dims_of(str(name), values.ndim - 2, model)
        found = tuple(str(dim) for dim in values.dims if dim not in ("chain", "draw"))
        named = {dim for dim in found if not dim.startswith(f"{name}_dim_")}
        if len(own) == len(found) and not named <= set(own):
            raise ValueError(
                f"{name} has the dimensions {found} in idata, but {own} in the model; give the "
                "trace with the names that pm.sample gave them."
            )
    refuse_other_order(posterior, model)


def _refuse_gaps(posterior: xr.Dataset) -> None:
    """Refuse draws that are not consecutive: more of them would be spaced otherwise."""
    draws = posterior["draw"].to_numpy()
    if draws.dtype.kind not in "iu" or (np.diff(draws) != 1).any():
        raise ValueError(
            "the draws of idata are not consecutive, so that more of them would be spaced "
            "otherwise; give the trace before draws were selected."
        )


def _refuse_dropped(last: xr.Dataset, mixture: MixtureVariables) -> None:
    """Refuse last draws with clusters that the trace does not record."""
    counts, kept = counts_of(last, mixture.name), kept_rows(last, mixture.name)
    if int(counts.max()) > kept:
        raise ValueError(
            f"the last draws of {mixture.name} have up to {int(counts.max())} clusters, of which "
            f"the largest {kept} were recorded; sample anew with max_clusters={int(counts.max())} "
            "or more."
        )
