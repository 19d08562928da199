"""Leave-one-out of an observed mixture, against all partitions enumerated.

The mean over the posterior of 1 / p(x_i | what the others of a draw know) is 1 / p(x_i | others).
The draws are independent ones from the exact posterior, so that only what reads them is tested.
"""

from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import gammaln, logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction import loo
from pymc_dpsplit.variables import find_mixtures
from tests.support.exact_traces import exact_trace
from tests.support.families import as_observed, component_of, dataset_of, twin_of
from tests.support.partitions import n_clusters_of
from tests.support.quadrature import log_joint, table_of
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

ALPHA, N = 1.3, 5
FAMILIES = {"Normal": 1, "MvNormal": 2, "Poisson": 2}


def rows_of(family: str) -> np.ndarray:
    """Rows of which one is far from the others."""
    rows = dataset_of(family, "overlapping", FAMILIES[family])[:N].copy()
    rows[-1] = rows.max(0) + 3.0
    return rows


@cache
def sampled(family: str) -> tuple[pm.Model, xr.DataTree]:
    rows = rows_of(family)
    with pm.Model() as model:
        component = component_of(family, FAMILIES[family])
        dps.DPMixture("x", ALPHA, component, observed=as_observed(family, rows))
    return model, exact_trace(family, rows, ALPHA, (4, 500), seed=3)


@cache
def exact(family: str) -> np.ndarray:
    """Log predictive density (N,) of each row given the others."""
    twin = twin_of(family, FAMILIES[family])

    def log_total(rows: np.ndarray) -> float:
        n = len(rows)
        found = log_joint(table_of(twin.log_marginal, rows), n) + n_clusters_of(n) * np.log(ALPHA)
        return float(logsumexp(found) + gammaln(ALPHA) - gammaln(ALPHA + n))

    rows = rows_of(family)
    others = [log_total(np.delete(rows, i, axis=0)) for i in range(N)]
    return log_total(rows) - np.array(others)


def p_value(family: str) -> float:
    """P-value of the mean of 1 / p, relative to what it should be, of each row."""
    model, idata = sampled(family)
    mixture = find_mixtures(model)["x"]
    found = loo.left_out_likelihood(idata, model, mixture, None, np.random.default_rng(5))
    ratios = np.exp(exact(family) - found.to_numpy().reshape(-1, N))
    return combine(*stats.ttest_1samp(ratios, 1.0).pvalue)


@pytest.mark.parametrize("family", FAMILIES)
def test_left_out_likelihood_is_exact(family: str) -> None:
    assert p_value(family) > LEVEL


@pytest.mark.control
def test_density_with_own_atoms_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_own(masses: Any, weights: Any, n_members: Any, unseen: float, labels: Any) -> Any:
        masses[-1] += np.log(unseen)
        return logsumexp(masses, axis=0)

    monkeypatch.setattr(loo, "log_density_left_out", with_own)
    assert p_value("Normal") < LEVEL
    model, idata = sampled("Normal")
    assert dps.loo(idata, model=model, random_seed=1).elpd_i.values[-1] > exact("Normal")[-1] + 1.0


def test_estimate_is_that_of_leaving_rows_out() -> None:
    model, idata = sampled("Normal")
    found = dps.loo(idata, model=model, random_seed=1)
    assert found.n_data_points == N
    assert found.elpd_i.to_numpy() == pytest.approx(exact("Normal"), abs=0.25)


# Five rows of which one is far from the others are influential, which ArviZ says.
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")
def test_incomplete_rows_count_by_their_observed_entries() -> None:
    rows = np.array([[0.1, 0.3], [0.2, np.nan], [np.nan, np.nan], [9.0, 7.0], [0.0, 0.2]])
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.DiagNormal(0, 0.1, 2, 1), observed=rows)
        idata = pm.sample(
            200, tune=50, chains=2, cores=1, progressbar=False, random_seed=2,
            compute_convergence_checks=False,
        )  # fmt: skip
    found = dps.loo(idata, model=model, random_seed=1, num_samples=200)
    assert found.n_data_points == 4
    assert found.elpd_i.values[2] < found.elpd_i.values[0]


def test_latent_mixtures_are_refused() -> None:
    _, idata = sampled("Normal")
    with pm.Model() as model:
        dps.DPMixture("x", ALPHA, component_of("Normal", 1), shape=N)
    with pytest.raises(ValueError, match=r"^x is latent .*; use loo_groups, "):
        dps.loo(idata, model=model)
