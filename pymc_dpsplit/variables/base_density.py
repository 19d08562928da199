"""Log density of the base measure over the rows in use."""

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.variables.natural import natural_at


def base_log_density(
    component: Component,
    n_clusters: Any,
    parameters: Sequence[Variable],
    hyperparameters: Sequence[Variable],
) -> Any:
    """Sum of the log density of the base measure over the rows in use.

    Parameters
    ----------
    component : Component
    n_clusters : symbolic scalar
        Number of clusters K.
    parameters : sequence of symbolic tensors
        Cluster parameters (L, ...), NaN from row K on.
    hyperparameters : sequence of symbolic tensors
        The sum has a gradient with respect to these alone.

    Returns
    -------
    symbolic scalar
    """
    natural = natural_at(component, n_clusters, parameters)
    values = dict(zip(component.hyperparameter_ndims(), hyperparameters, strict=True))
    in_use = pt.arange(parameters[0].type.shape[0]) < n_clusters
    return pt.where(in_use, component.log_base(natural, values, pt), 0.0).sum()
