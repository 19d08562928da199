"""Forward draws, densities of rows, and what PyMC does with them after sampling."""

import warnings

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from pymc.sampling import mcmc
from pymc.stats.convergence import run_convergence_checks
from pytensor.graph.replace import clone_replace
from scipy import integrate, stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit import wrapped_functions
from pymc_dpsplit.moves.forward import (
    draw_block_sizes,
    draw_new_weight,
    draw_occupied_weights,
    draw_seating,
)
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.variables import find_mixtures
from tests.support.partitions import (
    canonical,
    crp_n_clusters,
    enumerate_partitions,
    partition_index,
)
from tests.support.statistics import LEVEL, count_test, partition_test

N_OBS = 20
# Clusters so narrow and so far apart that the rows show who belongs to whom.
ATOMIC = dps.Normal(mu0=0.0, kappa0=1e-20, a0=50.0, b0=50.0)


def declared(component, observed, alpha=1.0, **options):
    with pm.Model() as model:
        dps.DPMixture("x", alpha, component, observed=observed, **options)
    return model


# --- the prior of the partition -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0])
def test_prior_predictive_clusters_follow_the_exact_law(alpha, rng):
    model = declared(ATOMIC, np.zeros(N_OBS), alpha)
    draws = pm.draw(model["x_n_clusters"], 4000, random_seed=rng)
    assert count_test(draws[None], crp_n_clusters(alpha, N_OBS)) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0])
def test_rows_drawn_together_follow_the_exact_law(alpha, rng):
    model = declared(ATOMIC, np.zeros(N_OBS), alpha)
    rows = np.sort(pm.draw(model["x"], 4000, random_seed=rng), axis=1)
    n_clusters = 1 + (np.diff(rows, axis=1) > 1e3).sum(axis=1)
    assert count_test(n_clusters[None], crp_n_clusters(alpha, N_OBS)) > LEVEL


@pytest.mark.control
def test_clusters_of_another_concentration_are_caught(rng):
    model = declared(ATOMIC, np.zeros(N_OBS), 1.2)
    draws = pm.draw(model["x_n_clusters"], 4000, random_seed=rng)
    assert count_test(draws[None], crp_n_clusters(1.0, N_OBS)) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_rows_drawn_among_occupied_clusters_alone_are_caught(rng):
    model = declared(ATOMIC, np.zeros(N_OBS), 1.0)
    weights = model["x_weights"]
    closed = clone_replace(model["x"], {weights: weights / weights.sum()})
    rows = np.sort(pm.draw(closed, 4000, random_seed=rng), axis=1)
    n_clusters = 1 + (np.diff(rows, axis=1) > 1e3).sum(axis=1)
    assert count_test(n_clusters[None], crp_n_clusters(1.0, N_OBS)) < LEVEL


def seating_law(alpha, n):
    """Probability of every partition of n points."""
    partitions = enumerate_partitions(n)
    law = np.empty(len(partitions))
    for i, labels in enumerate(partitions):
        sizes = np.bincount(labels)
        law[i] = alpha ** len(sizes) * np.prod([np.prod(np.arange(1.0, s)) for s in sizes])
    return law / law.sum()


def seatings(alpha, rng, n_draws=20_000):
    return np.array([draw_seating(rng, alpha, 5) for _ in range(n_draws)])


def test_seating_follows_the_exact_law(rng):
    cells = partition_index(canonical(seatings(1.5, rng)))
    assert partition_test(cells[None], seating_law(1.5, 5)) > LEVEL


@pytest.mark.control
def test_seating_of_another_concentration_is_caught(rng):
    cells = partition_index(canonical(seatings(1.5, rng)))
    assert partition_test(cells[None], seating_law(1.65, 5)) < LEVEL


def largest_block_law(alpha, n):
    partitions = enumerate_partitions(n)
    largest = [np.bincount(labels).max() for labels in partitions]
    return np.bincount(largest, seating_law(alpha, n), n + 1)


