"""Families of counts, zeros and ones, and codes, inside models."""

from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.variables import find_mixtures

CODES = np.array([[0, 2], [1, 0], [0, 1], [0, 3], [1, 1]])
BITS = (CODES > 0).astype(int)
SHORT: dict[str, Any] = {
    "draws": 30,
    "tune": 20,
    "chains": 1,
    "cores": 1,
    "random_seed": 3,
    "progressbar": False,
    "quiet": True,
    "compute_convergence_checks": False,
}


def declared(component: Any, observed: Any, **arguments: Any) -> pm.Model:
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, component, observed=observed, **arguments)
    return model


def sampled(model: pm.Model, **arguments: Any) -> Any:
    with model:
        return pm.sample(**{**SHORT, **arguments})


# --- the model ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "key", "dims"),
    [
        (dps.Poisson(1.0, 1.0), "rate", ("x_cluster", "x_feature")),
        (dps.Categorical(1.0), "p", ("x_cluster", "x_feature", "x_category")),
    ],
)
def test_variables_and_dims(component: Any, key: str, dims: tuple[str, ...]) -> None:
    model = declared(component, CODES)
    names = ["x_n_clusters", "x_new_weight", "x_weights", f"x_{key}"]
    assert [rv.name for rv in model.free_RVs] == names
    assert model.named_vars_to_dims[f"x_{key}"] == dims
    shape = model[f"x_{key}"].type.shape
    assert shape == tuple(len(model.coords[dim]) for dim in dims)
    assert np.isfinite(model.compile_logp()(model.initial_point()))
    assert model["x"].type.dtype == "float64"


@pytest.mark.parametrize(
    "observed",
    [
        CODES.tolist(),
        CODES.astype(np.uint8),
        pd.DataFrame(CODES),
        pd.DataFrame(CODES).astype("category").apply(lambda column: column.cat.codes),
        pm.pytensorf.convert_data(CODES),
    ],
    ids=["list", "bytes", "pandas", "categories", "converted"],
)
def test_containers_of_data_are_equal(observed: Any) -> None:
    mixture = find_mixtures(declared(dps.Categorical(1.0), observed))["x"]
    np.testing.assert_array_equal(mixture.data.eval(), CODES)


def test_truth_values_are_zeros_and_ones() -> None:
    mixture = find_mixtures(declared(dps.Bernoulli(1.0, 1.0), BITS.astype(bool)))["x"]
    np.testing.assert_array_equal(mixture.data.eval(), BITS)


# --- categories ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        (0.5, [[0.5, 0.5, 0, 0], [0.5] * 4]),
        ([[1.0, 2.0, 3.0], [1.0] * 4], [[1.0, 2.0, 3.0, 0.0], [1.0] * 4]),
        ([1.0, 2.0, 3.0, 4.0], [[1.0, 2.0, 3.0, 4.0]] * 2),
        (np.arange(1.0, 11.0).reshape(2, 5), np.arange(1.0, 11.0).reshape(2, 5)),
    ],
    ids=["number", "vectors", "vector", "matrix"],
)
def test_weights_of_categories(beta: Any, expected: Any) -> None:
    component = dps.Categorical(beta).validate_rows(CODES.astype(float))
    (checked,) = component.check(component.hyperparameters, 2).values()
    np.testing.assert_array_equal(checked, expected)
    assert component.own_dims("p") == {"category": np.shape(expected)[1]}


@pytest.mark.slow
def test_absent_categories_have_probability_zero() -> None:
    """Also where their weights are a variable, which is one number for all."""
    with pm.Model() as model:
        beta = pm.Gamma("beta", 2, 2)
        dps.DPMixture("x", 1.0, dps.Categorical(beta), observed=CODES)
        idata = pm.sample(**SHORT)
        prior = pm.sample_prior_predictive(20, random_seed=1)
        pm.compute_log_likelihood(idata, progressbar=False)
        predicted = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False)
    for p in (idata["posterior"]["x_p"].to_numpy(), prior["prior"]["x_p"].to_numpy()):
        occupied = p[~np.isnan(p[..., 0, 0])]
        assert not occupied[:, 0, 2:].any()
        assert (occupied[:, 0, :2] > 0.0).all()
        assert (occupied[:, 1] > 0.0).all()
        np.testing.assert_allclose(occupied.sum(2), 1.0)
    assert np.isfinite(idata["log_likelihood"]["x"]).all()
    for drawn in (predicted["posterior_predictive"]["x"], prior["prior_predictive"]["x"]):
        assert drawn.to_numpy()[..., 0].max() <= 1.0
        assert drawn.to_numpy()[..., 1].max() <= 3.0
    labels = dps.sample_labels(idata, model=model, random_seed=1)
    assert labels.shape == (1, 30, 5)


# --- missing entries ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "observed", "highest"),
    [
        (dps.Poisson(1.0, 1.0), CODES, np.inf),
        pytest.param(dps.Bernoulli(1.0, 1.0), BITS, 1, marks=pytest.mark.slow),
        pytest.param(dps.Categorical(1.0), CODES, 3, marks=pytest.mark.slow),
    ],
    ids=["Poisson", "Bernoulli", "Categorical"],
)
def test_missing_entries_are_whole_numbers(component: Any, observed: Any, highest: float) -> None:
    rows = observed.astype(float)
    rows[0, 0] = rows[3, 1] = rows[4, 0] = rows[4, 1] = np.nan
    idata = sampled(declared(component, rows))
    imputed = idata["posterior"]["x_unobserved"].to_numpy()
    assert imputed.shape == (1, 30, 4)
    assert (imputed == np.floor(imputed)).all()
    assert imputed.min() == 0.0
    assert imputed.max() <= highest


