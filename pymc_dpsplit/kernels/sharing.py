"""Work distributed over threads inside kernels: each takes the next piece from a common counter."""

from threading import Lock
from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.jit import compiled_form_of
from pymc_dpsplit.kernels.lanes import pointers

_adding = Lock()


def _take_next_plainly(counter):
    with _adding:
        taken = counter[0]
        counter[0] += 1
    return taken


@compiled_form_of(_take_next_plainly)
def take_next(typing_context, counter):
    """Return counter[0], an int64, and increment it; safe while other threads do the same.

    Parameters
    ----------
    counter : ndarray of int64, shape (1,)

    Returns
    -------
    int
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (address,) = pointers(context, builder, sig, args)
        return builder.atomic_rmw("add", address, ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(counter), generate
