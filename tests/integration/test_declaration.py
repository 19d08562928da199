"""Declaring a mixture: the model that results, and one sentence for everything that is wrong."""

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from pymc.model.transform.optimization import freeze_dims_and_data
from pytensor.compile.mode import get_mode
from scipy import sparse

import pymc_dpsplit as dps
from pymc_dpsplit.variables import find_mixtures, is_owned
from pymc_dpsplit.variables.log_density import MixtureLogDensity

ROWS = np.random.default_rng(0).normal(size=(12, 2))
SCALARS = ROWS[:, 0]
MV = {"mu0": [0.0, 0.0], "kappa0": 0.1, "nu0": 4.0, "psi0": np.eye(2)}
NORMAL = dps.Normal(0.0, 0.1, 2.0, 1.0)
COORDS = {"obs_id": range(12), "feature": ["a", "b"]}


def declared(**changes):
    """A model with a mixture of vectors and its alpha."""
    with pm.Model(coords=COORDS) as model:
        alpha = pm.Gamma("alpha", 2, 4)
        arguments = {"component": dps.MvNormal(**MV), "observed": ROWS, **changes}
        dps.DPMixture("x", alpha, **arguments)
    return model


# --- the model ----------------------------------------------------------------------------


def test_variables_and_dims():
    model = declared(dims=("obs_id", "feature"))
    names = ["alpha", "x_n_clusters", "x_new_weight", "x_weights", "x_mu", "x_cov"]
    assert [rv.name for rv in model.free_RVs] == names
    assert model.named_vars_to_dims["x_mu"] == ("x_cluster", "feature")
    assert model.named_vars_to_dims["x_cov"] == ("x_cluster", "feature", "feature_bis")
    assert model.coords["feature_bis"] == ("a", "b")
    assert len(model.coords["x_cluster"]) == 12
    assert [is_owned(rv) for rv in model.free_RVs] == [False] + [True] * 5


def test_feature_dims_without_dims():
    model = declared()
    assert model.named_vars_to_dims["x_cov"] == ("x_cluster", "x_feature", "x_feature_bis")


def test_scalar_family_has_cluster_dim_only():
    model = declared(component=NORMAL, observed=SCALARS, dims="obs_id", max_clusters=5)
    assert model.named_vars_to_dims["x_mu"] == ("x_cluster",)
    assert model["x_mu"].type.shape == (5,)


@pytest.mark.parametrize(("n_features", "expected"), [(1, 64), (20, 64), (50, 12), (60, 10)])
def test_default_max_clusters_fits_a_budget(n_features, expected):
    data = np.random.default_rng(0).normal(size=(100, n_features))
    model = declared(component=dps.MvNormal.from_data(data), observed=data)
    assert find_mixtures(model)["x"].max_clusters == expected


def test_initial_point_has_no_clusters_yet():
    model = declared()
    point = model.initial_point()
    assert point["x_n_clusters"] == 0
    assert point["x_new_weight_log__"] == 0.0
    assert not point["x_weights"].any()
    np.testing.assert_allclose(point["x_mu"][0], [0.0, 0.0])
    assert np.isnan(point["x_cov"][1:]).all()
    assert np.isfinite(model.compile_logp()(point))


@pytest.mark.parametrize(
    "observed",
    [
        ROWS.tolist(),
        pd.DataFrame(ROWS, columns=["a", "b"]),
        pl.DataFrame(ROWS, schema=["a", "b"]),
        xr.DataArray(ROWS, dims=("obs_id", "feature")),
        np.ma.masked_array(ROWS, np.zeros_like(ROWS, dtype=bool)),
        np.asfortranarray(ROWS),
    ],
    ids=["list", "pandas", "polars", "xarray", "masked", "fortran"],
)
def test_containers_of_data_are_equal(observed):
    mixture = find_mixtures(declared(observed=observed))["x"]
    np.testing.assert_array_equal(mixture.data.eval(), ROWS)


def test_series_and_integers():
    series = pd.Series(np.arange(12), name="count")
    mixture = find_mixtures(declared(component=NORMAL, observed=series))["x"]
    np.testing.assert_array_equal(mixture.data.eval(), np.arange(12.0))


def test_data_container_can_be_changed():
    with pm.Model() as model:
        data = pm.Data("data", ROWS)
        dps.DPMixture("x", 1.0, dps.MvNormal(**MV), observed=data)
        pm.set_data({"data": ROWS[:3]})
    assert find_mixtures(model)["x"].data.eval().shape == (3, 2)
    assert model["x"].shape.eval().tolist() == [3, 2]


