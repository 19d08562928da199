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
# Choices that are made at once, so that one need not wait for the sums of another.
TOGETHER = 4
_FLOATS, _INTS = ir.VectorType(ir.DoubleType(), WIDE), ir.VectorType(ir.IntType(64), WIDE)
_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _choose_plainly(left, right, rows, n, uniforms, chosen):
    for i in range(TOGETHER):
        products = (left[i, :n] * right[rows[i], :n]).reshape(-1, WIDE)
        running = products.cumsum(axis=0)
        ends = running[-1].cumsum()
        target = uniforms[i] * ends[-1]
        lane = min(int((ends <= target).sum()), WIDE - 1)
        rest = target - (ends[lane] - running[-1, lane])
        chosen[i] = int((running[:-1, lane] <= rest).sum()) * WIDE + lane


class _Products:
    """Writes the passes over the products of all choices.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    factors : list of (LLVM value, LLVM value)
        Addresses of both factors, for each choice.
    n : LLVM value
    """

    def __init__(self, builder: Any, factors: list[tuple[Any, Any]], n: Any) -> None:
        self.builder, self.factors, self.n = builder, factors, n
        self.zero = ir.Constant(_FLOATS, [0.0] * WIDE)

    def _load(self, base: Any, at: Any) -> Any:
        place = self.builder.bitcast(self.builder.gep(base, [at]), _FLOATS.as_pointer())
        loaded = self.builder.load(place)
        loaded.align = 8
        return loaded

    def _zeros(self, kind: Any, zero: Any) -> list[Any]:
        places = [cgutils.alloca_once(self.builder, kind) for _ in self.factors]
        for place in places:
            self.builder.store(zero, place)
        return places

    def splat(self, scalar: Any) -> Any:
        """Return a vector with the number in each lane."""
        nothing = ir.Constant(_FLOATS, ir.Undefined)
        first = self.builder.insert_element(nothing, scalar, ir.Constant(_I32, 0))
        order = ir.Constant(ir.VectorType(_I32, WIDE), [0] * WIDE)
        return self.builder.shuffle_vector(first, nothing, order)

    def totals(self) -> list[Any]:
        """Return the sum of the products of each lane."""
        running = self._zeros(_FLOATS, self.zero)
        with cgutils.for_range_slice(self.builder, index(0), self.n, index(WIDE), _I64) as (at, _):
            for i in range(len(running)):
                self._advance(running[i], i, at)
        return [self.builder.load(place) for place in running]

    def places(self, rests: list[Any]) -> list[Any]:
        """Return, for each lane, how many running sums before the last are at most its `rest`."""
        builder = self.builder
        running = self._zeros(_FLOATS, self.zero)
        counts = self._zeros(_INTS, ir.Constant(_INTS, [0] * WIDE))
        ones = ir.Constant(_INTS, [1] * WIDE)
        before_last = builder.sub(self.n, index(WIDE))
        with cgutils.for_range_slice(builder, index(0), before_last, index(WIDE), _I64) as (at, _):
            for i, (rest, count) in enumerate(zip(rests, counts, strict=True)):
                is_before = builder.fcmp_ordered("<=", self._advance(running[i], i, at), rest)
                old = builder.load(count)
                builder.store(builder.select(is_before, builder.add(old, ones), old), count)
        return [builder.load(count) for count in counts]

    def _advance(self, running: Any, i: int, at: Any) -> Any:
        builder = self.builder
        left, right = (self._load(base, at) for base in self.factors[i])
        builder.store(builder.fadd(builder.load(running), builder.fmul(left, right)), running)
        return builder.load(running)

    def summed(self, vector: Any) -> Any:
        """Return the running sums over the lanes."""
        for shift in (1, 2, 4):
            order = [WIDE + lane - shift if lane >= shift else 0 for lane in range(WIDE)]
            moved = ir.Constant(ir.VectorType(_I32, WIDE), order)
            shifted = self.builder.shuffle_vector(self.zero, vector, moved)
            vector = self.builder.fadd(vector, shifted)
        return vector

    def lane_and_rest(self, totals: Any, u: Any) -> tuple[Any, Any]:
        """Return the lane that `u` selects, and what is left of the target in each lane."""
        builder = self.builder
        ends = self.summed(totals)
        target = builder.fmul(u, builder.extract_element(ends, ir.Constant(_I32, WIDE - 1)))
        everywhere = self.splat(target)
        is_before = builder.fcmp_ordered("<=", ends, everywhere)
        lane = builder.ctpop(builder.zext(builder.bitcast(is_before, ir.IntType(WIDE)), _I64))
        last = index(WIDE - 1)
        lane = builder.select(builder.icmp_signed("<", lane, last), lane, last)
        return lane, builder.fsub(everywhere, builder.fsub(ends, totals))


@compiled_form_of(_choose_plainly)
def choose_by_products(typing_context, left, right, rows, n, uniforms, chosen):
    """Make TOGETHER choices: index k with probability proportional to left[i, k] right[rows[i], k].

    Rounding may select an index whose product is 0; so it does if all are.

    Parameters
    ----------
    left : ndarray of float64, shape (TOGETHER, n)
        Nonnegative, contiguous.
    right : ndarray of float64, shape (R, n)
        Nonnegative, contiguous.
    rows : ndarray of int64, shape (TOGETHER,)
    n : int
        A multiple of WIDE.
    uniforms : ndarray of float64, shape (TOGETHER,)
    chosen : ndarray of int64, shape (TOGETHER,)
        Overwritten.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right, rows, n, uniforms, chosen = pointers(context, builder, sig, args)

        def element(base: Any, i: int) -> Any:
            return builder.gep(base, [index(i)])

        def row(base: Any, at: Any) -> Any:
            return builder.gep(base, [builder.mul(at, n)])

        factors = [
            (row(left, index(i)), row(right, builder.load(element(rows, i))))
            for i in range(TOGETHER)
        ]
        products = _Products(builder, factors, n)
        totals = products.totals()
        us = [builder.load(element(uniforms, i)) for i in range(TOGETHER)]
        lanes, rests = zip(*map(products.lane_and_rest, totals, us), strict=True)
        for i, (lane, places) in enumerate(zip(lanes, products.places(list(rests)), strict=True)):
            place = builder.extract_element(places, builder.trunc(lane, _I32))
            at = builder.add(builder.mul(place, index(WIDE)), lane)
            builder.store(at, element(chosen, i))
        return context.get_dummy_value()

    kinds = left, right, rows, types.int64, uniforms, chosen
    return types.void(*kinds), generate
