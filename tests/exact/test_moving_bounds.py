"""Variables with bounds that the step moves, which move with the bounds, against quadrature.

The value of ``u = pm.Uniform("u", 0, alpha)`` in a point is its log odds between 0 and alpha.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.variables import dependence
from tests.reference.discrete import Poisson
from tests.reference.families import Normal
from tests.reference.franchise import log_likelihood_by_blocks, states_of_groups
from tests.support.datasets import DATASETS
from tests.support.partitions import n_clusters_of
from tests.support.quadrature import (
    fixed,
    grid_of,
    log_alpha_joint,
    log_joint,
    moments,
    noisy_table,
    posterior,
    table_of,
)
from tests.support.runs import draws_of, labels_test, run, run_in_groups, scalar_test
from tests.support.statistics import LEVEL, combine, mean_test

pytestmark = pytest.mark.slow

ALPHA = 1.2
PRIOR = stats.gamma(2.0, scale=0.5)
HYPERPARAMETERS = {"mu0": 0.2, "kappa0": 0.3, "a0": 3.0, "b0": 0.8}
ROWS = DATASETS["overlapping"](1)[:6]
# A noisy observation of the variable with bounds, far above those that the prior expects.
SEEN, NOISE = 2.5, 0.4
GROUPS = np.array([0, 1, 0, 1])
COUNTS = np.array([[0.0], [1.0], [5.0], [6.0]])


def log_seen(bound: np.ndarray, seen: float = SEEN) -> np.ndarray:
    """Log density of a noisy observation of a uniform variable between 0 and a bound."""
    between = stats.norm.cdf(seen / NOISE) - stats.norm.cdf((seen - bound) / NOISE)
    return np.log(between) - np.log(bound)


def bounded_by(bound: Any) -> None:
    """Declare the variable with bounds and its observation."""
    pm.Normal("seen", pm.Uniform("u", 0.0, bound), NOISE, observed=SEEN)


def normalised(log_weights: np.ndarray) -> np.ndarray:
    return np.exp(log_weights - logsumexp(log_weights))


def bound_of_another_variable(n_draws: int) -> float:
    """Alpha is the bound of a variable outside the mixture."""
    grid = grid_of(PRIOR)
    alpha = grid._replace(log_weights=grid.log_weights + log_seen(grid.nodes))
    table = table_of(Normal(**HYPERPARAMETERS).log_marginal, ROWS)
    exact = posterior(table[None], np.zeros(1), alpha)
    with pm.Model():
        concentration = pm.Gamma("alpha", 2.0, 2.0)
        bounded_by(concentration)
        dps.DPMixture("x", concentration, dps.Normal(**HYPERPARAMETERS), observed=ROWS[:, 0])
        idata = run(n_draws)
    return combine(
        labels_test(idata, "x", exact.partitions),
        scalar_test(idata, "alpha", exact.alpha, alpha.nodes),
    )


def bound_of_a_hyperparameter(n_draws: int) -> float:
    """Alpha is the bound of the mean of the base measure."""
    rows, alpha = ROWS[:5] + 1.0, grid_of(PRIOR, 80)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    log_shares = np.log(weights / 2.0)
    means = alpha.nodes[:, None] * (nodes + 1.0) / 2.0
    twins = [Normal(**{**HYPERPARAMETERS, "mu0": mu0}) for mu0 in means.ravel()]
    tables = np.stack([table_of(twin.log_marginal, rows) for twin in twins])
    log_law = log_joint(tables, 5).reshape(*means.shape, -1) + log_shares[:, None]
    by_k = log_alpha_joint(alpha.nodes, 5)[:, n_clusters_of(5)]
    law = normalised(log_law + (by_k + alpha.log_weights[:, None])[:, None])
    with pm.Model():
        concentration = pm.Gamma("alpha", 2.0, 2.0)
        mu0 = pm.Uniform("mu0", 0.0, concentration)
        component = dps.Normal(**{**HYPERPARAMETERS, "mu0": mu0})
        dps.DPMixture("x", concentration, component, observed=rows[:, 0])
        idata = run(n_draws)
    return combine(
        labels_test(idata, "x", law.sum(axis=(0, 1))),
        scalar_test(idata, "alpha", law.sum(axis=(1, 2)), alpha.nodes),
        scalar_test(idata, "mu0", law.sum(axis=2).ravel(), means.ravel()),
    )


def bound_in_groups(n_draws: int) -> float:
    """Alpha of a hierarchical mixture is the bound of a variable outside of it."""
    alpha, gamma = grid_of(PRIOR, 80), 1.5
    log_likelihood = log_likelihood_by_blocks(Poisson(2.0, 0.7), COUNTS)
    law = np.zeros((len(alpha.nodes), 15))
    for node, at in zip(law, alpha.nodes, strict=True):
        for i, _, log_term in states_of_groups(GROUPS, log_likelihood, at, gamma):
            node[i] += np.exp(log_term)
    law *= np.exp(alpha.log_weights + log_seen(alpha.nodes))[:, None]
    law /= law.sum()
    with pm.Model():
        concentration = pm.Gamma("alpha", 2.0, 2.0)
        bounded_by(concentration)
        component = dps.Poisson(2.0, 0.7)
        dps.HDPMixture("x", concentration, gamma, component, groups=GROUPS, observed=COUNTS)
        idata = run_in_groups(n_draws)
    return combine(
        labels_test(idata, "x", law.sum(axis=0)),
        scalar_test(idata, "alpha", law.sum(axis=1), alpha.nodes),
    )


def bound_of_an_intercept(n_draws: int) -> float:
    """The intercept beside a latent mixture is the bound of another variable."""
    noise = np.array([0.3, 1.5, 0.4, 3.0, 0.5])
    y = 1.0 + 1.5 * ROWS[:5, 0]
    grid = grid_of(stats.norm(0.0, 1.0), 81)
    family = Normal(**HYPERPARAMETERS)
    tables = np.stack([noisy_table(family, y - node, noise).table for node in grid.nodes])
    exact = posterior(tables, grid.log_weights + log_seen(np.exp(grid.nodes)), fixed(ALPHA))
    with pm.Model():
        b0 = pm.Normal("b0", 0.0, 1.0)
        bounded_by(pm.math.exp(b0))
        b = dps.DPMixture("b", ALPHA, dps.Normal(**HYPERPARAMETERS), shape=5)
        pm.Normal("y", b0 + b, noise, observed=y)
        idata = run(n_draws)
    return combine(
        labels_test(idata, "b", exact.partitions),
        scalar_test(idata, "b0", exact.nodes, grid.nodes),
    )


def bound_beside_latent_rows(n_draws: int) -> float:
    """Alpha of a latent mixture is the bound of a variable in the likelihood of its rows."""
    noise, n = np.array([0.3, 1.5, 0.4]), 3
    y = 2.0 + 1.5 * ROWS[:n, 0]
    alpha, family = grid_of(PRIOR, 60), Normal(**HYPERPARAMETERS)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    offsets = alpha.nodes[:, None] * (nodes + 1.0) / 2.0
    tables = np.stack([noisy_table(family, y - u, noise, 80).table for u in offsets.ravel()])
    log_law = log_joint(tables, n).reshape(*offsets.shape, -1) + np.log(weights / 2.0)[:, None]
    by_k = log_alpha_joint(alpha.nodes, n)[:, n_clusters_of(n)]
    law = normalised(log_law + (by_k + alpha.log_weights[:, None])[:, None])
    with pm.Model():
        concentration = pm.Gamma("alpha", 2.0, 2.0)
        u = pm.Uniform("u", 0.0, concentration)
        b = dps.DPMixture("b", concentration, dps.Normal(**HYPERPARAMETERS), shape=n)
        pm.Normal("y", u + b, noise, observed=y)
        idata = run(n_draws)
    return combine(
        labels_test(idata, "b", law.sum(axis=(0, 1))),
        scalar_test(idata, "alpha", law.sum(axis=(1, 2)), alpha.nodes),
        scalar_test(idata, "u", law.sum(axis=2).ravel(), offsets.ravel()),
    )


def bounds_that_are_rows(n_draws: int, is_coupled: bool = False, **options: Any) -> float:
    """Latent rows are the logarithms of the bounds of other variables, or the first one of both."""
    seen, sigma, sigma0 = np.array([0.3, 1.0]), 1.2, 0.6
    nodes = np.linspace(-7.0, 7.0, 281)
    of_first, of_second = np.meshgrid(nodes, nodes, indexing="ij")
    places = np.stack([of_first, of_second], axis=-1)
    second = of_first if is_coupled else of_second
    log_data = log_seen(np.exp(of_first), seen[0]) + log_seen(np.exp(second), seen[1])
    covs = [sigma**2 * np.eye(2) + sigma0**2 * prior for prior in (np.ones((2, 2)), np.eye(2))]
    log_prior = [stats.multivariate_normal(np.zeros(2), cov).logpdf(places) for cov in covs]
    law = normalised(np.stack(log_prior) + log_data)
    with pm.Model():
        b = dps.DPMixture("b", 1.0, dps.NormalKnownSigma(0.0, sigma0, sigma), shape=2)
        bound = pm.math.exp(b[0] if is_coupled else b)
        pm.Normal("seen", pm.Uniform("u", 0.0, bound, shape=2), NOISE, observed=seen)
        idata = run(n_draws, **options)
    first = draws_of(idata, "b")[..., 0]
    return combine(
        labels_test(idata, "b", law.sum(axis=(1, 2))),
        mean_test(np.stack([first, first**2], axis=-1), *moments(law.sum(axis=(0, 2)), nodes)),
    )


CASES: dict[str, Callable[..., float]] = {
    "alpha": bound_of_another_variable,
    "alpha above a hyperparameter": bound_of_a_hyperparameter,
    "alpha beside latent rows": bound_beside_latent_rows,
    "alpha of groups": bound_in_groups,
    "an intercept": bound_of_an_intercept,
    "latent rows": bounds_that_are_rows,
}


@pytest.mark.parametrize("name", CASES)
def test_bound_that_the_step_moves_is_exact(name: str) -> None:
    assert CASES[name](1500) > LEVEL


def test_rows_that_are_bounds_are_exact_without_exchanges() -> None:
    assert bounds_that_are_rows(1500, exchanges=0) > LEVEL


def test_row_that_bounds_several_variables_is_exact() -> None:
    assert bounds_that_are_rows(1500, is_coupled=True) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("name", CASES)
def test_bound_that_moves_unseen_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "_from_value", lambda rv, model: model.rvs_to_values[rv])
    assert CASES[name](1500) < LEVEL
