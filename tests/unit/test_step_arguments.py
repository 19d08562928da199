"""Arguments that PyMC passes to every step method: what is taken, and one sentence for the rest."""

import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import get_mode

from pymc_dpsplit.step.step_arguments import checked_point, compile_options, own_generator
from tests.unit.test_arguments import assert_one_sentence


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        pm.Gamma("alpha", 2, 4)
        pm.Normal("mu", 0, 1, shape=2)
    return model


@pytest.mark.parametrize("given", [{}, {"mode": "FAST_COMPILE", "name": "f"}, {"mode": None}])
def test_options_of_compilation_are_kept(given):
    assert compile_options(given) == given
    assert compile_options(None) == {}
    mode = get_mode("FAST_COMPILE")
    assert compile_options({"mode": mode})["mode"] is mode


WRONG_OPTIONS = {
    "number": (3, "compile_kwargs=3 is not a dict"),
    "list": ([("mode", "NUMBA")], "compile_kwargs=.* is not a dict"),
    "misspelt": ({"mod": "NUMBA"}, "compile_kwargs has 'mod', which is no option"),
    "no name": ({3: "NUMBA"}, "compile_kwargs has 3, which is no option"),
    "inputs": ({"inputs": []}, "compile_kwargs has 'inputs', which is no option"),
    "unknown mode": ({"mode": "FASTEST"}, "compile_kwargs has mode='FASTEST', which PyTensor does"),
    "number for a mode": ({"mode": 3}, "compile_kwargs has mode=3, which PyTensor does"),
}


@pytest.mark.parametrize("fault", WRONG_OPTIONS)
def test_wrong_options_of_compilation_are_one_sentence(fault):
    given, message = WRONG_OPTIONS[fault]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        compile_options(given)
    assert_one_sentence(str(raised.value))


def test_point_has_the_types_of_the_variables(model):
    point = checked_point({"alpha_log__": 1, "mu": [1, 2], "other": "x"}, model)
    assert point["alpha_log__"].dtype == point["mu"].dtype == np.float64
    np.testing.assert_array_equal(point["mu"], [1.0, 2.0])
    assert point["other"] == "x"
    assert checked_point(None, model).keys() == {"alpha_log__", "mu"}


WRONG_POINTS = {
    "number": (3, "initial_point=3 is not a dict of values"),
    "empty": ({}, "initial_point has no value of alpha_log__"),
    "one is missing": ({"alpha_log__": 0.0}, "initial_point has no value of mu"),
    "string": ({"alpha_log__": "0", "mu": [1, 2]}, "initial_point has alpha_log__='0', but"),
    "None": ({"alpha_log__": None, "mu": [1, 2]}, "initial_point has alpha_log__=None, but"),
    "too long": ({"alpha_log__": 0, "mu": [1, 2, 3]}, r"initial_point has mu=\[1, 2, 3\], but"),
    "number for a vector": ({"alpha_log__": 0, "mu": 1}, r"initial_point has mu=1, but .*\(2,\)"),
    "ragged": ({"alpha_log__": 0, "mu": [[1], [1, 2]]}, "initial_point has mu="),
}


@pytest.mark.parametrize("fault", WRONG_POINTS)
def test_wrong_point_is_one_sentence(fault, model):
    given, message = WRONG_POINTS[fault]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        checked_point(given, model)
    assert_one_sentence(str(raised.value))


def test_generator_of_a_step_is_its_own():
    rng = np.random.default_rng(1)
    own = own_generator(rng)
    assert own is not rng
    assert own.random() == np.random.default_rng(1).random() == rng.random()
    with pytest.raises(ValueError, match=r"^rng=1\.5 is no seed; give"):
        own_generator(1.5)
