"""Latent and missing rows of components of any density in groups, against enumeration."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.components.nonconjugate.compiled_prior import THETA
from pymc_dpsplit.hierarchical import state
from pymc_dpsplit.hierarchical.parameters import statistics_of_moved_rows
from pymc_dpsplit.hierarchical_model import missing
from tests.exact.test_latent_grouped_rows import NOISE, SAMPLING, Y, log_likelihood_of
from tests.exact.test_missing_in_products import FAMILY, HOLES, N, rows_with_holes
from tests.reference.franchise import posterior_of_groups
from tests.reference.generic import grid
from tests.support.partitions import n_clusters_law, partition_index
from tests.support.quadrature import (
    Latent,
    block_average,
    column_holes_table,
    members_of,
)
from tests.support.runs import draws_of, labels_test
from tests.support.statistics import LEVEL, combine, count_test, mean_test, partition_test

# Densities are called by address.
pytestmark = [pytest.mark.slow, pytest.mark.compiled]

ALPHA, GAMMA = 1.2, 0.9
GROUPS = np.array([0, 2, 1, 0, 1, 2])


# --- latent rows ----------------------------------------------------------------------------


def noisy_component() -> Any:
    return dps.Component(pm.Normal, mu=pm.Normal.dist(0.2, 1.5), sigma=pm.Gamma.dist(4.0, 5.0))


def noisy_component_table() -> Latent:
    """Table of noisy observations of the rows: given parameters, rows and noise are normal."""
    nodes, log_weights = grid(stats.norm(0.2, 1.5), stats.gamma(4.0, scale=0.2))
    mu, variance = nodes[:, 0], nodes[:, 1] ** 2
    n = len(Y)
    shares = [variance / (variance + noise**2) for noise in NOISE]
    means = [mu + share * (y - mu) for y, share in zip(Y, shares, strict=True)]
    spreads = [share * noise**2 for share, noise in zip(shares, NOISE, strict=True)]
    log_density = [
        stats.norm.logpdf(y, mu, np.sqrt(variance + noise**2))
        for y, noise in zip(Y, NOISE, strict=True)
    ]
    latent = Latent(np.zeros(2**n), np.zeros((2**n, n, 2)))
    for mask in range(1, 2**n):
        rows = members_of(mask, n)
        log_terms = log_weights + sum(log_density[i] for i in rows)
        latent.table[mask] = logsumexp(log_terms)
        weights = np.exp(log_terms - latent.table[mask])
        for i in rows:
            latent.values[mask, i] = weights @ means[i], weights @ (means[i] ** 2 + spreads[i])
    return latent


def p_value_of_latent_rows(n_draws: int) -> float:
    """P-value of partitions, numbers of clusters and tables, and rows."""
    latent = noisy_component_table()
    truth = posterior_of_groups(GROUPS, log_likelihood_of(latent.table), ALPHA, GAMMA)
    found = block_average(truth.partitions[None], latent.values[None])
    with pm.Model():
        b = dps.HDPMixture("b", ALPHA, GAMMA, noisy_component(), groups=GROUPS, shape=len(Y))
        pm.Normal("y", b, NOISE, observed=Y)
        drawn = pm.sample(draws=n_draws, **SAMPLING).posterior
    index = partition_index(drawn["b_labels"].to_numpy())
    first, second = found[..., 0].ravel(), found[..., 1].ravel()
    return combine(
        partition_test(index, truth.partitions),
        count_test(drawn["b_n_clusters"].to_numpy(), n_clusters_law(truth.partitions, len(Y))),
        count_test(drawn["b_n_tables"].to_numpy(), truth.n_tables),
        mean_test(drawn["b"].to_numpy(), first, second - first**2),
    )


def test_latent_rows_are_exact() -> None:
    assert p_value_of_latent_rows(12_000) > LEVEL


def of_others(prior: Any, data: Any, labels: np.ndarray, stats: np.ndarray) -> np.ndarray:
    """Statistics with the parameters of the next cluster."""
    rolled = stats.copy()
    rolled[:, THETA:] = np.roll(stats[:, THETA:], 1, axis=0)
    return statistics_of_moved_rows(prior, data, labels, rolled)


@pytest.mark.control
def test_latent_rows_whose_clusters_have_parameters_of_others_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "statistics_of_moved_rows", of_others)
    assert p_value_of_latent_rows(4000) < LEVEL


# --- missing entries ------------------------------------------------------------------------


def p_value_of_missing_entries(n_draws: int = 2500, **options: Any) -> float:
    """P-value of the partition and of what is imputed, in a product."""
    rows, groups = rows_with_holes(), GROUPS[:N] % 2
    found = column_holes_table(FAMILY.parts, rows, np.tanh, [None, [0.0, 1.0], None])
    law = posterior_of_groups(groups, log_likelihood_of(found.table), ALPHA, GAMMA).partitions
    moments = block_average(law[None], found.values[None])
    first, second = moments[tuple(np.transpose(HOLES))].T
    with pm.Model():
        dps.HDPMixture("x", ALPHA, GAMMA, FAMILY.component(), groups=groups, observed=rows)
        idata = pm.sample(draws=n_draws, hdp=options, **SAMPLING)
    imputed = np.tanh(draws_of(idata, "x_unobserved"))
    return combine(
        labels_test(idata, "x", law),
        mean_test(imputed, first, second - first**2),
    )


@pytest.mark.parametrize("attempts", [0, 5])
def test_missing_entries_are_exact(attempts: int) -> None:
    assert p_value_of_missing_entries(attempts=attempts) > LEVEL


@pytest.mark.control
def test_entries_whose_clusters_have_parameters_of_others_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "statistics_of_moved_rows", of_others)
    assert p_value_of_missing_entries() < LEVEL


@pytest.mark.control
def test_labels_that_ignore_the_entries_present_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(missing, "log_density_of_present", lambda c, rows, *_: np.zeros(len(rows)))
    assert p_value_of_missing_entries() < LEVEL
