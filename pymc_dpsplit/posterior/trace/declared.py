"""Variables of a trace as a model declares them: their order of dimensions, shapes and types."""

from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.trace.recorded import refuse_dims, same_coords, whole_numbers
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.measure import ROLES

_OTHER = "give model= and the trace that belongs to it"


def as_declared(posterior: xr.Dataset, mixture: MixtureVariables, model: Model) -> xr.Dataset:
    """Order the dimensions of a mixture's variables as the model has them.

    Parameters
    ----------
    posterior : Dataset
    mixture : MixtureVariables
    model : pymc.Model

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If they are variables of another model.
    """
    name = mixture.name
    read = {*ROLES, *mixture.component.parameters}
    roles = {role: rv for role, rv in mixture.measure.items() if role in read}
    for role in roles:
        if f"{name}_{role}" not in posterior:
            raise ValueError(
                f"the posterior group holds no {name}_{role}; give the trace of this model, "
                "sampled without var_names=."
            )
    n_kept = kept_rows(posterior, name)
    refuse_other_order(posterior, model)
    _refuse_foreign(posterior, name, model)
    ordered = {}
    for role, rv in roles.items():
        ordered[f"{name}_{role}"] = values = _in_order(posterior[f"{name}_{role}"], model)
        # Rows may be fewer or more than the model keeps: max_clusters is no part of the law.
        is_single = role in ("n_clusters", "new_weight")
        _refuse_shape(values, () if is_single else (n_kept, *rv.type.shape[1:]))
    return posterior.assign(ordered)


def kept_rows(posterior: xr.Dataset, name: str) -> int:
    """Return how many rows of clusters each draw records."""
    weights = posterior[f"{name}_weights"].transpose("chain", "draw", ...)
    refuse_dims(weights, 1)
    return weights.shape[2]


def _refuse_foreign(posterior: xr.Dataset, name: str, model: Model) -> None:
    """Refuse parameters of clusters that are not in the model: they are of another family."""
    (cluster,) = set(posterior[f"{name}_weights"].dims) - {"chain", "draw"}
    for key, values in posterior.data_vars.items():
        is_own = str(key).startswith(f"{name}_") and cluster in values.dims
        if is_own and str(key) not in model.named_vars:
            raise ValueError(
                f"idata records {key} for each cluster, which the model does not have; {_OTHER}."
            )


def refuse_other_order(posterior: xr.Dataset, model: Model) -> None:
    """Refuse a dimension whose coordinates are those of the model in another order.

    Values are read by position, so that features would be taken for each other.

    Parameters
    ----------
    posterior : Dataset
    model : pymc.Model

    Raises
    ------
    ValueError
    """
    for dim in posterior.dims:
        if dim in ("chain", "draw") or dim not in posterior.coords:
            continue
        found, named = posterior[dim].to_numpy(), model.coords.get(str(dim))
        known = np.arange(len(found)) if named is None else np.asarray(named)
        if len(found) != len(known) or same_coords(found, known):
            continue
        if sorted(map(str, found)) == sorted(map(str, known)):
            remedy = f"sel({dim}=model.coords[{str(dim)!r}])" if named else f"sortby({str(dim)!r})"
            raise ValueError(
                f"{dim} has its coordinates in another order in idata than in the model; give "
                f"idata.{remedy}."
            )


def dims_of(name: str, ndim: int, model: Model) -> tuple[str, ...]:
    """Return the dimensions of a variable of the model in a trace, beside chain and draw.

    Parameters
    ----------
    name : str
        Name of the variable.
    ndim : int
        Number of dimensions, which have numbers if the model does not name them.
    model : pymc.Model

    Returns
    -------
    tuple of str
    """
    own = model.named_vars_to_dims.get(name) or (None,) * ndim
    return tuple(f"{name}_dim_{i}" if dim is None else str(dim) for i, dim in enumerate(own))


def as_variable(values: xr.DataArray, model: Model) -> np.ndarray:
    """Return draws of a variable of the model, of its type and with its dimensions in order.

    Parameters
    ----------
    values : DataArray
        With the name of the variable.
    model : pymc.Model

    Returns
    -------
    ndarray, shape (chain, draw, ...)

    Raises
    ------
    ValueError
        If they are those of a variable of another shape, or no numbers.
    """
    declared: Any = model.named_vars[values.name].type
    ordered = _in_order(values, model)
    _refuse_shape(ordered, declared.shape)
    dtype = np.dtype(declared.dtype)
    numbers = as_floats(ordered) if dtype.kind == "f" else whole_numbers(ordered).to_numpy()
    return np.asarray(numbers, dtype=dtype)


def as_floats(values: xr.DataArray) -> np.ndarray:
    """Return values as float64, in which a trace may not have been stored.

    Raises
    ------
    ValueError
        If they are no numbers.
    """
    if values.dtype.kind not in "fiu":
        raise ValueError(
            f"{values.name} is of type {values.dtype} in idata, which is not numeric; give the "
            "trace as pm.sample returned it."
        )
    return np.asarray(values.to_numpy(), dtype=np.float64)


def _in_order(values: xr.DataArray, model: Model) -> xr.DataArray:
    """Put chain and draw first, then the dimensions of a variable as the model has them."""
    own = [str(dim) for dim in model.named_vars_to_dims.get(str(values.name)) or ()]
    rest = [dim for dim in values.dims if dim not in ("chain", "draw")]
    return values.transpose("chain", "draw", *(own if set(own) == set(rest) else rest))


def _refuse_shape(values: xr.DataArray, shape: tuple[int | None, ...]) -> None:
    """Refuse a variable whose draws have another shape than it has in the model."""
    refuse_dims(values, len(shape))
    found = values.shape[2:]
    if any(of is not None and of != length for of, length in zip(shape, found, strict=True)):
        raise ValueError(
            f"{values.name} has shape {found} in each draw of idata, but {shape} in the model; "
            f"{_OTHER}."
        )
