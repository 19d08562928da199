"""Mixtures of the errors of a regression: `observed` is data less a mean of other variables."""

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.variables import find_mixtures
from tests.integration.test_reproducibility import OPTIONS

N_OBS, N_DRAWS = 30, 10
RNG = np.random.default_rng(8)
X = RNG.normal(size=(N_OBS, 2))
SLOPES = np.array([5.0, -8.0])
ERRORS = np.where(np.arange(N_OBS) < 12, -3.0, 3.0) + 0.5 * RNG.normal(size=N_OBS)
Y = X @ SLOPES + ERRORS
NORMAL = dps.Normal(0.0, 0.1, 2.0, 1.0)
TABLE = RNG.normal(size=(N_OBS, 2))


def declared(observed):
    """A mixture of what `observed` makes of y, X, an intercept, slopes and a scale."""
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 10, shape=2)
        variables = {
            "y": pm.Data("y", Y),
            "x": pm.Data("x", X),
            "a": pm.Normal("a", 0, 10),
            "b": beta,
            "s": pm.HalfNormal("s", 1),
        }
        dps.DPMixture("e", 1.0, NORMAL, observed=observed(**variables))
    return model


def regression(with_errors=False):
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 10, shape=2)
        y, x = pm.Data("y", Y), pm.Data("x", X)
        if with_errors:
            pm.Deterministic("errors", y - x @ beta)
        dps.DPMixture("e", pm.Gamma("alpha", 2, 4), NORMAL, observed=y - x @ beta)
    return model


def sampled(model, **arguments):
    defaults = {"draws": N_DRAWS, "tune": 200, "chains": 2, "cores": 1, "random_seed": 5}
    with model:
        return pm.sample(**{**defaults, **OPTIONS, **arguments})


@pytest.fixture(scope="module")
def model():
    return regression(with_errors=True)


@pytest.fixture(scope="module")
def idata(model):
    return sampled(model)


# --- declaring ----------------------------------------------------------------------------


