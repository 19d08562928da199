"""Vector code for the few innermost loops: a thin layer over LLVM's builder.

LLVM's vectoriser leaves accumulators in memory and on many processors uses half of the register
width.  For the costliest loops an intrinsic writes the loop itself, with vectors of LANES
numbers.  On a processor without fused multiply-adds LANES is 0 and each of these loops runs its
plain twin; so it does if numba's compiler is switched off.  Each observation, or each element of a
sum, has its own lane, and the order of additions is the same in all forms, so that results do not
depend on LANES.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.codegen import get_host_cpu_features

from pymc_dpsplit.kernels.jit import COMPILES

_F64, _F32, _I64, _I32 = ir.DoubleType(), ir.FloatType(), ir.IntType(64), ir.IntType(32)


def _features() -> set[str]:
    """Names of the instruction sets that numba compiles for; empty if it does not compile."""
    if not COMPILES:
        return set()
    chosen = vars(config)["CPU_FEATURES"]
    features = get_host_cpu_features() if chosen is None else chosen
    return {name[1:] for name in features.split(",") if name.startswith("+")}


def shape_of_registers(features: set[str]) -> tuple[int, int]:
    """Return lanes per vector and vectors per block; four rows of a block fit in registers.

    Parameters
    ----------
    features : set of str
        Names of instruction sets.

    Returns
    -------
    lanes, vectors : int
        Both 0 if there are no fused multiply-adds.
    """
    if "avx512f" in features:
        return 8, 4
    if {"avx2", "fma"} <= features:
        return 4, 2
    return (2, 4) if "neon" in features else (0, 0)


LANES, VECTORS = shape_of_registers(_features())
BLOCK = LANES * VECTORS


def index(number: int) -> Any:
    """Return a constant index."""
    return ir.Constant(_I64, number)


def pointers(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    """Return the arguments of an intrinsic, with arrays replaced by the addresses of their data.

    Parameters
    ----------
    context, builder, sig, args : object

    Returns
    -------
    list of LLVM values
    """
    return [
        context.make_array(kind)(context, builder, value).data
        if isinstance(kind, types.Array)
        else value
        for kind, value in zip(sig.args, args, strict=True)
    ]


def written_once(
    name: str, write: Callable[..., Any], result: Any = None, inlined: bool = False
) -> Callable[..., Any]:
    """Return the implementation of an intrinsic as a function written once per compiled module.

    The code of an intrinsic itself would be repeated at every call.  The function takes the
    addresses of arrays.

    Parameters
    ----------
    name : str
    write : callable
        Writes the body of the function, given a builder and the arguments.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        addresses = pointers(context, builder, sig, args)
        kinds = [address.type for address in addresses]
        kind = ir.FunctionType(ir.VoidType() if result is None else result, kinds)
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        if function.is_declaration:
            function.linkage = "internal"
            function.attributes.add("alwaysinline" if inlined else "noinline")
            inside = ir.IRBuilder(function.append_basic_block("entry"))
            value = write(inside, *function.args)
            if result is None:
                inside.ret_void()
            else:
                inside.ret(value)
        value = builder.call(function, addresses)
        return context.get_dummy_value() if result is None else value

    return generate


