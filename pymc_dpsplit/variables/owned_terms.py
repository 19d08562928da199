"""Terms of the log-probability that read differently while other step methods move.

The step of a mixture is the only one that moves its weights and parameters.  A step for another
variable sees them as shared variables, and then

* a term that depends on nothing else is a constant: evaluating it, over all observations, at
  every leapfrog would be most of the time of a run;
* what the other step must sample from is the density given the labels, while the likelihood of
  an observation has the labels summed out.

Such a term is made with both readings.  When a function is compiled, one of them is kept:
``free`` if some of the deciding variables, those of the mixture, is an input of the function, and
``held`` if all of them are shared or constant.
"""

from collections.abc import Sequence
from typing import Any, override

import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.graph.traversal import graph_inputs
from pytensor.link.numba.dispatch.basic import numba_funcify, numba_njit

from pymc_dpsplit.variables.object_mode import ObjectModeOp


class TwoReadings(Op):
    """Two readings of a term: inputs are `free`, `held`, then the deciding variables."""

    __props__ = ()
    view_map = {0: [0]}  # noqa: RUF012

    @override
    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [inputs[0].type()])

    @override
    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0]

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return shapes[:1]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True], *([[False]] * (len(node.inputs) - 2))]

    @override
    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        """Give the gradient to whichever reading is kept."""
        cotangent: Any = cotangents[0]
        zeros, deciding = pt.zeros_like(cotangent), inputs[2:]
        free: Variable = self(cotangent, zeros, *deciding)  # type: ignore[assignment]
        held: Variable = self(zeros, cotangent, *deciding)  # type: ignore[assignment]
        return [free, held, *(DisconnectedType()() for _ in deciding)]


@numba_funcify.register(TwoReadings)
def _first(op: TwoReadings, **kwargs: Any) -> Any:
    @numba_njit
    def first(free, held, *deciding):  # type: ignore[no-untyped-def]
        return free

    return first


def two_readings(free: Any, held: Any, deciding: Sequence[Variable]) -> Any:
    """Make a term that reads `held` while the step of the mixture holds `deciding`.

    Parameters
    ----------
    free, held : TensorVariable
        Of equal shape.
    deciding : sequence of TensorVariable
        Values of the weights and parameters of the mixture, and what else must be held.

    Returns
    -------
    TensorVariable
        `free` itself if the values are fixed already, by ``pm.do`` for instance: then they are
        data, and nothing would tell them from what a step method holds.
    """
    if not _has_free_input(deciding):
        return free
    return TwoReadings()(free, pt.cast(held, free.dtype), *deciding)


class MissingGradient(ObjectModeOp):
    """Gradient with respect to the first input, which does not exist; the rest decide.

    Zeros where the step of the mixture holds them, as nobody then uses it; evaluated, an error.
    """

    __props__ = ()

    @override
    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [inputs[0].type()])

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return shapes[:1]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        raise NotImplementedError(
            "The weights and parameters of a Dirichlet-process mixture have no gradient, as their "
            "number changes; sample the model with pm.sample, which gives them to DPSplitMerge."
        )


def missing_gradients(inputs: Sequence[Variable], measure: Sequence[Variable]) -> list[Variable]:
    """Gradients of an op that has none, one for each of its inputs.

    Parameters
    ----------
    inputs : sequence of TensorVariable
    measure : sequence of TensorVariable
        Values of the weights and parameters of the mixture.

    Returns
    -------
    list of TensorVariable
    """
    made: list[Variable] = []
    for variable in inputs:
        tensor: Any = variable
        is_real = tensor.type.dtype.startswith("float")
        made.append(missing_gradient(tensor, measure) if is_real else pt.zeros(tensor.shape))
    return made


def missing_gradient(wrt: Variable, measure: Sequence[Variable]) -> Variable:
    """Gradient with respect to `wrt` of an op that has none, see `MissingGradient`."""
    return MissingGradient()(wrt, *measure)  # type: ignore[return-value]


def _has_free_input(variables: Sequence[Variable]) -> bool:
    return any(
        not isinstance(root, SharedVariable | Constant) for root in graph_inputs(list(variables))
    )


@node_rewriter([TwoReadings])
def choose_reading(_fgraph: FunctionGraph, node: Apply) -> list[Any]:
    """Keep the reading that applies."""
    free, held, *deciding = node.inputs
    return [free if _has_free_input(deciding) else held]


@node_rewriter([MissingGradient])
def drop_missing_gradient(_fgraph: FunctionGraph, node: Apply) -> list[Any] | None:
    """Replace a missing gradient by zeros where nobody uses it."""
    wrt, *measure = node.inputs
    return None if _has_free_input(measure) else [pt.zeros_like(wrt)]


# Before canonicalisation (at 1), which then removes the zeros and what they leave unused; not as
# part of it, because PyMC canonicalises before it replaces variables by shared ones.
optdb.register(
    "dpsplit_choose_readings",
    dfs_rewriter(choose_reading, drop_missing_gradient),
    "fast_run",
    "fast_compile",
    position=0.5,
)
