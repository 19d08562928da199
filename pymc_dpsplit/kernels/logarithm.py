"""Natural logarithm in a form that vectorises, exact to a few units in the last place.

x = 2^e m with m between the square roots of 1/2 and 2, and log m = 2 artanh(s) for s = f / (2 + f)
and f = m - 1.  This is f - s (f - R), where R, the powers from the second on of 2 artanh(s) / s, is
a polynomial in s^2: the coefficients are those of fdlibm (Sun Microsystems 1993, e_log.c), whose
error is below 2^-58.45.
"""

import math
from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.jit import compiled_form_of, jitted_inlined
from pymc_dpsplit.kernels.lanes import Lanes

# Log 2 in two parts; the first has so few bits that its products with whole numbers are exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_L = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
_L1, _L2, _L3, _L4, _L5, _L6, _L7 = _L
_ROOT_OF_HALF = 0x3FE6A09E667F3BCD  # its bits
_ONE = 0x3FF0000000000000  # the bits of 1
_TWO52, _BIAS = 0x4330000000000000, 4503599627370496.0 + 1023.0  # the bits of 2^52; and 2^52 + 1023
_MANTISSA = (1 << 52) - 1


def _exponent_plainly(x):
    m, e = math.frexp(x)
    return float(e if m * 2.0 >= math.sqrt(2.0) else e - 1)


def _reduced_plainly(x):
    return math.ldexp(x, -int(_exponent_plainly(x)))


def _shifted_bits(builder: Any, value: Any) -> Any:
    """Return bits whose exponent field is that of x / sqrt(1/2), biased."""
    ints = ir.IntType(64)
    return builder.add(builder.bitcast(value, ints), ir.Constant(ints, _ONE - _ROOT_OF_HALF))


@compiled_form_of(_exponent_plainly)
def _exponent(typing_context, x):
    """Return e, the power of two in x = 2^e m with m from sqrt(1/2) to sqrt(2)."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        ints, floats = ir.IntType(64), ir.DoubleType()
        biased = builder.lshr(_shifted_bits(builder, args[0]), ir.Constant(ints, 52))
        # Conversions of 64-bit integers do not vectorise on every processor; in the mantissa of
        # 2^52 the bits are the number.
        bits = builder.or_(biased, ir.Constant(ints, _TWO52))
        return builder.fsub(builder.bitcast(bits, floats), ir.Constant(floats, _BIAS))

    return types.float64(types.float64), generate


@compiled_form_of(_reduced_plainly)
def _reduced(typing_context, x):
    """Return m of x = 2^e m."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        ints = ir.IntType(64)
        bits = builder.and_(_shifted_bits(builder, args[0]), ir.Constant(ints, _MANTISSA))
        bits = builder.add(bits, ir.Constant(ints, _ROOT_OF_HALF))
        return builder.bitcast(bits, ir.DoubleType())

    return types.float64(types.float64), generate


@jitted_inlined
def log_plainly(x):
    """Logarithm of a positive float64 that is not denormal; of others a number of no meaning.

    Parameters
    ----------
    x : float

    Returns
    -------
    float
    """
    e, f = _exponent(x), _reduced(x) - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = _L7
    p = p * z + _L6
    p = p * z + _L5
    p = p * z + _L4
    p = p * z + _L3
    p = p * z + _L2
    p = p * z + _L1
    return e * LN2_HIGH - ((s * (f - p * z) - e * LN2_LOW) - f)


@jitted_inlined
def log_one_plus(x):
    """Logarithm of 1 + x for x >= 0, inf included, with an absolute error of some 1e-16.

    Parameters
    ----------
    x : float

    Returns
    -------
    float
    """
    grown = 1.0 + x
    return log_plainly(grown) if grown < math.inf else math.inf


def write_log(lanes: Lanes, x: Any, by_pairs: bool = False) -> Any:
    """Write the code of `log_plainly` for a vector.

    Parameters
    ----------
    lanes : Lanes
    x : LLVM value
        Vector of float64.
    by_pairs : bool
        See `Lanes.polynomial`.

    Returns
    -------
    LLVM value
    """
    builder = lanes.builder
    bits = builder.bitcast(x, lanes.ints)
    bits = builder.add(bits, lanes.int_constant(_ONE - _ROOT_OF_HALF))
    biased = builder.lshr(bits, lanes.int_constant(52))
    biased = builder.bitcast(builder.or_(biased, lanes.int_constant(_TWO52)), lanes.floats)
    e = builder.fsub(biased, lanes.constant(_BIAS))
    reduced = builder.and_(bits, lanes.int_constant(_MANTISSA))
    reduced = builder.bitcast(builder.add(reduced, lanes.int_constant(_ROOT_OF_HALF)), lanes.floats)
    f = builder.fsub(reduced, lanes.constant(1.0))
    s = builder.fdiv(f, builder.fadd(lanes.constant(2.0), f))
    z = builder.fmul(s, s)
    p = lanes.polynomial(_L, z, by_pairs)
    below = lanes.fma(builder.fneg(p), z, f)
    small = builder.fmul(e, lanes.constant(-LN2_LOW))
    rest = builder.fsub(lanes.fma(s, below, small), f)
    return lanes.fma(e, lanes.constant(LN2_HIGH), builder.fneg(rest))
