"""`finite_mixture`: its prior is the base measure of the family, its density that of the family."""

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.blocking import DictToArrayBijection
from pymc.initial_point import make_initial_point_fn
from scipy import stats
from scipy.special import gammaln

import pymc_dpsplit as dps
from pymc_dpsplit.finite.finite_mixture import FORMS
from pymc_dpsplit.finite.start import initial_groups
from pymc_dpsplit.finite.started import Start, StartedGamma
from pymc_dpsplit.variables.log_density import log_mixture_density
from tests.support.families import FAMILIES, component_of, dataset_of
from tests.support.quick import is_quick_family, slow_unless
from tests.support.statistics import LEVEL

N_FEATURES = {"Normal": 1, "NormalKnownSigma": 1, "Bernoulli": 3, "Categorical": 3}
WITH_A_FORM = [name for name, row in FAMILIES.items() if row.component in FORMS]
CASES = [(name, kind) for name in WITH_A_FORM for kind in ("dirichlet", "stick")]
ALPHA = 0.7
# Nothing is worth compiling here.
MODE = "FAST_COMPILE"


def declare(family, kind="dirichlet", n_components=3, alpha=ALPHA):
    n_features = N_FEATURES.get(family, 2)
    component, rows = component_of(family, n_features), dataset_of(family, "separated", n_features)
    with pm.Model() as model:
        dps.finite_mixture(
            "x",
            alpha,
            component,
            n_components=n_components,
            observed=rows if component.row_ndim else rows[:, 0],
            weights=kind,
        )
    return model, component.validate_rows(rows), rows


def measure_at(model, component):
    """Weights and parameters as a function of the unconstrained point."""
    names = ["weights", *component.parameters]
    graphs = model.replace_rvs_by_values([model[f"x_{name}"] for name in names])
    evaluate = model.compile_fn(graphs, inputs=model.value_vars, mode=MODE)
    return lambda point: dict(zip(names, evaluate(point), strict=True))


def free_entries(measure):
    """Coordinates of weights and parameters: those that determine the others."""
    parts = [measure["weights"][:-1]]
    for name, value in measure.items():
        if name == "cov":
            value = value[:, *np.tril_indices(value.shape[-1])]
        elif name == "p" and value.ndim == 3:
            last = np.count_nonzero(value, axis=2, keepdims=True) - 1
            value = value[(value > 0) & (np.arange(value.shape[2]) < last)]
        if name != "weights":
            parts.append(np.ravel(value))
    return np.concatenate(parts)


def log_weights_density(weights, kind, alpha):
    n = len(weights)
    if kind == "dirichlet":
        share = alpha / n
        return gammaln(alpha) - n * gammaln(share) + (share - 1) * np.log(weights).sum()
    left = 1.0 - np.concatenate([[0.0], np.cumsum(weights[:-1])])[: n - 1]
    return (stats.beta.logpdf(weights[:-1] / left, 1, alpha) - np.log(left)).sum()


def log_prior(model, component, kind, hyperparameters, n_features):
    """Log prior of an unconstrained point, by the model and by the family."""
    values = component.check(hyperparameters, n_features)
    rng = np.random.default_rng(5)
    start = DictToArrayBijection.map(model.initial_point())
    q = DictToArrayBijection.map(model.initial_point()).data + 0.3 * rng.normal(
        size=len(start.data)
    )

    def as_point(vector):
        return DictToArrayBijection.rmap(start._replace(data=vector))

    at = measure_at(model, component)
    steps = 1e-5 * np.eye(len(q))
    jacobian = [
        (free_entries(at(as_point(q + h))) - free_entries(at(as_point(q - h)))) / 2e-5
        for h in steps
    ]
    measure = at(as_point(q))
    parameters = {name: measure[name] for name in component.parameters}
    base = component.log_base(component.graph_parameters(parameters), values, pt)
    expected = (
        np.linalg.slogdet(np.array(jacobian))[1]
        + pytensor.function([], base, mode=MODE)().sum()
        + log_weights_density(measure["weights"], kind, ALPHA)
    )
    log_p = model.compile_logp(vars=model.free_RVs, mode=MODE)(as_point(q))
    return float(log_p), float(expected)


def _is_quick(case):
    return is_quick_family(case[0])


@pytest.mark.parametrize(("family", "kind"), slow_unless(_is_quick, CASES))
def test_prior_is_the_base_measure(family, kind):
    model, component, rows = declare(family, kind)
    found, expected = log_prior(model, component, kind, component.hyperparameters, rows.shape[1])
    assert np.isclose(found, expected, rtol=1e-6, atol=1e-5)


@pytest.mark.control
def test_another_base_measure_is_caught():
    model, component, rows = declare("MvNormal")
    hyperparameters = component.hyperparameters
    wrong = hyperparameters | {"nu0": hyperparameters["nu0"] + 1.0}
    found, expected = log_prior(model, component, "dirichlet", wrong, rows.shape[1])
    assert not np.isclose(found, expected, rtol=1e-6, atol=1e-2)


