"""Rows fetched into the cache before they are read, while other work goes on."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from pymc_dpsplit.kernels.jit import intrinsic, kernel

_LINE_BYTES = 64
_BYTE, _I32 = ir.IntType(8), ir.IntType(32)


@intrinsic
def _prefetch(typing_context, data, i, offset):
    """Fetch the cache line that lies `offset` bytes after the beginning of row i."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = context.make_array(sig.args[0])(context, builder, args[0])
        stride = builder.extract_value(whole.strides, 0)
        at = builder.add(builder.mul(args[1], stride), args[2])
        address = builder.gep(builder.bitcast(whole.data, _BYTE.as_pointer()), [at])
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # To be read, into all caches, data.
        builder.call(function, [address, *(ir.Constant(_I32, flag) for flag in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(data, types.intp, types.intp), generate


@kernel
def prefetch_rows(data, members, start, stop):
    """Fetch the rows members[start : stop] of a matrix."""
    for t in range(start, stop):
        for offset in range(0, data.shape[1] * data.itemsize, _LINE_BYTES):
            _prefetch(data, members[t], offset)
