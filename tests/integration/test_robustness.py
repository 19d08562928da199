"""Hard but legal input: the sampler runs, and what it gives is finite and right."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition import log_joint
from tests.support.families import target_of
from tests.support.quick import slow_unless
from tests.support.statistics import LEVEL, two_sample_test

FAMILIES = {"Normal": dps.Normal, "DiagNormal": dps.DiagNormal, "MvNormal": dps.MvNormal}
KERNELS = ("exact", "collapsed")
OPTIONS = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
SHORT = {"draws": 30, "tune": 30, "chains": 1, "random_seed": 7}

CLUSTERED = np.random.default_rng(2).normal(size=(24, 3)) + np.repeat([[-3.0], [3.0]], 12, axis=0)


def component_for(family, rows):
    """The family with its defaults for the data, and the data as it takes them."""
    observed = rows[:, 0] if family == "Normal" else rows
    return FAMILIES[family].from_data(observed), observed


def sampled(family, rows, alpha=1.0, **arguments):
    component, observed = component_for(family, np.asarray(rows, dtype=float))
    with pm.Model():
        dps.DPMixture("x", alpha() if callable(alpha) else alpha, component, observed=observed)
        return pm.sample(**{**SHORT, **OPTIONS, **arguments})


def assert_sensible(idata, n_obs):
    """Everything that is occupied is finite, and the weights are weights."""
    posterior, stats = idata["posterior"], idata["sample_stats"]
    counts = posterior["x_n_clusters"].to_numpy()
    assert ((counts >= 1) & (counts <= n_obs)).all()
    weights, rest = posterior["x_weights"].to_numpy(), posterior["x_new_weight"].to_numpy()
    assert ((weights >= 0) & (weights <= 1)).all()
    assert ((rest >= 0) & (rest <= 1)).all()
    n_rows = weights.shape[-1]
    recorded = counts <= n_rows
    np.testing.assert_allclose((weights.sum(-1) + rest)[recorded], 1.0)
    occupied = np.arange(n_rows) < counts[..., None]
    for name in {"x_mu", "x_sigma", "x_cov"} & set(posterior.data_vars):
        values = posterior[name].to_numpy()
        assert np.isfinite(values[occupied]).all(), name
        assert np.isnan(values[~occupied]).all(), name
    if "x_sigma" in posterior:
        assert (posterior["x_sigma"].to_numpy()[occupied] > 0).all()
    if "x_cov" in posterior:
        np.linalg.cholesky(posterior["x_cov"].to_numpy()[occupied])
    for name in ("x_log_joint", "x_entropy"):
        assert np.isfinite(stats[name]).all(), name


def with_column(value):
    rows = CLUSTERED.copy()
    rows[:, 1] = value
    return rows


HARD_ROWS = {
    "one row": CLUSTERED[:1],
    "two rows": CLUSTERED[:2],
    "identical rows": np.repeat(CLUSTERED[:1], 20, axis=0),
    "zeros": np.zeros((20, 3)),
    "two distinct rows": np.repeat(CLUSTERED[[0, -1]], 10, axis=0),
    "fewer rows than features": np.random.default_rng(3).normal(size=(3, 6)),
    "constant column": with_column(0.1),
    "equal columns": CLUSTERED[:, [0, 0, 0]],
    "tiny": 1e-10 * CLUSTERED,
    "huge": 1e10 * CLUSTERED,
    "tiny beside huge": CLUSTERED * [1e-12, 1.0, 1e12],
    "huge first": CLUSTERED * [1e12, 1.0, 1e-12],
    "offset": CLUSTERED + 1e8,
    "one row far away": np.vstack([CLUSTERED, np.full(3, 1e8)]),
    "heavy tails": np.random.default_rng(4).standard_cauchy((30, 3)) ** 3,
}
# One for each reason that rows are hard.
QUICK_SHAPES = (
    "one row", "fewer rows than features", "constant column", "tiny beside huge",
    "one row far away", "heavy tails",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:observed has ")  # by from_data, that they are hard
@pytest.mark.parametrize("kernel", slow_unless("exact".__eq__, KERNELS))
@pytest.mark.parametrize("family", slow_unless("MvNormal".__eq__, FAMILIES))
@pytest.mark.parametrize("shape", slow_unless(QUICK_SHAPES.__contains__, HARD_ROWS))
def test_hard_rows(shape, family, kernel):
    rows = HARD_ROWS[shape]
    assert_sensible(sampled(family, rows, dpsplit={"kernel": kernel}), len(rows))


@pytest.mark.parametrize("kernel", slow_unless("exact".__eq__, KERNELS))
@pytest.mark.parametrize("family", slow_unless("MvNormal".__eq__, FAMILIES))
@pytest.mark.parametrize("alpha", [1e-6, 1e3])
def test_hard_alpha(alpha, family, kernel):
    idata = sampled(family, CLUSTERED, alpha, draws=10, tune=10, dpsplit={"kernel": kernel})
    assert_sensible(idata, 24)
    counts = idata["posterior"]["x_n_clusters"]
    # Under alpha = 1000 a single draw of MvNormal has fewer than 15 with probability 0.007.
    assert counts.max() <= 3 if alpha < 1 else counts.mean() >= 15


def test_huge_alpha_takes_neither_time_nor_memory():
    """Sticks would be 1e8; labels from a stored measure need them, so these are refused."""
    rows = CLUSTERED[:, :1]
    with pm.Model() as model:
        dps.DPMixture("x", 1e7, dps.Normal.from_data(rows[:, 0]), observed=rows[:, 0])
        idata = pm.sample(**{**SHORT, **OPTIONS})
    assert_sensible(idata, 24)
    assert idata["posterior"]["x_n_clusters"].mean() > 20
    with pytest.raises(ValueError, match="need millions of other atoms; sample with dpsplit="):
        dps.sample_labels(idata, model=model)


def test_alpha_of_a_heavy_tailed_prior_may_pass_the_number_of_rows():
    """Sweeps with sticks and without take turns in one chain."""
    several = {"draws": 150, "tune": 60, "dpsplit": {"kernel": "exact"}}
    idata = sampled("Normal", CLUSTERED[:, :1], lambda: pm.HalfCauchy("alpha", 1e3), **several)
    assert_sensible(idata, 24)
    alpha = idata["posterior"]["alpha"]
    assert alpha.min() < 24 < alpha.max()


# NUTS multiplies large numbers at the end of a divergent trajectory, of which tuning has some.
@pytest.mark.filterwarnings("ignore:overflow encountered in dot:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:observed has the same number:UserWarning")
@pytest.mark.parametrize("seed", [1, 2])
def test_alpha_whose_prior_reaches_tiny_values(seed):
    """The new weight underflows; its logarithm, which NUTS sees, does not."""
    idata = sampled(
        "MvNormal",
        np.zeros((20, 3)),
        lambda: pm.Gamma("alpha", 0.02, 1),
        random_seed=seed,
        tune=200,
    )
    assert_sensible(idata, 20)
    alpha = idata["posterior"]["alpha"]
    assert np.isfinite(alpha).all()
    assert (alpha > 0).all()


@pytest.mark.parametrize("kernel", slow_unless("exact".__eq__, KERNELS))
@pytest.mark.parametrize("counts", [{"draws": 1, "tune": 0}, {"draws": 5, "tune": 1}])
def test_hardly_any_draws(counts, kernel):
    assert_sensible(sampled("MvNormal", CLUSTERED, dpsplit={"kernel": kernel}, **counts), 24)


def test_one_draw_with_everything_on():
    """With the checks of convergence, which have next to nothing to look at."""
    checked = {"compute_convergence_checks": True, "quiet": False, "draws": 1, "tune": 0}
    idata = sampled("Normal", CLUSTERED, lambda: pm.Gamma("alpha", 2, 4), **checked)
    assert_sensible(idata, 24)


@pytest.mark.filterwarnings("ignore:observed has the same number")
@pytest.mark.parametrize("constant", [0.1, 1 / 3, 1e8 + 0.1])
def test_column_that_does_not_vary_takes_the_scale_of_another(constant):
    """Its variance, as computed, may be a rounding error above zero."""
    rows = with_column(constant)
    b0 = dps.DiagNormal.from_data(rows).hyperparameters["b0"]
    assert b0[1] == min(b0[0], b0[2])
    # Every column has a share of its own of the variance within clusters.
    psi0 = dps.MvNormal.from_data(rows).hyperparameters["psi0"]
    assert psi0[1, 1] == pytest.approx(min(psi0[0, 0], psi0[2, 2]), rel=0.5)
    others = dps.MvNormal.from_data(with_column(0.25)).hyperparameters["psi0"]
    np.testing.assert_allclose(psi0, others, rtol=1e-6)
    assert dps.Normal.from_data(rows[:, 1]).hyperparameters["b0"] == 0.1


# --- units --------------------------------------------------------------------------------

TRANSFORMED = {
    "tiny": (1e-10, 0.0),
    "huge": (1e10, 0.0),
    "mixed units": (np.array([1e-12, 1.0, 1e12]), 0.0),
    "offset": (1.0, 1e6),
}


def log_joint_of(family, rows, labels):
    component, observed = component_for(family, rows)
    rows = observed.reshape(len(rows), -1)
    target = target_of(component, rows, 0.7)
    return log_joint(target, sampler.resume(target, labels).stats)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("change", TRANSFORMED)
def test_units_shift_the_log_joint_by_a_constant(change, family):
    """By N times the logarithms of the scales, for every partition."""
    scale, offset = TRANSFORMED[change]
    n_features = 1 if family == "Normal" else 3
    shift = -24 * np.log(np.broadcast_to(scale, 3))[:n_features].sum()
    rng = np.random.default_rng(6)
    for labels in (
        np.zeros(24, int),
        np.repeat([0, 1], 12),
        rng.permutation(24) % 5,
        np.arange(24),
    ):
        before = log_joint_of(family, CLUSTERED, labels)
        after = log_joint_of(family, CLUSTERED * scale + offset, labels)
        np.testing.assert_allclose(after, before + shift, rtol=1e-9, atol=1e-6)


@pytest.mark.control
def test_hyperparameters_that_do_not_follow_the_units_are_caught():
    component, _ = component_for("MvNormal", CLUSTERED)
    labels = np.repeat([0, 1], 12)

    def joint(rows):
        target = target_of(component, rows, 0.7)
        return log_joint(target, sampler.resume(target, labels).stats)

    assert abs(joint(10.0 * CLUSTERED) - (joint(CLUSTERED) - 72 * np.log(10.0))) > 1.0


def independent_partitions(rows, seed, alpha=1.0):
    """Clusters and entropy of draws so far apart that they are nearly independent, (R, 2)."""
    apart = {"draws": 1500, "tune": 300, "dpsplit": {"iterations": 10}}
    idata = sampled("MvNormal", rows, alpha, random_seed=seed, **apart)
    counts, entropy = idata["posterior"]["x_n_clusters"], idata["sample_stats"]["x_entropy"]
    return np.column_stack([counts.to_numpy()[0, ::5], entropy.to_numpy()[0, ::5]])


@pytest.mark.slow
@pytest.mark.parametrize("change", TRANSFORMED)
def test_units_leave_the_partition_alone(change):
    scale, offset = TRANSFORMED[change]
    before = independent_partitions(CLUSTERED, 1)
    after = independent_partitions(CLUSTERED * scale + offset, 2)
    assert two_sample_test(before, after) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_partitions_of_another_concentration_are_caught():
    before = independent_partitions(CLUSTERED, 1)
    after = independent_partitions(CLUSTERED, 2, alpha=3.0)
    assert two_sample_test(before, after) < LEVEL


# --- kinds of data ------------------------------------------------------------------------

COUNTS = np.random.default_rng(9).poisson(5.0, (20, 2))
KINDS = {
    "int64": COUNTS,
    "int8": COUNTS.astype(np.int8),
    "uint16": COUNTS.astype(np.uint16),
    "float32": COUNTS.astype(np.float32),
    "objects": COUNTS.astype(object),
    "list": COUNTS.tolist(),
    "pandas": pd.DataFrame(COUNTS, columns=["a", "b"]),
    "pandas nullable": pd.DataFrame(COUNTS).astype("Int64"),
    "polars": pl.DataFrame(COUNTS, schema=["a", "b"]),
    "xarray": xr.DataArray(COUNTS, dims=("obs", "feature")),
    "read-only": np.broadcast_to(COUNTS, COUNTS.shape),
}


def sampled_as_given(observed, component=None):
    with pm.Model():
        component = component or dps.MvNormal.from_data(COUNTS)
        dps.DPMixture("x", 1.0, component, observed=observed)
        return pm.sample(**{**SHORT, **OPTIONS})


@pytest.fixture(scope="module")
def draws_from_floats():
    return sampled_as_given(COUNTS.astype(float))["posterior"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_data_give_the_same_draws(kind, draws_from_floats):
    posterior = sampled_as_given(KINDS[kind])["posterior"]
    for name, values in draws_from_floats.items():
        np.testing.assert_array_equal(posterior[name], values)


@pytest.mark.parametrize("kind", ["float64", "int64", "float32"])
def test_data_container_gives_the_same_draws(kind, draws_from_floats):
    with pm.Model():
        data = pm.Data("data", COUNTS.astype(kind))
        dps.DPMixture("x", 1.0, dps.MvNormal.from_data(COUNTS), observed=data)
        posterior = pm.sample(**{**SHORT, **OPTIONS})["posterior"]
    np.testing.assert_array_equal(posterior["x_mu"], draws_from_floats["x_mu"])


def test_changed_data_are_sampled():
    with pm.Model():
        data = pm.Data("data", COUNTS[:5].astype(float))
        dps.DPMixture("x", 1.0, dps.MvNormal.from_data(COUNTS), observed=data, max_clusters=20)
        pm.set_data({"data": COUNTS.astype(float)})
        idata = pm.sample(**{**SHORT, **OPTIONS}, dpsplit={"keep_labels": True})
    assert idata["sample_stats"]["x_labels"].shape == (1, 30, 20)


def test_truth_values_are_numbers():
    truths = np.arange(20) % 3 == 0
    idata = sampled_as_given(truths, dps.Normal.from_data(truths))
    assert_sensible(idata, 20)


def test_series_of_scalars():
    assert_sensible(
        sampled_as_given(pd.Series(COUNTS[:, 0]), dps.Normal.from_data(COUNTS[:, 0])), 20
    )
