"""Powers of positive numbers, in vector code."""

from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.exponential import LOG2E, exp2_plainly, write_exp2
from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once
from pymc_dpsplit.kernels.logarithm import log_plainly, write_log


@jitted
def raise_plainly(values, n, exponent):
    """Plain twin of `raise_to`, without vector code.

    Parameters
    ----------
    values : ndarray of float64, shape (>= n,)
    n : int
    exponent : float
    """
    for i in range(n):
        values[i] = exp2_plainly(log_plainly(values[i]) * (exponent * LOG2E))


def _write_powers(builder: Any, values: Any, n: Any, exponent: Any) -> None:
    lanes = Lanes(builder)
    factor = builder.fmul(exponent, ir.Constant(ir.DoubleType(), LOG2E))
    with lanes.steps(index(0), n, LANES) as (at, _):
        logarithm = builder.fmul(write_log(lanes, lanes.load(values, at)), lanes.splat(factor))
        lanes.store(write_exp2(lanes, logarithm), values, at)


@intrinsic
def _raise_by_lanes(typing_context, values, n, exponent):
    generate = written_once("raise_to", _write_powers)
    return types.void(values, types.int64, types.float64), generate


@jitted_inlined
def _raise_to(values, n, exponent):
    """Replace positive numbers by their powers; powers below 1e-306 are about 1e-307.

    Parameters
    ----------
    values : ndarray of float64, shape (>= n,)
        Not denormal; overwritten.
    n : int
        A multiple of 8.
    exponent : float
    """
    _raise_by_lanes(values, n, exponent)


raise_to = _raise_to if LANES else raise_plainly
