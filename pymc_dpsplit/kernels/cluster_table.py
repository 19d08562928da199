"""Tables of numbers per cluster, in blocks of clusters, so that loops over clusters vectorise.

Number r of the cluster at position p is element place_of(height, p) + r * WIDE of a flat array: in
a block of WIDE clusters the same number of all of them is contiguous.  With one base address and
constant distances LLVM unrolls the loops over a block into vector code.
"""

from typing import Any

from pymc_dpsplit.kernels.jit import jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import index

WIDE = 8


@jitted_inlined
def place_of(height, p):
    """Index of the first number of the cluster at position p of a table."""
    return p // WIDE * height * WIDE + p % WIDE


@jitted
def whole_blocks(n):
    """Round a number of clusters up to whole blocks."""
    return (n + WIDE - 1) // WIDE * WIDE


def times_wide(builder: Any, number: Any) -> Any:
    """Write the code of number * WIDE, the place of a number of a block."""
    return builder.mul(number, index(WIDE))


@jitted_inlined
def block_of_turn(turn, own):
    """First cluster of the block that has its turn; the block of the own cluster is first."""
    own_block = max(own, 0) // WIDE * WIDE
    if turn == 0:
        return own_block
    return turn - WIDE if turn <= own_block else turn


def write_block_of_turn(builder: Any, turn: Any, has_own: Any, own: Any) -> Any:
    """Write the code of `block_of_turn`.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    turn, has_own, own : LLVM value
    """
    own_block = builder.select(has_own, builder.and_(own, index(-WIDE)), index(0))
    is_up_to_own = builder.icmp_signed("<=", turn, own_block)
    first = builder.select(is_up_to_own, builder.sub(turn, index(WIDE)), turn)
    return builder.select(builder.icmp_signed("==", turn, index(0)), own_block, first)
