"""The random measure of a mixture: one draw gives weights and parameters of all clusters.

The measure is one node with several outputs, each of them a free variable of the model.  Weights
and parameters are drawn together and have a joint density, which a component family states
once, so nothing has to be factorised.
"""

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import _support_point
from pymc.logprob.abstract import MeasurableOp, _logprob
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.random.utils import custom_rng_deepcopy
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.base import Component
from pymc_dpsplit.moves.forward import (
    draw_block_sizes,
    draw_new_weight,
    draw_occupied_weights,
)
from pymc_dpsplit.variables.base_density import base_log_density
from pymc_dpsplit.variables.inputs import named_hyperparameters
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import mark_owned

# Outputs before the cluster parameters; output 0 of the node is the generator.
ROLES = ("n_clusters", "new_weight", "weights")


def parameter_shapes(component: Component, max_clusters: int, n_features: int) -> list[Any]:
    """Shape of the variable that holds each parameter, rows first."""
    ndims = component.parameters.values()
    return [(max_clusters, *([n_features] * ndim)) for ndim in ndims]


def pad_rows(values: np.ndarray, shape: tuple[int, ...], fill: float) -> np.ndarray:
    """Copy `values` (K, ...) to the first rows of a new array; the first L if K > L."""
    padded = np.full(shape, fill)
    n_kept = min(values.shape[0], shape[0])
    padded[:n_kept] = values[:n_kept]
    return padded


class RandomMeasure(ObjectModeOp, RNGConsumerOp, MeasurableOp):
    """Occupied part of a Dirichlet process after `n_obs` observations.

    Inputs are a generator, alpha and the hyperparameters; outputs the generator, the number of
    clusters K, the weight of everything not yet seen, the weights (L,) and each cluster
    parameter (L, ...).  Clusters are in order of decreasing weight; rows from K on have weight
    0 and NaN parameters; if K > L the largest L are kept.

    Parameters
    ----------
    target : str
        Name of the mixture.
    component : Component
        Family; its hyperparameters enter as inputs, those it was declared with are not used.
    n_obs : int
        Number of observations.
    n_features : int
        Number of features D of an observation.
    max_clusters : int
        Number of rows L.
    """

    __props__ = ("target", "component", "n_obs", "n_features", "max_clusters")
    _print_name = ("DPMeasure", r"\operatorname{DPMeasure}")
    name = "DPMeasure"

    def __init__(
        self, target: str, component: Component, n_obs: int, n_features: int, max_clusters: int
    ) -> None:
        self.target = target
        self.component = component
        self.n_obs = n_obs
        self.n_features = n_features
        self.max_clusters = max_clusters

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """Shape of every output except the generator."""
        shapes = parameter_shapes(self.component, self.max_clusters, self.n_features)
        return [(), (), (self.max_clusters,), *shapes]

    @override
    def make_node(self, *inputs: Any) -> Apply:
        rng, *numbers = inputs
        tensors = [pt.as_tensor(value).astype("float64") for value in numbers]
        dtypes = ["int64"] + ["float64"] * (len(self.output_shapes) - 1)
        outputs = [
            TensorType(dtype, shape)()
            for dtype, shape in zip(dtypes, self.output_shapes, strict=True)
        ]
        return Apply(self, [rng, *tensors], [rng.type(), *outputs])

    @override
    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def dist_params(self, node: Apply) -> list[Variable]:
        """Inputs that PyMC prints."""
        return list(node.inputs[1:])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [None, *(tuple(map(pt.constant, shape)) for shape in self.output_shapes)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        rng, alpha, *hyperparameters = inputs
        rng = custom_rng_deepcopy(rng)
        values = named_hyperparameters(self.component, hyperparameters)
        sizes = draw_block_sizes(rng, float(alpha), self.n_obs)
        new_weight = draw_new_weight(rng, float(alpha), self.n_obs)
        weights = draw_occupied_weights(rng, sizes, new_weight)
        n_kept = min(len(sizes), self.max_clusters)
        parameters = self.component.draw_base(rng, values, n_kept)
        drawn = [rng, np.asarray(len(sizes)), np.asarray(new_weight)]
        drawn.append(pad_rows(weights, (self.max_clusters,), 0.0))
        shapes = parameter_shapes(self.component, self.max_clusters, self.n_features)
        for name, shape in zip(self.component.parameters, shapes, strict=True):
            drawn.append(pad_rows(parameters[name], shape, np.nan))
        for storage, value in zip(output_storage, drawn, strict=True):
            storage[0] = value

    @override
    def __str__(self) -> str:
        return f"{self.name}{{{self.target}}}"


@_logprob.register(RandomMeasure)
def _measure_logprob(
    op: RandomMeasure,
    values: Sequence[Any],
    rng: Variable,
    alpha: Any,
    *hyperparameters: Variable,
    **kwargs: Any,
) -> list[Any]:
    """Log-probability terms of the outputs, docs/method.md, eq. (5).

    As a function of alpha the posterior of the measure given the partition is
    alpha^K w_rest^(alpha - 1); factors without alpha, such as the product of w_k^(n_k - 1), belong
    to the step, which draws the measure exactly, and are left out.  The first parameter
    carries the joint density of all of them.
    """
    if len(values) != len(op.output_shapes):
        raise NotImplementedError(
            f"The variables of the mixture {op.target!r} have a joint log-probability; give a "
            "value for each of them."
        )
    n_clusters, new_weight, _, *parameters = values
    base = base_log_density(op.component, n_clusters, parameters, hyperparameters)
    zeros = [pt.zeros((), dtype="float64") for _ in parameters]
    return [
        n_clusters * pt.log(alpha),
        (alpha - 1.0) * pt.log(new_weight),
        zeros[0],
        mark_owned(base, [n_clusters, *parameters]),
        *zeros[1:],
    ]


class CentralParameters(ObjectModeOp):
    """Cluster parameters with one row in use: a central one of the base measure."""

    __props__ = ("measure",)

    def __init__(self, measure: RandomMeasure) -> None:
        self.measure = measure

    @override
    def make_node(self, *inputs: Any) -> Apply:
        shapes = self.measure.output_shapes[len(ROLES) :]
        return Apply(self, list(inputs), [TensorType("float64", s)() for s in shapes])

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        component = self.measure.component
        central = component.central(named_hyperparameters(component, inputs))
        for name, storage, out in zip(
            component.parameters, output_storage, node.outputs, strict=True
        ):
            storage[0] = pad_rows(central[name][None], out.type.shape, np.nan)


@_support_point.register(RandomMeasure)
def _measure_support_point(
    op: RandomMeasure, rv: Variable, rng: Variable, alpha: Variable, *hyperparameters: Variable
) -> Variable:
    """One cluster of all observations, at a central parameter of the base measure."""
    role = rv.owner.outputs.index(rv) - 1
    new_weight = 1.0 / (op.n_obs + 1.0)
    if role >= len(ROLES):
        return CentralParameters(op).make_node(*hyperparameters).outputs[role - len(ROLES)]
    weights = pad_rows(np.array([1.0 - new_weight]), (op.max_clusters,), 0.0)
    return pt.constant([np.int64(1), new_weight, weights][role])
