"""Galaxies under a mixture of finite mixtures, against a sampler that sums M out.

`benchmarks/mfm_control.py` has Miller & Harrison's coefficients V_N(K) in the place of our move of
M, and its own predictive densities; `test_mfm_control.py` compares it with enumeration.
"""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from benchmarks.mfm_control import draw_numbers
from pymc_dpsplit.demo import DATA_SETS
from tests.support.statistics import LEVEL, count_test

pytestmark = pytest.mark.slow

_PRIOR = stats.randint(1, 31).pmf(np.arange(31))
_HYPERPARAMETERS = (20.0, 0.02, 2.0, 1.0)


def galaxies() -> np.ndarray:
    return DATA_SETS["galaxies"].load()[0].ravel()


@pytest.fixture(scope="module")
def numbers() -> dict[str, np.ndarray]:
    """Draws of the numbers of clusters and of components."""
    with pm.Model():
        prior, normal = pm.DiscreteUniform.dist(1, 30), dps.Normal(*_HYPERPARAMETERS)
        dps.MFMixture("x", 1.0, normal, n_components=prior, observed=galaxies())
        idata = pm.sample(
            1500, tune=500, chains=4, cores=1, random_seed=3, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    posterior = idata["posterior"]
    return {name: posterior[f"x_n_{name}"].to_numpy() for name in ("clusters", "components")}


@pytest.mark.parametrize("gamma", [1.0, pytest.param(0.5, marks=pytest.mark.control)])
def test_numbers_are_those_of_the_control(gamma: float, numbers: dict[str, np.ndarray]) -> None:
    long = draw_numbers(galaxies(), _HYPERPARAMETERS, gamma, _PRIOR, 100_000, 1)
    p_values = []
    for name, control in zip(("clusters", "components"), long, strict=True):
        law = np.bincount(control, minlength=83) / len(control)
        p_values.append(count_test(numbers[name], law))
    assert (min(p_values) > LEVEL) == (gamma == 1.0)
