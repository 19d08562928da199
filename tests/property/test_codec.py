"""The files of a checkpoint give back any plain value, with the same types and bits."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pymc_dpsplit.checkpoint.codec import from_arrays, to_arrays

DTYPES = st.one_of(
    arrays.boolean_dtypes(),
    arrays.integer_dtypes(endianness="="),
    arrays.unsigned_integer_dtypes(endianness="="),
    arrays.floating_dtypes(endianness="="),
    arrays.complex_number_dtypes(endianness="="),
)
ARRAYS = arrays.arrays(DTYPES, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
SCALARS = DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, ())).map(lambda array: array[()])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.text(max_size=8),
    SCALARS,
    ARRAYS,
)
# Steps keep lists of one kind, which are stored as one array.
LISTS = st.one_of(
    st.lists(st.floats(), max_size=5),
    st.tuples(ARRAYS, st.integers(0, 3)).map(lambda pair: [pair[0].copy() for _ in range(pair[1])]),
    st.lists(SCALARS, max_size=3),
)
PLAIN = st.recursive(
    st.one_of(LEAVES, LISTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=5), inner, max_size=4),
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """Whether two plain values have the same types and bits; a NaN equals a NaN of other bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray | np.generic):
        alike = (one.dtype, one.shape) == (other.dtype, other.shape)
        return alike and np.asarray(one).tobytes() == np.asarray(other).tobytes()
    if isinstance(one, float):
        return repr(one) == repr(other)
    return one == other


def through_a_file(value: Any) -> Any:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **to_arrays(value, "value"))
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return from_arrays(dict(stored))


@given(PLAIN)
def test_plain_values_survive(value: Any) -> None:
    assert same(through_a_file(value), value)


ODD = st.one_of(
    st.binary(max_size=3),
    st.complex_numbers(),
    st.sets(st.integers(), max_size=3),
    st.builds(object),
    st.just(np.array([None], object)),
    st.dictionaries(st.integers(), st.none(), min_size=1, max_size=2),
)


@given(ODD, st.sampled_from(["alone", "list", "tuple", "dict"]), PLAIN)
def test_other_values_are_refused_by_name(odd: Any, place: str, beside: Any) -> None:
    value = {
        "alone": odd,
        "list": [beside, odd],
        "tuple": (odd, beside),
        "dict": {"first": beside, "second": odd},
    }[place]
    part = {"alone": "", "list": "[1]", "tuple": "[0]", "dict": ".second"}[place]
    with pytest.raises(TypeError, match="cannot store") as error:
        to_arrays(value, "value")
    assert str(error.value).startswith(f"value{part}")


@pytest.mark.control
def test_a_changed_bit_is_seen() -> None:
    for one, other in [
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        ([1.0], (1.0,)),
        (np.float32(1), np.float64(1)),
        (np.zeros(2), np.zeros((2, 1))),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ]:
        assert not same(one, other)
