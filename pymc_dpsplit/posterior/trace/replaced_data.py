"""Data of a model that are others than those with which a trace was sampled."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable

from pymc_dpsplit.data.blocks import blocks_of
from pymc_dpsplit.posterior.trace.declared import dims_of
from pymc_dpsplit.posterior.trace.groups import find_group
from pymc_dpsplit.variables.data_read import shared_data
from pymc_dpsplit.variables.observed import values_of

# Differences that are those of stored digits, relative to a number and to the largest one.
_DIGITS, _SMALL = 1e-5, 1e-8


def refuse_other_values(idata: xr.DataTree | xr.Dataset, model: Model) -> None:
    """Refuse a trace of which a variable was observed, or data were given, with other values.

    Parameters
    ----------
    idata : DataTree or Dataset
    model : pymc.Model

    Raises
    ------
    ValueError
    """
    refuse_other_observations(idata, model, model.observed_RVs)
    given = {str(of.name): of for of in model.data_vars if isinstance(of, SharedVariable)}
    _refuse(idata, "constant_data", given, model)


def refuse_other_observations(
    idata: xr.DataTree | xr.Dataset, model: Model, variables: Iterable[Variable]
) -> None:
    """Refuse a trace of which one of some variables was observed with other values.

    Parameters
    ----------
    idata : DataTree or Dataset
    model : pymc.Model
    variables : iterable of TensorVariable
        Observed variables of the model.

    Raises
    ------
    ValueError
    """
    observed = {str(rv.name): model.rvs_to_values[rv] for rv in variables}
    _refuse(idata, "observed_data", observed, model)


def refuse_replaced(idata: xr.DataTree | xr.Dataset, graphs: Iterable[Variable | None]) -> None:
    """Refuse a trace if `pm.set_data` has replaced data on which graphs depend since.

    Parameters
    ----------
    idata : DataTree or Dataset
    graphs : iterable of TensorVariable or None
        None is left out.

    Raises
    ------
    ValueError
    """
    _refuse(idata, "constant_data", {str(of.name): of for of in shared_data(graphs)})


def _refuse(
    idata: xr.DataTree | xr.Dataset,
    group: str,
    variables: Mapping[str, Any],
    model: Model | None = None,
) -> None:
    """Refuse variables of which a group of the trace records other values than the model has."""
    recorded = find_group(idata, group) if variables else None
    for name, variable in variables.items():
        known = values_of(variable)
        # A dimension has a coordinate of the name of its length.
        if recorded is None or name not in recorded.data_vars or not isinstance(known, np.ndarray):
            continue
        if values_differ(_turned(recorded[name], known.shape, model), known):
            raise ValueError(
                f"{name} has other values in idata than in the model; give the model with the "
                "data with which idata was sampled."
            )


def _turned(found: xr.DataArray, shape: tuple[int, ...], model: Model | None) -> np.ndarray:
    """Undo the transposition of a whole trace: by names, or by lengths without the model."""
    own = () if model is None else dims_of(str(found.name), found.ndim, model)
    if set(own) == set(found.dims):
        return found.transpose(*own).to_numpy()
    values = found.to_numpy()
    return values.T if values.shape[::-1] == shape != values.shape else values


def other_argument(argument: str, name: str) -> str:
    """Return what is said of a trace sampled with another `argument` of the mixture `name`."""
    return (
        f"idata was sampled with other {argument}= of {name} than the model has; give the model "
        "with which idata was sampled."
    )


def values_differ(recorded: np.ndarray, known: np.ndarray) -> bool:
    """Return whether an array of a trace has other values than that of a model.

    A trace may be stored with fewer digits.

    Parameters
    ----------
    recorded, known : ndarray
        Arrays that are not of numbers are not compared, unless their shapes differ.

    Returns
    -------
    bool
    """
    if recorded.shape != known.shape:
        return True
    if recorded.dtype.kind not in "fiub" or known.dtype.kind not in "fiub":
        return False
    # Scalars have no rows.
    recorded, known = np.atleast_1d(recorded), np.atleast_1d(known)
    return not all(_close(recorded[block], known[block]) for block in blocks_of(known.shape))


def _close(recorded: np.ndarray, known: np.ndarray) -> bool:
    largest = float(np.nanmax(np.abs(known), initial=0.0))
    atol = _SMALL * largest if np.isfinite(largest) else 0.0
    return np.allclose(recorded, known, rtol=_DIGITS, atol=atol, equal_nan=True)
