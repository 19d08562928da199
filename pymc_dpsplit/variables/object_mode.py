"""Ops whose Python method `perform` is called by compiled PyTensor functions."""

import warnings
from typing import Any

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import generate_fallback_impl, numba_funcify


class ObjectModeOp(Op):
    """An Op that numba-compiled graphs execute in Python (object mode).

    The overhead of the call is negligible, because `perform` calls compiled kernels of the package
    or runs once per forward draw.  The warning of PyTensor about object mode is suppressed.
    """


@numba_funcify.register(ObjectModeOp)
def _call_perform(op: ObjectModeOp, node: Any = None, **kwargs: Any) -> Any:
    # numba embeds the node, with any data among its inputs, in the compiled code.
    bare = Apply(op, [var.type() for var in node.inputs], [var.type() for var in node.outputs])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Numba will use object mode")
        return generate_fallback_impl(op, node=bare, **kwargs)
