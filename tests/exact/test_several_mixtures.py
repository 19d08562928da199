"""Two mixtures in one model, tied or not, against enumeration of both and quadrature."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.variables import likelihood
from pymc_dpsplit.variables.conditioning import PointEvaluator
from pymc_dpsplit.variables.owned_terms import ConditionalTerm
from tests.reference import families as naive
from tests.support.datasets import DATASETS
from tests.support.quadrature import (
    Grid,
    Posterior,
    block_average,
    fixed,
    grid_of,
    moments,
    noisy_table,
    posterior,
    shared_posterior,
    table_of,
)
from tests.support.runs import draws_of, labels_test, run, scalar_test
from tests.support.statistics import LEVEL, combine, mean_test

pytestmark = pytest.mark.slow

ALPHA = grid_of(stats.gamma(2.0))
MU0 = grid_of(stats.norm(0.0, 1.0))
KNOWN = Grid(np.zeros(1), np.zeros(1))
FIRST = {"mu0": 0.2, "kappa0": 0.3, "a0": 3.0, "b0": 0.8}
SECOND = {"mu0": -0.3, "kappa0": 0.2, "a0": 2.5, "b0": 0.6}
X = DATASETS["overlapping"](1)[1:5, 0]
Y = DATASETS["separated"](1)[1:6, 0]
NOISE = np.array([0.4, 1.2, 0.3, 0.8, 2.5])


def tables(data: np.ndarray, family: dict[str, float], mu0: Grid) -> np.ndarray:
    """Tables (G, 2^n) at the nodes of a grid of mu0; of the family itself if there is one node."""
    return np.stack([
        table_of(naive.Normal(**_family(family, node, mu0)).log_marginal, data[:, None])
        for node in mu0.nodes
    ])  # fmt: skip


def _family(family: dict[str, float], mu0: float, grid: Grid) -> dict[str, float]:
    return family if grid is KNOWN else {**family, "mu0": mu0}


def mixtures_test(idata: Any, first: Posterior, second: Posterior) -> float:
    """P-value of the partitions of both mixtures."""
    return combine(
        labels_test(idata, "x", first.partitions), labels_test(idata, "y", second.partitions)
    )


def alpha_test(idata: Any, name: str, exact: Posterior) -> float:
    """P-value of the mean of a concentration."""
    return scalar_test(idata, name, exact.alpha, ALPHA.nodes)


def shared_alpha_p_value(**options: Any) -> float:
    """P-value of two mixtures of observations with one concentration."""
    both = [tables(X, FIRST, KNOWN), tables(Y, SECOND, KNOWN)]
    first, second = shared_posterior(both, np.zeros(1), ALPHA)
    with pm.Model():
        alpha = pm.Gamma("alpha", 2.0, 1.0)
        dps.DPMixture("x", alpha, dps.Normal(**FIRST), observed=X)
        dps.DPMixture("y", alpha, dps.Normal(**SECOND), observed=Y)
        idata = run(**options)
    return combine(mixtures_test(idata, first, second), alpha_test(idata, "alpha", first))


def test_shared_alpha_is_exact() -> None:
    assert shared_alpha_p_value() > LEVEL


@pytest.mark.slow
def test_shared_alpha_is_exact_with_the_collapsed_kernel() -> None:
    assert shared_alpha_p_value(kernel="collapsed") > LEVEL


@pytest.mark.slow
def test_mixtures_that_share_nothing_are_exact() -> None:
    first = posterior(tables(X, FIRST, KNOWN), np.zeros(1), ALPHA)
    second = posterior(tables(Y, SECOND, KNOWN), np.zeros(1), ALPHA)
    with pm.Model():
        for name, data, family in (("x", X, FIRST), ("y", Y, SECOND)):
            alpha = pm.Gamma(f"{name}_alpha", 2.0, 1.0)
            dps.DPMixture(name, alpha, dps.Normal(**family), observed=data)
        idata = run()
    assert mixtures_test(idata, first, second) > LEVEL
    assert alpha_test(idata, "x_alpha", first) > LEVEL
    assert alpha_test(idata, "y_alpha", second) > LEVEL


@pytest.mark.slow
def test_shared_hyperparameter_is_exact() -> None:
    both = [tables(X, FIRST, MU0), tables(Y, SECOND, MU0)]
    first, second = shared_posterior(both, MU0.log_weights, fixed(1.2))
    with pm.Model():
        mu0 = pm.Normal("mu0", 0.0, 1.0)
        dps.DPMixture("x", 1.2, dps.Normal(**{**FIRST, "mu0": mu0}), observed=X)
        dps.DPMixture("y", 1.2, dps.Normal(**{**SECOND, "mu0": mu0}), observed=Y)
        idata = run()
    assert mixtures_test(idata, first, second) > LEVEL
    assert scalar_test(idata, "mu0", first.nodes, MU0.nodes) > LEVEL


def test_alpha_shared_with_a_latent_mixture_is_exact() -> None:
    latent = noisy_table(naive.Normal(**SECOND), Y, NOISE)
    both = [tables(X, FIRST, KNOWN), latent.table[None]]
    first, second = shared_posterior(both, np.zeros(1), ALPHA)
    values = block_average(second.joint, latent.values[None])
    with pm.Model():
        alpha = pm.Gamma("alpha", 2.0, 1.0)
        dps.DPMixture("x", alpha, dps.Normal(**FIRST), observed=X)
        b = dps.DPMixture("y", alpha, dps.Normal(**SECOND), shape=len(Y))
        pm.Normal("seen", b, NOISE, observed=Y)
        idata = run(800, exchanges=4)
    assert mixtures_test(idata, first, second) > LEVEL
    assert alpha_test(idata, "alpha", first) > LEVEL
    variance = values[:, 1] - values[:, 0] ** 2
    assert mean_test(draws_of(idata, "y"), values[:, 0], variance) > LEVEL


@pytest.mark.control
def test_mixture_that_sees_twice_the_alpha_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    read = PointEvaluator.read

    def broken(self: Any, point: Any) -> Any:
        conditioning = read(self, point)
        factor = 2.0 if self._mixture.name == "y" else 1.0
        return conditioning._replace(law=dirichlet_process(factor * conditioning.law.strength))

    monkeypatch.setattr(PointEvaluator, "read", broken)
    assert shared_alpha_p_value() < LEVEL


def row_as_hyperparameter_p_value(**options: Any) -> float:
    """P-value of two mixtures, of which one has a latent row of the other as its mean."""
    grid = grid_of(stats.norm(0.0, np.hypot(1.0, 0.5)))
    exact = posterior(tables(X, FIRST, grid), grid.log_weights, fixed(1.2))
    with pm.Model():
        # Nothing else depends on the rows, which are together with probability 1 / (1 + alpha).
        b = dps.DPMixture("b", 1.0, dps.NormalKnownSigma(0.0, 1.0, 0.5), shape=2)
        dps.DPMixture("x", 1.2, dps.Normal(**{**FIRST, "mu0": b[0]}), observed=X)
        idata = run(2000, **options)
    first = draws_of(idata, "b")[..., 0]
    return combine(
        labels_test(idata, "b", np.array([0.5, 0.5])),
        labels_test(idata, "x", exact.partitions),
        mean_test(np.stack([first, first**2], axis=-1), *moments(exact.nodes, grid.nodes)),
    )


@pytest.mark.parametrize("exchanges", [0, 10])
def test_latent_row_as_a_hyperparameter_of_another_mixture_is_exact(exchanges: int) -> None:
    assert row_as_hyperparameter_p_value(exchanges=exchanges) > LEVEL


@pytest.mark.control
def test_rows_without_the_mixture_above_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a term with two forms, that given the labels decides which rows it reads."""
    owners_after = likelihood._owners_after

    def one_form(node: Any, owners: Any, *rest: Any) -> np.ndarray:
        found = owners_after(node, owners, *rest)
        is_term = isinstance(node.op, ConditionalTerm)
        return owners.get(node.inputs[1], np.full_like(found, -1)) if is_term else found

    monkeypatch.setattr(likelihood, "_owners_after", one_form)
    assert row_as_hyperparameter_p_value() < LEVEL