def test_data_changed_to_nan_is_reported():
    with pm.Model() as model:
        data = pm.Data("data", ROWS)
        dps.DPMixture("x", 1.0, dps.MvNormal(**MV), observed=data)
        pm.set_data({"data": ROWS * np.nan})
    with pytest.raises(ValueError, match="x: observed has 24 NaN"):
        dps.DPSplitMerge(model=model)


REPLACED = {
    "too large": (
        ROWS * 1e200,
        dps.MvNormal(**MV),
        r"x: observed has a spread of .* in column 0, ",
    ),
    "no counts": (
        ROWS - 0.5,
        dps.Poisson(1.0, 1.0),
        r"x: observed has .* in column 0; give counts",
    ),
}


@pytest.mark.parametrize("case", REPLACED)
def test_replaced_data_are_checked_as_those_of_the_declaration(case):
    later, component, message = REPLACED[case]
    before = np.abs(np.rint(ROWS))
    groups = np.arange(len(ROWS)) % 2
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, component, observed=pm.Data("data", before))
    with pm.Model() as grouped:
        data = pm.Data("data", before)
        dps.HDPMixture("x", 1.0, 1.0, component, groups=groups, observed=data)
    for of, step in ((model, dps.DPSplitMerge), (grouped, dps.HDPMixtureStep)):
        with of:
            step()
            pm.set_data({"data": later})
            with pytest.raises(ValueError, match=message):
                step()


