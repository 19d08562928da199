"""Galaxies under a mixture of finite mixtures, against a sampler that sums M out.

`benchmarks/mfm_control.py` has Miller & Harrison's coefficients V_N(K) in the place of our move of
M, and its own predictive densities.
"""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from benchmarks.mfm_control import coefficients, draw_numbers
from pymc_dpsplit.demo import DATA_SETS
from tests.reference.families import Normal
from tests.support.components_move import given_k, joint_law, prior_of_k
from tests.support.families import dataset_of
from tests.support.partitions import n_clusters_law
from tests.support.statistics import LEVEL, count_test

_PRIOR = stats.randint(1, 31).pmf(np.arange(31))
_HYPERPARAMETERS = (20.0, 0.02, 2.0, 1.0)


def test_coefficients_are_those_of_the_law() -> None:
    terms = coefficients(_PRIOR, 0.7, 6)
    for k in (1, 4, 6):
        found = np.exp(terms[:, k] - np.logaddexp.reduce(terms[:, k]))
        np.testing.assert_allclose(found, given_k(_PRIOR, 0.7, k, 6), atol=1e-14)
    assert prior_of_k(_PRIOR, 0.7, 6)[7:].sum() == 0


def test_control_has_the_enumerated_posterior() -> None:
    rows = dataset_of("Normal", "overlapping", 1)[:6]
    exact = joint_law(_PRIOR, 1.2, Normal(0.5, 0.1, 2.0, 1.0), rows)
    found = [draw_numbers(rows[:, 0], (0.5, 0.1, 2.0, 1.0), 1.2, _PRIOR, 400, s) for s in range(8)]
    n_clusters, n_components = np.stack(found, axis=1)
    assert count_test(n_clusters, n_clusters_law(exact.sum(0), 6)) > LEVEL
    assert count_test(n_components, exact.sum(1)) > LEVEL


@pytest.fixture(scope="module")
def numbers() -> dict[str, np.ndarray]:
    """Draws of the numbers of clusters and of components of galaxies."""
    with pm.Model():
        prior, normal = pm.DiscreteUniform.dist(1, 30), dps.Normal(*_HYPERPARAMETERS)
        dps.MFMixture("x", 1.0, normal, n_components=prior, observed=galaxies())
        idata = pm.sample(
            1500, tune=500, chains=4, cores=1, random_seed=3, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    posterior = idata["posterior"]
    return {name: posterior[f"x_n_{name}"].to_numpy() for name in ("clusters", "components")}


def galaxies() -> np.ndarray:
    return DATA_SETS["galaxies"].load()[0].ravel()


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [1.0, pytest.param(0.5, marks=pytest.mark.control)])
def test_galaxies_are_as_in_the_control(gamma: float, numbers: dict[str, np.ndarray]) -> None:
    long = draw_numbers(galaxies(), _HYPERPARAMETERS, gamma, _PRIOR, 200_000, 1)
    p_values = []
    for name, control in zip(("clusters", "components"), long, strict=True):
        law = np.bincount(control, minlength=83) / len(control)
        p_values.append(count_test(np.minimum(numbers[name], 82), law))
    assert (min(p_values) > LEVEL) == (gamma == 1.0)
