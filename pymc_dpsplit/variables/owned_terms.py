"""Terms of the log-probability that are constant while other step methods move.

The step of a mixture is the only one that moves its weights and parameters.  A step for another
variable sees them as shared variables: then a term that depends on nothing else is a constant,
and evaluating it, over all observations, at every leapfrog would be most of the time
of a run.  Such terms are marked where they are made; when a function is compiled, a marked
term becomes zero if everything below it is shared or constant, and itself otherwise.
"""

from collections.abc import Sequence
from typing import Any, override

import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.graph.traversal import graph_inputs
from pytensor.link.numba.dispatch.basic import numba_funcify, numba_njit


class StepOwnedTerm(Op):
    """The identity, marking a term that other step methods need not evaluate."""

    __props__ = ()
    view_map = {0: [0]}  # noqa: RUF012

    @override
    def make_node(self, *inputs: Any) -> Apply:
        (term,) = inputs
        return Apply(self, [term], [term.type()])

    @override
    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0]

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return shapes

    @override
    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        return list(cotangents)


@numba_funcify.register(StepOwnedTerm)
def _identity(op: StepOwnedTerm, **kwargs: Any) -> Any:
    @numba_njit
    def identity(term):  # type: ignore[no-untyped-def]
        return term

    return identity


def mark_owned(term: Any, measure: Sequence[Variable]) -> Any:
    """Mark a term of the log-probability as one that only the step of the mixture changes.

    Parameters
    ----------
    term : TensorVariable
    measure : sequence of TensorVariable
        Values of the weights and parameters in it.

    Returns
    -------
    TensorVariable
        The term itself if the values are fixed already, by ``pm.do`` for instance: then they
        are data, and nothing would tell them from what a step method holds fixed.
    """
    return StepOwnedTerm()(term) if _has_free_input(measure) else term


def _has_free_input(variables: Sequence[Variable]) -> bool:
    return any(
        not isinstance(root, SharedVariable | Constant) for root in graph_inputs(list(variables))
    )


@node_rewriter([StepOwnedTerm])
def resolve_owned_term(_fgraph: FunctionGraph, node: Apply) -> list[Any]:
    """Replace a marked term by zeros where it is constant, else by the term."""
    term: Any = node.inputs[0]
    if _has_free_input([term]):
        return [term]
    return [pt.zeros(term.shape, dtype=term.type.dtype)]


# Before canonicalisation (at 1), which then removes the zeros and what they leave unused; not as
# part of it, because PyMC canonicalises before it replaces variables by shared ones.
optdb.register(
    "dpsplit_resolve_owned_terms",
    dfs_rewriter(resolve_owned_term),
    "fast_run",
    "fast_compile",
    position=0.5,
)