@pytest.mark.parametrize(("as_data", "n_checks"), [(np.array, 1), (np.float32, 1), (pm.Data, 2)])
@pytest.mark.parametrize("rows", [SCALARS, ROWS], ids=["scalars", "vectors"])
def test_data_are_checked_once_unless_they_may_be_replaced(monkeypatch, rows, as_data, n_checks):
    checked, component = [], dps.Normal if rows.ndim == 1 else dps.MvNormal
    monkeypatch.setattr(
        component, "validate_rows", lambda self, rows: checked.append(rows.shape) or self
    )
    with pm.Model() as model:
        data = as_data("data", rows) if as_data is pm.Data else as_data(rows)
        dps.DPMixture("x", 1.0, component.from_data(rows), observed=data)
    step = dps.DPSplitMerge(model=model)
    assert checked == [(12, rows.size // 12)] * n_checks
    seen = step._reader.evaluator.read(model.initial_point()).rows
    np.testing.assert_array_equal(seen, np.asarray(rows, seen.dtype).reshape(12, -1))


def test_declared_data_are_a_copy():
    data = ROWS.copy()
    mixture = find_mixtures(declared(observed=data))["x"]
    data[:] = 0.0
    np.testing.assert_array_equal(mixture.data.eval(), ROWS)


@pytest.mark.slow
def test_two_mixtures_and_a_nested_model():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 4)
        dps.DPMixture("x", alpha, dps.MvNormal(**MV), observed=ROWS)
        with pm.Model(name="inner"):
            dps.DPMixture("x", 2 * alpha, NORMAL, observed=SCALARS)
    assert list(find_mixtures(model)) == ["x", "inner::x"]
    assert np.isfinite(model.compile_logp()(model.initial_point()))


# --- log-probability ----------------------------------------------------------------------


def test_alpha_sees_the_posterior_of_the_measure():
    model = declared()
    alpha = model["alpha"]
    mixture = find_mixtures(model)["x"]
    point = model.initial_point()
    terms = model.compile_fn(
        model.logp([mixture.measure["n_clusters"], mixture.measure["new_weight"]], sum=False),
        inputs=model.value_vars,
        on_unused_input="ignore",
    )
    # So small that the weight itself is zero in double precision.
    log_rest = -1e5
    measure = mixture.point_values(
        3, np.array([0.5, 0.3, 0.2]), log_rest, {"mu": np.zeros((3, 2)), "cov": np.ones((3, 2, 2))}
    )
    log_n, log_w = terms({**point, **measure})
    value = np.exp(point[model.rvs_to_values[alpha].name])
    np.testing.assert_allclose(log_n, 3 * np.log(value))
    # The transform adds its Jacobian, which does not depend on alpha.
    np.testing.assert_allclose(log_w - log_rest, (value - 1.0) * log_rest)


def alpha_function(model, mode=None):
    """What a gradient step for alpha compiles: everything else is shared."""
    alpha = model.rvs_to_values[model["alpha"]]
    return model.logp_dlogp_function(
        [alpha], ravel_inputs=True, initial_point=model.initial_point(), mode=mode
    )


def evaluates_density(function):
    nodes = function._pytensor_function.maker.fgraph.apply_nodes
    return any(isinstance(node.op, MixtureLogDensity) for node in nodes)


def test_step_for_alpha_does_not_evaluate_the_data():
    model = declared()
    function = alpha_function(model)
    assert not evaluates_density(function)
    function.set_extra_values(model.initial_point())
    at = [function(np.array([v])) for v in (-1.0, 0.5)]
    full = model.compile_logp()
    point = model.initial_point()
    expected = [full({**point, "alpha_log__": np.array(v)}) for v in (-1.0, 0.5)]
    np.testing.assert_allclose(at[1][0] - at[0][0], expected[1] - expected[0], rtol=1e-10)
    slope = model.compile_dlogp([model["alpha"]])
    np.testing.assert_allclose(at[0][1], slope({**point, "alpha_log__": np.array(-1.0)}))


@pytest.mark.control
def test_without_the_rewrite_the_data_are_evaluated():
    mode = get_mode(None).excluding("dpsplit_choose_forms")
    assert evaluates_density(alpha_function(declared(), mode))


def test_hyperparameters_that_vary_get_the_same_density_and_a_gradient():
    op = find_mixtures(declared())["x"].measure["weights"].owner.op
    base = pt.scalar("kappa0")
    fixed = [pt.constant(np.asarray(MV[name], dtype=float)) for name in ("mu0", "nu0", "psi0")]
    constants = [fixed[0], pt.constant(0.7), *fixed[1:]]
    mu, cov = np.full((12, 2), np.nan), np.full((12, 2, 2), np.nan)
    mu[:2], cov[:2] = ROWS[:2], np.eye(2) + 0.2
    values = [pt.constant(v) for v in (np.int64(2), 0.1, np.zeros(12), mu, cov)]

    def log_base(hyperparameters):
        law = (pt.constant(number, dtype="float64") for number in (0.0, 1.0))
        node = op.make_node(pt.random.shared_rng(seed=0), *law, *hyperparameters)
        return pm.logprob.abstract._logprob(op, values, *node.inputs)[3]

    varying = log_base([fixed[0], base, *fixed[1:]])
    gradient = pt.grad(varying, base).eval({base: 0.7})
    np.testing.assert_allclose(varying.eval({base: 0.7}), log_base(constants).eval())
    squared = sum(m @ np.linalg.inv(cov[0]) @ m for m in ROWS[:2])
    np.testing.assert_allclose(gradient, 2 / 0.7 - 0.5 * squared)


# --- what is done to models afterwards ----------------------------------------------------


@pytest.mark.slow
def test_model_survives_transformations():
    model = declared(dims=("obs_id", "feature"))
    point = model.initial_point()
    expected = model.compile_logp()(point)
    for copy in (cloudpickle.loads(cloudpickle.dumps(model)), freeze_dims_and_data(model)):
        np.testing.assert_allclose(copy.compile_logp()(point), expected)
        assert find_mixtures(copy)["x"].data.eval().shape == (12, 2)


def test_do_replaces_alpha():
    fixed = pm.do(declared(), {"alpha": 2.5})
    assert find_mixtures(fixed)["x"].strength.eval() == 2.5


@pytest.mark.slow
def test_do_on_the_whole_measure_keeps_the_density():
    model = declared()
    point = model.initial_point()
    expected = model.point_logps(point)["x"]
    values = {"x_new_weight": np.exp(point["x_new_weight_log__"])}
    for name in ("x_n_clusters", "x_weights", "x_mu", "x_cov"):
        values[name] = point[name]
    assert pm.do(model, values).point_logps()["x"] == expected


def test_model_is_printed_and_drawn():
    model = declared()
    assert "x ~ DPMixture(x_n_clusters, x_new_weight, x_weights, x_mu, x_cov)" in model.str_repr()
    assert "alpha -> x_n_clusters" in model.to_graphviz().source


# --- bad input ----------------------------------------------------------------------------


def bad(observed=ROWS, **changes):
    return {"observed": observed, **changes}


def with_nan(value):
    rows = ROWS.copy()
    rows[1, 1] = value
    return rows


BAD_INPUT = {
    "all NaN": (bad(ROWS * np.nan), "no entry that is not missing"),
    "infinite": (bad(with_nan(np.inf)), "infinite"),
    "one dimension too few": (bad(SCALARS), r"shape \(12,\)"),
    "one too many": (bad(ROWS[None]), r"shape \(1, 12, 2\)"),
    "no rows": (bad(ROWS[:0]), "empty"),
    "no columns": (bad(ROWS[:, :0]), "empty"),
    "strings": (bad([["a", "b"]]), "not numeric"),
    "objects": (bad(np.array([[{}, []]], dtype=object)), "not numbers"),
    "missing": (bad(None), "observed is missing"),
    "sparse": (bad(sparse.csr_array(ROWS)), "sparse"),
    "symbolic": (bad(pt.matrix("free")), "observed=free"),
    "alpha zero": (bad(alpha=0.0), "alpha=0.0 must be positive"),
    "alpha negative": (bad(alpha=-1), "alpha=-1 must be positive"),
    "alpha NaN": (bad(alpha=np.nan), "alpha=nan"),
    "alpha infinite": (bad(alpha=np.inf), "alpha=inf"),
    "alpha string": (bad(alpha="1.0"), "alpha='1.0' is a string"),
    "alpha None": (bad(alpha=None), "alpha=None"),
    "alpha vector": (bad(alpha=[1.0, 2.0]), r"alpha has shape \(2,\)"),
    "alpha symbolic vector": (bad(alpha=pt.as_tensor([1.0, 2.0])), "give a scalar"),
    "alpha symbolic negative": (bad(alpha=pt.as_tensor(-1.0)), "alpha=.* must be positive"),
    "alpha unregistered": (bad(alpha=pm.Gamma.dist(2, 4)), "not in this model"),
    "kappa0": (bad(component=dps.MvNormal(**{**MV, "kappa0": 0.0})), "kappa0=0.0"),
    "nu0": (bad(component=dps.MvNormal(**{**MV, "nu0": 1.0})), "nu0=1"),
    "psi0": (bad(component=dps.MvNormal(**{**MV, "psi0": -np.eye(2)})), "psi0"),
    "mu0 length": (bad(component=dps.MvNormal(**{**MV, "mu0": [0, 0, 0]})), "mu0"),
    "mu0 variable": (bad(component=dps.MvNormal(**{**MV, "mu0": pt.zeros(3)})), r"shape \(2,\)"),
    "component class": (bad(component=dps.MvNormal), "is the class MvNormal"),
    "component other": (bad(component="normal"), "component='normal'"),
    "dims too few": (bad(dims="obs_id"), "give two names"),
    "dims too many": (bad(dims=("obs_id", "feature", "more")), "give two names"),
    "dims of numbers": (bad(dims=(1, 2)), "give two names"),
    "dims number": (bad(dims=1), "give two names"),
    "dims twice": (bad(dims=("obs_id", "obs_id")), "twice"),
    "dims length": (bad(ROWS[:5], dims=("obs_id", "feature")), "'obs_id' has length 12"),
    "dims reserved": (bad(dims=("chain", "feature")), "'chain', which is taken"),
    "shape": (bad(shape=(3, 2)), r"shape=\(3, 2\) differs"),
    "max_clusters zero": (bad(max_clusters=0), "max_clusters=0"),
    "set of data": (bad({1.0, 2.0}), "observed is a set, whose entries have no order"),
    "Dataset of data": (bad(xr.Dataset({"a": ("i", SCALARS)})), "observed is a Dataset"),
    "alpha free": (bad(alpha=pt.scalar("q")), "alpha depends on q, which has no value"),
    "alpha complex": (bad(alpha=pt.as_tensor(1j)), "is of type complex128"),
    "alpha of no number": (bad(alpha=pt.random.shared_rng(seed=1)), "not of real numbers"),
    "mu0 free": (bad(component=dps.MvNormal(**{**MV, "mu0": pt.vector("q")})), "mu0 depends on q"),
    "mu0 complex": (bad(component=dps.MvNormal(**{**MV, "mu0": pt.zeros(2) * 1j})), "complex128"),
    "mu0 ragged": (bad(component=dps.MvNormal(**{**MV, "mu0": [[1], [1, 2]]})), "mu0=.* is ragged"),
    "n of other columns": (bad(component=dps.Binomial([1, 2, 3], 1, 1)), "n has shape"),
    "n ragged": (bad(component=dps.Binomial([[1], [2, 3]], 1, 1)), "n=.* is ragged"),
    "shape ragged": (bad(shape=[[1], [2, 3]]), r"shape=.* differs"),
    "shape matrix": (bad(shape=np.ones((2, 2))), r"shape=.* differs"),
    "latent shape ragged": (bad(None, shape=[[1], [2, 3]]), "does not suit a latent mixture"),
    "latent shape of 400 digits": (bad(None, shape=(10**400, 2)), "does not suit a latent"),
    "more rows than labels": (bad(None, shape=(2**31, 2)), "does not suit a latent mixture"),
    "latent dims of lists": (bad(None, dims=[["a"], ["b"]]), "which is not a dimension"),
    "dims of a matrix": (bad(dims=np.ones((2, 2))), "give two names"),
    "dims of a variable": (bad(dims=pt.vector("q")), "give two names"),
    "dims of a model": (bad(dims=pm.Model()), "give two names"),
    "dims of 5000 digits": (bad(dims=10**5000), "give two names"),
    "max_clusters list": (bad(max_clusters=[1, 2]), "max_clusters=.* is not a positive"),
    "max_clusters float": (bad(max_clusters=2.5), "max_clusters=2.5"),
}


@pytest.mark.parametrize("fault", BAD_INPUT)
def test_bad_input_is_one_sentence(fault):
    changes, message = BAD_INPUT[fault]
    arguments = {"alpha": 1.0, "component": dps.MvNormal(**MV), **changes}
    with pm.Model(coords=COORDS) as model, pytest.raises(ValueError, match=message) as raised:
        dps.DPMixture("x", **arguments)
    text = str(raised.value)
    assert text.startswith("x: ")
    assert text.endswith(".")
    assert "\n" not in text
    assert "; " in text  # the remedy
    assert not model.named_vars


@pytest.mark.parametrize("huge", [13, 10**9, 10**400])
def test_no_more_rows_are_kept_than_there_are_observations(huge):
    observed = declared(max_clusters=huge)
    assert observed["x_mu"].type.shape == (12, 2)
    assert len(observed.coords["x_cluster"]) == 12
    latent = declared(observed=None, shape=(7, 2), max_clusters=huge)
    assert latent["x_mu"].type.shape == (7, 2)
    with pm.Model() as errors:
        mean = pm.Normal("mean")
        dps.DPMixture("x", 1.0, NORMAL, observed=pm.Data("y", SCALARS) - mean, max_clusters=huge)
    assert errors["x_mu"].type.shape == (12,)


def test_rows_are_kept_for_data_that_will_grow():
    with pm.Model() as model:
        data = pm.Data("data", ROWS)
        dps.DPMixture("x", 1.0, dps.MvNormal(**MV), observed=data, max_clusters=40)
        message = "max_clusters=1000000000 rows take more than 256 MiB per draw; give at most"
        with pytest.raises(ValueError, match=message):
            dps.DPMixture("y", 1.0, dps.MvNormal(**MV), observed=data, max_clusters=10**9)
    assert model["x_mu"].type.shape == (40, 2)


def test_dims_are_read_once():
    names = (dim for dim in ("obs_id", "feature"))
    assert declared(observed=None, dims=names)["x"].type.ndim == 2


def test_name_must_be_a_free_string():
    with pm.Model():
        pm.Normal("y_mu")
        dps.DPMixture("x", 1.0, NORMAL, observed=SCALARS)
        for name, message in [(3, "name=3"), ("", "name=''"), ("x", "'x'"), ("y", "'y_mu'")]:
            with pytest.raises(ValueError, match=message):
                dps.DPMixture(name, 1.0, NORMAL, observed=SCALARS)


def test_outside_a_model():
    with pytest.raises(ValueError, match=r"with pm\.Model"):
        dps.DPMixture("x", 1.0, NORMAL, observed=SCALARS)


DECLARED_AS = {
    "DPMixture": lambda name: dps.DPMixture(name, 1.0, NORMAL, observed=SCALARS),
    "latent": lambda name: dps.DPMixture(name, 1.0, NORMAL, shape=12),
    "FiniteMixture": lambda name: dps.FiniteMixture(
        name, 1.0, NORMAL, n_components=3, observed=SCALARS
    ),
    "MFMixture": lambda name: dps.MFMixture(
        name, 1.0, NORMAL, n_components=pm.Geometric.dist(0.3), observed=SCALARS
    ),
    "HDPMixture": lambda name: dps.HDPMixture(
        name, 1.0, 1.0, NORMAL, groups=np.arange(12) % 2, observed=SCALARS
    ),
    "HDPTopics": lambda name: dps.HDPTopics(name, 1.0, 1.0, 0.1, observed=[[3, 1, 0], [0, 0, 4]]),
}


@pytest.mark.parametrize("name", ["chain", "draw"])
@pytest.mark.parametrize("kind", DECLARED_AS)
def test_names_of_dimensions_of_every_trace_are_taken(kind, name):
    with pm.Model() as model:
        with pytest.raises(ValueError, match=f"^{name}: name='{name}' is taken: .*; choose anoth"):
            DECLARED_AS[kind](name)
        assert not model.named_vars
    with pm.Model(name="part"):
        DECLARED_AS[kind](name)