def test_block_sizes_follow_the_exact_law(rng):
    sizes = [draw_block_sizes(rng, 1.5, 7) for _ in range(20_000)]
    assert all(s.sum() == 7 and s.min() > 0 for s in sizes)
    largest = np.array([[s.max() for s in sizes]])
    assert count_test(largest, largest_block_law(1.5, 7)) > LEVEL
    assert count_test(largest, largest_block_law(1.65, 7)) < LEVEL  # what the test can see


def test_block_sizes_of_extreme_concentrations(rng):
    assert draw_block_sizes(rng, 1e-300, 1000).tolist() == [1000]
    assert draw_block_sizes(rng, 1e300, 1000).tolist() == [1] * 1000
    assert draw_block_sizes(rng, 1.0, 1).tolist() == [1]
    assert draw_block_sizes(rng, 1.0, 1_000_000).sum() == 1_000_000
    assert len(draw_seating(rng, 1.0, 0)) == 0


def test_new_weight_and_occupied_weights(rng):
    new = np.array([draw_new_weight(rng, dirichlet_process(0.7), 5, 2) for _ in range(20_000)])
    assert stats.kstest(new, stats.beta(0.7, 5).cdf).pvalue > LEVEL
    assert stats.kstest(new, stats.beta(0.75, 5).cdf).pvalue < LEVEL  # what the test can see
    sizes = np.array([5, 1, 14])
    weights = np.array(
        [draw_occupied_weights(rng, dirichlet_process(0.7), sizes, 0.25) for _ in range(2000)]
    )
    np.testing.assert_allclose(weights.sum(axis=1), 0.75)
    assert 0.0 <= draw_new_weight(rng, dirichlet_process(1e-6), 5, 2) < 1.0


def test_measure_fills_the_rows_in_use(rng):
    component = dps.MvNormal(mu0=[0.0, 0.0], kappa0=0.1, nu0=4.0, psi0=np.eye(2))
    model = declared(component, np.zeros((50, 2)), alpha=3.0, max_clusters=6)
    names = ["x_n_clusters", "x_new_weight", "x_weights", "x_mu", "x_cov"]
    draws = pm.draw([model[name] for name in names], 50, random_seed=rng)
    n_clusters, new_weight, weights, mu, cov = draws
    assert n_clusters.max() > 6
    in_use = np.arange(6) < n_clusters[:, None]
    np.testing.assert_array_equal(weights > 0, in_use)
    np.testing.assert_array_equal(np.isfinite(mu).all(axis=2), in_use)
    np.testing.assert_array_equal(np.isfinite(cov).all(axis=(2, 3)), in_use)
    whole = n_clusters <= 6
    np.testing.assert_allclose((weights.sum(axis=1) + new_weight)[whole], 1.0)


# --- the density of rows ------------------------------------------------------------------

WEIGHTS = np.array([0.5, 0.3])
LOG_REST = np.log(0.2)


def normal_case():
    mu, sigma = np.array([1.0, -2.0]), np.array([0.5, 1.5])
    component = dps.Normal(mu0=0.3, kappa0=0.2, a0=2.0, b0=1.5)
    fresh = stats.t(4.0, 0.3, np.sqrt(1.5 / 2.0 * 1.2 / 0.2))
    laws = [stats.norm(m, s) for m, s in zip(mu, sigma, strict=True)]
    return component, {"mu": mu, "sigma": sigma}, laws, fresh.logpdf


def diag_case():
    mu, sigma = np.array([[1.0, 0.0], [-2.0, 3.0]]), np.array([[0.5, 1.0], [1.5, 2.0]])
    component = dps.DiagNormal(mu0=[0.3, 0.0], kappa0=0.2, a0=2.0, b0=1.5)
    fresh = stats.t(4.0, [0.3, 0.0], np.sqrt(1.5 / 2.0 * 1.2 / 0.2))
    laws = [stats.multivariate_normal(m, np.diag(s**2)) for m, s in zip(mu, sigma, strict=True)]
    return component, {"mu": mu, "sigma": sigma}, laws, lambda x: fresh.logpdf(x).sum(axis=1)


