"""`compare_samplers`: one table of runs that are judged alike."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.moves.conjugate import CONJUGATE
from pymc_dpsplit.posterior.comparison import compare_samplers as module
from pymc_dpsplit.posterior.comparison import timed_runs
from pymc_dpsplit.posterior.comparison.compared_quantities import log_densities, numbers_occupied

ROWS = np.array([-2.1, -1.9, -1.7, -2.2, 1.8, 2.0, 2.3, 1.9, 2.1, 2.2])
COMPONENT = dps.Normal(0.0, 0.1, 2.0, 0.2)
COLUMNS = [
    "sampler",
    "n_components",
    "compile_s",
    "wall_s",
    "cpu_s",
    "ess_density",
    "ess_n_clusters",
    "ess_density_per_s",
    "ess_n_clusters_per_s",
    "r_hat",
    "divergences",
    "n_clusters",
    "elpd_loo",
    "elpd_se",
    "held_out",
    "verdict",
]


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "can_run_nutpie", lambda: False)
        return dps.compare_samplers(
            ROWS,
            COMPONENT,
            n_components=2,
            samplers=["dpsplit", "dpsplit-finite", "pymc", "nutpie"],
            held_out=[-2.0, 2.0],
            draws=200,
            tune=200,
            chains=2,
            random_seed=3,
        )


@pytest.mark.slow
def test_table_has_a_row_for_each_run(found):
    assert list(found.table.columns) == COLUMNS
    assert list(found.table.index) == ["dpsplit", "dpsplit-finite K=2", "pymc K=2"]
    assert list(found.table["n_components"]) == [np.inf, 2.0, 2.0]
    numbers = found.table.drop(columns=["sampler", "verdict", "n_components", "ess_n_clusters"])
    assert np.isfinite(numbers.drop(columns="ess_n_clusters_per_s").to_numpy(float)).all()
    assert (found.table["cpu_s"] > 0).all()


def test_kernels_are_compiled_before_the_clock_runs(monkeypatch):
    rows = np.column_stack([ROWS, ROWS[::-1]])
    forms = {CONJUGATE.kernels[name].iterate for name in ("exact", "greedy")}
    forms.add(CONJUGATE.kernels["collapsed-split-merge"].iterate)

    def loaded():
        return [len(kernel.entry.signatures) for kernel in forms]

    at_first_draw = []
    monkeypatch.setattr(
        timed_runs._Stopwatch,
        "__call__",
        lambda *_, **__: at_first_draw.append(loaded()),
    )
    with pm.Model() as model:
        dps.DPMixture("x", alpha=1.0, component=dps.DiagNormal.from_data(rows), observed=rows)
    timed_runs.run_pymc(model, timed_runs.Settings(20, 100, 1, 1, 0.9), 1)
    assert at_first_draw[0] == loaded()


@pytest.mark.slow
def test_runs_agree_on_predictions(found):
    # Two groups that both mixtures find: the same data, component and concentration.
    held_out = found.table["held_out"]
    assert np.ptp(held_out) < 0.5
    assert set(found.elpd.index) == set(found.table.index)


def test_absent_sampler_is_left_out_with_a_remark(found):
    assert found.remarks == ("nutpie is not installed, so its runs are left out.",)
    assert "nutpie is not installed" in str(found)


@pytest.mark.slow
def test_finite_mixtures_are_one_model_for_both_samplers(found):
    ours, nuts = found.table.loc["dpsplit-finite K=2"], found.table.loc["pymc K=2"]
    assert abs(ours["held_out"] - nuts["held_out"]) < 0.2
    assert abs(ours["elpd_loo"] - nuts["elpd_loo"]) < 0.5
    assert abs(ours["n_clusters"] - nuts["n_clusters"]) < 0.1


def test_densities_are_those_of_pymc(found):
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, COMPONENT, observed=ROWS)
    trace = found.traces["dpsplit"]
    posterior = trace["posterior"].to_dataset()
    bare = xr.DataTree.from_dict({"posterior": posterior})
    pm.compute_log_likelihood(bare, model=model, progressbar=False)
    of_pymc = bare["log_likelihood"]["x"].to_numpy()
    rows = np.asarray(ROWS, float).reshape(len(ROWS), -1)
    assert np.allclose(of_pymc, log_densities(posterior, "x", COMPONENT, rows))
    # What is left out of the density of a row is what only this row knows.
    recorded = trace["log_likelihood"]["x"].to_numpy()
    assert recorded.shape == of_pymc.shape
    assert recorded.mean() < of_pymc.mean()


def finite_posterior(weights, mu, sigma, n_draws):
    shape = (1, n_draws, len(weights))
    given = {"x_weights": weights, "x_mu": mu, "x_sigma": sigma}
    return xr.Dataset(
        {
            name: (("chain", "draw", "x_cluster"), np.broadcast_to(value, shape))
            for name, value in given.items()
        }
    )


@pytest.mark.slow
def test_densities_and_occupation_of_known_mixtures():
    posterior = finite_posterior([0.9, 0.1], [0.0, 0.0], [1.0, 2.0], 4000)
    rows = np.zeros((3, 1))
    density = log_densities(posterior, "x", COMPONENT, rows)
    parts = np.array([0.9, 0.1]) * stats.norm.pdf(0.0, 0.0, [1.0, 2.0])
    assert np.allclose(density, np.log(parts.sum()))
    numbers = numbers_occupied(posterior, "x", COMPONENT, rows, np.random.default_rng(1))
    first = parts[0] / parts.sum()
    together = first**3 + (1 - first) ** 3
    error = np.sqrt(together * (1 - together) / numbers.size)
    assert abs((numbers == 1).mean() - together) < 4.5 * error
    # The control: occupation by the weights alone, without the data.
    assert abs((numbers == 1).mean() - (0.9**3 + 0.1**3)) > 4.5 * error


FAULTS = {
    "component": ({"component": dps.Normal}, "is not a component family"),
    "hyperprior": ({"component": "variable"}, "makes models of its own"),
    "samplers": ({"samplers": ["stan"]}, "samplers=.*is not known"),
    "n_components": ({"n_components": (2, 0)}, "give integers from 1"),
    "weights": ({"weights": "even"}, "^weights='even' is not known"),
    "stick": (
        {"samplers": ["dpsplit-finite"], "weights": "stick"},
        'samplers names dpsplit-finite, .*, beside weights="stick"; leave one',
    ),
    "held_out": ({"held_out": [np.nan, 1.0]}, "held_out has 1 NaN"),
    "draws": ({"draws": 2}, "draws=2 will not do; give an integer from 4"),
    "alpha": ({"alpha": 0.0}, "alpha=0.0 must be positive"),
    "target_accept": ({"target_accept": 1.5}, "must lie below 1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_before_anything_is_sampled(fault, monkeypatch):
    changed, message = FAULTS[fault]
    monkeypatch.setattr(module, "_RUNNERS", dict.fromkeys(module._RUNNERS))
    given = {"component": COMPONENT, **changed}
    if given["component"] == "variable":
        with pm.Model():
            given["component"] = dps.Normal(pm.Normal("m"), 0.1, 2.0, 0.2)
    with pytest.raises(ValueError, match=message):
        dps.compare_samplers(ROWS, **given)


def test_verdict_names_every_fault():
    good = {"r_hat": 1.001, "ess_density": 900.0, "ess_n_clusters": np.nan, "divergences": 0}
    assert module._verdict(good, 0) == "mixes well"
    bad = {"r_hat": 1.4, "ess_density": 30.0, "ess_n_clusters": 900.0, "divergences": 7}
    verdict = module._verdict(bad, 2)
    for part in ("do not agree (R-hat 1.40)", "(30)", "divergences (7)", "at 2 of the rows"):
        assert part in verdict


@pytest.mark.slow
def test_nutpie_agrees_with_pymc():
    pytest.importorskip("nutpie")
    found = dps.compare_samplers(
        ROWS, COMPONENT, n_components=3, samplers=["pymc", "nutpie"], chains=4, random_seed=4
    )
    pymc, nutpie = found.table.loc["pymc K=3"], found.table.loc["nutpie K=3"]
    assert abs(pymc["n_clusters"] - nutpie["n_clusters"]) < 0.15
    assert abs(pymc["elpd_loo"] - nutpie["elpd_loo"]) < 0.5
