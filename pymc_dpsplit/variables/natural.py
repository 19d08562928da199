"""Natural parameters of the clusters: what graphs of densities read instead of the parameters."""

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import missing_gradients


class NaturalParameters(ObjectModeOp):
    """Natural parameters of each row; rows that are not in use repeat the first.

    Inputs are the number of clusters K and the parameters (L, ...); outputs, (L, ...) each, are
    in the order of `Component.natural_ndims`.  No row is NaN: masked densities of rows not in use
    have finite gradients, as 0 * NaN is NaN.

    Parameters
    ----------
    component : Component
    """

    __props__ = ("component",)

    def __init__(self, component: Component) -> None:
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
            for name, ndim in self.component.natural_ndims.items()
        ]
        return Apply(self, list(inputs), outputs)

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        n_rows = shapes[1][0]
        lengths = [shape[1] for shape in shapes[1:] if len(shape) > 1]
        n_features = lengths[0] if lengths else 1
        of_one = (
            self.component.shape_of(name, ndim, n_features)
            for name, ndim in self.component.natural_ndims.items()
        )
        return [(n_rows, *map(pt.as_tensor, lengths)) for lengths in of_one]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        n_clusters, *parameters = inputs
        n_rows = len(parameters[0])
        # Before the first draw no cluster is in use, but the first row is a legal one.
        n_used = min(max(int(n_clusters), 1), n_rows)
        used = (np.asarray(parameter)[:n_used] for parameter in parameters)
        natural = self.component.natural(dict(zip(self.component.parameters, used, strict=True)))
        for name, storage in zip(self.component.natural_ndims, output_storage, strict=True):
            value = np.asarray(natural[name], dtype=np.float64)
            storage[0] = np.concatenate((value, np.repeat(value[:1], n_rows - n_used, axis=0)))

    @override
    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        return missing_gradients(inputs, inputs)


def natural_at(
    component: Component, n_clusters: Any, parameters: Sequence[Variable]
) -> dict[str, Any]:
    """Natural parameters of each row, by name.

    Parameters
    ----------
    component : Component
    n_clusters : symbolic scalar
        Number of clusters K.
    parameters : sequence of symbolic tensors
        Cluster parameters (L, ...), NaN from row K on.

    Returns
    -------
    dict
        Name to symbolic tensor (L, ...), rows from K on repeating the first.
    """
    outputs = NaturalParameters(component).make_node(n_clusters, *parameters).outputs
    return dict(zip(component.natural_ndims, outputs, strict=True))