class Lanes:
    """Loads, stores and arithmetic of vectors, written with the builder of an intrinsic.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    width : int
        Numbers per vector.
    is_single : bool
        Whether numbers are float32, and integers int32; otherwise they have 64 bits.
    """

    def __init__(self, builder: Any, width: int = LANES, is_single: bool = False) -> None:
        self.builder, self.width, self.is_single = builder, width, is_single
        self.floats = ir.VectorType(_F32 if is_single else _F64, width)
        self.ints = ir.VectorType(_I32 if is_single else _I64, width)
        self._bits = 32 if is_single else 64

    def constant(self, value: float) -> Any:
        """Return a vector of equal constants."""
        return ir.Constant(self.floats, [value] * self.width)

    def int_constant(self, value: int) -> Any:
        """Return a vector of equal integers."""
        return ir.Constant(self.ints, [value] * self.width)

    def splat(self, scalar: Any) -> Any:
        """Return a vector with a run-time scalar, of any type, in each lane."""
        nothing = ir.Constant(ir.VectorType(scalar.type, self.width), ir.Undefined)
        first = self.builder.insert_element(nothing, scalar, ir.Constant(_I32, 0))
        order = ir.Constant(ir.VectorType(_I32, self.width), [0] * self.width)
        return self.builder.shuffle_vector(first, nothing, order)

    def load(self, base: Any, at: Any) -> Any:
        """Return base[at : at + width] of an array of such numbers."""
        loaded = self.builder.load(self._address(base, at, self.floats))
        loaded.align = self._bits // 8
        return loaded

    def load_widened(self, base: Any, at: Any) -> Any:
        """Return base[at : at + LANES] of an array of float64 or float32, as float64."""
        number = base.type.pointee
        loaded = self.builder.load(self._address(base, at, ir.VectorType(number, self.width)))
        loaded.align = 4
        return loaded if number == _F64 else self.builder.fpext(loaded, self.floats)

    def store(self, value: Any, base: Any, at: Any) -> None:
        """Write a vector to base[at : at + width], rounded if the array is of float32.

        Parameters
        ----------
        value, base, at : LLVM value
        """
        if base.type.pointee == _F32 and not self.is_single:
            value = self.builder.fptrunc(value, ir.VectorType(_F32, self.width))
        stored = self.builder.store(value, self._address(base, at, value.type))
        stored.align = 4 if base.type.pointee == _F32 else self._bits // 8

    def is_lane(self, number: Any) -> Any:
        """Return a mask of one lane; of none if there is no lane of that number."""
        lane = ir.Constant(self.ints, list(range(self.width)))
        return self.builder.icmp_signed("==", lane, self.splat(number))

    def all(self, mask: Any) -> Any:
        """Return whether a mask has all lanes."""
        bits = self.builder.bitcast(mask, ir.IntType(self.width))
        return self.builder.icmp_unsigned("==", bits, ir.Constant(bits.type, -1))

    def before(self, n: Any) -> Any:
        """Return a mask of the lanes before the n-th."""
        lane = ir.Constant(self.ints, list(range(self.width)))
        return self.builder.icmp_signed("<", lane, self.splat(n))

    def load_masked(self, base: Any, at: Any, mask: Any) -> Any:
        """Return base[at : at + LANES] in the lanes of `mask`; other lanes are 0, not read.

        Parameters
        ----------
        base, at : LLVM value
            Array of float64 or float32, which is loaded as float64.
        mask : LLVM value
            Result of `before`.

        Returns
        -------
        LLVM value
        """
        number = base.type.pointee
        kind = ir.VectorType(number, self.width)
        address = self._address(base, at, kind)
        alignment, nothing = ir.Constant(_I32, 4), ir.Constant(kind, [0.0] * self.width)
        function = self._masked("load", kind, [address.type, _I32, mask.type, kind], number)
        loaded = self.builder.call(function, [address, alignment, mask, nothing])
        return loaded if number == _F64 else self.builder.fpext(loaded, self.floats)

    def store_masked(self, value: Any, base: Any, at: Any, mask: Any) -> None:
        """Write the lanes of `mask` to base[at : at + LANES].

        Parameters
        ----------
        value, base, at : LLVM value
        mask : LLVM value
            Result of `before`.
        """
        address = self._address(base, at, self.floats)
        alignment = ir.Constant(_I32, 8)
        kinds = [self.floats, address.type, _I32, mask.type]
        function = self._masked("store", ir.VoidType(), kinds)
        self.builder.call(function, [value, address, alignment, mask])

    def _masked(self, what: str, result: Any, kinds: list[Any], number: Any = _F64) -> Any:
        bits = 64 if number == _F64 else 32
        name = f"llvm.masked.{what}.v{self.width}f{bits}.p0"
        kind = ir.FunctionType(result, kinds)
        return cgutils.get_or_insert_function(self.builder.module, kind, name)

    def _address(self, base: Any, at: Any, kind: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(base, [at]), kind.as_pointer())

    def scalar(self, base: Any, at: Any) -> Any:
        """Return base[at]."""
        return self.builder.load(self.builder.gep(base, [at]))

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """Return a * b + c, rounded once.

        Parameters
        ----------
        a, b, c : LLVM value

        Returns
        -------
        LLVM value
        """
        kind = ir.FunctionType(self.floats, [self.floats] * 3)
        name = f"llvm.fma.v{self.width}f{self._bits}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [a, b, c])

    def polynomial(self, coefficients: Sequence[float], x: Any, by_pairs: bool = False) -> Any:
        """Return c_0 + c_1 x + c_2 x^2 ..

        Each fused multiply-add waits for the one before.  By pairs there are some more, of which
        few wait: for loops of so few turns that the processor would have nothing else to do.

        Parameters
        ----------
        coefficients : sequence of float
        x : LLVM value
            Vector of float64.
        by_pairs : bool

        Returns
        -------
        LLVM value
        """
        terms = [self.constant(c) for c in coefficients]
        if not by_pairs:
            value = terms.pop()
            while terms:
                value = self.fma(value, x, terms.pop())
            return value
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            rest = terms[len(terms) - len(terms) % 2 :]
            terms = [self.fma(upper, x, lower) for lower, upper in pairs] + rest
            x = self.builder.fmul(x, x)
        return terms[0]

    def larger(self, a: Any, b: Any) -> Any:
        """Return a where a > b, else b."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def smaller(self, a: Any, b: Any) -> Any:
        """Return a where a < b, else b."""
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def largest(self, a: Any) -> Any:
        """Return the largest number of a vector; none may be NaN.

        Parameters
        ----------
        a : LLVM value

        Returns
        -------
        LLVM value
        """
        size = self.width
        while size > 1:
            size //= 2
            order = [(lane + size) % self.width for lane in range(self.width)]
            rotation = ir.Constant(ir.VectorType(_I32, self.width), order)
            a = self.larger(a, self.builder.shuffle_vector(a, a, rotation))
        return self.builder.extract_element(a, ir.Constant(_I32, 0))

    def variable(self, start: Any) -> Any:
        """Return storage for a vector that a loop changes; LLVM keeps it in a register."""
        place = cgutils.alloca_once(self.builder, start.type)
        self.builder.store(start, place)
        return place

    def blocks(self, size: int) -> Any:
        """Loop over the first indices of blocks of VECTORS vectors within `size` numbers."""
        return self.steps(index(0), index(size), VECTORS * self.width)

    def steps(self, start: Any, stop: Any, step: int) -> Any:
        """Loop from `start` to `stop`, exclusive, in steps; yields (index, count).

        Parameters
        ----------
        start, stop : LLVM value
        step : int

        Returns
        -------
        context manager
        """
        return cgutils.for_range_slice(self.builder, start, stop, index(step), _I64)

    def within(self, start: Any) -> list[Any]:
        """Return the first index of each vector of the block that begins at `start`."""
        return [self.builder.add(start, index(v * self.width)) for v in range(VECTORS)]


def lanes_for(builder: Any, array: Any) -> Lanes:
    """Return lanes for the numbers of an array: twice as many of float32 as of float64."""
    is_single = array.type.pointee == _F32
    return Lanes(builder, LANES * (1 + is_single), is_single)
