"""Components of any density, and products with them, for rows in groups: draws and readers."""

import arviz as az
import cloudpickle
import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps

ROWS = np.array([0.1, 5.2, 0.3, -0.2, 5.0, 4.8, 0.2, 5.4])
GROUPS = ["b", "a", "b", "b", "a", "c", "a", "b"]
PARTITION = [0, 1, 0, 0, 1, 1, 0, 1]


def student_t() -> dps.Component:
    return dps.Component(
        pm.StudentT, nu=4.0, mu=pm.Normal.dist(2.0, 4.0), sigma=pm.HalfNormal.dist(1.0)
    )


def declared(observed=ROWS, component=None, **arguments) -> pm.Model:
    with pm.Model() as model:
        alpha, gamma = pm.Gamma("alpha", 4, 2), pm.Gamma("gamma", 4, 3)
        component = student_t() if component is None else component
        given = {"groups": GROUPS, "group_dim": "patient", "observed": observed} | arguments
        dps.HDPMixture("x", alpha, gamma, component, **given)
    return model


def one_run(model: pm.Model, **options):
    defaults = {"draws": 40, "tune": 30, "chains": 2, "cores": 1, "random_seed": 3}
    quiet = {"progressbar": False, "compute_convergence_checks": False}
    with model:
        return pm.sample(**{**defaults, **quiet, **options})


@pytest.fixture(scope="module")
def sampled():
    model = declared()
    return model, one_run(model)


@pytest.mark.slow
def test_trace_and_its_readers(sampled):
    model, idata = sampled
    draws = idata.posterior
    assert (draws["x_n_clusters"] == np.isfinite(draws["x_mu"]).sum("x_cluster")).all()
    assert np.allclose(draws["x_weights"].sum("x_cluster") + draws["x_new_weight"], 1.0)
    assert np.isfinite(idata.sample_stats["x_log_joint"]).all()
    labels = dps.sample_labels(idata, model=model)
    assert (labels.max("x_dim_0") + 1 == draws["x_n_clusters"]).all()
    assert dps.point_partition(idata, model=model, random_seed=1).partition.shape == (8,)
    found = dps.predict(idata, [0.0, 5.0], model=model, groups=["a", "z"], partition=PARTITION)
    assert np.isfinite(found["log_predictive_density"]).all()
    described = dps.describe_clusters(idata, PARTITION, model=model).to_dataset()
    mean = described["mu"].sel(statistic="mean").to_numpy()
    assert mean[0] < 2.5 < mean[1]
    weights = dps.group_weights(idata, PARTITION, model=model, random_seed=1)
    total = weights["weight"].sum("x_reference_cluster") + weights["new_weight"]
    assert np.allclose(total.sel(statistic="mean"), 1.0)
    found = dps.density(idata, model=model, group="a", grid=[0.0, 5.0])["density"]
    assert np.isfinite(found).all()
    assert "x_n_tables" in dps.diagnose(idata, model=model).table["quantity"].values


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # 80 draws
def test_cross_validation_and_estimates(sampled):
    model, idata = sampled
    assert np.isfinite(dps.loo(idata, model=model).elpd)
    with pytest.raises(ValueError, match=r"x is of .* integrated out, so that groups"):
        dps.loo_groups(idata, model=model)
    with pytest.raises(ValueError, match=r"x is of .* integrated out, as find_map"):
        dps.find_map(model)


def test_kernel_that_integrates_parameters_out_is_refused():
    with declared(), pytest.raises(ValueError, match="kernel='collapsed' integrates parameters"):
        dps.HDPMixtureStep(kernel="collapsed")


def test_gamma_that_is_too_large_is_refused():
    with pm.Model():
        dps.HDPMixture("x", 1.0, 1e6, student_t(), groups=GROUPS, observed=ROWS)
        with pytest.raises(ValueError, match=r"x: gamma is 1e\+06 in a draw, for which a sweep"):
            dps.HDPMixtureStep()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # 80 draws
