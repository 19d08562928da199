"""Labels of every draw, from a trace or an array of labels."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import generator_of
from pymc_dpsplit.posterior.partitions.label_arrays import labels_of_draws
from pymc_dpsplit.posterior.trace.groups import choose_mixture, find_labels
from pymc_dpsplit.posterior.trace.labels import sample_labels


def resolve_labels(
    idata: Any, model: Model | None, var_name: str | None, random_seed: Any
) -> xr.DataArray:
    """Return labels of every draw from a trace or an array of labels.

    Parameters
    ----------
    idata : DataTree, or DataArray or ndarray of int, shape (..., obs)
        A trace, or labels as from `sample_labels`.
    model : pymc.Model, optional
        The sampled model, by default that of the context; required for a trace without labels.
    var_name : str, optional
        Name of the mixture in the trace; required if the trace contains several.
    random_seed : int or numpy.random.Generator, optional
        Random seed for labels that are redrawn.

    Returns
    -------
    DataArray of int, shape (..., obs)

    Raises
    ------
    TypeError
        If it is neither a trace nor an array.
    ValueError
        If the trace lacks the mixture, or neither labels nor a model are available.
    """
    rng = generator_of("random_seed", random_seed)
    if not isinstance(idata, xr.DataTree | xr.Dataset):
        refuse_no_array(idata)
        return labels_of_draws(idata)
    name = choose_mixture(idata, var_name)
    model = Model.get_context(error_if_none=False) if model is None else model
    if model is not None:
        return sample_labels(idata, model=model, var_name=name, random_seed=rng)
    kept = find_labels(idata, name)
    if kept is not None:
        return kept
    raise ValueError(
        f"idata holds no {name}_labels, and to redraw them takes the model; give model=, with "
        "which idata was sampled."
    )


def refuse_no_array(idata: Any) -> None:
    """Refuse what is neither a trace nor an array.

    Raises
    ------
    TypeError
    """
    if not _is_array(idata):
        raise TypeError(
            f"idata is a {type(idata).__name__}; give the DataTree that pm.sample returns, or an "
            "array."
        )


def _is_array(given: Any) -> bool:
    """Return whether an array can be made of it: NumPy makes one of a list of any objects too."""
    if isinstance(given, Mapping | str | bytes):
        return False
    if isinstance(given, list | tuple):
        return all(np.isscalar(of) or _is_array(of) for of in given)
    return hasattr(given, "__array__") or isinstance(given, range)
