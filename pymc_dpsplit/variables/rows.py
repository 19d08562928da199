"""Observations of a mixture: drawn from the random measure, labels summed out of the density."""

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.abstract import MeasurableOp, _logprob
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import infer_static_shape
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.random.utils import custom_rng_deepcopy
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.base import Component
from pymc_dpsplit.moves.density import fill_log_mixture
from pymc_dpsplit.moves.forward import draw_seating
from pymc_dpsplit.variables.inputs import named_parameters
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import mark_owned


def _kept(n_clusters: Any, new_weight: Any, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights of the rows in use, and the mass outside them.

    While all clusters have a row that mass is `new_weight`, which has digits that one minus
    the sum of the weights has lost.
    """
    if n_clusters > len(weights):
        return weights, max(0.0, 1.0 - weights.sum())
    return weights[: int(n_clusters)], float(new_weight)


class MixtureRows(ObjectModeOp, RNGConsumerOp, MeasurableOp):
    """Observations, independent given the random measure.

    Inputs are a generator, the number of rows, alpha, then the number of clusters, the new
    weight, the weights, each cluster parameter and each hyperparameter.  Rows that fall in
    the new weight are shared out by a Chinese restaurant with parameters from the base
    measure, so that rows drawn together follow the process exactly.

    Parameters
    ----------
    target : str
        Name of the mixture.
    component : Component
    n_features : int
        Number of features D of an observation.
    """

    __props__ = ("target", "component", "n_features")
    _print_name = ("DPMixture", r"\operatorname{DPMixture}")
    name = "DPMixture"
    default_output = 1

    def __init__(self, target: str, component: Component, n_features: int) -> None:
        self.target = target
        self.component = component
        self.n_features = n_features

    def _shape(self, n_rows: Any) -> tuple[Any, ...]:
        return (n_rows, *([self.n_features] * self.component.row_ndim))

    @override
    def make_node(self, *inputs: Any) -> Apply:
        rng, n_rows, *rest = inputs
        n_rows = pt.as_tensor(n_rows).astype("int64")
        _, static = infer_static_shape(self._shape(n_rows))
        out = TensorType("float64", static)()
        tensors = [pt.as_tensor(value) for value in rest]
        return Apply(self, [rng, n_rows, *tensors], [rng.type(), out])

    @override
    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def dist_params(self, node: Apply) -> list[Variable]:
        """Inputs that PyMC prints: not the number of rows, nor constants."""
        return list(node.inputs[3 : 6 + len(self.component.parameters)])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [None, self._shape(node.inputs[1])]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        rng, n_rows, alpha, n_clusters, new_weight, weights, *rest = inputs
        rng = custom_rng_deepcopy(rng)
        weights, _ = _kept(n_clusters, new_weight, weights)
        n_kept = len(weights)
        parameters, values = named_parameters(self.component, rest, n_kept)
        labels = np.searchsorted(np.cumsum(weights), rng.random(int(n_rows)), side="right")
        # A label beyond the last row is the remainder.
        outside = labels == n_kept
        labels[outside] = n_kept + draw_seating(rng, float(alpha), int(outside.sum()))
        n_new = int(labels.max(initial=n_kept - 1)) + 1 - n_kept
        fresh = self.component.draw_base(rng, values, n_new)
        joined = {name: np.concatenate((parameters[name], fresh[name])) for name in parameters}
        output_storage[0][0] = rng
        output_storage[1][0] = self.component.draw_rows(rng, joined, labels)

    @override
    def __str__(self) -> str:
        return f"{self.name}{{{self.target}}}"


class MixtureLogDensity(ObjectModeOp):
    """Log density of each observation under the mixture, docs/method.md, eq. (15).

    Inputs are the observations, then those of `MixtureRows` from the number of clusters on; alpha
    is not among them, so its gradient never passes through here.

    Parameters
    ----------
    component : Component
    """

    __props__ = ("component",)

    def __init__(self, component: Component) -> None:
        self.component = component

    @override
    def make_node(self, *inputs: Any) -> Apply:
        out = TensorType("float64", inputs[0].type.shape[:1])()
        return Apply(self, list(inputs), [out])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [(shapes[0][0],)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        value, n_clusters, new_weight, weights, *rest = inputs
        rows = np.asarray(value).reshape(value.shape[0], -1)
        out = np.empty(rows.shape[0])
        output_storage[0][0] = out
        if not len(out):
            return
        weights, remainder = _kept(n_clusters, new_weight, weights)
        parameters, values = named_parameters(self.component, rest, len(weights))
        shift = rows.mean(0)
        prior = self.component.prior(values, shift)
        params = self.component.pack(parameters, shift)
        with np.errstate(divide="ignore"):
            log_weights, log_rest = np.log(weights), float(np.log(remainder))
        fill_log_mixture(
            prior, np.ascontiguousarray(rows - shift), log_weights, params, log_rest, out
        )

    @override
    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        raise NotImplementedError(
            "The density of a Dirichlet-process mixture has no gradient; its weights and "
            "parameters are sampled by DPSplitMerge."
        )


@_logprob.register(MixtureRows)
def _rows_logprob(
    op: MixtureRows,
    values: Sequence[Variable],
    rng: Variable,
    n_rows: Variable,
    alpha: Variable,
    *inputs: Variable,
    **kwargs: Any,
) -> Variable:
    rows = pt.as_tensor(values[0]).astype("float64")
    density = MixtureLogDensity(op.component)(rows, *inputs)
    n_measure = 3 + len(op.component.parameters)
    return mark_owned(density, inputs[:n_measure])
