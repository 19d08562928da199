"""Generators that kernels open by address."""

import copy
import pickle

import numpy as np
import pytest

from pymc_dpsplit.kernels.generators import address_of, open_generator
from pymc_dpsplit.kernels.jit import COMPILES, jitted

BIT_GENERATORS = {
    "PCG64": np.random.PCG64,
    "PCG64DXSM": np.random.PCG64DXSM,
    "MT19937": np.random.MT19937,
    "Philox": np.random.Philox,
    "SFC64": np.random.SFC64,
}


@jitted
def draw_some(generator, numbers):
    """Fill `numbers`, shape (n,), with draws of several laws."""
    rng = open_generator(generator)
    for i in range(0, numbers.shape[0], 3):
        numbers[i] = rng.random()
        numbers[i + 1] = rng.standard_normal()
        numbers[i + 2] = rng.integers(0, 1000)


@pytest.mark.compiled
@pytest.mark.parametrize("name", BIT_GENERATORS)
def test_opened_generator_draws_as_its_own(name: str) -> None:
    rng = np.random.Generator(BIT_GENERATORS[name](3))
    twin = copy.deepcopy(rng)
    ours, expected = np.empty(30), np.empty(30)
    draw_some(address_of(rng), ours)
    draw_some(twin, expected)
    np.testing.assert_array_equal(ours, expected)
    # Both have moved on alike, and a second call goes on from there.
    assert rng.random() == twin.random()
    draw_some(address_of(rng), ours)
    draw_some(twin, expected)
    np.testing.assert_array_equal(ours, expected)


def test_numbers_are_those_of_numpy() -> None:
    rng, twin = np.random.default_rng(5), np.random.default_rng(5)
    numbers = np.empty(3)
    draw_some(address_of(rng), numbers)
    assert numbers.tolist() == [twin.random(), twin.standard_normal(), twin.integers(0, 1000)]


def test_each_generator_has_its_own_address() -> None:
    rng = np.random.default_rng(5)
    twin = pickle.loads(pickle.dumps(rng))
    assert address_of(rng) is address_of(rng)
    assert address_of(rng) is not address_of(twin)
    if COMPILES:
        assert address_of(rng)[0] != address_of(twin)[0]
