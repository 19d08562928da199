"""Densities of one observation under all clusters of a table, in vector code over the clusters.

Each kernel works on whole blocks of clusters, see `kernels.cluster_table`; a block has `height`
numbers per cluster.  LLVM does not vectorise these loops on its own: it unrolls the short ones
before it looks for vectors.
"""

from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.cluster_table import WIDE, times_wide
from pymc_dpsplit.kernels.digits import LEAST_KEPT
from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once
from pymc_dpsplit.kernels.logarithm import log_plainly, write_log


@jitted
def fill_student_plainly(table, height, offset, squared, n, own, ratio, shift, out):
    """Plain twin of `fill_student`, without vector code.

    Parameters
    ----------
    table : ndarray of float64
    height, offset : int
    squared : ndarray of float64
    n, own : int
    ratio, shift : float
    out : ndarray of float64

    Returns
    -------
    bool
    """
    keeps = True
    for first in range(0, n, WIDE):
        at = (first * height) + offset * WIDE
        for t in range(WIDE):
            grown = table[at + WIDE + t] * squared[first + t]
            c, h = table[at + t], table[at + 2 * WIDE + t]
            if first + t == own:
                grown, c, h = -ratio * grown, table[at + 3 * WIDE + t], shift - h
            grown += 1.0
            keeps = keeps and grown > LEAST_KEPT
            out[first + t] = c - h * log_plainly(grown)
    return keeps


@jitted
def fill_student_columns_plainly(table, height, row, n, own, ratios, out):
    """Plain twin of `fill_student_columns`, without vector code.

    Parameters
    ----------
    table : ndarray of float64
    height : int
    row : ndarray of float64, shape (D,)
    n, own : int
    ratios : ndarray of float64, shape (D,)
    out : ndarray of float64

    Returns
    -------
    bool
    """
    n_features, keeps = row.shape[0], True
    for first in range(0, n, WIDE):
        at = first * height
        for t in range(WIDE):
            out[first + t] = table[at + (3 * n_features + (first + t == own)) * WIDE + t]
        for d in range(n_features):
            for t in range(WIDE):
                gap = row[d] - table[at + t]
                grown = table[at + n_features * WIDE + t] * (gap * gap)
                h = table[at + 2 * n_features * WIDE + t]
                if first + t == own:
                    grown, h = -ratios[d] * grown, 1.0 - h
                grown += 1.0
                keeps = keeps and grown > LEAST_KEPT
                out[first + t] -= h * log_plainly(grown)
            at += WIDE
    return keeps


def _write_student(
    builder: Any,
    table: Any,
    height: Any,
    offset: Any,
    squared: Any,
    n: Any,
    own: Any,
    ratio: Any,
    shift: Any,
    out: Any,
) -> Any:
    lanes = Lanes(builder, WIDE)
    least, minus = lanes.variable(lanes.constant(1.0)), lanes.splat(builder.fneg(ratio))
    with lanes.steps(index(0), n, WIDE) as (first, _):
        at = builder.add(builder.mul(first, height), times_wide(builder, offset))
        scaled = builder.fmul(
            lanes.load(table, builder.add(at, index(WIDE))), lanes.load(squared, first)
        )
        h = lanes.load(table, builder.add(at, index(2 * WIDE)))
        is_own = lanes.is_lane(builder.sub(own, first))
        c = lanes.load_masked(table, builder.add(at, index(3 * WIDE)), is_own)
        c = builder.select(is_own, c, lanes.load(table, at))
        h = builder.select(is_own, builder.fsub(lanes.splat(shift), h), h)
        grown = _write_grown(lanes, scaled, is_own, minus, least)
        drop = builder.fmul(h, write_log(lanes, grown, by_pairs=True))
        lanes.store(builder.fsub(c, drop), out, first)
    return _write_keeps(lanes, least)


