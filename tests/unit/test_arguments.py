"""Checks of arguments: what is converted, and one sentence for what is not."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

import pymc_dpsplit as dps
from pymc_dpsplit.components.arguments import (
    as_floats,
    check_integer,
    generator_of,
    positive_definite,
    positive_scalar,
    positive_vector,
    real_scalar,
    real_vector,
    rows_of,
)

ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]
LONG = np.linspace(-1.0, 1.0, 100)

NUMERIC = {
    "int": (2, 2.0),
    "numpy scalar": (np.float32(0.5), 0.5),
    "zero-dimensional": (np.array(3), 3.0),
    "list": ([1, 2.5], [1.0, 2.5]),
    "tuple": ((1, 2), [1.0, 2.0]),
    "objects": (np.array([1, 2.5], dtype=object), [1.0, 2.5]),
    "fractions": ([Fraction(1, 2), Decimal("0.25")], [0.5, 0.25]),
    "unsigned": (np.array([1], dtype=np.uint8), [1.0]),
    "half": (np.array([1.5], dtype=np.float16), [1.5]),
    "pandas": (pd.Series([1, 2]), [1.0, 2.0]),
    "polars": (pl.Series([1, 2]), [1.0, 2.0]),
    "xarray": (xr.DataArray([1, 2]), [1.0, 2.0]),
    "unmasked": (np.ma.masked_array([1, 2], [False, False]), [1.0, 2.0]),
}


@pytest.mark.parametrize("kind", NUMERIC)
def test_numbers_are_converted(kind):
    given, expected = NUMERIC[kind]
    converted = as_floats("mu0", given)
    assert type(converted) is np.ndarray
    assert converted.dtype == np.float64
    np.testing.assert_array_equal(converted, expected)


BAD_NUMBERS = {
    "string": ("2.0", "mu0='2.0' has dtype <U3, which is not numeric"),
    "bytes": (b"2", "not numeric"),
    "strings": (["1", "2"], "not numeric"),
    "strings among objects": (np.array([1, "2"], dtype=object), "entries of type str"),
    "complex": (1j, "dtype complex128"),
    "complex among objects": (np.array([1j], dtype=object), "entries of type complex"),
    "truth": (True, "is a truth value"),
    "truths": ([True, False], "is a truth value"),
    "ragged": ([[1, 2], [3]], "is ragged: its rows differ in length"),
    "None": (None, "NaN"),
    "dict": ({"a": 1}, "entries that are not numbers"),
    "date": (np.datetime64("2020-01-01"), "dtype datetime64"),
    "function": (np.sin, "entries that are not numbers"),
    "NaN": ([1.0, np.nan], "NaN or infinite"),
    "infinite": (-np.inf, "NaN or infinite"),
    "too large": (10**400, "entries that are not numbers"),
    "masked": (np.ma.masked_array([1, 2], [False, True]), "NaN or infinite"),
    "set": ({1.0}, "is a set, whose entries have no order"),
    "generator": ((x for x in [1.0]), "is a generator, which can be read only once"),
    "Dataset": (xr.Dataset({"a": ("i", [1.0])}), "is a Dataset, which holds arrays by name"),
    "no array": (pd.Interval(0, 1), "not numbers"),
    "more digits than are printed": (10**5000, "mu0=<int> holds entries that are not numbers"),
    "long and not a number": (np.append(LONG, np.nan), r"<ndarray of shape \(101,\)> has NaN"),
}


def assert_one_sentence(text):
    assert text.endswith(".")
    assert "\n" not in text
    assert "; " in text  # the remedy
    assert len(text) < 250


@pytest.mark.parametrize("fault", BAD_NUMBERS)
def test_what_is_not_a_number_is_one_sentence(fault):
    given, message = BAD_NUMBERS[fault]
    with pytest.raises(ValueError, match=message) as raised:
        as_floats("mu0", given)
    assert str(raised.value).startswith("mu0=")
    assert_one_sentence(str(raised.value))


def test_shapes_are_broadcast():
    np.testing.assert_array_equal(real_vector("mu0", 2, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(real_vector("mu0", [2], 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(positive_vector("b0", [1, 2], 2), [1.0, 2.0])
    assert real_scalar("mu0", [[-2]]) == -2.0
    assert positive_scalar("kappa0", 1e-300) == 1e-300
    assert positive_definite("psi0", 4, 1).shape == (1, 1)


def test_broadcast_vector_is_writable():
    real_vector("mu0", 2, 3)[0] = 1.0


BAD_SHAPES = {
    "too long": (real_vector, ("mu0", [1, 2, 3], 2), r"shape \(3,\), but the data have 2 features"),
    "matrix": (real_vector, ("mu0", [[1, 2]], 2), r"shape \(1, 2\)"),
    "vector for scalar": (real_scalar, ("mu0", [1, 2]), "give a single number"),
    "zero": (positive_scalar, ("kappa0", 0), "kappa0=0 must be positive"),
    "negative": (positive_vector, ("b0", [1, -1], 2), r"b0=\[1, -1\] must be positive"),
    "long and negative": (positive_vector, ("b0", LONG, 100), "<ndarray of shape"),
    "vector for matrix": (positive_definite, ("psi0", [1, 1], 2), r"give a matrix of shape \(2, 2"),
    "not symmetric": (positive_definite, ("psi0", [[1, 0.5], [0, 1]], 2), "not symmetric"),
    "indefinite": (positive_definite, ("psi0", [[1, 2], [2, 1]], 2), "not positive definite"),
    "zero matrix": (positive_definite, ("psi0", np.zeros((2, 2)), 2), "not positive definite"),
    "negative matrix": (positive_definite, ("psi0", -np.eye(2), 2), "not positive definite"),
}


@pytest.mark.parametrize("fault", BAD_SHAPES)
def test_shape_or_range_is_one_sentence(fault):
    check, arguments, message = BAD_SHAPES[fault]
    with pytest.raises(ValueError, match=message) as raised:
        check(*arguments)
    assert_one_sentence(str(raised.value))


def test_definiteness_is_judged_relative_to_units():
    """Features in units 24 orders of magnitude apart make a sound matrix."""
    units = np.diag([1e-12, 1e12])
    matrix = units @ [[1.0, 0.5], [0.5, 1.0]] @ units
    np.testing.assert_allclose(positive_definite("psi0", matrix, 2), matrix, rtol=1e-15)
    with pytest.raises(ValueError, match="not positive definite"):
        positive_definite("psi0", units @ [[1.0, 1.0], [1.0, 1.0]] @ units, 2)


OBSERVED = {
    "list": ROWS,
    "integers": np.array(ROWS, dtype=int),
    "half": np.array(ROWS, dtype=np.float16),
    "long double": np.array(ROWS, dtype=np.longdouble),
    "other byte order": np.array(ROWS, dtype=">f8"),
    "objects": np.array(ROWS, dtype=object),
    "pandas": pd.DataFrame(ROWS),
    "pandas nullable": pd.DataFrame(ROWS).astype("Float64"),
    "polars": pl.DataFrame(ROWS, orient="row"),
    "xarray": xr.DataArray(ROWS),
    "fortran": np.asfortranarray(ROWS),
    "reversed": np.array(ROWS[::-1])[::-1],
}


@pytest.mark.parametrize("kind", OBSERVED)
def test_observations_are_converted(kind):
    rows = rows_of(OBSERVED[kind], 1)
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, ROWS)


SINGLE = {
    "numpy": np.array(ROWS, dtype=np.float32),
    "other byte order": np.array(ROWS, dtype=">f4"),
    "fortran": np.asfortranarray(ROWS, dtype=np.float32),
    "pandas": pd.DataFrame(ROWS, dtype=np.float32),
    "polars": pl.DataFrame(ROWS, orient="row", schema=[("a", pl.Float32), ("b", pl.Float32)]),
    "xarray": xr.DataArray(np.array(ROWS, dtype=np.float32)),
    "unmasked": np.ma.masked_array(np.array(ROWS, dtype=np.float32), False),
}


@pytest.mark.parametrize("kind", SINGLE)
def test_single_precision_is_kept(kind):
    rows = rows_of(SINGLE[kind], 1)
    assert rows.dtype == np.dtype(np.float32)
    np.testing.assert_array_equal(rows, ROWS)


def test_masked_single_precision_is_kept():
    masked = np.ma.masked_array(np.array(ROWS, dtype=np.float32), np.eye(3, 2, dtype=bool))
    rows = rows_of(masked, 1, may_miss=True)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, [[np.nan, 2.0], [3.0, np.nan], [5.0, 7.0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("row_ndim", [0, 1])
def test_rows_are_views_that_cannot_be_written_to(row_ndim, dtype):
    observed = np.array(ROWS if row_ndim else LONG, dtype=dtype)
    rows = rows_of(observed, row_ndim)
    assert type(rows) is np.ndarray
    assert rows.ndim == 2
    assert np.shares_memory(rows, observed)
    assert not rows.flags.writeable
    assert observed.flags.writeable


def test_truth_values_are_observations():
    np.testing.assert_array_equal(rows_of([True, False], 0), [[1.0], [0.0]])


class Unreadable:
    """What raises an error of its own where NumPy reads it."""

    def __array__(self, *_, **__):
        raise RuntimeError("closed")


BAD_OBSERVED = {
    "ragged": ([[1, 2], [3]], 1, "observed is ragged: its rows differ in length"),
    "strings": (["1", "2"], 0, "observed has dtype <U1, which is not numeric"),
    "strings among objects": (pd.DataFrame({"a": [1, 2], "b": ["u", "v"]}), 1, "type str"),
    "categories": (pd.Series(["u", "v"], dtype="category"), 0, "type str"),
    "complex": ([1j], 0, "dtype complex128"),
    "dates": (pd.Series(pd.to_datetime(["2020-01-01"])), 0, "dtype datetime64"),
    "None": ([1.0, None], 0, "1 NaN or infinite entry"),
    "missing in pandas": (pd.DataFrame({"a": [1, None]}, dtype="Int64"), 1, "not numbers|NaN"),
    "missing in polars": (pl.DataFrame({"a": [1, None]}), 1, "1 NaN"),
    "masked": (np.ma.masked_array([1, 2], [False, True]), 0, "1 NaN"),
    "scalar": (1.0, 0, r"shape \(\)"),
    "column for scalars": ([[1.0], [2.0]], 0, r"shape \(2, 1\), but this component takes"),
    "empty": ([], 0, "empty"),
    "dict": ({}, 1, "is a dict of columns, but"),
    "set": ({1.0, 2.0}, 0, "observed is a set, whose entries have no order; give a list"),
    "keys": ({1.0: 0}.keys(), 0, "observed is a dict_keys, whose entries have no order"),
    "generator": ((x for x in [1.0]), 0, "observed is a generator, which can be read only once"),
    "map": (map(float, "12"), 0, "observed is a map, which can be read only once"),
    "Dataset": (xr.Dataset({"a": ("i", [1.0])}), 0, "is a Dataset, which holds arrays by name"),
    "DataTree": (xr.DataTree(), 0, "is a DataTree, which holds arrays by name"),
    "unreadable": (Unreadable(), 0, "is a Unreadable, which is no array .RuntimeError."),
}


@pytest.mark.parametrize("fault", BAD_OBSERVED)
def test_bad_observations_are_one_sentence(fault):
    observed, row_ndim, message = BAD_OBSERVED[fault]
    with pytest.raises(ValueError, match=message) as raised:
        rows_of(observed, row_ndim)
    assert str(raised.value).startswith("observed ")
    assert_one_sentence(str(raised.value))


@pytest.mark.parametrize("value", [0, 1.0, True, None, "1", [1], 2**63, 10**400])
def test_integer_is_one_that_kernels_count_to(value):
    with pytest.raises(ValueError, match=r"attempts=.* is out of range") as raised:
        check_integer("attempts", value, 1)
    assert_one_sentence(str(raised.value))
    check_integer("attempts", 2**63 - 1, 1)


# --- random seeds -------------------------------------------------------------------------

BAD_SEEDS = {
    "string": "1",
    "strings": ["a"],
    "bytes": b"1",
    "negative": -1,
    "negative among several": [1, -1],
    "fraction": 1.5,
    "fractions": np.array([1.5]),
    "NaN": np.nan,
    "nested": [[1, 2]],
    "truth": True,
    "truths": np.array([True]),
    "no dimension": np.array(3),
    "dict": {},
    "object": object(),
    "missing in a list": [None],
}


@pytest.mark.parametrize("fault", BAD_SEEDS)
def test_what_is_no_seed_is_one_sentence(fault):
    with pytest.raises(ValueError, match=r"^random_seed=.* is no seed; give") as raised:
        generator_of("random_seed", BAD_SEEDS[fault])
    assert_one_sentence(str(raised.value))


@pytest.mark.parametrize("seed", [3, np.int64(3), 10**400, [1, 2], np.random.SeedSequence(3)])
def test_seed_gives_the_generator_of_numpy(seed):
    expected = np.random.default_rng(seed).random()
    assert generator_of("random_seed", seed).random() == expected


def test_generator_is_its_own_seed():
    rng = np.random.default_rng(1)
    assert generator_of("random_seed", rng) is rng
    assert generator_of("random_seed", None).random() != generator_of("random_seed", None).random()


def test_family_with_a_number_that_python_does_not_print_is_shown() -> None:
    assert repr(dps.Normal(10**5000, 1.0, 2.0, 1.0)).startswith("Normal(mu0=<int>, ")
