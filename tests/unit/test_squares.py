"""Sums, squares and products by cluster against NumPy, in vector code and in its plain twin."""

from collections.abc import Callable

import numpy as np
import pytest

from pymc_dpsplit.kernels.scatter import add_outer_groups
from pymc_dpsplit.kernels.squares import (
    add_groups_of_squares,
    add_scalars_by_label,
    add_squares,
    add_squares_plainly,
)

# Fewer features than a vector has, whole vectors, and vectors that overlap.
N_FEATURES = [1, 2, 3, 4, 6, 7, 8, 9, 16, 17, 33]
over_dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def sums_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return rows.sum(0), (rows**2).sum(0)


@over_dtypes
@pytest.mark.parametrize("n_features", N_FEATURES)
@pytest.mark.parametrize("add", [add_squares, add_squares_plainly], ids=["lanes", "plain"])
def test_squares_match_numpy(
    add: Callable[..., None], n_features: int, dtype: type, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((40, n_features)).astype(dtype)
    x.flags.writeable = False
    shift = rng.standard_normal(n_features)
    for n_rows in (0, 1, 2, 7):
        group = rng.integers(40, size=n_rows)
        sums, squares = rng.standard_normal(n_features + 1), rng.standard_normal(n_features + 1)
        added, added_squares = sums_of(x[group] - shift)
        # The element after the last one is not to be written.
        expected = np.append(sums[:-1] + added, sums[-1])
        expected_squares = np.append(squares[:-1] + added_squares, squares[-1])
        add(x, shift, group, sums[:-1], squares[:-1])
        np.testing.assert_allclose(sums, expected, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(squares, expected_squares, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("add", [add_squares, add_squares_plainly], ids=["lanes", "plain"])
def test_squares_of_some_columns_of_a_wider_matrix(
    add: Callable[..., None], rng: np.random.Generator
) -> None:
    x = rng.standard_normal((20, 30))[:, 4:23]
    shift, group = rng.standard_normal(19), rng.integers(20, size=9)
    sums, squares = np.zeros(19), np.zeros(19)
    add(x, shift, group, sums, squares)
    expected, expected_squares = sums_of(x[group] - shift)
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(squares, expected_squares, rtol=1e-12)


@pytest.mark.parametrize("n_features", N_FEATURES)
def test_groups_of_squares_match_numpy(n_features: int, rng: np.random.Generator) -> None:
    x, shift = rng.standard_normal((50, n_features)), rng.standard_normal(n_features)
    members, bounds = rng.permutation(50), np.array([3, 3, 20, 21, 44])
    before = rng.standard_normal((4, 1 + 2 * n_features))
    stats = before.copy()
    add_groups_of_squares(x, shift, members, bounds, stats)
    for k in range(4):
        rows = x[members[bounds[k] : bounds[k + 1]]] - shift
        expected = before[k] + np.concatenate([[len(rows)], *sums_of(rows)])
        np.testing.assert_allclose(stats[k], expected, rtol=1e-12, atol=1e-12)


@over_dtypes
@pytest.mark.parametrize(("start", "stop"), [(0, 0), (4, 5), (3, 31), (2, 40)])
def test_scalars_are_added_to_their_clusters(
    start: int, stop: int, dtype: type, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((40, 1)).astype(dtype)
    labels, before = rng.integers(3, size=40).astype(np.int32), rng.standard_normal((4, 3))
    stats, shift = before.copy(), np.float64(0.7)
    add_scalars_by_label(x, shift, labels, start, stop, stats)
    for k in range(4):
        rows = x[start:stop][labels[start:stop] == k] - shift
        expected = before[k] + np.concatenate([[len(rows)], *sums_of(rows)])
        np.testing.assert_allclose(stats[k], expected, rtol=1e-12, atol=1e-12)


@over_dtypes
@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5, 8, 9])
def test_groups_of_outer_products_match_numpy(
    n_features: int, dtype: type, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((200, n_features)).astype(dtype)
    shift, members = rng.standard_normal(n_features), rng.permutation(200)
    bounds = np.array([3, 3, 80, 81, 190])
    below = np.tril_indices(n_features)
    before = rng.standard_normal((4, 1 + n_features + len(below[0])))
    stats = before.copy()
    add_outer_groups(shift, x, members, bounds, stats)
    for k in range(4):
        rows = x[members[bounds[k] : bounds[k + 1]]] - shift
        expected = before[k] + np.concatenate([[len(rows)], rows.sum(0), (rows.T @ rows)[below]])
        np.testing.assert_allclose(stats[k], expected, rtol=1e-12, atol=1e-12)