def mv_case():
    mu = np.array([[1.0, 0.0, 2.0], [-2.0, 3.0, 0.0]])
    cov = np.array([np.eye(3) + 0.3, np.diag([0.5, 1.0, 2.0])])
    psi0 = np.eye(3) + 0.1
    component = dps.MvNormal(mu0=[0.3, 0.0, 0.0], kappa0=0.2, nu0=5.0, psi0=psi0)
    fresh = stats.multivariate_t([0.3, 0.0, 0.0], psi0 * 1.2 / (0.2 * 3.0), df=3.0)
    laws = [stats.multivariate_normal(m, c) for m, c in zip(mu, cov, strict=True)]
    return component, {"mu": mu, "cov": cov}, laws, fresh.logpdf


CASES = {"Normal": normal_case, "DiagNormal": diag_case, "MvNormal": mv_case}


def log_density(component, rows, n_clusters, weights, log_rest, parameters):
    model = declared(component, rows, max_clusters=2)
    mixture = find_mixtures(model)["x"]
    point = mixture.point_values(n_clusters, weights, log_rest, parameters)
    function = model.compile_fn(
        model.logp([model["x"]], sum=False), inputs=model.value_vars, on_unused_input="ignore"
    )
    (density,) = function(point)
    return density


@pytest.mark.parametrize("family", CASES)
@pytest.mark.parametrize("n_rows", [2, 300])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_density_of_rows_is_that_of_the_mixture(family, n_rows, offset, rng):
    component, parameters, laws, fresh = CASES[family]()
    shape = (n_rows, *parameters["mu"].shape[1:])
    rows = rng.normal(0.0, 4.0, shape) + offset
    terms = [
        np.log(w) + np.atleast_1d(law.logpdf(rows)) for w, law in zip(WEIGHTS, laws, strict=True)
    ]
    expected = logsumexp([*terms, LOG_REST + np.atleast_1d(fresh(rows))], axis=0)
    density = log_density(component, rows, 2, WEIGHTS, LOG_REST, parameters)
    np.testing.assert_allclose(density, expected, rtol=1e-9)


def test_clusters_without_a_row_count_as_new(rng):
    component, parameters, laws, fresh = normal_case()
    rows = rng.normal(size=20)
    density = log_density(component, rows, 7, WEIGHTS, np.log(0.01), parameters)
    terms = [
        np.log(w) + np.atleast_1d(law.logpdf(rows)) for w, law in zip(WEIGHTS, laws, strict=True)
    ]
    expected = logsumexp([*terms, LOG_REST + np.atleast_1d(fresh(rows))], axis=0)
    np.testing.assert_allclose(density, expected, rtol=1e-9)


def test_density_integrates_to_one():
    component, parameters, _, _ = normal_case()
    # Equidistant in arsinh, as the tails of the remainder reach far.
    grid = np.sinh(np.linspace(-20.0, 20.0, 20_001))
    density = log_density(component, grid, 2, WEIGHTS, LOG_REST, parameters)
    np.testing.assert_allclose(integrate.trapezoid(np.exp(density), grid), 1.0, rtol=1e-6)


def test_density_without_remainder_is_finite():
    component, parameters, laws, _ = normal_case()
    weights = np.array([0.6, 0.4])
    rows = np.array([-1.0, 0.0, 4.0])
    density = log_density(component, rows, 2, weights, -np.inf, parameters)
    terms = [
        np.log(w) + np.atleast_1d(law.logpdf(rows)) for w, law in zip(weights, laws, strict=True)
    ]
    np.testing.assert_allclose(density, logsumexp(terms, axis=0), rtol=1e-9)


