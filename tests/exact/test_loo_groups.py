"""Leave-one-group-out of a latent mixture, against enumeration and integrals in closed form."""

from collections.abc import Callable
from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction import loo_groups
from pymc_dpsplit.posterior.prediction.knots import knots_about
from pymc_dpsplit.posterior.prediction.panels import integrals
from pymc_dpsplit.variables import find_mixtures
from tests.support.datasets import DATASETS
from tests.support.partitions import enumerate_partitions, n_clusters_of
from tests.support.quadrature import log_joint, table_of
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

ALPHA, MU0, SIGMA0, SIGMA = 1.2, 0.2, 1.6, 0.5
N = 5
Y = DATASETS["overlapping"](1)[:N, 0] * 1.5
NOISE = np.array([0.3, 1.5, 0.4, 0.6, 0.5])
SHAPE = (2, 2000)


def log_marginal(rows: np.ndarray) -> float:
    """Log density of noisy values (n, 2), with their noise, in one cluster."""
    y, noise = rows.T
    cov = np.diag(SIGMA**2 + noise**2) + SIGMA0**2
    return float(stats.multivariate_normal(np.full(len(y), MU0), cov).logpdf(y))


def log_partitions(rows: np.ndarray) -> np.ndarray:
    """Log joint density of noisy values and each partition."""
    n = len(rows)
    constant = gammaln(ALPHA) - gammaln(ALPHA + n)
    found = log_joint(table_of(log_marginal, rows), n)
    return found + n_clusters_of(n) * np.log(ALPHA) + constant


def exact_loo() -> np.ndarray:
    """Log predictive density (N,) of each group given the others."""
    rows = np.column_stack([Y, NOISE])
    whole = logsumexp(log_partitions(rows))
    others = [logsumexp(log_partitions(np.delete(rows, i, axis=0))) for i in range(N)]
    return whole - np.array(others)


def exact_trace(rng: np.random.Generator) -> Any:
    """Independent draws of the posterior of the mixture and its values."""
    law = np.exp(log_partitions(np.column_stack([Y, NOISE])))
    partitions = enumerate_partitions(N)[rng.choice(len(law), size=SHAPE, p=law / law.sum())]
    weights, mu = np.zeros((*SHAPE, N)), np.full((*SHAPE, N), np.nan)
    new_weight, b = np.empty(SHAPE), np.empty((*SHAPE, N))
    variance = SIGMA**2 + NOISE**2
    for place in np.ndindex(SHAPE):
        labels = partitions[place]
        n_clusters = labels.max() + 1
        *own, new_weight[place] = rng.dirichlet([*np.bincount(labels), ALPHA])
        precision = np.bincount(labels, 1 / variance) + SIGMA0**-2
        mean = (np.bincount(labels, Y / variance) + MU0 * SIGMA0**-2) / precision
        weights[place][:n_clusters] = own
        mu[place][:n_clusters] = rng.normal(mean, precision**-0.5)
        pull = SIGMA**2 / variance
        centre = mu[place][labels]
        b[place] = rng.normal(centre + pull * (Y - centre), SIGMA * NOISE / variance**0.5)
    drawn = {
        "b_n_clusters": partitions.max(-1) + 1,
        "b_new_weight": new_weight,
        "b_weights": weights,
        "b_mu": mu,
        "b_labels": partitions,
        "b": b,
    }
    dims = {
        "b_weights": ["b_cluster"],
        "b_mu": ["b_cluster"],
        "b_labels": ["group"],
        "b": ["group"],
    }
    return az.from_dict({"posterior": drawn}, dims=dims)


def declare() -> pm.Model:
    with pm.Model(coords={"group": [f"g{i}" for i in range(N)]}) as model:
        component = dps.NormalKnownSigma(MU0, SIGMA0, SIGMA)
        b = dps.DPMixture("b", ALPHA, component, dims="group")
        pm.Normal("y", b, NOISE, observed=Y)
    return model


def harmonic_p_value(log_likelihood: np.ndarray) -> float:
    """P-value that the mean of 1 / p(y_i | draw) is 1 / p(y_i | others), for draws (S, N)."""
    ratios = np.exp(exact_loo() - log_likelihood)
    return combine(*stats.ttest_1samp(ratios, 1.0).pvalue)


def test_likelihood_of_groups_is_exact(rng: np.random.Generator) -> None:
    model, idata = declare(), exact_trace(rng)
    found = loo_groups.integrated_likelihood(idata, model, find_mixtures(model)["b"], 1500)
    assert found.dims == ("chain", "draw", "group")
    assert found["group"].values.tolist() == [f"g{i}" for i in range(N)]
    assert harmonic_p_value(found.to_numpy().reshape(-1, N)) > LEVEL


