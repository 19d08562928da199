"""Random variable of the missing entries of a mixture, which its step imputes."""

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

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.moves.forward import draw_labelled_rows, draw_labels
from pymc_dpsplit.moves.partition_law import PartitionLaw, remainder_law
from pymc_dpsplit.variables.inputs import named_parameters
from pymc_dpsplit.variables.log_density import kept_weights
from pymc_dpsplit.variables.measure import OwnedByStep
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import conditional_term


class MissingEntries(OwnedByStep, ObjectModeOp, RNGConsumerOp, MeasurableOp):
    """The missing entries of the data, in the order of rows and then of features.

    Inputs are a generator, the row and the feature of each entry, a plain value for it to start
    from, its mean, discount and strength of the law of the partition, the random measure and the
    hyperparameters.

    Parameters
    ----------
    target : str
        Name of the mixture.
    component : ComponentFamily
    n_missing : int
        Number of missing entries M.
    """

    __props__ = ("target", "component", "n_missing")
    _print_name = ("DPMissing", r"\operatorname{DPMissing}")
    name = "DPMissing"
    default_output = 1

    def __init__(self, target: str, component: ComponentFamily, n_missing: int) -> None:
        self.target = target
        self.component = component
        self.n_missing = n_missing

    @override
    def make_node(self, *inputs: Any) -> Apply:
        rng, *rest = inputs
        out = TensorType("float64", (self.n_missing,))()
        return Apply(self, [rng, *map(pt.as_tensor, rest)], [rng.type(), out])

    @override
    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def dist_params(self, node: Apply) -> list[Variable]:
        """Return the inputs that PyMC prints: the random measure."""
        return list(node.inputs[7 : 10 + len(self.component.parameters)])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [None, (pt.constant(self.n_missing),)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        rng, rows, features, _, mean, discount, strength, *rest = inputs
        n_clusters, new_weight, weights, *rest = rest
        rng = custom_rng_deepcopy(rng)
        weights, _ = kept_weights(n_clusters, new_weight, weights)
        parameters, values = named_parameters(self.component, rest, len(weights))
        distinct, position = np.unique(rows, return_inverse=True)
        law = remainder_law(PartitionLaw(float(discount), float(strength)), len(weights))
        labels = draw_labels(rng, len(distinct), law, weights)
        drawn = draw_labelled_rows(rng, self.component, labels, parameters, values)
        output_storage[0][0] = rng
        output_storage[1][0] = drawn.reshape(len(distinct), -1)[position, features] + mean

    @override
    def __str__(self) -> str:
        return f"{self.name}{{{self.target}}}"


@_logprob.register(MissingEntries)
def _missing_logprob(
    op: MissingEntries, values: Sequence[Any], *inputs: Variable, **kwargs: Any
) -> Variable:
    """Return zero: the density of the data integrates the missing entries out."""
    # Multiplied by zero, as PyMC requires that the graph contains every value, with a gradient.
    zeros: Any = values[0] * 0.0
    return conditional_term(zeros, pt.zeros_like(zeros), values)


@_support_point.register(MissingEntries)
def _missing_support_point(
    op: MissingEntries, rv: Variable, rng: Variable, rows: Variable, features: Variable,
    initial_values: Variable, *inputs: Variable,
) -> Variable:  # fmt: skip
    return initial_values
