"""Elementary functions of rows in densities that PyTensor compiles, as vector code.

PyTensor's loops call the logarithm and the exponential of the C library for one row after another,
which takes most of the time of a density.  A loop of arithmetic and one such function gets a
function without calls instead, of which LLVM makes vector code.  In other loops those of the
library are faster: calls of other functions keep a loop from being vectorised, and code of two
functions is too long for LLVM to inline it.
"""

from functools import cache
from typing import Any, ClassVar

import pytensor.scalar.basic as scalar
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key
from pytensor.scalar.math import Softplus
from pytensor.tensor.elemwise import Elemwise

from pymc_dpsplit.kernels.cache import source_digest
from pymc_dpsplit.kernels.elementary import fast_exp, fast_log, fast_log1p, fast_softplus

# After PyTensor has joined loops, before it writes results over arguments.
_POSITION = 49.5


class VectorFunction(scalar.UnaryScalarOp):
    """Function of one number in a form that vectorises.

    Attributes
    ----------
    kernel : Kernel
    """

    kernel: ClassVar[Any]

    def impl(self, x: float) -> float:
        value: float = self.kernel(x)
        return value

    def c_code(self, *arguments: Any, **more: Any) -> str:
        raise NotImplementedError("there is no form for PyTensor's C linker")


class VectorLog(VectorFunction):
    """Logarithm in a form that vectorises."""

    kernel = fast_log


class VectorLog1p(VectorFunction):
    """Logarithm of 1 + x in a form that vectorises."""

    kernel = fast_log1p


class VectorExp(VectorFunction):
    """Exponential in a form that vectorises."""

    kernel = fast_exp


class VectorSoftplus(VectorFunction):
    """Logarithm of 1 + exp(x) in a form that vectorises."""

    kernel = fast_softplus


@register_funcify_and_cache_key(VectorFunction)
def _compiled(op: VectorFunction, **kwargs: Any) -> tuple[Any, str]:
    kernel = op.kernel

    @numba_njit
    def vector_function(x):  # type: ignore[no-untyped-def]
        return kernel(x)

    # PyTensor keeps compiled functions on disk and does not see when sources of kernels change.
    return vector_function, f"{kernel.__name__}:{source_digest(kernel.py_func)}"


_KINDS = {
    scalar.Log: VectorLog,
    scalar.Log1p: VectorLog1p,
    scalar.Exp: VectorExp,
    Softplus: VectorSoftplus,
}
_REPLACEMENTS = {
    replaced: kind(scalar.upgrade_to_float, name=kind.__name__) for replaced, kind in _KINDS.items()
}
_ARITHMETIC = {
    scalar.Add, scalar.Sub, scalar.Mul, scalar.TrueDiv, scalar.Neg, scalar.Sqr, scalar.Sqrt,
    scalar.Abs, scalar.Reciprocal, scalar.Switch, scalar.GE, scalar.GT, scalar.LE, scalar.LT,
    scalar.EQ, scalar.NEQ, scalar.AND, scalar.OR, scalar.Maximum, scalar.Minimum, scalar.Cast,
    scalar.Identity, scalar.Second,
}  # fmt: skip


def _with_vector_function(op: Any) -> scalar.ScalarOp | None:
    """Return an operation on numbers whose function vectorises, None if the loop would not."""
    if not isinstance(op, scalar.Composite):
        return _REPLACEMENTS.get(type(op))
    frozen: Any = op.fgraph
    graph = frozen.unfreeze()
    functions = [node for node in graph.apply_nodes if type(node.op) in _REPLACEMENTS]
    others = {type(node.op) for node in graph.apply_nodes} - _REPLACEMENTS.keys()
    if len(functions) != 1 or not others <= _ARITHMETIC:
        return None
    (node,) = functions
    graph.replace(node.outputs[0], _REPLACEMENTS[type(node.op)](*node.inputs))
    return scalar.Composite(graph.inputs, graph.outputs)


@node_rewriter([Elemwise])
def _use_vector_function(fgraph: FunctionGraph, node: Apply[Any]) -> list[Any] | None:
    """Replace the function in a loop over float64; those of single numbers take no time."""
    del fgraph
    is_array = not all(node.outputs[0].type.broadcastable)
    if not is_array or any(out.type.dtype != "float64" for out in node.outputs):
        return None
    op = _with_vector_function(node.op.scalar_op)
    return None if op is None else Elemwise(op).make_node(*node.inputs).outputs


@cache
def vectorising_mode() -> Mode:
    """Return the mode NUMBA of PyTensor with functions that vectorise."""
    mode: Mode = get_mode("NUMBA").register((dfs_rewriter(_use_vector_function), _POSITION))
    return mode