@pytest.mark.control
@pytest.mark.filterwarnings("ignore:in some draws the integral:UserWarning")
def test_atom_of_a_single_group_is_caught(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, idata = declare(), exact_trace(rng)
    honest = loo_groups._density
    monkeypatch.setattr(
        loo_groups,
        "_density",
        lambda draw, labels, *others: honest(draw, np.zeros_like(labels), *others),
    )
    found = loo_groups.integrated_likelihood(idata, model, find_mixtures(model)["b"], 1500)
    assert harmonic_p_value(found.to_numpy().reshape(-1, N)) < LEVEL


def test_estimate_is_that_of_leaving_groups_out(rng: np.random.Generator) -> None:
    found = dps.loo_groups(exact_trace(rng), model=declare(), num_samples=1000)
    assert found.n_data_points == N
    assert found.elpd_i.to_numpy() == pytest.approx(exact_loo(), abs=0.25)
    assert found.pareto_k.max() < 0.7


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (40.0, 1e-3), (-3.0, 200.0)])
def test_panels_find_the_mass(mean: float, sd: float) -> None:
    def log_density(x: np.ndarray) -> np.ndarray:
        return stats.norm(mean, sd).logpdf(x)

    knots, _ = knots_about(np.array([[mean - sd, mean + 0.5 * sd]]))
    found = integrals(lambda x: (log_density(x), np.zeros(x.shape)), knots.T)
    assert found.log_value == pytest.approx(0.0, abs=1e-4)
    assert found.mass == pytest.approx(1.0, abs=1e-4)


def refused(model: pm.Model, idata: Any, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message):
        dps.loo_groups(idata, model=model)


def test_mixtures_without_groups_are_refused(rng: np.random.Generator) -> None:
    idata = exact_trace(rng)
    with pm.Model() as observed:
        dps.DPMixture("b", ALPHA, dps.NormalKnownSigma(MU0, SIGMA0, SIGMA), observed=Y)
    refused(observed, idata, "the values of b are observed, ")
    with pm.Model() as coupled:
        b = dps.DPMixture("b", ALPHA, dps.NormalKnownSigma(MU0, SIGMA0, SIGMA), shape=N)
        pm.Normal("y", b.sum(), 1.0, observed=0.3)
    refused(coupled, idata, "an observation depends on several values of b; ")
    with pm.Model() as other:
        b = dps.DPMixture("b", ALPHA, dps.NormalKnownSigma(MU0, SIGMA0, SIGMA), shape=N)
        pm.Normal("y", b, pm.HalfNormal("noise"), observed=Y)
    refused(other, idata, "the posterior group holds no noise, ")


def of_likelihood(likelihood: Callable[[Any], Any]) -> pm.Model:
    with pm.Model(coords={"group": [f"g{i}" for i in range(N)]}) as model:
        component = dps.NormalKnownSigma(MU0, SIGMA0, SIGMA)
        likelihood(dps.DPMixture("b", ALPHA, component, dims="group"))
    return model


@pytest.mark.filterwarnings("ignore:.*missing values:UserWarning")
def test_missing_observations_are_no_data(rng: np.random.Generator) -> None:
    idata, mixture = exact_trace(rng), "b"
    where, values = np.array([*range(N), 0, 3]), np.array([*Y, np.nan, np.nan])
    model = of_likelihood(lambda b: pm.Normal("y", b[where], NOISE[where], observed=values))
    found, known = (
        loo_groups.integrated_likelihood(idata, of, find_mixtures(of)[mixture], 50)
        for of in (model, declare())
    )
    np.testing.assert_allclose(found, known)


@pytest.mark.parametrize("is_missing", [False, True])
@pytest.mark.filterwarnings("ignore:.*missing values:UserWarning")
def test_groups_without_observations_are_left_out(
    is_missing: bool, rng: np.random.Generator
) -> None:
    where = np.arange(N) if is_missing else np.array([0, 1, 3, 4])
    values = np.where(where == 2, np.nan, Y[where])
    model = of_likelihood(lambda b: pm.Normal("y", b[where], NOISE[where], observed=values))
    found = loo_groups.integrated_likelihood(exact_trace(rng), model, find_mixtures(model)["b"], 50)
    assert found["group"].values.tolist() == ["g0", "g1", "g3", "g4"]


def test_what_lies_between_groups_and_observations_is_refused(rng: np.random.Generator) -> None:
    def two_levels(b: Any) -> None:
        pm.Normal("y", pm.Normal("t", b, 1.0), 1.0, observed=Y)

    idata = exact_trace(rng)
    refused(of_likelihood(two_levels), idata, "t lies between b and y, so that the likelihood")
    refused(of_likelihood(lambda b: pm.Normal("t", b, 1.0)), idata, "no observation depends on b")


def test_data_of_groups_that_were_replaced_are_refused(rng: np.random.Generator) -> None:
    def by_data(b: Any) -> None:
        pm.Normal("y", b + pm.Data("offset", np.zeros(N)), NOISE, observed=pm.Data("data", Y))

    model, idata = of_likelihood(by_data), exact_trace(rng)
    of_data = {"observed_data": {"y": Y}, "constant_data": {"offset": np.zeros(N), "data": Y}}
    idata = az.from_dict({"posterior": dict(idata["posterior"].data_vars), **of_data})
    assert np.isfinite(dps.loo_groups(idata, model=model, num_samples=100).elpd)
    for name, value in (("offset", np.ones(N)), ("data", Y + 1.0)):
        before = model[name].get_value()
        model.set_data(name, value)
        refused(model, idata, f"{'y' if name == 'data' else name} has other values in idata")
        model.set_data(name, before)
