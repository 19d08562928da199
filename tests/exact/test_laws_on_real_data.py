"""Laws of the partition on data sets of the literature, against a sampler of another kind.

`benchmarks/law_control.py` is collapsed Gibbs with predictive rules and densities of its own, which
sums the number of components out; `test_law_control.py` compares it with enumeration.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from benchmarks.law_control import draw_finite_mixtures, draw_pitman_yor
from pymc_dpsplit.demo import DATA_SETS
from tests.support.statistics import LEVEL, count_test

pytestmark = pytest.mark.slow

_PRIOR = stats.randint(1, 31).pmf(np.arange(31))
_DATA = Path(__file__).parents[2] / "notebooks" / "data"


def rows_of(name: str) -> np.ndarray:
    if name == "galaxies":
        return DATA_SETS[name].load()[0].ravel()
    column = {"acidity": "log_anc", "enzyme": "activity"}[name]
    return pd.read_csv(_DATA / f"{name}.csv")[column].to_numpy()


def hyperparameters_of(name: str) -> tuple[float, float, float, float]:
    return {
        "galaxies": (20.0, 0.02, 2.0, 1.0),
        "acidity": (5.0, 0.1, 2.0, 0.1),
        "enzyme": (0.6, 0.1, 2.0, 0.02),
    }[name]


def sampled(declare: Any) -> Any:
    with pm.Model():
        declare()
        idata = pm.sample(
            1500, tune=500, chains=4, cores=1, random_seed=3, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    return idata["posterior"]


@pytest.fixture(scope="module")
def numbers() -> dict[str, np.ndarray]:
    """Draws of the numbers of clusters and of components."""
    normal, prior = dps.Normal(*hyperparameters_of("galaxies")), pm.DiscreteUniform.dist(1, 30)
    rows = rows_of("galaxies")
    posterior = sampled(lambda: dps.MFMixture("x", 1.0, normal, n_components=prior, observed=rows))
    return {name: posterior[f"x_n_{name}"].to_numpy() for name in ("clusters", "components")}


@pytest.mark.parametrize("gamma", [1.0, pytest.param(0.5, marks=pytest.mark.control)])
def test_numbers_of_finite_mixtures_are_those_of_the_control(
    gamma: float, numbers: dict[str, np.ndarray]
) -> None:
    hyperparameters = hyperparameters_of("galaxies")
    long = draw_finite_mixtures(rows_of("galaxies"), hyperparameters, gamma, _PRIOR, 100_000, 1)
    p_values = []
    for name, control in zip(("clusters", "components"), long, strict=True):
        law = np.bincount(control, minlength=83) / len(control)
        p_values.append(count_test(numbers[name], law))
    assert (min(p_values) > LEVEL) == (gamma == 1.0)


def pitman_yor_p_value(name: str, discount: float) -> float:
    rows, hyperparameters = rows_of(name), hyperparameters_of(name)
    normal = dps.Normal(*hyperparameters)
    found = sampled(lambda: dps.DPMixture("x", 0.5, normal, discount=0.25, observed=rows))
    control = draw_pitman_yor(rows, hyperparameters, 0.5, discount, 100_000, 1)
    law = np.bincount(control, minlength=len(rows) + 1) / len(control)
    return count_test(found["x_n_clusters"].to_numpy(), law)


@pytest.mark.parametrize("name", ["galaxies", "acidity", "enzyme"])
def test_number_of_clusters_under_a_discount_is_that_of_the_control(name: str) -> None:
    assert pitman_yor_p_value(name, 0.25) > LEVEL


@pytest.mark.control
def test_another_discount_is_caught() -> None:
    assert pitman_yor_p_value("galaxies", 0.15) < LEVEL
