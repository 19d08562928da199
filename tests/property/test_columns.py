"""Sums over blocks of rows, and rows without their zeros, are those of the whole array."""

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pymc_dpsplit.components.features import take_features
from pymc_dpsplit.data import blocks, sparse_rows

SHAPES = arrays.array_shapes(min_dims=2, max_dims=2, max_side=8)
FINITE = st.floats(-1e6, 1e6, width=32)
TYPES = st.sampled_from([np.float32, np.float64])


def rows_with(elements: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    return TYPES.flatmap(lambda dtype: arrays.arrays(dtype, SHAPES, elements=elements))


@given(rows_with(FINITE))
def test_means_of_columns(rows: np.ndarray) -> None:
    expected = [math.fsum(column.tolist()) / len(rows) for column in rows.T]
    found = blocks.column_means(rows)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)


@given(rows_with(st.one_of(FINITE, st.just(np.nan))))
def test_missing_entries_are_found_and_left_out(rows: np.ndarray) -> None:
    i, j = blocks.missing_index_of(rows)
    expected = [
        (n, d)
        for n in range(rows.shape[0])
        for d in range(rows.shape[1])
        if rows[n, d] != rows[n, d]
    ]
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected
    assert blocks.count_where(np.isnan, rows) == len(expected)
    present = [column[~np.isnan(column)].astype(np.float64) for column in rows.T]
    highest = [of.max() if len(of) else -np.inf for of in present]
    np.testing.assert_array_equal(blocks.highest_of(rows), highest)
    if not all(len(of) for of in present):
        return
    mean, variance = blocks.moments_of(rows)
    np.testing.assert_allclose(mean, [of.mean() for of in present], rtol=1e-9, atol=1e-9)
    assert (variance > 0).all()
    for of, ours in zip(present, variance, strict=True):
        if of.max() - of.min() > 1e-3 * np.abs(of).max():
            np.testing.assert_allclose(ours, of.var(), rtol=1e-6)


COUNTS = arrays.arrays(np.int32, SHAPES, elements=st.one_of(st.just(0), st.integers(0, 50)))


def compressed(counts: np.ndarray) -> sparse_rows.SparseRows:
    i, j = np.nonzero(counts)
    indptr = np.searchsorted(i, np.arange(len(counts) + 1))
    return sparse_rows.SparseRows(indptr, j.astype(np.int32), counts[i, j], counts.shape)


@given(COUNTS)
def test_zeros_are_only_not_stored(counts: np.ndarray) -> None:
    rows = sparse_rows.plain(compressed(counts))
    np.testing.assert_array_equal(sparse_rows.as_array(rows), counts)
    np.testing.assert_array_equal(sparse_rows.row_totals(rows), counts.sum(axis=1))
    np.testing.assert_array_equal(sparse_rows.column_totals(rows), counts.sum(axis=0))
    np.testing.assert_allclose(blocks.column_means(rows), counts.mean(axis=0), rtol=1e-12)
    assert not any(part.flags.writeable for part in rows.parts)


@given(st.integers(1, 5), st.data())
def test_some_features_of_all(n_features: int, data: Any) -> None:
    features = np.array(data.draw(st.permutations(range(n_features))))
    features = features[: data.draw(st.integers(1, n_features))]
    values = {
        "number": np.array(2.0),
        "vector": np.arange(n_features) + 0.5,
        "matrix": np.arange(n_features**2).reshape(n_features, n_features),
    }
    taken = take_features(values, {"number": 0, "vector": 1, "matrix": 2}, features)
    assert taken["number"] == 2.0
    np.testing.assert_array_equal(taken["vector"], values["vector"][features])
    np.testing.assert_array_equal(taken["matrix"], values["matrix"][np.ix_(features, features)])
