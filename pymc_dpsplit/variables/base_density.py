"""Log density of the base measure over the rows in use."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.type import TensorType
from scipy import special

from pymc_dpsplit.components.base import Component
from pymc_dpsplit.variables.inputs import named_parameters
from pymc_dpsplit.variables.object_mode import ObjectModeOp

# What families use of `pytensor.tensor`, for numbers.
_NUMERICAL = SimpleNamespace(**vars(np), gammaln=special.gammaln)


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
        If all are constants nobody needs a gradient, and the density is evaluated in numpy;
        batched linear algebra takes PyTensor some twenty seconds to compile.

    Returns
    -------
    symbolic scalar
    """
    if all(isinstance(value, Constant) for value in hyperparameters):
        return _NumericalBase(component)(n_clusters, *parameters, *hyperparameters)
    in_use = pt.arange(parameters[0].type.shape[0]) < n_clusters
    safe = {}
    for name, parameter in zip(component.parameters, parameters, strict=True):
        mask = in_use.reshape((-1, *([1] * (parameter.type.ndim - 1))))
        # Row 0 is always in use.  Masked before the density, not after: 0 * NaN is NaN in
        # the gradient with respect to the hyperparameters.
        safe[name] = pt.where(mask, parameter, pt.as_tensor(parameter)[:1])
    values = dict(zip(component.hyperparameter_ndims(), hyperparameters, strict=True))
    return pt.where(in_use, component.log_base(safe, values, pt), 0.0).sum()


class _NumericalBase(ObjectModeOp):
    """`base_log_density` without a gradient."""

    __props__ = ("component",)

    def __init__(self, component: Component) -> None:
        self.component = component

    @override
    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [TensorType("float64", ())()])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [()]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        n_clusters, *rest = inputs
        parameters, values = named_parameters(self.component, rest, int(n_clusters))
        density = self.component.log_base(parameters, values, _NUMERICAL)
        output_storage[0][0] = np.asarray(density.sum())

    @override
    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        raise NotImplementedError(
            "The parameters of a Dirichlet-process mixture are sampled by DPSplitMerge, without "
            "a gradient."
        )
