"""Choice of a cluster for one observation by log masses, in whole blocks of positions.

The masses are powers of two relative to a reference that is known before the densities are, so that
nothing waits for the largest of these.  If masses are out of the range of float64 then, the choice
is made again, relative to the largest.

Position `first` + t, where `first` begins a block, is in lane t.  A lane is chosen first, by its
sum over the blocks, then the block: one cumulative sum, over the lanes, serves all blocks.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from pymc_dpsplit.kernels.cluster_table import WIDE
from pymc_dpsplit.kernels.exponential import LOG2E, exp2_plainly, write_exp2
from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined_uncounted
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once

# Sums of masses beyond these bounds are out of range; so is a mass of 2 to this power or more.
_LEAST_SUM, _LARGEST_SUM, _LARGEST_POWER = 1e-200, 1e290, 1000.0
# Weights below it are those of masses that `exp2_plainly` rounds up.
_NOTHING = 1e-300
_OUT_OF_RANGE = -1


@jitted
def workspace_size(capacity):
    """Size of the workspace of `choose_position` for so many positions.

    Parameters
    ----------
    capacity : int
        A multiple of `WIDE`.

    Returns
    -------
    int
    """
    return 2 * capacity + WIDE


@jitted
def choose_plainly(log_density, log_prior, own, log_prior_own, n, log_new, reference, u, weights):
    """Plain twin of `_choose_by_lanes`, without vector code.

    Parameters are those of `choose_position`.

    Returns
    -------
    int
        Negative if out of range.
    """
    n_padded = n // WIDE * WIDE + WIDE
    for p in range(n_padded):
        x = log_density[p] + (log_prior_own if p == own else log_prior[p])
        x = (log_new if p == n else x) * LOG2E - reference * LOG2E
        x = x if x < _LARGEST_POWER else _LARGEST_POWER
        weights[p] = exp2_plainly(x) if p <= n else 0.0
        before = weights[n_padded + p - WIDE] if p >= WIDE else 0.0
        weights[n_padded + p] = before + weights[p]
    last, before = 2 * n_padded - WIDE, 2 * n_padded
    total, t = 0.0, 0
    for k in range(WIDE):
        weights[before + k] = total
        total += weights[last + k]
    if not _LEAST_SUM < total < _LARGEST_SUM:
        return _OUT_OF_RANGE
    for k in range(1, WIDE):
        t += weights[before + k] <= u * total
    rest, position = u * total - weights[before + t], t
    for first in range(n_padded, last, WIDE):
        position += WIDE if weights[first + t] <= rest else 0
    return position


def _write_cumulative(
    lanes: Lanes,
    log_density: Any,
    log_prior: Any,
    own: Any,
    log_prior_own: Any,
    n: Any,
    log_new: Any,
    reference: Any,
    weights: Any,
    n_padded: Any,
) -> None:
    """Write the weights of all positions, and after them their sums over the blocks so far."""
    builder, stop = lanes.builder, lanes.builder.add(n, index(1))
    prior_of_own, new = lanes.splat(log_prior_own), lanes.splat(log_new)
    below = lanes.splat(builder.fmul(reference, ir.Constant(ir.DoubleType(), -LOG2E)))
    running = lanes.variable(lanes.constant(0.0))
    with lanes.steps(index(0), stop, WIDE) as (first, _):
        is_own = lanes.is_lane(builder.sub(own, first))
        prior = builder.select(is_own, prior_of_own, lanes.load(log_prior, first))
        x = builder.fadd(lanes.load(log_density, first), prior)
        x = builder.select(lanes.is_lane(builder.sub(n, first)), new, x)
        x = lanes.fma(x, lanes.constant(LOG2E), below)
        weight = write_exp2(lanes, lanes.smaller(x, lanes.constant(_LARGEST_POWER)), by_pairs=True)
        is_option = lanes.before(builder.sub(stop, first))
        weight = builder.select(is_option, weight, lanes.constant(0.0))
        total = builder.fadd(builder.load(running), weight)
        builder.store(total, running)
        lanes.store(weight, weights, first)
        lanes.store(total, weights, builder.add(first, n_padded))


def _write_sums_before(builder: Any, c: list[Any]) -> tuple[list[Any], Any]:
    """Write the sums of the numbers before each lane but the first, and that of all."""
    add = builder.fadd
    two, three_four, five_six = add(c[0], c[1]), add(c[2], c[3]), add(c[4], c[5])
    four = add(two, three_four)
    six = add(four, five_six)
    sums = [c[0], two, add(two, c[2]), four, add(four, c[4]), six, add(six, c[6])]
    return sums, add(four, add(five_six, add(c[6], c[7])))


def _count_below(builder: Any, sums: list[Any], target: Any) -> Any:
    count = index(0)
    for each in sums:
        is_below = builder.fcmp_ordered("<=", each, target)
        count = builder.add(count, builder.zext(is_below, ir.IntType(64)))
    return count


def _write_choice(
    builder: Any,
    log_density: Any,
    log_prior: Any,
    own: Any,
    log_prior_own: Any,
    n: Any,
    log_new: Any,
    reference: Any,
    u: Any,
    weights: Any,
) -> Any:
    lanes, number = Lanes(builder, WIDE), ir.DoubleType()
    n_padded = builder.and_(builder.add(n, index(WIDE)), index(-WIDE))
    given = log_density, log_prior, own, log_prior_own, n, log_new, reference
    _write_cumulative(lanes, *given, weights, n_padded)
    before = builder.add(n_padded, n_padded)
    last = builder.sub(before, index(WIDE))
    of_lanes = [lanes.scalar(weights, builder.add(last, index(t))) for t in range(WIDE)]
    sums, total = _write_sums_before(builder, of_lanes)
    target = builder.fmul(u, total)
    t = _count_below(builder, sums, target)
    position = cgutils.alloca_once_value(builder, t)
    with builder.if_then(builder.icmp_signed(">", n_padded, index(WIDE))):
        for k, each in enumerate([ir.Constant(number, 0.0), *sums]):
            builder.store(each, builder.gep(weights, [builder.add(before, index(k))]))
        rest = builder.fsub(target, lanes.scalar(weights, builder.add(before, t)))
        with lanes.steps(n_padded, last, WIDE) as (first, _):
            of_blocks = lanes.scalar(weights, builder.add(first, t))
            is_below = builder.fcmp_ordered("<=", of_blocks, rest)
            step = builder.select(is_below, index(WIDE), index(0))
            builder.store(builder.add(builder.load(position), step), position)
    is_large = builder.fcmp_ordered(">", total, ir.Constant(number, _LEAST_SUM))
    is_small = builder.fcmp_ordered("<", total, ir.Constant(number, _LARGEST_SUM))
    in_range = builder.and_(is_large, is_small)
    return builder.select(in_range, builder.load(position), index(_OUT_OF_RANGE))


@intrinsic
def _choice_by_lanes(
    typing_context, log_density, log_prior, own, log_prior_own, n, log_new, reference, u, weights
):
    generate = written_once("choose_position", _write_choice, ir.IntType(64), inlined=True)
    given = log_density, log_prior, own, log_prior_own, n, log_new, reference, u, weights
    return types.int64(*given), generate


@jitted_inlined_uncounted
def _choose_by_lanes(log_density, log_prior, own, log_prior_own, n, log_new, reference, u, weights):
    """Position that `u` selects; it may be one without mass, and is negative if out of range."""
    return _choice_by_lanes(
        log_density, log_prior, own, log_prior_own, n, log_new, reference, u, weights
    )


_choose = _choose_by_lanes if LANES else choose_plainly


@jitted
def _position_with_mass(weights, n, u):
    """Choose in the order of positions, where rounding would lead to one without mass."""
    total, running, last = 0.0, 0.0, n
    for p in range(n + 1):
        total += weights[p] if weights[p] > _NOTHING else 0.0
    for p in range(n + 1):
        if weights[p] > _NOTHING:
            last = p
            running += weights[p]
            if u * total < running:
                return p
    return last


@jitted
def _choose_by_largest(log_density, log_prior, own, log_prior_own, n, log_new, u, weights):
    """Choose relative to the largest mass."""
    top = log_new
    for p in range(n):
        top = max(top, log_density[p] + (log_prior_own if p == own else log_prior[p]))
    p = _choose(log_density, log_prior, own, log_prior_own, n, log_new, top, u, weights)
    if 0 <= p <= n and weights[p] > _NOTHING:
        return p
    return _position_with_mass(weights, n, u)


@jitted_inlined_uncounted
def choose_position(log_density, log_prior, own, log_prior_own, n, log_new, reference, u, weights):
    """Position that a uniform selects, with probability proportional to its mass.

    The mass of position p < n is exp(log_density[p] + log_prior[p]), that of position n is
    exp(log_new).

    Parameters
    ----------
    log_density : ndarray of float64, shape (>= n + 1,) in whole blocks
        Elements from n on are not used.
    log_prior : ndarray of float64, shape (>= n + 1,) in whole blocks
    own : int
        Position with another `log_prior`; -1 for none.
    log_prior_own : float
        That of position `own`.
    n : int
    log_new : float
        Not all of the masses are 0.
    reference : float
        Log of a mass by which the others are divided: any number, best one that is within
        hundreds of the largest log mass.
    u : float
    weights : ndarray of float64, shape (workspace_size(capacity),)
        Workspace.

    Returns
    -------
    int
    """
    p = _choose(log_density, log_prior, own, log_prior_own, n, log_new, reference, u, weights)
    if 0 <= p <= n and weights[p] > _NOTHING:
        return p
    return _choose_by_largest(log_density, log_prior, own, log_prior_own, n, log_new, u, weights)