# --- bad input ----------------------------------------------------------------------------

COUNTS, FAIR = dps.Poisson(1.0, 1.0), dps.Bernoulli(1.0, 1.0)
BAD_INPUT = {
    "negative count": (COUNTS, CODES - 1, "observed has -1 in column 0; give counts"),
    "half a count": (COUNTS, CODES / 2, "observed has 0.5 in column 0"),
    "two in a bit": (FAIR, CODES, "observed has 2 in column 1; give 0 and 1"),
    "missing code": (dps.Categorical(1.0), CODES - 1, "observed has -1 in .* and NaN where"),
    "half a code": (dps.Categorical(1.0), CODES / 2, "observed has 0.5 in column 0"),
    "code too high": (dps.Categorical(np.ones((2, 3))), CODES, "has 3 in column 1; .* a0"),
    "huge code": (dps.Categorical(1.0), CODES * 10**6, "without gaps"),
    "text": (dps.Categorical(1.0), [["a", "b"]], r"encode categories first, .*\.cat\.codes"),
    "categories": (
        dps.Categorical(1.0),
        pd.DataFrame({"a": ["u", "v"]}).astype("category"),
        r"encode categories first, .*\.cat\.codes",
    ),
    "single column": (COUNTS, CODES[:, 0], r"give observed\[:, None\]"),
    "latent": (COUNTS, None, "rows of Poisson cannot be latent"),
    "a0 of rates": (dps.Poisson(0.0, 1.0), CODES, "a0=0.0 must be positive"),
    "b0": (dps.Bernoulli(1.0, [1.0, -1.0]), BITS, "b0=.* must be positive"),
    "b0 length": (dps.Bernoulli(1.0, np.ones(3)), BITS, r"b0 has shape \(3,\)"),
    "a0": (dps.Categorical(-1.0), CODES, "a0=-1.0 must be positive"),
    "zero between": (dps.Categorical([[1.0, 1.0], [1.0, 0.0, 1.0, 1.0]]), CODES, "a0=.*positive"),
    "a0 of three columns": (dps.Categorical(np.ones((3, 4))), CODES, r"a0 has shape \(3, 4\)"),
    "a0 of three axes": (dps.Categorical(np.ones((1, 2, 4))), CODES, "a0 has shape"),
    "a0 of nothing": (dps.Categorical([[], []]), CODES, "a0 has shape"),
    "a0 of text": (dps.Categorical("one"), CODES, "a0='one'"),
}


@pytest.mark.parametrize("fault", BAD_INPUT)
def test_bad_input_is_one_sentence(fault: str) -> None:
    component, observed, message = BAD_INPUT[fault]
    with pm.Model() as model, pytest.raises(ValueError, match=message) as raised:
        dps.DPMixture(
            "x", 1.0, component, observed=observed, shape=(5, 2) if fault == "latent" else None
        )
    assert str(raised.value).startswith("x: ")
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)
    assert not model.named_vars


def test_a_mean_of_other_variables_is_refused() -> None:
    with pm.Model():
        mu = pm.Normal("mu")
        with pytest.raises(ValueError, match="less a mean, of which Poisson is no model"):
            dps.DPMixture("x", 1.0, COUNTS, observed=CODES - mu)


@pytest.mark.slow
def test_new_data_are_checked_too() -> None:
    with pm.Model() as model:
        data = pm.Data("data", CODES)
        dps.DPMixture("x", 1.0, dps.Categorical(1.0), observed=data)
    assert (sampled(model)["posterior"]["x_n_clusters"] > 0).all()
    later = CODES.copy()
    later[3, 1] = 4
    with model:
        pm.set_data({"data": later})
    with pytest.raises(ValueError, match="x: observed has 4 in column 1; give codes below"):
        sampled(model)


def test_faults_of_data_are_found_by_from_data() -> None:
    for family in (dps.Poisson, dps.Bernoulli, dps.Categorical):
        with pytest.raises(ValueError, match="observed has -1 in column 0"):
            family.from_data(CODES - 1)


# --- defaults -----------------------------------------------------------------------------


def test_defaults_are_those_documented() -> None:
    rows = np.array([[0, 0, 2], [0, 1, 4], [0, 2, 6.0]])
    found = dps.Poisson.from_data(rows).hyperparameters
    assert found["a0"] == 1.0
    np.testing.assert_allclose(found["b0"], [6.0, 1.0, 0.25])
    assert dps.Bernoulli.from_data(BITS).hyperparameters == {"a0": 1.0, "b0": 1.0}
    categories = dps.Categorical.from_data(CODES)
    assert categories.hyperparameters == {"a0": 1.0}
    np.testing.assert_array_equal(categories.n_categories, [2, 4])


@pytest.mark.slow
def test_extreme_parameters_survive_the_trace() -> None:
    """Weights so small that probabilities round to 0 and 1, and rates to 0."""
    rows = np.repeat([[0, 1], [1, 1]], 4, axis=0)
    for component in (dps.Poisson(1e-3, 1.0), dps.Bernoulli(1e-3, 1e-3), dps.Categorical(1e-3)):
        model = declared(component, rows)
        idata = sampled(model)
        with model:
            pm.compute_log_likelihood(idata, progressbar=False)
        assert np.isfinite(idata["log_likelihood"]["x"]).all()
        assert dps.sample_labels(idata, model=model, random_seed=1).shape == (1, 30, 8)


def test_model_is_pickled_with_what_was_read_off_the_data() -> None:
    model = cloudpickle.loads(cloudpickle.dumps(declared(dps.Categorical(1.0), CODES)))
    np.testing.assert_array_equal(find_mixtures(model)["x"].component.n_categories, [2, 4])
