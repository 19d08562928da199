"""Work shared out to threads inside kernels: each takes the next piece from a common counter."""

from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic
from pymc_dpsplit.kernels.lanes import pointers


@intrinsic
def take_next(typing_context, counter):
    """Return counter[0], an int64, and add 1 to it; safe while other threads do the same."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (address,) = pointers(context, builder, sig, args)
        return builder.atomic_rmw("add", address, ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(counter), generate
