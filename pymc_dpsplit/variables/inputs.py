"""Name the inputs of the ops of a mixture."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily


def named_hyperparameters(
    component: ComponentFamily, values: Sequence[Any]
) -> dict[str, np.ndarray]:
    """Return numerical hyperparameters by name."""
    names = component.hyperparameter_ndims()
    return {name: np.asarray(value) for name, value in zip(names, values, strict=True)}


def named_parameters(
    component: ComponentFamily, values: Sequence[Any], n_rows: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Split inputs into cluster parameters and hyperparameters, by name.

    Parameters
    ----------
    component : ComponentFamily
    values : sequence of ndarray
        Cluster parameters (L, ...), then hyperparameters.
    n_rows : int
        Number of rows of the parameters to keep.

    Returns
    -------
    parameters, hyperparameters : dict
        Name to ndarray.
    """
    n_parameters = len(component.parameters)
    parameters = zip(component.parameters, values[:n_parameters], strict=True)
    kept = {name: np.asarray(value)[:n_rows] for name, value in parameters}
    return kept, named_hyperparameters(component, values[n_parameters:])