FORMS = {
    "NumPy": (lambda b, **_: Y - X @ b, 1.0),
    "pm.Data": (lambda y, x, b, **_: y - x @ b, 1.0),
    "intercept": (lambda y, x, a, b, **_: y - a - x @ b, 1.0),
    "mean first": (lambda y, x, b, **_: -(x @ b) + y, 1.0),
    "sum": (lambda y, x, a, b, **_: y + (-a) - x @ b, 1.0),
    "negated": (lambda y, x, b, **_: -(x @ b - y), 1.0),
    "mean less data": (lambda y, x, b, **_: x @ b - y, -1.0),
    "data of several terms": (lambda y, x, b, **_: 2.0 * y - x @ b - y, 1.0),
    "intercept alone": (lambda y, a, **_: y - a, 1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_data_and_mean_are_taken_apart(form):
    observed, sign = FORMS[form]
    model = declared(observed)
    np.testing.assert_allclose(model.rvs_to_values[model["e"]].eval(), sign * Y)
    errors = find_mixtures(model)["e"].data
    given = {"a": np.array(0.7), "b": SLOPES}
    read = model.replace_rvs_by_values([errors])[0]
    values = {"beta": SLOPES, "a": np.array(0.7)}
    inputs = [v for v in model.value_vars if v.name in values]
    found = pm.pytensorf.compile(inputs, read, on_unused_input="ignore")(
        *(values[v.name] for v in inputs)
    )
    expected = observed(y=Y, x=X, s=1.0, **given)
    np.testing.assert_allclose(found, expected)


REFUSED = {
    "scaled": (lambda y, s, **_: y / s, "otherwise than as data less a mean"),
    "product": (lambda y, s, **_: y * s, "otherwise than as data less a mean"),
    "scaled errors": (lambda y, x, b, s, **_: (y - x @ b) / s, "otherwise than as data less"),
    "product of a term": (
        lambda y, x, a, b, **_: pm.math.log(y**2) * a - x @ b,
        "otherwise than as data less a mean",
    ),
    "no data": (lambda x, b, **_: x @ b, "otherwise than as data less a mean"),
    "part": (lambda y, x, b, **_: (y - x @ b)[:5], "otherwise than as data less a mean"),
    "a number": (lambda x, b, **_: 5.0 - x @ b, r"data of shape \(1,\) less a mean of shape \(30,"),
    "stranger": (lambda y, **_: y - pm.Normal.dist(), "a distribution that is not in this model"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_other_expressions_are_refused(form):
    observed, message = REFUSED[form]
    with pytest.raises(ValueError, match=message) as raised:
        declared(observed)
    text = str(raised.value)
    assert text.startswith("e: ")
    assert text.endswith(".")
    assert "; " in text


def test_mean_that_does_not_fit_the_data_is_refused():
    with pm.Model():
        mean = pm.Normal("mean", shape=N_OBS)
        family, data = dps.DiagNormal(0.0, 0.1, 2.0, 1.0), pm.Data("data", TABLE)
        with pytest.raises(ValueError, match=r"shape \(30, 2\) less a mean of shape \(1, 30\)"):
            dps.DPMixture("e", 1.0, family, observed=data - mean)


# --- the trace ----------------------------------------------------------------------------


@pytest.mark.slow
def test_variables_and_data(model, idata):
    posterior = idata["posterior"]
    assert posterior["e_labels"].shape == (2, N_DRAWS, N_OBS)
    labels = dps.sample_labels(idata, model=model)
    np.testing.assert_array_equal(labels, posterior["e_labels"])
    assert labels.dims == ("chain", "draw", "e_dim_0")
    np.testing.assert_array_equal(idata["observed_data"]["e"], Y)
    np.testing.assert_allclose(posterior["errors"], Y - posterior["beta"].to_numpy() @ X.T)
    np.testing.assert_allclose(posterior["beta"].mean(("chain", "draw")), SLOPES, atol=1.0)


@pytest.mark.slow
def test_log_likelihood_has_the_labels_summed_out(model, idata):
    idata = idata.copy()
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
    at = idata["posterior"].isel(chain=1, draw=-1)
    errors = at["errors"].to_numpy()
    density = float(at["e_new_weight"]) * stats.t.pdf(errors, 4.0, 0.0, np.sqrt(0.5 * 11.0))
    for k in range(int(at["e_n_clusters"])):
        density += float(at["e_weights"][k]) * stats.norm.pdf(
            errors, at["e_mu"][k], at["e_sigma"][k]
        )
    assert list(idata["log_likelihood"].data_vars) == ["e"]
    np.testing.assert_allclose(idata["log_likelihood"]["e"][1, -1], np.log(density))


@pytest.mark.slow
def test_predictions_are_on_the_scale_of_the_data(model, idata):
    with model:
        found = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
    drawn = found["posterior_predictive"]["e"]
    assert drawn.shape == (2, N_DRAWS, N_OBS)
    assert np.corrcoef(drawn.mean(("chain", "draw")), Y)[0, 1] > 0.9


@pytest.mark.slow
def test_new_rows():
    model = regression()
    idata = sampled(model)
    new = np.tile([[10.0, 0.0], [0.0, 10.0]], (4, 1))
    with model:
        pm.set_data({"y": np.zeros(8), "x": new})
        found = pm.sample_posterior_predictive(
            idata, predictions=True, progressbar=False, random_seed=1
        )
    drawn = found["predictions"]["e"].to_numpy()
    assert drawn.shape == (2, N_DRAWS, 8)
    np.testing.assert_allclose(drawn.mean((0, 1)), new @ SLOPES, atol=10.0)
    # Labels are those of the rows that were sampled.
    assert dps.sample_labels(idata, model=model).shape == (2, N_DRAWS, N_OBS)
    with pytest.raises(ValueError, match="e: observed has 8 rows but was declared with 30"):
        sampled(model)


@pytest.mark.slow
def test_tables_with_a_mean_for_each_feature():
    with pm.Model(coords={"obs_id": range(N_OBS), "feature": ["u", "v"]}) as model:
        level = pm.Normal("level", 0, 5, dims="feature")
        slopes = pm.Normal("slopes", 0, 5, shape=(2, 2))
        family = dps.DiagNormal.from_data(TABLE)
        observed = TABLE - level - X @ slopes
        dps.DPMixture("e", 1.0, family, observed=observed, dims=("obs_id", "feature"))
    idata = sampled(model, tune=20)
    assert idata["posterior"]["e_labels"].dims[2:] == ("obs_id",)
    with model:
        found = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
        ax = dps.plot_density(idata)
    assert found["posterior_predictive"]["e"].dims[2:] == ("obs_id", "feature")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("u, less its mean", "v, less its mean")
    plt.close("all")


@pytest.mark.slow
def test_missing_entries():
    observed = Y.copy()
    observed[[3, 20]] = np.nan
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 10, shape=2)
        dps.DPMixture("e", 1.0, NORMAL, observed=observed - X @ beta)
    idata = sampled(model)
    drawn = idata["posterior"]["e_unobserved"]
    assert drawn["e_hole"].to_numpy().tolist() == ["3", "20"]
    # They are entries of the data, not errors: near the regression line, within the errors.
    np.testing.assert_allclose(drawn.mean(("chain", "draw")), (X @ SLOPES)[[3, 20]], atol=8.0)
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        ax = dps.plot_density(idata)
    likelihood = idata["log_likelihood"]["e"].to_numpy()
    assert np.isfinite(likelihood).all()
    assert likelihood.shape[-1] == len(Y) - 2  # rows without an entry are left out
    assert ax.get_legend().get_texts()[0].get_text() == "data less their mean"
    plt.close("all")


# --- figures ------------------------------------------------------------------------------


def test_density_is_over_the_errors(model, idata):
    """The density is that of the errors, whose spread is a fraction of that of the data."""
    with pytest.raises(ValueError, match="may have a mean of other variables"):
        dps.plot_density(idata)
    ax = dps.plot_density(idata, model=model)
    assert ax.get_xlabel() == "e, less its mean"
    shown = [bar for bar in ax.patches if bar.get_height() > 0]
    edges = [shown[0].get_x(), shown[-1].get_x() + shown[-1].get_width()]
    errors = idata["posterior"]["errors"]
    np.testing.assert_allclose(edges, [errors.min(), errors.max()])
    with model:
        assert dps.plot_density(idata, ax=plt.figure().subplots()).get_xlim() == ax.get_xlim()
    plt.close("all")


def test_verdict_and_number_of_clusters(idata):
    assert dps.plot_n_clusters(idata).get_xlabel() == "number of clusters (e)"
    assert "e_log_joint" in str(dps.diagnose(idata))
    plt.close("all")


# --- what is done to models ---------------------------------------------------------------


@pytest.mark.slow
def test_do_on_the_slopes(model):
    """The mean is known then, and the errors are data."""
    fixed = pm.do(model, {"beta": SLOPES})
    idata = sampled(fixed, tune=20)
    assert "beta" not in idata["posterior"]
    assert dps.sample_labels(idata, model=fixed).shape == (2, N_DRAWS, N_OBS)


def test_model_is_printed_and_drawn(model):
    assert "e ~ DPMixture(e_n_clusters, e_new_weight" in model.str_repr()
    source = model.to_graphviz().source
    assert "beta -> e" in source
    assert "e_labels -> e" in source