def test_covariates_of_a_component():
    x = np.linspace(-1.0, 1.0, 8)
    component = dps.Component(
        lambda level, slope, x: pm.Normal.dist(level + slope * x, 0.5),
        level=pm.Normal.dist(2.0, 4.0),
        slope=pm.Normal.dist(),
        covariates={"x": x},
    )
    model = declared(component=component)
    idata = one_run(model)
    assert np.isfinite(dps.loo(idata, model=model).elpd)
    given = {"covariates": {"x": [0.0, 0.0]}, "groups": ["a", "z"], "random_seed": 1}
    found = dps.predict(idata, model=model, **given)
    assert found["response"].shape == (80, 2)
    both = dps.predict(idata, [0.0, 5.0], model=model, **given)
    for row in range(2):
        alone = {"covariates": {"x": [0.0]}, "groups": given["groups"][row : row + 1]}
        one = dps.predict(idata, [[0.0, 5.0][row]], model=model, random_seed=1, **alone)
        assert np.allclose(one["log_predictive_density"], both["log_predictive_density"][row])


@pytest.mark.slow
def test_missing_rows_are_imputed_with_their_group():
    observed = np.where(np.arange(8) == 3, np.nan, ROWS)
    model = declared(observed)
    idata = one_run(model)
    assert idata.posterior["x_unobserved"].shape == (2, 40, 1)
    assert np.isfinite(idata.posterior["x_unobserved"]).all()
    again = one_run(model, hdp={"threads": 2})
    assert np.array_equal(idata.posterior["x_unobserved"], again.posterior["x_unobserved"])
    # The first four rows of its group are near zero.
    assert np.abs(idata.posterior["x_unobserved"]).median() < 5.0


@pytest.mark.slow
def test_latent_rows_of_a_component(tmp_path):
    with pm.Model() as model:
        b = dps.HDPMixture("x", 1.0, 1.0, student_t(), groups=GROUPS, shape=8)
        pm.Normal("y", b, 0.3, observed=ROWS)
    idata = one_run(model)
    assert np.allclose(idata.posterior["x"].mean(("chain", "draw")), ROWS, atol=0.7)
    runs = [one_run(model, hdp={"exchanges": 0})]
    with model:
        runs += [one_run(model, step=dps.Checkpoint(tmp_path / "run")) for _ in range(2)]
    for again in runs:
        assert np.array_equal(idata.posterior["x"], again.posterior["x"])
    quiet = {"progressbar": False, "compute_convergence_checks": False, "cores": 1}
    found = dps.extend(idata, model, draws=5, tune=5, random_seed=1, **quiet)
    assert found.posterior["x_mu"].shape[:2] == (2, 45)


@pytest.mark.slow
def test_seeds_copies_and_checkpoints_give_the_same_draws(sampled, tmp_path):
    model, idata = sampled
    runs = [one_run(model), one_run(cloudpickle.loads(cloudpickle.dumps(model)))]
    runs.append(one_run(model, hdp={"threads": 2}))
    with model:
        runs += [one_run(model, step=dps.Checkpoint(tmp_path / "run")) for _ in range(2)]
    for again in runs:
        for name in ("x_weights", "x_n_tables", "x_mu", "alpha"):
            assert np.array_equal(idata.posterior[name], again.posterior[name], equal_nan=True)


@pytest.mark.slow
def test_chains_go_on_with_the_parameters_of_the_trace(sampled, tmp_path):
    model, idata = sampled
    idata.to_netcdf(tmp_path / "trace.nc")
    stored = az.from_netcdf(tmp_path / "trace.nc")
    quiet = {"progressbar": False, "compute_convergence_checks": False, "cores": 1}
    found = dps.extend(stored, model, draws=5, tune=0, random_seed=1, **quiet)
    assert found.posterior["x_mu"].shape[:2] == (2, 45)


@pytest.mark.slow
def test_variable_in_the_base_measure():
    with pm.Model() as model:
        level = pm.Normal("level", 0.0, 5.0)
        component = dps.Component(pm.Laplace, mu=pm.Normal.dist(level, 2.0), b=0.5)
        dps.HDPMixture("x", 1.0, 1.0, component, groups=GROUPS, observed=ROWS)
    idata = one_run(model)
    assert float(idata.posterior["level"].std()) > 0


@pytest.mark.slow
def test_product_of_families():
    table = np.column_stack([ROWS, ROWS > 2.0])
    product = dps.Product(size=student_t(), kind=dps.Bernoulli(1.0, 1.0))
    idata = one_run(declared(table, product))
    assert (idata.posterior["x_n_clusters"] == idata.sample_stats["x_occupied"]).all()
