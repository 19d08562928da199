"""Logarithms and exponentials that vectorise, and their use in densities that PyTensor compiles."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor import function

from pymc_dpsplit.kernels.elementary import fast_exp, fast_log, fast_log1p, fast_softplus
from pymc_dpsplit.pymc_component.compiled import kernel_of
from pymc_dpsplit.pymc_component.vector_functions import vectorising_mode

Function = Callable[[Any], Any]

# Units in the last place of a function that rounds a few times.
_UNITS = 4.0
_LEAST = np.finfo(float).tiny * 1.001  # denormals are rounded up or down
_SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, -2.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1.7e308])


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, x)


_KERNELS = {
    np.log: (fast_log, pt.log),
    np.log1p: (fast_log1p, pt.log1p),
    np.exp: (fast_exp, pt.exp),
    softplus: (fast_softplus, pt.softplus),
}

over_functions = pytest.mark.parametrize("numpys", _KERNELS, ids=lambda each: each.__name__)


def arguments_of(numpys: Function, rng: np.random.Generator) -> np.ndarray:
    """Numbers of all sizes, of both signs where the function is defined."""
    if numpys is np.exp:
        return np.concatenate([rng.uniform(-708.0, 709.7, 2000), rng.normal(0.0, 1.0, 2000)])
    if numpys is softplus:
        return np.concatenate([rng.uniform(-700.0, 700.0, 2000), rng.normal(0.0, 3.0, 2000)])
    sizes = 10.0 ** rng.uniform(-300.0, 300.0, 2000)
    around_one = rng.uniform(0.5, 2.0, 2000)
    if numpys is np.log:
        return np.concatenate([sizes, around_one])
    return np.concatenate([sizes, around_one - 1.0, 10.0 ** rng.uniform(-15.0, 0.0, 2000) - 1.0])


def in_units(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors in units in the last place."""
    return np.abs(found - exact) / np.spacing(np.abs(exact.astype(float)))


@over_functions
def test_digits(numpys: Function, rng: np.random.Generator) -> None:
    kernel, _ = _KERNELS[numpys]
    arguments = arguments_of(numpys, rng)
    found = np.array([kernel(x) for x in arguments])
    assert in_units(found, numpys(arguments.astype(np.longdouble))).max() < _UNITS


@over_functions
def test_limits(numpys: Function) -> None:
    kernel, _ = _KERNELS[numpys]
    found = np.array([kernel(x) for x in _SPECIAL])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, numpys(_SPECIAL), rtol=1e-15, atol=_LEAST)


def test_exponentials_beyond_the_range_of_float64() -> None:
    assert fast_exp(709.79) == np.inf
    assert fast_exp(-708.4) == 0.0


@pytest.mark.compiled
@over_functions
def test_densities_have_their_digits(numpys: Function, rng: np.random.Generator) -> None:
    _, of_graph = _KERNELS[numpys]
    rows, arguments = pt.vector("rows", dtype="float64"), arguments_of(numpys, rng)
    of_rows = kernel_of([rows], of_graph(rows))
    (found,) = of_rows(arguments)
    assert in_units(found, numpys(arguments.astype(np.longdouble))).max() < _UNITS
    (found,) = of_rows(_SPECIAL)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, numpys(_SPECIAL), rtol=1e-15, atol=_LEAST)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("density", "replaces"),
    [
        (lambda rows, sigma: pt.log1p(rows) - pt.log(sigma), True),
        (lambda rows, sigma: pt.switch(rows > 0.0, pt.exp(rows) / sigma, -np.inf), True),
        (lambda rows, sigma: pt.log(rows) * pt.exp(rows) / sigma, False),
        (lambda rows, sigma: pt.log(rows) + pt.erf(rows) / sigma, False),
        (lambda rows, sigma: rows - pt.log(sigma), False),
    ],
    ids=["log1p", "exp chosen", "two", "erf", "of a parameter"],
)
def test_loops_that_vectorise_have_them(density: Any, replaces: bool) -> None:
    """Loops over rows with one function; parameters are single numbers."""
    rows, sigma = pt.vector("rows", dtype="float64"), pt.scalar("sigma", dtype="float64")
    made = function([rows, sigma], density(rows, sigma), mode=vectorising_mode())
    names = [str(node.op).lower() for node in made.maker.fgraph.toposort()]
    assert any("vector" in name for name in names) == replaces
    by_library = function([rows, sigma], density(rows, sigma), mode="FAST_COMPILE")
    arguments = np.linspace(0.1, 5.0, 100)
    np.testing.assert_allclose(made(arguments, 2.0), by_library(arguments, 2.0), rtol=1e-14)