def _write_student_columns(
    builder: Any,
    table: Any,
    height: Any,
    row: Any,
    d: Any,
    n: Any,
    own: Any,
    ratios: Any,
    out: Any,
) -> Any:
    lanes = Lanes(builder, WIDE)
    block, one = times_wide(builder, d), lanes.constant(1.0)
    least = lanes.variable(one)
    with lanes.steps(index(0), n, WIDE) as (first, _):
        start = builder.mul(first, height)
        is_own = lanes.is_lane(builder.sub(own, first))
        constant = builder.add(start, builder.mul(block, index(3)))
        c = lanes.load_masked(table, builder.add(constant, index(WIDE)), is_own)
        total = lanes.variable(builder.select(is_own, c, lanes.load(table, constant)))
        with lanes.steps(index(0), d, 1) as (j, _):
            at = builder.add(start, times_wide(builder, j))
            at_scale = builder.add(at, block)
            gap = builder.fsub(lanes.splat(lanes.scalar(row, j)), lanes.load(table, at))
            scaled = builder.fmul(lanes.load(table, at_scale), builder.fmul(gap, gap))
            minus = lanes.splat(builder.fneg(lanes.scalar(ratios, j)))
            grown = _write_grown(lanes, scaled, is_own, minus, least)
            h = lanes.load(table, builder.add(at_scale, block))
            h = builder.select(is_own, builder.fsub(one, h), h)
            drop = builder.fmul(h, write_log(lanes, grown, by_pairs=True))
            builder.store(builder.fsub(builder.load(total), drop), total)
        lanes.store(builder.load(total), out, first)
    return _write_keeps(lanes, least)


def _write_grown(lanes: Lanes, scaled: Any, is_own: Any, minus: Any, least: Any) -> Any:
    """Write 1 + f q, or 1 - ratio f q of the own cluster, and keep the least of these."""
    builder, one = lanes.builder, lanes.constant(1.0)
    grown = lanes.fma(scaled, builder.select(is_own, minus, one), one)
    builder.store(lanes.smaller(grown, builder.load(least)), least)
    return grown


def _write_keeps(lanes: Lanes, least: Any) -> Any:
    """Write whether enough digits are left in all lanes."""
    keeps = lanes.builder.fcmp_ordered(">", lanes.builder.load(least), lanes.constant(LEAST_KEPT))
    return lanes.all(keeps)


@intrinsic
def _student_by_lanes(typing_context, table, height, offset, squared, n, own, ratio, shift, out):
    generate = written_once("fill_student", _write_student, ir.IntType(1), inlined=True)
    given = table, height, offset, squared, n, own, ratio, shift, out
    return types.boolean(*given), generate


@intrinsic
def _student_columns_by_lanes(typing_context, table, height, row, n_features, n, own, ratios, out):
    generate = written_once(
        "fill_student_columns", _write_student_columns, ir.IntType(1), inlined=True
    )
    return types.boolean(table, height, row, n_features, n, own, ratios, out), generate


@jitted_inlined
def _fill_student(table, height, offset, squared, n, own, ratio, shift, out):
    """Write c - h log(1 + f q) of each cluster, and of one cluster without the observation.

    By the determinant lemma the latter is c' + (h - shift) log(1 - ratio f q).

    Parameters
    ----------
    table : ndarray of float64
        Numbers `offset`, `offset` + 1 and `offset` + 2 per cluster are c, f and h; the next one is
        c', which is read of the cluster `own` only.
    height, offset : int
    squared : ndarray of float64, shape (n,) in whole blocks
        The numbers q.
    n, own : int
        Clusters, rounded up to whole blocks; and that from which the observation is left out, -1
        if there is none.
    ratio, shift : float
    out : ndarray of float64, shape (n,) in whole blocks
        Overwritten.

    Returns
    -------
    bool
        False if too much precision is lost in out[own].
    """
    return _student_by_lanes(table, height, offset, squared, n, own, ratio, shift, out)


@jitted_inlined
def _fill_student_columns(table, height, row, n, own, ratios, out):
    """Write c - sum_d h_d log(1 + s_d (x_d - mu_d)^2) of each cluster, one without the observation.

    The latter is c' + sum_d (h_d - 1) log(1 - ratios_d s_d (x_d - mu_d)^2).

    Parameters
    ----------
    table : ndarray of float64
        Per cluster: mu, s and h (D each), then c and c'.
    height : int
    row : ndarray of float64, shape (D,)
        The observation x.
    n, own : int
        As of `fill_student`.
    ratios : ndarray of float64, shape (D,)
    out : ndarray of float64, shape (n,) in whole blocks
        Overwritten.

    Returns
    -------
    bool
        As of `fill_student`.
    """
    return _student_columns_by_lanes(table, height, row, row.shape[0], n, own, ratios, out)


fill_student = _fill_student if LANES else fill_student_plainly
fill_student_columns = _fill_student_columns if LANES else fill_student_columns_plainly
