"""`pm.sample` of rows in groups, with concentrations and a hyperparameter, against enumeration."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.hierarchical.state import count_groups
from tests.reference.discrete import Poisson
from tests.reference.franchise import averages_of_groups
from tests.support.statistics import LEVEL, combine, count_test, mean_test

GROUPS = np.array([0, 1, 0, 1, 1])
COUNTS = np.array([[0.0], [1.0], [5.0], [6.0], [1.0]])
SHAPES, RATES = (4.0, 4.0, 6.0), (2.0, 3.0, 10.0)


def log_likelihood(labels: np.ndarray, b0: float) -> float:
    family = Poisson(2.0, b0)
    return sum(family.log_marginal(COUNTS[labels == k]) for k in range(labels.max() + 1))


def sampled_p_value(draws: int, is_tied: bool, kernel: str = "auto") -> float:
    """P-value of means of the variables, and of the numbers of clusters and tables.

    If alpha is also gamma, NUTS alone moves it.
    """
    names = ("alpha", "gamma", "b0")
    with pm.Model():
        alpha, gamma, b0 = (
            pm.Gamma(name, a, b) for name, a, b in zip(names, SHAPES, RATES, strict=True)
        )
        dps.HDPMixture(
            "x",
            alpha,
            alpha if is_tied else gamma,
            dps.Poisson(2.0, b0),
            groups=GROUPS,
            observed=COUNTS,
        )
        trace = pm.sample(
            draws=draws,
            tune=150,
            chains=4,
            cores=1,
            random_seed=5,
            progressbar=False,
            compute_convergence_checks=False,
            hdp={"kernel": kernel},
        ).posterior
    priors = [stats.gamma(a, scale=1.0 / b) for a, b in zip(SHAPES, RATES, strict=True)]
    truth = averages_of_groups(GROUPS, log_likelihood, priors, is_tied)
    read = ("alpha", "alpha", "b0") if is_tied else names
    logs = np.log(np.stack([trace[name].to_numpy() for name in read], axis=-1))
    return combine(
        mean_test(logs, truth.logarithms),
        count_test(trace["x_n_clusters"].to_numpy(), truth.n_topics),
        count_test(trace["x_n_tables"].to_numpy(), truth.n_tables),
    )


@pytest.mark.slow
@pytest.mark.parametrize("is_tied", [False, True])
def test_variables_and_sizes_have_their_posterior(is_tied):
    assert sampled_p_value(700, is_tied) > LEVEL


@pytest.mark.slow
def test_variables_and_sizes_have_their_posterior_by_slices():
    assert sampled_p_value(1500, False, "slices") > LEVEL


@pytest.mark.slow
def test_variables_and_sizes_have_their_posterior_on_processors():
    assert sampled_p_value(1500, False, "av-parallel") > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_step_that_forgets_the_sizes_of_groups_is_caught(monkeypatch):
    def without_sizes(target, state):
        n_cells = np.count_nonzero(count_groups(target, state.labels, len(state.weights)))
        return lambda alpha: n_cells * np.log(alpha)

    move = "pymc_dpsplit.hierarchical_model.concentration_move"
    monkeypatch.setattr(f"{move}.factor_of_alpha_given_weights", without_sizes)
    assert sampled_p_value(500, is_tied=False) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_density_that_forgets_the_sizes_of_groups_is_caught(monkeypatch):
    monkeypatch.setattr("pymc_dpsplit.hierarchical_model.measure.unique_sizes", _no_groups)
    assert sampled_p_value(500, is_tied=True) < LEVEL


def _no_groups(groups):
    return np.zeros(1), np.zeros(1)
