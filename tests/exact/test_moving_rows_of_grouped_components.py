"""Latent rows and missing entries of components in groups, against enumeration and quadrature."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.hierarchical import latent_rows
from pymc_dpsplit.hierarchical.parameters import first_statistics
from pymc_dpsplit.hierarchical_model import missing
from tests.exact.test_missing_in_products import FAMILY, HOLES, rows_with_holes
from tests.reference.franchise import posterior_of_groups
from tests.support.partitions import n_clusters_law, partition_index
from tests.support.quadrature import block_average, column_holes_table, members_of
from tests.support.runs import draws_of, labels_test
from tests.support.statistics import LEVEL, combine, count_test, mean_test, partition_test

# Densities are called by address.
pytestmark = [pytest.mark.slow, pytest.mark.compiled]

ALPHA, GAMMA = 0.9, 1.3
GROUPS = np.array([0, 1, 1, 0, 1])
N = len(GROUPS)
SAMPLING: dict[str, Any] = {
    "tune": 300,
    "chains": 4,
    "cores": 1,
    "progressbar": False,
    "compute_convergence_checks": False,
    "random_seed": 12,
}


def log_likelihood_of(table: np.ndarray) -> Any:
    powers = 2 ** np.arange(N)

    def log_likelihood(labels: np.ndarray) -> float:
        return float(sum(table[(labels == k) @ powers] for k in range(labels.max() + 1)))

    return log_likelihood


def mixed_up(prior: Any, data: Any, labels: np.ndarray, params: np.ndarray) -> np.ndarray:
    """Statistics with parameters that are not those of the clusters."""
    return first_statistics(prior, data, labels, len(params))


# --- latent rows ----------------------------------------------------------------------------

MU0, SIGMA0, SCALE = 0.3, 2.0, 0.6
Y = np.array([-1.9, -1.2, 0.4, 2.1, 2.6])
NOISE = np.array([0.4, 1.2, 0.5, 2.0, 0.6])


def noisy_laplace() -> tuple[np.ndarray, np.ndarray]:
    """Table (2^n,) of noisy values in one cluster; first two moments of the rows (2^n, n, 2)."""
    mu, b = np.linspace(-12.0, 12.0, 1201), np.linspace(-14.0, 14.0, 2801)
    base = stats.norm(MU0, SIGMA0).logpdf(mu) + np.log(mu[1] - mu[0])
    of_rows = np.exp(-np.abs(b - mu[:, None]) / SCALE) / (2.0 * SCALE) * (b[1] - b[0])
    seen = stats.norm(b[:, None], NOISE).pdf(Y)
    whole, first, second = (of_rows @ (seen * b[:, None] ** power) for power in range(3))
    table, moments = np.zeros(2**N), np.zeros((2**N, N, 2))
    for mask in range(1, 2**N):
        chosen = members_of(mask, N)
        log_terms = base + np.log(whole[:, chosen]).sum(axis=1)
        table[mask] = logsumexp(log_terms)
        law = np.exp(log_terms - table[mask])
        for i in chosen:
            moments[mask, i] = law @ (first[:, i] / whole[:, i]), law @ (second[:, i] / whole[:, i])
    return table, moments


def p_value_of_latent_rows(n_draws: int, **options: Any) -> float:
    table, moments = noisy_laplace()
    truth = posterior_of_groups(GROUPS, log_likelihood_of(table), ALPHA, GAMMA)
    first, second = block_average(truth.partitions[None], moments[None]).T
    with pm.Model():
        component = dps.Component(pm.Laplace, mu=pm.Normal.dist(MU0, SIGMA0), b=SCALE)
        b = dps.HDPMixture("b", ALPHA, GAMMA, component, groups=GROUPS, shape=N)
        pm.Normal("y", b, NOISE, observed=Y)
        drawn = pm.sample(draws=n_draws, hdp=options, **SAMPLING).posterior
    return combine(
        partition_test(partition_index(drawn["b_labels"].to_numpy()), truth.partitions),
        count_test(drawn["b_n_clusters"].to_numpy(), n_clusters_law(truth.partitions, N)),
        count_test(drawn["b_n_tables"].to_numpy(), truth.n_tables),
        mean_test(drawn["b"].to_numpy(), first, second - first**2),
    )


def test_latent_rows_of_a_component_are_exact() -> None:
    assert p_value_of_latent_rows(1500, exchanges=4) > LEVEL


@pytest.mark.control
def test_exchange_that_forgets_parameters_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latent_rows, "statistics_with", mixed_up)
    assert p_value_of_latent_rows(1500, exchanges=4) < LEVEL


# --- missing entries ------------------------------------------------------------------------


def p_value_of_entries(n_draws: int = 1500) -> float:
    """P-value of the partition and of what is imputed."""
    rows = rows_with_holes()
    found = column_holes_table(FAMILY.parts, rows, np.tanh, [None, [0.0, 1.0], None])
    law = posterior_of_groups(GROUPS, log_likelihood_of(found.table), ALPHA, GAMMA).partitions
    moments = block_average(law[None], found.values[None])
    first, second = moments[tuple(np.transpose(HOLES))].T
    with pm.Model():
        dps.HDPMixture("x", ALPHA, GAMMA, FAMILY.component(), groups=GROUPS, observed=rows)
        options = {"iterations": 2, "attempts": 1}
        idata = pm.sample(draws=n_draws, hdp=options, **SAMPLING)
    imputed = np.tanh(draws_of(idata, "x_unobserved"))
    return combine(
        labels_test(idata, "x", law),
        mean_test(imputed, first, second - first**2),
    )


def test_missing_entries_of_a_product_are_exact() -> None:
    assert p_value_of_entries() > LEVEL


@pytest.mark.control
def test_entries_after_which_parameters_are_lost_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(missing, "statistics_with", mixed_up)
    assert p_value_of_entries() < LEVEL