def two_sample_p_value(component, hyperparameters, n_features, drawn):
    values = component.check(hyperparameters, n_features)
    size = len(next(iter(drawn.values())))
    other = component.draw_base(np.random.default_rng(3), values, size)
    p_values = []
    for name, value in drawn.items():
        columns = value.reshape(size, -1).T, other[name].reshape(size, -1).T
        p_values += [stats.ks_2samp(*pair).pvalue for pair in zip(*columns, strict=True)]
    return min(p_values) * len(p_values)


@pytest.mark.slow
def test_forward_draws_are_of_the_base_measure():
    model, component, rows = declare("MvNormal")
    with model:
        prior = pm.sample_prior_predictive(3000, random_seed=4, compile_kwargs={"mode": MODE})
    drawn = {name: prior["prior"][f"x_{name}"].values[0, :, 1] for name in ("mu", "cov")}
    right = component.hyperparameters
    assert two_sample_p_value(component, right, 2, drawn) > LEVEL
    wrong = right | {"kappa0": 0.5 * right["kappa0"]}
    assert two_sample_p_value(component, wrong, 2, drawn) < LEVEL  # the control
    assert prior["prior_predictive"]["x"].shape == (1, 3000, *rows.shape)
    share, rng = ALPHA / 3, np.random.default_rng(6)
    weights = prior["prior"]["x_weights"].values[0]
    for even, passes in ((share, True), (2 * share, False)):
        other = rng.dirichlet([even] * 3, len(weights))
        p_values = [stats.ks_2samp(*pair).pvalue for pair in zip(weights.T, other.T, strict=True)]
        assert (3 * min(p_values) > LEVEL) == passes


@pytest.mark.slow
@pytest.mark.parametrize("family", WITH_A_FORM)
def test_density_is_that_of_the_family(family):
    model, component, rows = declare(family)
    point = model.initial_point()
    measure = measure_at(model, component)(point)
    values = component.check(component.hyperparameters, rows.shape[1])
    parameters = {name: measure[name] for name in component.parameters}
    expected = log_mixture_density(component, rows, measure["weights"], 0.0, parameters, values)
    (found,) = model.compile_logp(vars=[model["x"]], sum=False, mode=MODE)(point)
    assert np.allclose(found, expected)


@pytest.mark.parametrize("scale", [1e-7, pytest.param(1e7, marks=pytest.mark.slow)])
def test_start_suits_data_of_any_scale(scale):
    rows = dataset_of("MvNormal", "separated", 2)
    densities = []
    for factor in (1.0, scale):
        data = factor * rows
        with pm.Model() as model:
            dps.finite_mixture(
                "x", 1.0, dps.MvNormal.from_data(data), n_components=3, observed=data
            )
        log_p = model.compile_logp(vars=[model["x"]], mode=MODE)(model.initial_point())
        densities.append(log_p + data.size * np.log(factor))
    assert np.isclose(*densities)


@pytest.mark.slow
@pytest.mark.parametrize("n_components", [1, 2, 9])
def test_start_is_finite_with_ties_and_more_components_than_rows(n_components):
    with pm.Model() as model:
        dps.finite_mixture(
            "x",
            1.0,
            dps.Normal(0, 0.1, 2, 1),
            n_components=n_components,
            observed=[1.0, 1.0, 1.0, 4.0],
        )
    point = model.initial_point()
    assert np.isfinite(model.compile_logp(mode=MODE)(point))
    assert np.isfinite(model.compile_dlogp(mode=MODE)(point)).all()


@pytest.mark.slow
def test_densities_are_finite_far_out():
    model, _, _ = declare("Bernoulli", n_components=4, alpha=0.1)
    point = {name: value + 0.0 for name, value in model.initial_point().items()}
    # Rewritten as for sampling, which is what makes it finite.
    mode = pytensor.compile.mode.Mode(linker="py", optimizer="fast_run")
    log_p, gradient = model.compile_logp(mode=mode), model.compile_dlogp(mode=mode)
    for extreme in (-200.0, 200.0):
        far = point | {"x_log_odds": np.full(3, extreme)}
        assert np.isfinite(log_p(far))
        assert np.isfinite(gradient(far)).all()


def untransformed_start(model):
    return make_initial_point_fn(model=model, return_transformed=False)(1)


@pytest.mark.parametrize("family", slow_unless(is_quick_family, WITH_A_FORM))
def test_start_is_that_of_the_form_also_in_models_that_pymc_makes_of_it(family):
    model, component, rows = declare(family)
    groups = initial_groups(rows, 3)
    form = FORMS[type(component)](component)
    if not form.is_ordered:
        groups = groups[np.argsort(-groups.sum(1), kind="stable")]
    values = component.check(component.hyperparameters, rows.shape[1])
    expected = form.start(rows, groups, values)
    assert {name.removeprefix("x_") for name in untransformed_start(model)} >= set(expected)
    fixed = {"x_log_odds": np.zeros(2)}
    for made in (model, model.copy(), pm.do(model, fixed), pm.observe(model, fixed)):
        point = untransformed_start(made)
        for name, value in expected.items():
            assert np.allclose(point[f"x_{name}"], value)
    assert np.array_equal(model.copy().initial_point()["x_log_odds"],
                          model.initial_point()["x_log_odds"])  # fmt: skip