# --- a trace and the model ----------------------------------------------------------------


def trace_of_prior(model, n_draws=50):
    """A trace with draws of the prior as posterior, which is what the functions below read."""
    with model:
        prior = pm.sample_prior_predictive(n_draws, random_seed=1)
    dataset = prior["prior"].to_dataset()
    return xr.DataTree.from_dict({"posterior": dataset})


def test_prediction_and_likelihood_from_a_trace(tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 2))
    with pm.Model(coords={"row": range(30), "feature": ["a", "b"]}) as model:
        alpha = pm.Gamma("alpha", 2, 4)
        data = pm.Data("data", rows, dims=("row", "feature"))
        dps.DPMixture(
            "x", alpha, dps.MvNormal.from_data(rows), observed=data, dims=("row", "feature")
        )
    trace_of_prior(model).to_netcdf(tmp_path / "trace.nc")
    idata = az.from_netcdf(tmp_path / "trace.nc")
    with model, warnings.catch_warnings():
        warnings.simplefilter("error")
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.set_data({"data": rows[:4]}, coords={"row": range(4)})
        predicted = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False)
    assert idata["log_likelihood"]["x"].dims == ("chain", "draw", "row")
    assert np.isfinite(idata["log_likelihood"]["x"]).all()
    assert predicted["posterior_predictive"]["x"].shape == (1, 50, 4, 2)


# --- convergence checks -------------------------------------------------------------------


def example_trace(rng, n_clusters):
    """Four chains in which everything converged, but clusters are numbered differently."""
    by_cluster = rng.normal(np.arange(4.0)[:, None, None], 0.1, (4, 200, 3))
    return az.from_dict(
        {
            "posterior": {
                "x_n_clusters": n_clusters,
                "x_new_weight": rng.random((4, 200)),
                **{f"x_{name}": by_cluster for name in ("weights", "mu", "sigma")},
            }
        }
    )


def test_checks_ignore_what_depends_on_numbering(rng):
    model = declared(ATOMIC, np.zeros(3))
    idata = example_trace(rng, rng.integers(1, 4, (4, 200)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mcmc.run_convergence_checks(idata, model) == []
    assert set(idata["posterior"].data_vars) >= {"x_weights", "x_mu", "x_sigma"}


@pytest.mark.control
def test_unwrapped_checks_complain(rng):
    model = declared(ATOMIC, np.zeros(3))
    idata = example_trace(rng, rng.integers(1, 4, (4, 200)))
    assert run_convergence_checks(idata, model) != []


@pytest.mark.control
def test_chains_that_disagree_on_the_number_of_clusters_are_reported(rng):
    model = declared(ATOMIC, np.zeros(3))
    n_clusters = np.arange(4)[:, None] + rng.integers(1, 3, (4, 200))
    assert mcmc.run_convergence_checks(example_trace(rng, n_clusters), model) != []


@pytest.mark.parametrize("new_weight_varies", [True, False])
def test_constant_number_of_clusters_is_no_fault(rng, new_weight_varies):
    model = declared(ATOMIC, np.zeros(3))
    idata = example_trace(rng, np.ones((4, 200), dtype=int))
    if not new_weight_varies:
        idata["posterior"]["x_new_weight"] = 0.0 * idata["posterior"]["x_new_weight"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mcmc.run_convergence_checks(idata, model) == []


def test_models_without_a_mixture_are_checked_as_before(rng):
    with pm.Model() as model:
        pm.Normal("a", shape=2)
    bad = az.from_dict(
        {"posterior": {"a": rng.normal(np.arange(4.0)[:, None, None], 0.1, (4, 200, 2))}}
    )
    assert (
        len(mcmc.run_convergence_checks(bad, model)) == len(run_convergence_checks(bad, model)) > 0
    )


def test_install_twice_wraps_once():
    before = mcmc.run_convergence_checks
    wrapped_functions.install()
    assert mcmc.run_convergence_checks is before
