"""Calls of functions known by their address, which a process makes while it runs.

A density that a user composes is compiled once, by PyTensor.  Were it a function that kernels
name, each of them would be compiled anew for it; known by its address alone it is an argument,
and the kernels stay in their cache.
"""

from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic
from pymc_dpsplit.kernels.lanes import pointers

_F64P, _I64 = ir.DoubleType().as_pointer(), ir.IntType(64)


def _call(builder: Any, address: Any, arguments: list[Any]) -> None:
    """Write the call of a function that returns nothing."""
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    builder.call(builder.inttoptr(address, kind.as_pointer()), arguments)


@intrinsic
def call_density(typing_context, address, block, n_rows, theta, shared, out):
    """Write the log density of each of `n_rows` rows under `theta` into `out` (n_rows,).

    `block` holds them column by column, each column `n_rows` numbers; `theta` and `shared` are of
    the lengths that the function was compiled for.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        of, data, n, *rest = pointers(context, builder, sig, args)
        _call(builder, of, [data, n, *rest])
        return context.get_dummy_value()

    return types.void(types.int64, block, types.int64, theta, shared, out), generate


@intrinsic
def call_log_prior(typing_context, address, theta, shared, out):
    """Write the log density of the base measure at `theta` into `out` (1,)."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        of, *rest = pointers(context, builder, sig, args)
        _call(builder, of, rest)
        return context.get_dummy_value()

    return types.void(types.int64, theta, shared, out), generate


@intrinsic
def call_refill(typing_context, address, key, pool, shared):
    """Fill `pool` (M, P) with draws from the base measure, a function of the uint64 `key`."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        of, *rest = pointers(context, builder, sig, args)
        _call(builder, of, rest)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64, pool, shared), generate
