"""Sums and sums of squares of each feature over rows, for clusters without covariances.

The sums stay in registers while the rows of a group are read.  Scalars need not be grouped: their
sums are so few that they are added in memory.
"""

from typing import Any

import numpy as np
from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once
from pymc_dpsplit.kernels.views import part_of, row_of


@jitted_inlined
def _add_four(x, shift, group, d, sums, squares):
    """Add the features d .. d + 3 of a group."""
    c0, c1, c2, c3 = shift[d], shift[d + 1], shift[d + 2], shift[d + 3]
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    q0, q1, q2, q3 = 0.0, 0.0, 0.0, 0.0
    for j in range(group.shape[0]):
        i = group[j]
        x0, x1, x2, x3 = x[i, d] - c0, x[i, d + 1] - c1, x[i, d + 2] - c2, x[i, d + 3] - c3
        s0 += x0
        s1 += x1
        s2 += x2
        s3 += x3
        q0 += x0 * x0
        q1 += x1 * x1
        q2 += x2 * x2
        q3 += x3 * x3
    sums[d] += s0
    sums[d + 1] += s1
    sums[d + 2] += s2
    sums[d + 3] += s3
    squares[d] += q0
    squares[d + 1] += q1
    squares[d + 2] += q2
    squares[d + 3] += q3


@jitted_inlined
def _add_one(x, shift, group, d, sums, squares):
    """Add feature d of a group."""
    centre, total, of_squares = shift[d], 0.0, 0.0
    for j in range(group.shape[0]):
        value = x[group[j], d] - centre
        total += value
        of_squares += value * value
    sums[d] += total
    squares[d] += of_squares


@jitted
def add_squares_plainly(x, shift, group, sums, squares):
    """Plain twin of `add_squares`, without vector code.

    Parameters
    ----------
    x : ndarray of float64 or float32, shape (N, D)
    shift : ndarray of float64, shape (D,)
    group : ndarray of int64, shape (n,)
    sums, squares : ndarrays of float64, shape (D,)
    """
    n_features = x.shape[1]
    rest = n_features // 4 * 4
    for d in range(0, rest, 4):
        _add_four(x, shift, group, d, sums, squares)
    for d in range(rest, n_features):
        _add_one(x, shift, group, d, sums, squares)


def _write(
    builder: Any,
    x: Any,
    n_features: Any,
    pitch: Any,
    shift: Any,
    group: Any,
    n_rows: Any,
    sums: Any,
    squares: Any,
) -> None:
    lanes = Lanes(builder)
    last = builder.sub(n_features, index(LANES))
    pairs = builder.and_(n_rows, index(-2))
    with lanes.steps(index(0), n_features, LANES) as (step, _):
        # The last block overlaps the one before, whose features are not added again.
        is_inside = builder.icmp_signed("<", step, last)
        d = builder.select(is_inside, step, last)
        is_again = lanes.before(builder.sub(step, d))
        centre = lanes.load(shift, d)
        # Two sums of each, as an addition waits for the one before it.
        totals = [lanes.variable(lanes.constant(0.0)) for _ in range(2)]
        of_squares = [lanes.variable(lanes.constant(0.0)) for _ in range(2)]

        def add(j: Any, which: int) -> None:
            row = builder.mul(lanes.scalar(group, j), pitch)
            value = builder.fsub(lanes.load_widened(x, builder.add(row, d)), centre)
            total, squared = totals[which], of_squares[which]
            builder.store(builder.fadd(builder.load(total), value), total)
            builder.store(lanes.fma(value, value, builder.load(squared)), squared)

        with lanes.steps(index(0), pairs, 2) as (j, _):
            add(j, 0)
            add(builder.add(j, index(1)), 1)
        with lanes.steps(pairs, n_rows, 1) as (j, _):
            add(j, 0)
        for halves, out in ((totals, sums), (of_squares, squares)):
            found = builder.fadd(*[builder.load(half) for half in halves])
            found = builder.select(is_again, lanes.constant(0.0), found)
            lanes.store(builder.fadd(lanes.load(out, d), found), out, d)


@intrinsic
def _add_by_lanes(typing_context, x, n_features, pitch, shift, group, n_rows, sums, squares):
    generate = written_once(f"add_squares_{x.dtype}", _write)
    return types.void(x, n_features, pitch, shift, group, n_rows, sums, squares), generate


@jitted_inlined
def _add_squares(x, shift, group, sums, squares):
    """Add each feature, less a shift, and its square over the rows of a group.

    Parameters
    ----------
    x : ndarray of float64 or float32, shape (N, D)
        Contiguous along rows: a C-contiguous matrix, or adjacent columns of one.
    shift : ndarray of float64, shape (D,)
    group : ndarray of int64, shape (n,)
        Indices of the rows.
    sums, squares : ndarrays of float64, shape (D,)
        Added to.
    """
    if x.shape[1] < LANES:
        add_squares_plainly(x, shift, group, sums, squares)
    else:
        pitch, n_rows = x.strides[0] // x.itemsize, group.shape[0]
        _add_by_lanes(x, x.shape[1], pitch, shift, group, n_rows, sums, squares)


add_squares = _add_squares if LANES else add_squares_plainly


@jitted
def add_groups_of_squares(x, shift, members, bounds, stats):
    """Add groups of rows to number, sums (D) and sums of squares (D) of their clusters.

    Parameters
    ----------
    x : ndarray of float64 or float32, shape (N, D)
        Contiguous along rows.
    shift : ndarray of float64, shape (D,)
    members : ndarray of int64
    bounds : ndarray of int64, shape (K + 1,)
        Cluster k receives members[bounds[k] : bounds[k + 1]].
    stats : ndarray of float64, shape (K, 1 + 2 D)
        Added to.
    """
    n_features = x.shape[1]
    for k in range(stats.shape[0]):
        n = bounds[k + 1] - bounds[k]
        if n > 0:
            group, cluster = part_of(members, bounds[k], n), row_of(stats, k)
            sums = part_of(cluster, 1, n_features)
            squares = part_of(cluster, 1 + n_features, n_features)
            cluster[0] += n
            add_squares(x, shift, group, sums, squares)


@jitted
def add_scalars_by_label(x, shift, labels, start, stop, stats):
    """Add the rows start .. stop - 1 to number, sum and sum of squares of their clusters.

    Parameters
    ----------
    x : ndarray of float64 or float32, shape (N, 1)
    shift : float
    labels : ndarray of int32, shape (N,)
    start, stop : int
    stats : ndarray of float64, shape (K, 3)
        Added to.
    """
    # Neighbours have sums of their own: one addition to memory waits for the one before it.
    sums = np.zeros((2, stats.shape[0], 3))
    for i in range(start, stop):
        half, k, value = (i - start) & 1, labels[i], x[i, 0] - shift
        sums[half, k, 0] += 1.0
        sums[half, k, 1] += value
        sums[half, k, 2] += value * value
    for k in range(stats.shape[0]):
        for j in range(3):
            stats[k, j] += sums[0, k, j] + sums[1, k, j]
