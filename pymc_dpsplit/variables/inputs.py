"""Names of the inputs that the ops of a mixture share."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dpsplit.components.declaration import Component


def named_hyperparameters(component: Component, values: Sequence[Any]) -> dict[str, np.ndarray]:
    """Pair numerical hyperparameters with their names."""
    names = component.hyperparameter_ndims()
    return {name: np.asarray(value) for name, value in zip(names, values, strict=True)}


def named_parameters(
    component: Component, values: Sequence[Any], n_rows: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Split numerical cluster parameters, then hyperparameters, and pair them with their names.

    Parameters
    ----------
    component : Component
    values : sequence of ndarray
    n_rows : int
        Rows of the parameters to keep.

    Returns
    -------
    parameters, hyperparameters : dict
    """
    n_parameters = len(component.parameters)
    parameters = zip(component.parameters, values[:n_parameters], strict=True)
    kept = {name: np.asarray(value)[:n_rows] for name, value in parameters}
    return kept, named_hyperparameters(component, values[n_parameters:])
