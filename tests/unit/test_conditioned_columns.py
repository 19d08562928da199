"""Columns that have a density, alone and given others, in products that condition themselves."""

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.density.conditioned_columns import (
    Conditioned,
    columns_without_law,
    conditioned_columns,
)
from tests.support.families import HYPERPARAMETERS

# A number, two words, another number, and two covariates with their response.
NORMAL = dps.Normal(**HYPERPARAMETERS["Normal"](1))
PRODUCT = dps.Product(
    {"h": 0, "words": [1, 2], "v": 3, "outcome": [4, 6, 5]},
    h=NORMAL,
    words=dps.Multinomial([0.5, 0.6]),
    v=NORMAL,
    outcome=dps.LinearRegression(**HYPERPARAMETERS["LinearRegression"](3)),
).for_n_features(7)


@pytest.mark.parametrize(
    ("keep", "given", "jointly", "alone"),
    [
        ((0,), (), (), ()),
        ((0, 3), (), (), ()),
        ((0,), (3,), (3,), (3,)),
        ((0,), (2, 1), (2, 1), (2, 1)),
        # A response given its covariates, and given another column too.
        ((5,), (6, 4), (6, 4), ()),
        ((5,), (3, 4, 6), (3, 4, 6), (3,)),
        # A number and a response are a pair.
        ((0, 5), (4, 6), (4, 6), ()),
        ((0,), (4, 5, 6), (4, 5, 6), (4, 5, 6)),
        # Covariates without their response tell nothing.
        ((0,), (4,), (), ()),
        ((0,), (3, 6, 4), (3,), (3,)),
    ],
)
def test_what_is_divided_by_what(
    keep: tuple[int, ...], given: tuple[int, ...], jointly: tuple[int, ...], alone: tuple[int, ...]
) -> None:
    found = conditioned_columns(PRODUCT, keep, given, 7)
    assert found == Conditioned(jointly, alone)


@pytest.mark.parametrize(
    ("keep", "given", "part"),
    [
        ((1,), (), "words"), ((0, 2), (), "words"), ((1, 2), (), "words"), ((1,), (2,), "words"),
        ((0,), (1,), "words"), ((4,), (), "outcome"), ((5,), (), "outcome"),
        ((5,), (4,), "outcome"), ((4,), (5, 6), "outcome"), ((0,), (5,), "outcome"),
        ((5, 4), (6,), "outcome"),
    ],
)  # fmt: skip
def test_what_has_no_law(keep: tuple[int, ...], given: tuple[int, ...], part: str) -> None:
    assert conditioned_columns(PRODUCT, keep, given, 7) is PRODUCT.families[part]


def test_columns_that_have_a_law_are_those_chosen_by_default() -> None:
    assert columns_without_law(PRODUCT, (), 7) == {1, 2, 4, 5, 6}
    assert columns_without_law(PRODUCT, (4, 6), 7) == {1, 2, 4, 6}
    regression = dps.LinearRegression(**HYPERPARAMETERS["LinearRegression"](2))
    assert columns_without_law(regression, (), 2) == {0, 1}
    assert conditioned_columns(regression, (1,), (0,), 2) == Conditioned((0,), ())
    assert columns_without_law(NORMAL, (), 1) == set()
    assert np.array_equal(PRODUCT.columns_in_data(7)["outcome"], [4, 6, 5])
