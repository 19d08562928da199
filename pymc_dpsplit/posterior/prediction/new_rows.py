"""Validation of the new rows of `predict`, with their coordinates."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.components.margins import as_new_rows
from pymc_dpsplit.variables import MixtureVariables

_DIM = "new_row"


@runtime_checkable
class TakesCovariates(Protocol):
    """A family whose density of a row may depend on covariates of the row."""

    def with_covariates(self, covariates: Any, names: Sequence[Any] | None) -> Any:
        """Return the family of rows with other covariates, and the same clusters."""


class NewRows(NamedTuple):
    """New rows of a mixture.

    Attributes
    ----------
    values : ndarray of float64 or float32, shape (M, D)
        NaN where missing; with their covariates, if they have any.
    component : ComponentFamily
        The family of `values`, with the clusters of the mixture.
    dim : str
        Name of the dimension of rows.
    coords : dict
        Coordinates of the rows, if they have any.
    """

    values: np.ndarray
    component: ComponentFamily
    dim: str
    coords: dict[str, Any]


def read_new(new: Any, mixture: MixtureVariables, model: Model, covariates: Any) -> NewRows:
    """Check new rows, and reorder named columns to match the model.

    Parameters
    ----------
    new : array-like or frame, shape (M,) or (M, D)
    mixture : MixtureVariables
    model : pymc.Model
    covariates : array-like or frame, shape (M,) or (M, P), optional

    Returns
    -------
    NewRows

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    feature = _feature_dim(mixture, model)
    names = feature_names_of(mixture, model)
    ordered: Any = mixture.component.read_table(new)[1]
    if ordered is new and isinstance(new, Mapping):
        raise ValueError(
            f"new is a {type(new).__name__} of columns, which rows of "
            f"{type(mixture.component).__name__} are not read from; give an array or a frame."
        )
    if isinstance(new, xr.DataArray):
        ordered = _ordered_array(new, feature, names)
    elif ordered is new and hasattr(new, "columns") and names is not None:
        ordered = _ordered_frame(new, list(names))
    shape = tuple(getattr(ordered, "shape", np.shape(ordered)))
    _refuse_shape(shape, mixture)
    component = _family_of_new(mixture, covariates)
    try:
        values = rows_of(ordered, mixture.component.row_ndim, may_miss=True)
        if isinstance(mixture.component, LinearRegression) and covariates is not None:
            values = mixture.component.joined(covariates, values)
        values = as_new_rows(component, values)
    except ValueError as error:
        # The checks are those of `observed`, whose name is in their messages.
        raise ValueError(str(error).replace("observed", "new")) from None
    return NewRows(
        values, component, *row_labels(new if isinstance(ordered, np.ndarray) else ordered)
    )


def _feature_dim(mixture: MixtureVariables, model: Model) -> str | None:
    dims = list(model.named_vars_to_dims.get(mixture.name) or ())
    return str(dims[1]) if len(dims) > 1 else None


def feature_names_of(mixture: MixtureVariables, model: Model) -> list[Any] | None:
    """Return the coordinate of the features of a mixture, None if they have none."""
    feature = _feature_dim(mixture, model)
    names = None if feature is None else model.coords.get(feature)
    return None if names is None else list(names)


def _family_of_new(mixture: MixtureVariables, covariates: Any) -> ComponentFamily:
    """Return the family of new rows together with their covariates."""
    component = mixture.component
    if component.has_covariates:
        if covariates is None:
            raise ValueError(
                f"new holds rows without covariates, on which those of {mixture.name} depend; "
                "give covariates=, one row for each."
            )
        if isinstance(component, LinearRegression):
            return component.with_covariates_in_rows()
        assert isinstance(component, TakesCovariates)
        return component.with_covariates(covariates, None)
    if covariates is not None:
        raise ValueError(
            f"covariates are given, but {mixture.name} was declared without any; leave them out."
        )
    return component


def _refuse_shape(shape: tuple[int, ...], mixture: MixtureVariables) -> None:
    """Refuse rows of another shape than those of the mixture."""
    wanted = ("M", mixture.n_features) if mixture.component.row_ndim else ("M",)
    if len(shape) == len(wanted) and shape[1:] == wanted[1:]:
        return
    shown = f"(M, {mixture.n_features})" if mixture.component.row_ndim else "(M,)"
    raise ValueError(
        f"new has shape {shape}, but rows of {mixture.name} have shape {shown}; give M rows with "
        "the features of the data, a single one as new[None]."
    )


def _ordered_frame(new: Any, names: list[Any]) -> Any:
    """Select the columns of a frame by the names of features in the model."""
    columns = list(new.columns)
    if set(names) <= set(columns):
        return new[names]
    absent = [name for name in names if name not in columns]
    if all(isinstance(name, str) for name in [*names, *columns]):
        raise ValueError(
            f"new has no column {absent[0]!r}, a feature of the model; give a frame with the "
            f"columns {names}, or an array with the features in that order."
        )
    return new


def _ordered_array(new: xr.DataArray, feature: str | None, names: Any) -> xr.DataArray:
    """Move the dimension of features to the end, in the order of the model."""
    if feature is None or feature not in new.dims:
        return new
    ordered = new.transpose(..., feature)
    if names is None or feature not in new.coords:
        return ordered
    absent = set(names) - set(new.coords[feature].values.tolist())
    if absent:
        raise ValueError(
            f"new has no {feature} {absent.pop()!r}; give all those of the model, {list(names)}."
        )
    return ordered.sel({feature: list(names)})


def row_labels(new: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of the dimension of rows, and their coordinates."""
    if isinstance(new, xr.DataArray):
        dim = str(new.dims[0])
        return dim, {dim: new.coords[dim].values} if dim in new.coords else {}
    index = getattr(new, "index", None)
    # `index` is a method of lists.
    return _DIM, {} if index is None or callable(index) else {_DIM: np.asarray(index)}
