"""Terms of the log-probability that take another form in other step methods.

Only the step of a mixture moves its weights and parameters.  In the step method of another
variable they are shared variables, and then

* a term that depends on nothing else is constant; evaluating it for all observations at every
  leapfrog step would take most of the run time;
* the step method must sample from the density given the labels, whereas the likelihood of an
  observation has the labels summed out.

Such a term is therefore created in two forms, and one is selected when a function is compiled:
``free`` if at least one of the deciding variables, those of the mixture, is an input of the
function, and ``fixed`` if all of them are shared or constant.  A rewrite selects it, and removes
the other form.  Modes without rewrites compute both, and the op returns the one that applies.
"""

from collections.abc import Sequence
from typing import Any, override

import numpy as np
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


class ConditionalTerm(Op):
    """Term with two forms: inputs are `free`, `fixed`, then the deciding variables."""

    __props__ = ()
    # PyTensor allows a view of one input, so `fixed` is copied.
    view_map = {0: [0]}  # noqa: RUF012

    @override
    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [inputs[0].type()])

    @override
    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        free, fixed, *_ = inputs
        output_storage[0][0] = free if _has_free_input(node.inputs[2:]) else fixed.copy()

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
        """Pass the gradient to the form that will be selected."""
        cotangent: Any = cotangents[0]
        zeros, deciding = pt.zeros_like(cotangent), inputs[2:]
        free: Variable = self(cotangent, zeros, *deciding)  # type: ignore[assignment]
        fixed: Variable = self(zeros, cotangent, *deciding)  # type: ignore[assignment]
        return [free, fixed, *(DisconnectedType()() for _ in deciding)]


@numba_funcify.register(ConditionalTerm)
def _form_that_applies(op: ConditionalTerm, node: Any, **kwargs: Any) -> Any:
    @numba_njit
    def first(free, fixed, *deciding):  # type: ignore[no-untyped-def]
        return free

    @numba_njit
    def second(free, fixed, *deciding):  # type: ignore[no-untyped-def]
        return fixed.copy()

    return first if _has_free_input(node.inputs[2:]) else second


def conditional_term(free: Any, fixed: Any, deciding: Sequence[Variable]) -> Any:
    """Return a term that becomes `fixed` in functions where `deciding` are shared variables.

    Parameters
    ----------
    free, fixed : TensorVariable
        The two forms, of equal shape.
    deciding : sequence of TensorVariable
        Values of the weights and parameters of the mixture, and others that must be fixed.

    Returns
    -------
    TensorVariable
        `free` itself if the values are fixed already, for instance by ``pm.do``: they are then
        data, which cannot be distinguished from values that a step method holds fixed.
    """
    if not _has_free_input(deciding):
        return free
    return ConditionalTerm()(free, pt.cast(fixed, free.dtype), *deciding)


def kept_term(term: Any, values: Sequence[Variable]) -> Any:
    """Return a scalar term that depends on all values until a function is compiled.

    Otherwise PyMC removes those whose terms vanish, such as a number of clusters for gamma = 1, and
    then cannot make the function of another step.
    """
    return conditional_term(term, pt.zeros((), dtype="float64"), values)


class MissingGradient(ObjectModeOp):
    """Placeholder for an undefined gradient with respect to the first input.

    It is zero if the other inputs, the deciding variables, are shared or constant, because it is
    then not used.  Otherwise its evaluation raises an error.
    """

    __props__ = ()

    @override
    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [inputs[0].type()])

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return shapes[:1]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        if not _has_free_input(node.inputs[1:]):
            output_storage[0][0] = np.zeros_like(inputs[0])
            return
        raise NotImplementedError(
            "The weights and parameters of a Dirichlet-process mixture have no gradient, as their "
            "number changes; sample the model with pm.sample, which gives them to DPSplitMerge."
        )


@numba_funcify.register(MissingGradient)
def _zeros_or_error(op: MissingGradient, node: Any, **kwargs: Any) -> Any:
    if _has_free_input(node.inputs[1:]):
        return numba_funcify.dispatch(ObjectModeOp)(op, node=node, **kwargs)

    @numba_njit
    def zeros(wrt, *measure):  # type: ignore[no-untyped-def]
        return np.zeros_like(wrt)

    return zeros


def missing_gradients(inputs: Sequence[Variable], measure: Sequence[Variable]) -> list[Variable]:
    """Return placeholders for the gradients of an op that has none, one per input.

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
    """Return a placeholder for the gradient with respect to `wrt`, see `MissingGradient`."""
    return MissingGradient()(wrt, *measure)  # type: ignore[return-value]


def _has_free_input(variables: Sequence[Variable]) -> bool:
    return any(
        not isinstance(root, SharedVariable | Constant) for root in graph_inputs(list(variables))
    )


@node_rewriter([ConditionalTerm])
def choose_form(_fgraph: FunctionGraph, node: Apply) -> list[Any]:
    """Select the form that applies."""
    free, fixed, *deciding = node.inputs
    return [free if _has_free_input(deciding) else fixed]


@node_rewriter([MissingGradient])
def drop_missing_gradient(_fgraph: FunctionGraph, node: Apply) -> list[Any] | None:
    """Replace a missing gradient by zeros if it is not used."""
    wrt, *measure = node.inputs
    return None if _has_free_input(measure) else [pt.zeros_like(wrt)]


# Registered before canonicalisation (at 1), which then removes the zeros and unused terms.  It is
# not part of canonicalisation, which PyMC runs before it replaces variables by shared ones.
optdb.register(
    "dpsplit_choose_forms",
    dfs_rewriter(choose_form, drop_missing_gradient),
    "fast_run",
    "fast_compile",
    position=0.5,
)
