"""Log density of the base measure at the parameters of all clusters."""

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.variables.graph_parameters import graph_parameters_at


def base_log_density(
    component: ComponentFamily,
    n_clusters: Any,
    parameters: Sequence[Variable],
    hyperparameters: Sequence[Variable],
) -> Any:
    """Return the sum of the log density of the base measure over clusters, as a graph.

    Parameters
    ----------
    component : ComponentFamily
    n_clusters : symbolic scalar
        Number of clusters K.
    parameters : sequence of symbolic tensors
        Cluster parameters (L, ...), NaN from row K on.
    hyperparameters : sequence of symbolic tensors
        The sum has a gradient with respect to the hyperparameters only.

    Returns
    -------
    symbolic scalar
    """
    graph_parameters = graph_parameters_at(component, n_clusters, parameters)
    values = dict(zip(component.hyperparameter_ndims(), hyperparameters, strict=True))
    in_use = pt.arange(parameters[0].type.shape[0]) < n_clusters
    return pt.where(in_use, component.log_base(graph_parameters, values, pt), 0.0).sum()
