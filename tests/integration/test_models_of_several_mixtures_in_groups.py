"""Two mixtures of rows in groups in one model, and one beside a mixture without groups."""

from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps

ROWS = np.array([0.1, 5.2, 0.3, -0.2, 5.0, 4.8])
GROUPS = ["b", "a", "b", "b", "a", "c"]
NORMAL = dps.Normal(0.0, 0.1, 2.0, 1.0)
FEW: dict[str, Any] = {
    "draws": 30,
    "tune": 30,
    "chains": 2,
    "cores": 1,
    "random_seed": 1,
    "progressbar": False,
    "compute_convergence_checks": False,
}


def two(**options: Any) -> tuple[pm.Model, Any]:
    with pm.Model() as model:
        alpha, gamma = pm.Gamma("alpha", 2, 1), pm.Gamma("gamma", 2, 1)
        for name, rows in {"x": ROWS, "y": ROWS[::-1].copy()}.items():
            dps.HDPMixture(name, alpha, gamma, NORMAL, groups=GROUPS, observed=rows)
        return model, pm.sample(**FEW, **options)


@pytest.fixture(scope="module")
def sampled() -> tuple[pm.Model, Any]:
    return two()


def test_each_has_a_step_and_statistics_of_its_own(sampled):
    model, idata = sampled
    for name in ("x", "y"):
        labels = dps.sample_labels(idata, model=model, var_name=name)
        assert labels.shape == (2, 30, 6)
        k = idata["posterior"][f"{name}_n_clusters"].to_numpy()
        np.testing.assert_array_equal(labels.to_numpy().max(axis=-1) + 1, k)
        found = dps.predict(idata, [0.5], model=model, var_name=name, groups=["a"])
        assert np.isfinite(found["log_predictive_density"]).all()
        assert dps.find_map(model, var_name=name, n_restarts=1).labels.shape == (6,)
    assert not np.array_equal(
        idata["posterior"]["x_new_weight"], idata["posterior"]["y_new_weight"]
    )


def test_a_seed_gives_the_same_draws_again(sampled):
    _, idata = sampled
    _, again = two()
    for name in ("alpha", "x_mu", "y_mu", "y_new_weight"):
        np.testing.assert_array_equal(idata["posterior"][name], again["posterior"][name])


def test_options_reach_both(sampled):
    _, idata = two(hdp={"keep_labels": False, "start_clusters": 2})
    assert "x_labels" not in idata["sample_stats"]
    assert "y_labels" not in idata["sample_stats"]
    assert "x_labels" in sampled[1]["sample_stats"]


def test_chains_go_on(sampled):
    model, idata = sampled
    longer = dps.extend(idata, model, draws=5, random_seed=1, progressbar=False, quiet=True)
    assert longer["posterior"].sizes["draw"] == 35


def test_part_of_the_variables_is_refused(sampled):
    model, _ = sampled
    with model, pytest.raises(ValueError, match="vars must be all variables of one hierarchical"):
        dps.HDPMixtureStep([model["x_mu"], *(v for v in model.free_RVs if v.name[:2] == "y_")])


def test_one_beside_a_mixture_without_groups_is_named():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 1)
        dps.HDPMixture("x", alpha, alpha, NORMAL, groups=GROUPS, observed=ROWS)
        dps.DPMixture("y", alpha, NORMAL, observed=ROWS)
        idata = pm.sample(**FEW)
    found = {
        name: dps.predict(idata, [0.5], model=model, var_name=name)["log_predictive_density"].mean()
        for name in ("x", "y")
    }
    assert found["x"] != found["y"]
    for read in (dps.loo, dps.sample_labels, dps.density):
        with pytest.raises(ValueError, match="several mixtures; give var_name as one of"):
            read(idata, model=model)
    with pytest.raises(ValueError, match="several mixtures; give var_name as one of"):
        dps.predict(idata, [0.5], model=model)
    with pytest.raises(ValueError, match="var_name=None is no mixture of the model; it has y, x"):
        dps.find_map(model)
