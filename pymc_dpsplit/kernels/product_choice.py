"""Choice of an index with probability proportional to a product of two arrays, in vector code.

Indices are dealt to WIDE lanes in turn.  The first pass adds the products of each lane; a uniform
chooses a lane, and a second pass finds the place in it.  No branch depends on the numbers.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from pymc_dpsplit.kernels.jit import compiled_form_of
from pymc_dpsplit.kernels.lanes import index, pointers

# Lanes on every processor, whatever the length of its registers.
WIDE = 8
_FLOATS, _INTS = ir.VectorType(ir.DoubleType(), WIDE), ir.VectorType(ir.IntType(64), WIDE)
_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _choose_plainly(left, right, row, n, u):
    products = (left[:n] * right[row, :n]).reshape(-1, WIDE)
    running = products.cumsum(axis=0)
    ends = running[-1].cumsum()
    target = u * ends[-1]
    lane = min(int((ends <= target).sum()), WIDE - 1)
    rest = target - (ends[lane] - running[-1, lane])
    return int((running[:-1, lane] <= rest).sum()) * WIDE + lane


class _Products:
    """Writes the passes over the products.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    left, right : LLVM value
        Addresses of the first factors.
    n : LLVM value
    """

    def __init__(self, builder: Any, left: Any, right: Any, n: Any) -> None:
        self.builder, self.left, self.right, self.n = builder, left, right, n
        self.zero = ir.Constant(_FLOATS, [0.0] * WIDE)

    def _load(self, base: Any, at: Any) -> Any:
        place = self.builder.bitcast(self.builder.gep(base, [at]), _FLOATS.as_pointer())
        loaded = self.builder.load(place)
        loaded.align = 8
        return loaded

    def splat(self, scalar: Any) -> Any:
        """Return a vector with the number in each lane."""
        nothing = ir.Constant(_FLOATS, ir.Undefined)
        first = self.builder.insert_element(nothing, scalar, ir.Constant(_I32, 0))
        order = ir.Constant(ir.VectorType(_I32, WIDE), [0] * WIDE)
        return self.builder.shuffle_vector(first, nothing, order)

    def totals(self) -> Any:
        """Return the sum of the products of each lane."""
        running = cgutils.alloca_once(self.builder, _FLOATS)
        self.builder.store(self.zero, running)
        with cgutils.for_range_slice(self.builder, index(0), self.n, index(WIDE), _I64) as (at, _):
            self._advance(running, at)
        return self.builder.load(running)

    def places(self, rest: Any) -> Any:
        """Return, for each lane, how many running sums before the last are at most `rest`."""
        builder = self.builder
        running, count = (cgutils.alloca_once(builder, kind) for kind in (_FLOATS, _INTS))
        builder.store(self.zero, running)
        builder.store(ir.Constant(_INTS, [0] * WIDE), count)
        before_last = builder.sub(self.n, index(WIDE))
        with cgutils.for_range_slice(builder, index(0), before_last, index(WIDE), _I64) as (at, _):
            is_before = builder.fcmp_ordered("<=", self._advance(running, at), rest)
            builder.store(builder.add(builder.load(count), builder.zext(is_before, _INTS)), count)
        return builder.load(count)

    def _advance(self, running: Any, at: Any) -> Any:
        builder = self.builder
        product = builder.fmul(self._load(self.left, at), self._load(self.right, at))
        builder.store(builder.fadd(builder.load(running), product), running)
        return builder.load(running)

    def summed(self, vector: Any) -> Any:
        """Return the running sums over the lanes."""
        for shift in (1, 2, 4):
            order = [WIDE + lane - shift if lane >= shift else 0 for lane in range(WIDE)]
            moved = ir.Constant(ir.VectorType(_I32, WIDE), order)
            shifted = self.builder.shuffle_vector(self.zero, vector, moved)
            vector = self.builder.fadd(vector, shifted)
        return vector


@compiled_form_of(_choose_plainly)
def choose_by_product(typing_context, left, right, row, n, u):
    """Index that `u` selects with probability proportional to left[k] right[row, k].

    Rounding may select an index whose product is 0; so it does if all are.

    Parameters
    ----------
    left : ndarray of float64, shape (>= n,)
        Nonnegative.
    right : ndarray of float64, shape (R, n)
        Nonnegative, contiguous.
    row : int
    n : int
        A multiple of WIDE.
    u : float

    Returns
    -------
    int
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right, row, n, u = pointers(context, builder, sig, args)
        products = _Products(builder, left, builder.gep(right, [builder.mul(row, n)]), n)
        totals = products.totals()
        ends = products.summed(totals)
        target = builder.fmul(u, builder.extract_element(ends, ir.Constant(_I32, WIDE - 1)))
        everywhere = products.splat(target)
        is_before = builder.fcmp_ordered("<=", ends, everywhere)
        lane = builder.ctpop(builder.zext(builder.bitcast(is_before, ir.IntType(WIDE)), _I64))
        lane = builder.select(
            builder.icmp_signed("<", lane, index(WIDE - 1)), lane, index(WIDE - 1)
        )
        rest = builder.fsub(everywhere, builder.fsub(ends, totals))
        place = builder.extract_element(products.places(rest), builder.trunc(lane, _I32))
        return builder.add(builder.mul(place, index(WIDE)), lane)

    return types.int64(left, right, types.int64, types.int64, types.float64), generate
