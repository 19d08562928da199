"""Latent mixtures under a likelihood, against enumeration and quadrature.

Groups have true values b_g from a mixture, seen with normal noise of known and unequal size, some
informative and some not.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.step.joint_label_row_update import update_latent_rows
from tests.reference import families as naive
from tests.support.datasets import DATASETS
from tests.support.quadrature import Latent, block_average, fixed, noisy_table, posterior
from tests.support.rolled import roll_labels
from tests.support.runs import draws_of, labels_test, run
from tests.support.statistics import LEVEL, combine, mean_test

pytestmark = pytest.mark.slow

ALPHA = 1.2
HYPERPARAMETERS = {"mu0": 0.2, "kappa0": 0.3, "a0": 3.0, "b0": 0.8}
Y = DATASETS["overlapping"](1)[:6, 0] * 1.5
NOISE = np.array([0.3, 1.5, 0.4, 3.0, 0.5, 0.8])
# Two observations of each group, in no order.
GROUP = np.array([2, 0, 1, 5, 3, 4, 4, 0, 2, 5, 1, 3])
TWICE = Y[GROUP] + np.linspace(-0.4, 0.4, 12)[::-1]
NOISE_TWICE = NOISE[GROUP] * np.linspace(0.8, 1.6, 12)
MIXING = np.eye(6) + 0.3 * np.tri(6, k=-1)


def each(b: Any) -> None:
    pm.Normal("y", b, NOISE, observed=Y)


def indexed(b: Any) -> None:
    pm.Normal("y", b[GROUP], NOISE_TWICE, observed=TWICE)


def coupled(b: Any) -> None:
    """Each observation depends on several rows, and so does the noise, which undoes it."""
    cov = MIXING @ np.diag(NOISE**2) @ MIXING.T
    pm.MvNormal("y", MIXING @ b, cov, observed=MIXING @ Y)


def pooled() -> tuple[np.ndarray, np.ndarray]:
    """One observation of each group that says what all of them do, and its noise."""
    precision = np.bincount(GROUP, NOISE_TWICE**-2)
    return np.bincount(GROUP, TWICE * NOISE_TWICE**-2) / precision, precision**-0.5


def means_test(idata: Any, found: np.ndarray) -> float:
    """P-value of the means of b, from its exact first and second moments (..., 2)."""
    draws = draws_of(idata, "b")
    first, second = found[..., 0].ravel(), found[..., 1].ravel()
    return mean_test(draws.reshape(*draws.shape[:2], -1), first, second - first**2)


def p_value(
    likelihood: Callable[[Any], None], latent: Latent, n_draws: int = 800, **options: Any
) -> float:
    """P-value of the partition and the true values of scalars."""
    exact = posterior(latent.table[None], np.zeros(1), fixed(ALPHA))
    with pm.Model(coords={"group": range(6)}):
        b = dps.DPMixture("b", ALPHA, dps.Normal(**HYPERPARAMETERS), dims="group")
        likelihood(b)
        idata = run(n_draws, **options)
    return combine(
        labels_test(idata, "b", exact.partitions),
        means_test(idata, block_average(exact.joint, latent.values[None])),
    )


def truth(y: np.ndarray = Y, noise: np.ndarray = NOISE) -> Latent:
    return noisy_table(naive.Normal(**HYPERPARAMETERS), y, noise)


def test_latent_rows_are_exact() -> None:
    assert p_value(each, truth()) > LEVEL


def test_several_observations_of_a_row_are_exact() -> None:
    assert p_value(indexed, truth(*pooled()), kernel="collapsed") > LEVEL


@pytest.mark.slow
def test_latent_rows_are_exact_with_the_collapsed_kernel() -> None:
    assert p_value(each, truth(), 2500, kernel="collapsed") > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["exact", "collapsed"])
def test_latent_rows_are_exact_without_exchanges(kernel: str) -> None:
    assert p_value(each, truth(), 15_000, kernel=kernel, exchanges=0) > LEVEL


@pytest.mark.slow
def test_rows_that_a_likelihood_couples_are_exact() -> None:
    assert p_value(coupled, truth(), 15_000) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("exchanges", [0, 10])
def test_latent_vectors_are_exact(exchanges: int) -> None:
    n = 5
    y, noise = DATASETS["overlapping"](2)[:n], np.outer(NOISE[:n], [1.0, 0.6])
    b0 = np.array([0.8, 0.5])
    columns = [
        noisy_table(naive.Normal(**{**HYPERPARAMETERS, "b0": b0[j]}), y[:, j], noise[:, j])
        for j in range(2)
    ]
    table = columns[0].table + columns[1].table
    exact = posterior(table[None], np.zeros(1), fixed(ALPHA))
    values = np.stack([column.values for column in columns], axis=2)
    with pm.Model():
        component = dps.DiagNormal(**{**HYPERPARAMETERS, "b0": b0})
        b = dps.DPMixture("b", ALPHA, component, shape=(n, 2))
        pm.Normal("y", b, noise, observed=y)
        idata = run(1500 if exchanges else 15_000, exchanges=exchanges)
    assert labels_test(idata, "b", exact.partitions) > LEVEL
    assert means_test(idata, block_average(exact.joint, values[None])) > LEVEL


@pytest.mark.control
def test_exchange_that_accepts_everything_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        *before, present, _, rng = arguments
        flat = present._replace(log_likelihood=np.zeros(len(present.rows)))
        return update_latent_rows(*before, flat, lambda rows: np.zeros(len(rows)), rng)

    monkeypatch.setattr("pymc_dpsplit.step.exchanges.update_latent_rows", broken)
    assert p_value(each, truth()) < LEVEL


@pytest.mark.control
def test_rows_given_the_labels_of_others_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    roll_labels(monkeypatch)
    assert p_value(each, truth(), 1500, exchanges=0) < LEVEL
