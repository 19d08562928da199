"""Exponential function in a form that vectorises, exact to a few units in the last place.

2^x = 2^n 2^f with n the nearest integer; 2^f is a polynomial, 2^n is set by its bits.
Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits; shifted into the exponent
field, these bits multiply by 2^n.
"""

import math
from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.jit import compiled_form_of, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import Lanes

LOG2E = 1.4426950408889634
ROUND = 6755399441055744.0  # 1.5 * 2^52
_LOWEST = -1020.0  # powers of two below this would be denormal
_MANTISSA = 52
# Interpolates 2^f in the 11 Chebyshev points of |f| <= 1/2, solved in exact arithmetic.  With these
# rounded coefficients the relative error is 3.2e-16, and 3.7e-16 with rounding in the evaluation.
_C = (
    1.0,
    0.69314718055995,
    0.24022650695910097,
    0.05550410866444772,
    0.009618129107606888,
    0.0013333558230164974,
    0.0001540353044173605,
    1.5252657260200837e-05,
    1.321544258792169e-06,
    1.0208690299958306e-07,
    7.072585949269224e-09,
)
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10 = _C
# The same in single precision, in 7 points: with rounding the relative error is 1.4 * 2^-24.
_SINGLE_ROUND, _SINGLE_LOWEST, _SINGLE_MANTISSA = 12582912.0, -125.0, 23  # 1.5 * 2^23
_SINGLE_C = (
    1.0,
    0.6931471824645996,
    0.24022650718688965,
    0.05550327152013779,
    0.009618056938052177,
    0.0013400427997112274,
    0.00015461444854736328,
)
_SINGLE = (_SINGLE_LOWEST, _SINGLE_ROUND, _SINGLE_C, _SINGLE_MANTISSA)


def _times_power_plainly(value, shifted):
    return math.ldexp(value, int(shifted - ROUND))


@compiled_form_of(_times_power_plainly)
def times_power(typing_context, value, shifted):
    """Return value * 2^n, where n is held in the low bits of `shifted`."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        ints = ir.IntType(64)
        value, shifted = args
        return _scale(builder, value, shifted, ints, ir.Constant(ints, _MANTISSA))

    return types.float64(types.float64, types.float64), generate


def _scale(builder: Any, value: Any, shifted: Any, ints: Any, mantissa: Any) -> Any:
    """Add the low bits of `shifted` to the exponent of `value`, for scalars or vectors."""
    power = builder.shl(builder.bitcast(shifted, ints), mantissa)
    return builder.bitcast(builder.add(builder.bitcast(value, ints), power), value.type)


@jitted
def exp2_plainly(x):
    """2^x for x up to 1000; for x below -1020, including -inf, a number below 1e-306.

    Parameters
    ----------
    x : float

    Returns
    -------
    float
    """
    x = x if x > _LOWEST else _LOWEST
    shifted = x + ROUND
    return times_power(exp2_of_fraction(x - (shifted - ROUND)), shifted)


@jitted_inlined
def exp2_of_fraction(f):
    """2^f for |f| <= 1/2."""
    p = _C10
    p = p * f + _C9
    p = p * f + _C8
    p = p * f + _C7
    p = p * f + _C6
    p = p * f + _C5
    p = p * f + _C4
    p = p * f + _C3
    p = p * f + _C2
    p = p * f + _C1
    return p * f + _C0


def write_exp2(lanes: Lanes, x: Any, by_pairs: bool = False) -> Any:
    """Write the code of `exp2_plainly` for a vector.

    Parameters
    ----------
    lanes : Lanes
    x : LLVM value
        Vector of float64, or of float32 with lanes of these.
    by_pairs : bool
        See `Lanes.polynomial`.

    Returns
    -------
    LLVM value
    """
    builder, double, single = lanes.builder, (_LOWEST, ROUND, _C, _MANTISSA), _SINGLE
    lowest, middle, coefficients, mantissa = single if lanes.is_single else double
    x = lanes.larger(x, lanes.constant(lowest))
    shifted = builder.fadd(x, lanes.constant(middle))
    f = builder.fsub(x, builder.fsub(shifted, lanes.constant(middle)))
    p = lanes.polynomial(coefficients, f, by_pairs)
    return _scale(builder, p, shifted, lanes.ints, lanes.int_constant(mantissa))
