"""Leaving out the observations of one latent row in a group, against enumeration.

The draws are independent ones from the exact posterior, so that only what reads them is tested.
"""

from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction import in_groups, loo_groups
from pymc_dpsplit.posterior.trace.members import mixture_of_either_kind
from tests.reference.franchise import states_of_groups
from tests.support.datasets import DATASETS
from tests.support.partitions import enumerate_partitions
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

ALPHA, GAMMA = 0.8, 1.2
MU0, SIGMA0, SIGMA = 0.2, 1.6, 0.5
GROUPS = np.array([0, 1, 0, 1, 1])
N = len(GROUPS)
Y = DATASETS["overlapping"](1)[:N, 0] * 1.5
NOISE = np.array([0.3, 1.5, 0.4, 0.6, 0.5])
SHAPE = (2, 1000)


def log_marginal(rows: np.ndarray) -> float:
    """Log density of noisy values (n, 2), with their noise, in one cluster."""
    y, noise = rows.T
    cov = np.diag(SIGMA**2 + noise**2) + SIGMA0**2
    return float(stats.multivariate_normal(np.full(len(y), MU0), cov).logpdf(y))


def states(kept: np.ndarray) -> list[tuple[int, np.ndarray, float]]:
    """Partitions and tables of some of the rows, with the log of their joint law."""
    rows = np.column_stack([Y, NOISE])[kept]

    def log_likelihood(labels: np.ndarray) -> float:
        return sum(log_marginal(rows[labels == k]) for k in range(labels.max() + 1))

    return list(states_of_groups(GROUPS[kept], log_likelihood, ALPHA, GAMMA))


def exact_loo() -> np.ndarray:
    """Log predictive density (N,) of each observation given the others."""
    every = np.arange(N)
    totals = [logsumexp([of for *_, of in states(np.delete(every, i))]) for i in every]
    return logsumexp([of for *_, of in states(every)]) - np.array(totals)


def exact_trace(rng: np.random.Generator) -> Any:
    """Independent draws of the posterior of the mixture and its rows."""
    partitions, every = enumerate_partitions(N).astype(int), states(np.arange(N))
    law = np.exp([log_joint for *_, log_joint in every])
    chosen = rng.choice(len(law), size=SHAPE, p=law / law.sum())
    weights, mu = np.zeros((*SHAPE, N)), np.full((*SHAPE, N), np.nan)
    new_weight, b = np.empty(SHAPE), np.empty((*SHAPE, N))
    labels, n_tables = np.empty((*SHAPE, N), int), np.empty(SHAPE, int)
    variance = SIGMA**2 + NOISE**2
    for place in np.ndindex(SHAPE):
        partition, tables, _ = every[chosen[place]]
        own, n_clusters = partitions[partition], len(tables)
        labels[place], n_tables[place] = own, tables.sum()
        *weights[place][:n_clusters], new_weight[place] = rng.dirichlet([*tables, GAMMA])
        precision = np.bincount(own, 1 / variance) + SIGMA0**-2
        mean = (np.bincount(own, Y / variance) + MU0 * SIGMA0**-2) / precision
        mu[place][:n_clusters] = rng.normal(mean, precision**-0.5)
        pull, centre = SIGMA**2 / variance, mu[place][own]
        b[place] = rng.normal(centre + pull * (Y - centre), SIGMA * NOISE / variance**0.5)
    drawn = {"b_n_clusters": labels.max(-1) + 1, "b_new_weight": new_weight, "b_weights": weights}
    drawn |= {"b_mu": mu, "b_labels": labels, "b": b, "b_n_tables": n_tables}
    dims = {"b_weights": ["b_cluster"], "b_mu": ["b_cluster"], "b_group_sizes": ["b_group"]}
    dims |= {key: ["subject"] for key in ("b_labels", "b", "b_groups")}
    held = {"b_groups": GROUPS, "b_group_sizes": np.bincount(GROUPS)}
    kept = {"b_alpha": np.full(SHAPE, ALPHA)}
    parts = {"posterior": drawn, "sample_stats": kept, "constant_data": held}
    return az.from_dict(parts, dims=dims)


def declared() -> pm.Model:
    with pm.Model(coords={"subject": [f"s{i}" for i in range(N)]}) as model:
        component = dps.NormalKnownSigma(MU0, SIGMA0, SIGMA)
        b = dps.HDPMixture("b", ALPHA, GAMMA, component, groups=GROUPS, dims="subject")
        pm.Normal("y", b, NOISE, observed=Y)
    return model


def p_value(rng: np.random.Generator) -> float:
    """P-value that the mean of 1 / p(y_i | draw) is 1 / p(y_i | others)."""
    model, idata = declared(), exact_trace(rng)
    mixture = mixture_of_either_kind(model, "b")
    found = loo_groups.integrated_likelihood(idata, model, mixture)
    assert found.dims == ("chain", "draw", "subject")
    ratios = np.exp(exact_loo() - found.to_numpy().reshape(-1, N))
    return combine(*stats.ttest_1samp(ratios, 1.0).pvalue)


def test_likelihood_of_left_out_rows_is_exact(rng: np.random.Generator) -> None:
    assert p_value(rng) > LEVEL


@pytest.mark.control
@pytest.mark.filterwarnings("ignore:in some draws the integral:UserWarning")
def test_row_that_counts_itself_is_caught(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_groups, "others_of", lambda counts: counts)
    assert p_value(rng) < LEVEL


def test_estimate_is_that_of_leaving_rows_out(rng: np.random.Generator) -> None:
    found = dps.loo_groups(exact_trace(rng), model=declared())
    assert found.n_data_points == N
    assert found.elpd_i.to_numpy() == pytest.approx(exact_loo(), abs=0.25)
