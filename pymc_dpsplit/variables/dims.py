"""Dimensions of a mixture: those that the user or the data name, with their coordinates."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.variables.names import Names
from pymc_dpsplit.variables.observed import Observed

_RESERVED_DIMS = ("chain", "draw", "__sample__")


def refuse_reserved(name: str, model: Model) -> None:
    """Refuse a name of a mixture that is one of the dimensions of every trace.

    Parameters
    ----------
    name : str
    model : pymc.Model

    Raises
    ------
    ValueError
    """
    if model.name_for(name) in _RESERVED_DIMS:
        raise ValueError(
            f"name={name!r} is taken: it is that of a dimension of traces in ArviZ; choose another "
            "name."
        )


def entries_of(dims: Any) -> tuple[Any, ...] | None:
    """Return the entries of the argument `dims`, read once."""
    is_several = isinstance(dims, Iterable) and np.iterable(dims)  # an array of no axes is not
    is_one = isinstance(dims, str | bytes | Variable) or not is_several
    return None if dims is None else (dims,) if is_one else tuple(dims)


def without_dims(value: Any) -> Any:
    """Return a variable of `pymc.dims` as a plain tensor, and anything else as it is."""
    return value if dims_of(value) is None else value.values


def dims_of(value: Any) -> tuple[str, ...] | None:
    """Return the names of the axes of a variable of `pymc.dims`, None for anything else."""
    return getattr(getattr(value, "type", None), "dims", None)


def by_dims(observed: Any, dims: tuple[Any, ...] | None) -> tuple[Any, tuple[Any, ...] | None]:
    """Return data of `pymc.dims` as a plain tensor with its axes in the order of `dims`.

    Parameters
    ----------
    observed : array-like or variable
        What is not of `pymc.dims` is returned as it is.
    dims : tuple, optional
        By default those of the variable.

    Returns
    -------
    observed : array-like or TensorVariable
    dims : tuple or None

    Raises
    ------
    ValueError
        If the variable depends on variables of the model.
    """
    own = dims_of(observed)
    if own is None:
        return observed, dims
    if rvs_in_graph(observed):
        raise ValueError(
            "observed is an expression of pymc.dims that depends on variables of the model, which "
            "cannot be split into data and mean; give data.values - mean.values."
        )
    if dims is not None and sorted(map(str, dims)) == sorted(own):
        observed = observed.transpose(*dims)
    return observed.values, own if dims is None else dims


def checked_dims(
    dims: tuple[Any, ...] | None,
    shape: tuple[int, int],
    component: ComponentFamily,
    names: Names,
    name: str,
    model: Model,
) -> tuple[str, ...] | None:
    """Return the names of the dimensions of a mixture.

    Parameters
    ----------
    dims : tuple, optional
        As the user gives them; by default those of the names of the data, if these have names.
    shape : tuple of int
        Number of rows N and of features D.
    component : ComponentFamily
    names : Names
        Those of the data.
    name : str
        Name of the mixture.
    model : pymc.Model

    Returns
    -------
    tuple of str or None
        None if neither the user nor the data name anything.

    Raises
    ------
    ValueError
        If the names do not fit the data, the model or each other.
    """
    lengths = shape[: component.row_ndim + 1]
    if dims is None:
        if not names.is_named:
            return None
        target = model.name_for(name)
        dims = names.dims or (f"{target}_row", f"{target}_feature")[: len(lengths)]
    if len(dims) != len(lengths) or not all(isinstance(dim, str) for dim in dims):
        wanted = "two names" if component.row_ndim else "one name"
        raise ValueError(
            f"dims={shown(dims)} must name each dimension of observed (shape {lengths}); give "
            f"{wanted}."
        )
    if len(set(dims)) != len(dims):
        raise ValueError(f"dims={dims!r} names a dimension twice; give each its own name.")
    if names.dims is not None and set(names.dims) == set(dims) and names.dims != dims:
        raise ValueError(
            f"dims={dims!r} is not the order {names.dims!r} of the dimensions of observed; give "
            "observed.transpose(*dims)."
        )
    twins = [(f"{dim}_bis", length) for dim, length in zip(dims[1:], lengths[1:], strict=True)]
    for dim, length in [*zip(dims, lengths, strict=True), *twins]:
        _check_dim(dim, length, model)
    for dim, of_data in zip(dims, names.coords, strict=False):
        _refuse_other_order(dim, model.coords.get(dim), of_data)
    return tuple(dims)


def _check_dim(dim: str, length: int, model: Model) -> None:
    if dim in _RESERVED_DIMS or model.named_vars.tree_contains(dim):
        raise ValueError(
            f"dims holds {dim!r}, which is taken by ArviZ or by a variable of the model; give "
            "the dimension another name."
        )
    known = model.dim_lengths.get(dim)
    if known is not None and int(known.eval()) != length:
        raise ValueError(
            f"dims: dimension {dim!r} has length {int(known.eval())} in the model, but observed "
            f"has {length} there; make the coords and the data agree."
        )


def _refuse_other_order(dim: str, in_model: Any, of_data: Any) -> None:
    """Refuse a coordinate of the model with the names of the data, but in another order."""
    if in_model is None or of_data is None or len(in_model) != len(of_data):
        return
    are_same = [str(one) == str(other) for one, other in zip(in_model, of_data, strict=True)]
    if not all(are_same) and set(map(str, in_model)) == set(map(str, of_data)):
        at = are_same.index(False)
        raise ValueError(
            f"dims: the coordinate {dim!r} of the model has {shown(in_model[at])} at position "
            f"{at}, where observed has {shown(of_data[at])}; give both in one order."
        )


def add_names(dims: tuple[str, ...] | None, names: Names, model: Model) -> None:
    """Add the names of rows and features as coordinates, unless the model has others.

    Parameters
    ----------
    dims : tuple of str, optional
        From `checked_dims`.
    names : Names
    model : pymc.Model
    """
    for dim, coord in zip(dims or (), names.coords, strict=False):
        if coord is not None and dim not in model.dim_lengths:
            model.add_coord(dim, coord)


def number_of_rows(data: Observed, dims: tuple[str, ...] | None, model: Model) -> Any:
    """Return the number of rows as an expression, which changes with the data."""
    if dims is not None and dims[0] in model.dim_lengths:
        return model.dim_lengths[dims[0]]
    return data.shape[0] if data.values is None else data.values.shape[0]


def feature_dims(
    name: str, n_features: int, data_dims: tuple[str, ...] | None, model: Model
) -> tuple[str, str]:
    """Return the dimensions of features, adding missing ones to the model."""
    feature = f"{model.name_for(name)}_feature" if data_dims is None else data_dims[1]
    if feature not in model.coords:
        model.add_coord(feature, range(n_features))
    twin = f"{feature}_bis"
    if twin not in model.coords:
        labels = model.coords[feature]
        model.add_coord(twin, range(n_features) if labels is None else labels)
    return feature, twin
