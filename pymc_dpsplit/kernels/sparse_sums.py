"""Sums over the entries of sparse rows of a table with WIDTH numbers per column.

Entries in even and odd places are summed separately, so that an addition need not wait for the
previous one; both sums are added at the end.
"""

from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once

# Small, so that the table of ten thousand columns stays in the cache for all rows.
WIDTH = 16

_SETS = 2


@jitted
def sum_entries(indices, values, start, stop, table):
    """Sum of value * table[column] over the entries start .. stop - 1.

    Parameters
    ----------
    indices, values : ndarrays of int32, shape (M,)
    start, stop : int
    table : ndarray of float64, shape (V,)

    Returns
    -------
    float
    """
    even, odd = 0.0, 0.0
    middle = start + (stop - start) // 2 * 2
    for j in range(start, middle, 2):
        even += values[j] * table[indices[j]]
        odd += values[j + 1] * table[indices[j + 1]]
    if middle < stop:
        even += values[middle] * table[indices[middle]]
    return even + odd


@jitted
def fill_sums_plainly(indptr, indices, values, rows, table, out):
    """Plain twin of `fill_sums`, without vector code.

    Parameters
    ----------
    indptr : ndarray of int64, shape (N + 1,)
    indices, values : ndarrays of int32, shape (M,)
    rows : ndarray of int64, shape (n,)
    table : ndarray of float64, shape (V, WIDTH)
    out : ndarray of float64, shape (n, WIDTH)
    """
    for t in range(rows.shape[0]):
        start, stop = indptr[rows[t]], indptr[rows[t] + 1]
        for a in range(WIDTH):
            even, odd = 0.0, 0.0
            middle = start + (stop - start) // 2 * 2
            for j in range(start, middle, 2):
                even += values[j] * table[indices[j], a]
                odd += values[j + 1] * table[indices[j + 1], a]
            if middle < stop:
                even += values[middle] * table[indices[middle], a]
            out[t, a] = even + odd


def _write(
    builder: Any,
    indptr: Any,
    indices: Any,
    values: Any,
    rows: Any,
    n_rows: Any,
    table: Any,
    out: Any,
) -> None:
    lanes = Lanes(builder)
    at_once = range(0, WIDTH, LANES)
    sums = [[lanes.variable(lanes.constant(0.0)) for _ in at_once] for _ in range(_SETS)]

    def add(j: Any, places: list[Any]) -> None:
        column = builder.sext(lanes.scalar(indices, j), ir.IntType(64))
        value = lanes.splat(builder.sitofp(lanes.scalar(values, j), ir.DoubleType()))
        first = builder.mul(column, index(WIDTH))
        for a, place in zip(at_once, places, strict=True):
            entry = lanes.load(table, builder.add(first, index(a)))
            builder.store(lanes.fma(value, entry, builder.load(place)), place)

    with lanes.steps(index(0), n_rows, 1) as (t, _):
        row = lanes.scalar(rows, t)
        start = lanes.scalar(indptr, row)
        stop = lanes.scalar(indptr, builder.add(row, index(1)))
        is_odd = builder.and_(builder.sub(stop, start), index(1))
        middle = builder.sub(stop, is_odd)
        for place in (place for places in sums for place in places):
            builder.store(lanes.constant(0.0), place)
        with lanes.steps(start, middle, _SETS) as (j, _):
            for s, places in enumerate(sums):
                add(builder.add(j, index(s)), places)
        with lanes.steps(middle, stop, 1) as (j, _):
            add(j, sums[0])
        goal = builder.mul(t, index(WIDTH))
        for a, *places in zip(at_once, *sums, strict=True):
            total = builder.fadd(*(builder.load(place) for place in places))
            lanes.store(total, out, builder.add(goal, index(a)))


@intrinsic
def _fill_by_lanes(typing_context, indptr, indices, values, rows, n_rows, table, out):
    generate = written_once("fill_sums", _write)
    return types.void(indptr, indices, values, rows, n_rows, table, out), generate


@jitted_inlined
def _fill_sums(indptr, indices, values, rows, table, out):
    """Write the sums of value * table[column] over the entries of some rows into `out`.

    Parameters
    ----------
    indptr : ndarray of int64, shape (N + 1,)
    indices, values : ndarrays of int32, shape (M,)
        See `data.sparse_rows.SparseRows`.
    rows : ndarray of int64, shape (n,)
    table : ndarray of float64, shape (V, WIDTH)
        C-contiguous.
    out : ndarray of float64, shape (n, WIDTH)
        Overwritten.
    """
    _fill_by_lanes(indptr, indices, values, rows, rows.shape[0], table, out)


fill_sums = _fill_sums if LANES else fill_sums_plainly