def test_started_variables_differ_by_their_start_alone():
    props = pm.Gamma.rv_op._props_dict()
    one, same, other = (
        StartedGamma(start=Start.of(np.array(start)), **props) for start in ([1, 2], [1, 2], [2, 1])
    )
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    # Keys of compiled functions are made of it, and random draws do not depend on the start.
    assert repr(one.start) == repr(other.start)
    model, _, _ = declare("Normal")
    assert model["x_spread"].str_repr().startswith("x_spread ~ Gamma(2, ")
    assert isinstance(model["x_spread"].owner.op, pm.Gamma)


def test_log_likelihood_of_a_trace_is_that_of_the_family():
    model, component, rows = declare("Normal")
    with model:
        drawn = pm.sample_prior_predictive(4, random_seed=2, compile_kwargs={"mode": MODE})
    trace = az.from_dict({"posterior": {name: of.values for name, of in drawn["prior"].items()}})
    options = {"model": model, "progressbar": False, "compile_kwargs": {"mode": MODE}}
    pm.compute_log_likelihood(trace, **options)
    pm.stats.compute_log_prior(trace, **options)
    assert np.isfinite(trace["log_prior"]["x_spread"]).all()
    values = component.check(component.hyperparameters, 1)
    posterior = trace["posterior"]
    for i in range(4):
        parameters = {name: posterior[f"x_{name}"].values[0, i] for name in component.parameters}
        weights = posterior["x_weights"].values[0, i]
        expected = log_mixture_density(component, rows, weights, 0.0, parameters, values)
        assert np.allclose(trace["log_likelihood"]["x"].values[0, i], expected)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")
def test_loo_is_compared_with_that_of_a_dirichlet_process():
    rows = dataset_of("Normal", "separated", 1)[:, 0]
    options = {"tune": 100, "chains": 2, "random_seed": 1, "progressbar": False,
               "compute_convergence_checks": False, "quiet": True}  # fmt: skip
    with pm.Model():
        dps.finite_mixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), n_components=3, observed=rows)
        # Processes that start anew, which unpickle the variables.
        options |= {"nuts_sampler": "pymc"}
        with pytest.warns(FutureWarning, match="log_likelihood"):
            finite = pm.sample(
                draws=100, cores=2, mp_ctx="spawn", idata_kwargs={"log_likelihood": True}, **options
            )
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=rows)
        infinite = pm.sample(draws=100, cores=1, **options)
    scores = {"dp": dps.loo(infinite, model=model), "finite": az.loo(finite, pointwise=True)}
    found = az.compare(scores)
    assert sorted(found.index) == ["dp", "finite"]
    assert abs(scores["dp"].elpd - scores["finite"].elpd) < 5.0


def test_groups_are_disjoint_and_complete():
    rows = np.random.default_rng(1).normal(size=(50, 2))
    groups = initial_groups(rows, 4)
    assert groups.shape == (4, 50)
    assert (groups.sum(0) == 1).all()
    first = [rows[own, 0].mean() for own in groups]
    assert first == sorted(first)


@pytest.mark.slow
def test_dimensions_and_hyperpriors():
    rows = dataset_of("MvNormal", "separated", 2)
    with pm.Model(coords={"obs_id": range(len(rows)), "side": ["a", "b"]}) as model:
        alpha, scale = pm.Gamma("alpha", 2, 4), pm.Gamma("scale", 2, 2)
        component = dps.MvNormal([0.0, 0.0], pm.Gamma("kappa0", 2, 4), 4.0, scale * np.eye(2))
        dps.finite_mixture(
            "x", alpha, component, n_components=3, observed=rows, dims=("obs_id", "side")
        )
    assert model.named_vars_to_dims["x"] == ("obs_id", "side")
    assert model.named_vars_to_dims["x_cov"] == ("x_cluster", "side", "side_bis")
    point = model.initial_point()
    gradient = model.compile_dlogp(mode=MODE)(point)
    assert np.isfinite(gradient).all()
    assert (gradient != 0).all()


FAULTS = {
    "n_components": ({"n_components": 0}, "n_components=0 is not a positive integer"),
    "weights": ({"weights": "even"}, "weights='even' is not known"),
    "alpha": ({"alpha": -1.0}, "alpha=-1.0 must be positive"),
    "component": ({"component": dps.Normal}, "has no form for NUTS"),
    "missing": ({"observed": [0.0, np.nan]}, "observed has 1 NaN"),
    "dims": ({"dims": ("a", "b")}, "give one name"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault):
    changed, message = FAULTS[fault]
    given = {
        "alpha": 1.0,
        "component": dps.Normal(0, 0.1, 2, 1),
        "n_components": 2,
        "observed": [0.0, 1.0],
    }
    with pm.Model() as model, pytest.raises(ValueError, match=message):
        dps.finite_mixture("x", **{**given, **changed})
    assert not model.named_vars


def test_outside_a_model_is_named():
    with pytest.raises(ValueError, match="declared outside a model"):
        dps.finite_mixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), n_components=2, observed=[0.0])
