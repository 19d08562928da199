"""Any value as a hyperparameter or as data: taken for what it is, or refused in one sentence."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pymc_dpsplit.components import hyperparameters
from pymc_dpsplit.components.arguments import positive_vector, real_vector, rows_of
from tests.support.families import FAMILIES, HYPERPARAMETERS, SINGLE

CHECKS = {
    name: getattr(hyperparameters, name).check
    for name in (
        "REAL_PER_COLUMN",
        "POSITIVE_PER_COLUMN",
        "REAL_NUMBER",
        "POSITIVE_NUMBER",
        "COVARIANCE",
    )
}
N_FEATURES = st.integers(1, 4)
NUMBERS = st.one_of(st.integers(), st.floats(), st.integers(-(10**400), 10**400))
ODD = st.one_of(
    st.none(), st.text(max_size=3), st.booleans(), st.complex_numbers(), st.binary(max_size=2)
)
NESTED = st.recursive(st.one_of(NUMBERS, ODD), lambda inner: st.lists(inner, max_size=4))
ARRAYS = arrays.arrays(
    st.one_of(
        arrays.floating_dtypes(endianness="="),
        arrays.integer_dtypes(endianness="="),
        arrays.boolean_dtypes(),
        arrays.complex_number_dtypes(endianness="="),
        arrays.unicode_string_dtypes(endianness="=", max_len=2),
    ),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
ANYTHING = st.one_of(NUMBERS, NESTED, ARRAYS)


def taken(check: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray | str:
    """What a check returns, or the message with which it refuses."""
    try:
        return check(*arguments)
    except ValueError as fault:
        return str(fault)


def assert_one_sentence(message: str, begin: str) -> None:
    assert message.startswith(begin)
    assert message.endswith(".")
    assert "\n" not in message


@given(st.sampled_from(sorted(CHECKS)), ANYTHING, N_FEATURES)
def test_a_hyperparameter_is_finite_or_refused(check: str, value: Any, n_features: int) -> None:
    found = taken(CHECKS[check], "kappa0", value, n_features)
    if isinstance(found, str):
        assert_one_sentence(found, "kappa0")
        return
    ndim = {"COVARIANCE": 2, "REAL_NUMBER": 0, "POSITIVE_NUMBER": 0}.get(check, 1)
    assert found.shape == (n_features,) * ndim
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
    if check.startswith("POSITIVE"):
        assert (found > 0).all()
    if check == "COVARIANCE":
        assert (found == found.T).all()
        assert (np.diag(found) > 0).all()


@given(N_FEATURES, st.data())
def test_numbers_are_those_given(n_features: int, data: st.DataObject) -> None:
    finite = st.floats(allow_nan=False, allow_infinity=False)
    vectors = arrays.arrays(np.float64, st.sampled_from([(), (1,), (n_features,)]), elements=finite)
    value = data.draw(vectors)
    expected = np.broadcast_to(value, (n_features,))
    for form in (value, value.tolist(), value.astype(object)):
        np.testing.assert_array_equal(real_vector("mu0", form, n_features), expected)
    found = real_vector("mu0", value, n_features)
    found += 1.0  # a copy: what users gave stays
    np.testing.assert_array_equal(np.broadcast_to(value, (n_features,)), expected)
    if (value > 0).all():
        np.testing.assert_array_equal(positive_vector("b0", value, n_features), expected)
    else:
        with pytest.raises(ValueError, match="must be positive"):
            positive_vector("b0", value, n_features)


@given(ANYTHING, st.integers(0, 1), st.booleans())
def test_data_are_rows_or_refused(observed: Any, row_ndim: int, may_miss: bool) -> None:
    rows = taken(rows_of, observed, row_ndim, may_miss)
    if isinstance(rows, str):
        assert_one_sentence(rows, "observed")
        return
    assert rows.ndim == 2
    assert rows.size > 0
    assert rows.dtype in (np.float32, np.float64)
    assert not rows.flags.writeable
    assert not np.isinf(rows).any()
    assert may_miss or not np.isnan(rows).any()
    given_values = np.asarray(observed, dtype=rows.dtype).reshape(rows.shape)
    np.testing.assert_array_equal(rows, given_values)


@given(st.sampled_from(sorted(SINGLE)), st.data())
def test_a_declaration_names_the_hyperparameter_at_fault(family: str, data: st.DataObject) -> None:
    n_features = FAMILIES[family].n_features[-1]
    values = HYPERPARAMETERS[family](n_features)
    name = data.draw(st.sampled_from(sorted(values)))
    values[name] = data.draw(st.sampled_from([np.nan, np.inf, "x", [[[1.0]]] * 7, None, 1j]))
    component = FAMILIES[family].component(**values)
    fault = taken(component.check, component.hyperparameters, n_features)
    assert isinstance(fault, str)
    assert_one_sentence(fault, name)
