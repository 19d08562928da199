"""Ops whose Python `perform` is also what compiled PyTensor functions call."""

import warnings
from typing import Any

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import generate_fallback_impl, numba_funcify


class ObjectModeOp(Op):
    """An Op that numba-compiled graphs call back into Python for.

    The work inside is done by the package's own kernels, or once per forward draw, so the
    call costs nothing that matters; PyTensor would warn about it every time.
    """


@numba_funcify.register(ObjectModeOp)
def _call_perform(op: ObjectModeOp, node: Any = None, **kwargs: Any) -> Any:
    # numba writes the node into what it compiles, and with it any data among its inputs.
    bare = Apply(op, [var.type() for var in node.inputs], [var.type() for var in node.outputs])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Numba will use object mode")
        return generate_fallback_impl(op, node=bare, **kwargs)
