"""Op that converts cluster parameters to the form that graphs of densities take."""

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import missing_gradients


class GraphParameters(ObjectModeOp):
    """Parameters of each row as graphs read them; rows without parameters repeat the first row.

    Inputs are the number of clusters K and the parameters (L, ...).  Outputs, (L, ...) each, are
    in the order of `graph_ndims` of the family.  Unused rows must not be NaN: their densities are
    masked, but the gradient of a masked NaN is 0 * NaN = NaN.  Rows of clusters that an initial
    value promises are NaN until the first draw.

    Parameters
    ----------
    component : ComponentFamily
    """

    __props__ = ("component",)

    def __init__(self, component: ComponentFamily) -> None:
        self.component = component

    @override
    def make_node(self, *inputs: Any) -> Apply:
        _, *parameters = inputs
        n_rows = parameters[0].type.shape[0]
        widths = zip(self.component.parameters.values(), parameters, strict=True)
        lengths = [parameter.type.shape[1] for ndim, parameter in widths if ndim]
        n_features = lengths[0] if lengths else 1
        outputs = [
            TensorType("float64", (n_rows, *self.component.shape_of(name, ndim, n_features)))()
            for name, ndim in self.component.graph_ndims.items()
        ]
        return Apply(self, list(inputs), outputs)

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        n_rows = shapes[1][0]
        lengths = [shape[1] for shape in shapes[1:] if len(shape) > 1]
        n_features = lengths[0] if lengths else 1
        of_one = (
            self.component.shape_of(name, ndim, n_features)
            for name, ndim in self.component.graph_ndims.items()
        )
        return [(n_rows, *map(pt.as_tensor, lengths)) for lengths in of_one]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        n_clusters, *parameters = inputs
        n_rows = len(parameters[0])
        # Before the first draw there are no clusters, but the first row is legal.
        n_used = min(max(int(n_clusters), 1), n_rows)
        if np.isnan(parameters[0][n_used - 1]).any():
            n_used = max(1, n_rows - int(np.isnan(parameters[0]).reshape(n_rows, -1).any(1).sum()))
        used = (np.asarray(parameter)[:n_used] for parameter in parameters)
        graph_parameters = self.component.graph_parameters(
            dict(zip(self.component.parameters, used, strict=True))
        )
        for name, storage in zip(self.component.graph_ndims, output_storage, strict=True):
            value = np.asarray(graph_parameters[name], dtype=np.float64)
            storage[0] = np.concatenate((value, np.repeat(value[:1], n_rows - n_used, axis=0)))

    @override
    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        return missing_gradients(inputs, inputs)


def graph_parameters_at(
    component: ComponentFamily, n_clusters: Any, parameters: Sequence[Variable]
) -> dict[str, Any]:
    """Return the parameters of each row as graphs read them, by name.

    Parameters
    ----------
    component : ComponentFamily
    n_clusters : symbolic scalar
        Number of clusters K.
    parameters : sequence of symbolic tensors
        Cluster parameters (L, ...), NaN from row K on.

    Returns
    -------
    dict
        Name to symbolic tensor (L, ...), in which rows from K on repeat the first.
    """
    outputs = GraphParameters(component).make_node(n_clusters, *parameters).outputs
    return dict(zip(component.graph_ndims, outputs, strict=True))
