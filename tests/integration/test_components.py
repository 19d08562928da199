"""`Component`: densities, sampling and errors, for each kind of distribution."""

import copy
import logging
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.nonconjugate.compiled_prior import sum_log_density
from pymc_dpsplit.moves.nonconjugate.parameters import gather_columns
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.pymc_component.normal_inverse_gamma import normal_inverse_gamma
from tests.support.components import DECLARED, N_ROWS, draw_laplace

_SAMPLING: dict[str, Any] = {
    "draws": 20, "tune": 20, "chains": 1, "cores": 1, "random_seed": 1, "progressbar": False,
    "compute_convergence_checks": False,
}  # fmt: skip


def densities_by_address(component: Any, prior: Any, rows: np.ndarray, theta: Any) -> np.ndarray:
    """Log density of each row, as kernels find it."""
    n_columns = rows.shape[1] + prior.covariates.shape[1]
    block, out = np.empty(len(rows) * n_columns), np.empty(len(rows))
    gather_columns(prior, rows, np.arange(len(rows)), block)
    sum_log_density(prior, block, len(rows), theta, out)
    return out


def suitable(component: Any, prior: Any, rows: np.ndarray) -> np.ndarray:
    """Parameters (3, P), of those that fits start from, under which the rows are likeliest."""
    every = [densities_by_address(component, prior, rows, theta) for theta in prior.pilots]
    return prior.pilots[np.argsort(np.nan_to_num(every, nan=-1e9, neginf=-1e9).sum(1))[-3:]]


def reference_density(component: Any, parameters: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    """Log density of each row, as `pm.logp` evaluates it."""
    declaration = component._declaration
    shared = {name: np.asarray(v) for name, v in component.hyperparameters.items()}
    shared = {name: int(v) if name == "n" else v for name, v in shared.items()}
    made = declaration.make(**parameters, **shared, **declaration.covariates)
    value = rows if component.row_ndim else rows[:, 0]
    return pm.logp(made, value.astype(made.dtype)).eval()


def assert_same_density(found: np.ndarray, expected: np.ndarray) -> None:
    """Compare log densities, where PyTensor's two ways of evaluating them are both exact.

    Far out, as in log(1 + erf(x)) of a skew normal, one of them has lost its digits.
    """
    is_near = expected > -30.0
    assert is_near.any()
    assert_allclose(found[is_near], expected[is_near], rtol=1e-6)
    assert (found[~is_near] < -29.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", DECLARED)
def test_density_is_that_of_pymc_and_chain_runs(name: str) -> None:
    component, rows = DECLARED[name].make(), DECLARED[name].rows
    data = rows_of(rows, component.row_ndim)
    component = component.validate_rows(data)
    values = component.check(component.hyperparameters, data.shape[1])
    prior = component.prior(values, data.mean(axis=0))
    thetas = suitable(component, prior, data)
    params = np.column_stack([np.zeros(3), thetas])
    named = component.unpack(params, prior.shift)
    assert_allclose(component.pack(named, prior.shift), params, rtol=1e-6, atol=1e-9)
    for k in range(3):
        found = densities_by_address(component, prior, data, thetas[k])
        own = {key: value[k] for key, value in named.items()}
        assert_same_density(found, reference_density(component, own, data))
    target = sampler.Target(prior, data, dirichlet_process(1.0))
    rng = np.random.default_rng(1)
    state = sampler.start(target, rng)
    schedule = sampler.Schedule(5, 1.0, np.empty(0, np.int64))
    for form in ("greedy", "exact"):
        for _ in range(4):
            state, _ = sampler.advance(form, target, state, rng, schedule)
    assert_array_equal(np.bincount(state.labels), state.stats[:, 0])
    assert np.isfinite(state.stats).all()
    drawn = component.draw_rows(rng, named, np.arange(len(rows)) % 3)
    assert drawn.shape == rows.shape


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SkewNormal", "regression", "MvStudentT"])
def test_graphs_agree_with_kernels(name: str) -> None:
    component, rows = DECLARED[name].make(), DECLARED[name].rows
    data = rows_of(rows, component.row_ndim)
    values = component.check(component.hyperparameters, data.shape[1])
    prior = component.prior(values, data.mean(axis=0))
    thetas = suitable(component, prior, data)
    named = component.unpack(np.column_stack([np.zeros(3), thetas]), prior.shift)
    labels = np.arange(len(rows)) % 3
    at = {key: pt.as_tensor(value[labels]) for key, value in named.items()}
    found = component.log_density(pt.as_tensor(rows), at, pt).eval()
    every = [densities_by_address(component, prior, data, theta) for theta in thetas]
    assert_same_density(np.array(every)[labels, np.arange(len(rows))], found)


def test_base_density_is_that_of_the_arguments() -> None:
    component = DECLARED["StudentT"].make()
    named = {"mu": np.array([0.5, -1.0]), "sigma": np.array([1.0, 2.5])}
    expected = pm.logp(pm.Normal.dist(0.0, 3.0), named["mu"]).eval()
    expected = expected + pm.logp(pm.HalfNormal.dist(2.0), named["sigma"]).eval()
    values = component.check(component.hyperparameters, 1)
    assert_allclose(component.log_base(named, values, pt).eval(), expected)


@pytest.mark.slow
def test_prior_predictive_is_an_average_over_the_base_measure() -> None:
    component = dps.Component(pm.Laplace, mu=pm.Normal.dist(0.0, 1.0), b=1.0)
    x = np.array([[0.3], [2.0]])
    nodes = np.linspace(-9.0, 9.0, 4001)
    weights = np.exp(-0.5 * nodes**2) / np.sqrt(2.0 * np.pi) * (nodes[1] - nodes[0])
    exact = np.exp(-np.abs(x - nodes)) @ weights / 2.0
    values = component.check(component.hyperparameters, 1)
    found = np.exp(component.log_prior_predictive(x, values))
    # 4096 draws: five standard errors are some three percent here.
    assert_allclose(found, exact, rtol=0.04)


def sampled(name: str, **options: Any) -> tuple[Any, pm.Model]:
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, DECLARED[name].make(), observed=DECLARED[name].rows)
        return pm.sample(**{**_SAMPLING, **options}), model


@pytest.mark.slow
def test_trace_and_what_is_read_off_it() -> None:
    idata, model = sampled("regression")
    posterior = idata["posterior"]
    assert posterior["x_beta"].dims == ("chain", "draw", "x_cluster", "x_beta_dim_0")
    assert (posterior["x_sigma"].to_numpy()[~np.isnan(posterior["x_sigma"])] > 0).all()
    labels = dps.sample_labels(idata, model=model, random_seed=1)
    assert labels.shape == (1, 20, N_ROWS)
    pm.compute_log_likelihood(idata, model=model, progressbar=False)
    assert np.isfinite(idata["log_likelihood"]["x"]).all()
    with model:
        drawn = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False)
    assert drawn["posterior_predictive"]["x"].shape == (1, 20, N_ROWS)


@pytest.mark.slow
def test_same_seed_same_draws_for_threads_processes_and_pickles() -> None:
    once, _ = sampled("StudentT", chains=2)
    again, _ = sampled("StudentT", chains=2, cores=2, mp_ctx="spawn", dpsplit={"threads": 2})
    for name in once["posterior"].data_vars:
        assert_array_equal(once["posterior"][name], again["posterior"][name])


@pytest.mark.slow
def test_threads_share_a_sweep_without_changing_it() -> None:
    component, rng = DECLARED["StudentT"].make(), np.random.default_rng(4)
    rows = rng.normal(size=(9000, 1))
    target = sampler.Target(
        component.prior({"nu": np.array(4.0)}, np.zeros(1)),
        rows_of(rows, 1),
        dirichlet_process(1.0),
    )
    state, schedule = sampler.start(target, rng, 3), sampler.Schedule(2, 1.0, np.empty(0, np.int64))
    form = "exact"
    alone, _ = sampler.advance(form, target, state, np.random.default_rng(5), schedule)
    with ThreadPoolExecutor(2) as pool:
        shared, _ = sampler.advance(form, target, state, np.random.default_rng(5), schedule, pool)
    assert_array_equal(alone.labels, shared.labels)
    assert_array_equal(alone.stats, shared.stats)


@pytest.mark.compiled
def test_component_is_pickled_without_addresses() -> None:
    component = DECLARED["Censored"].make()
    component.prior({}, np.zeros(1))
    read = pickle.loads(cloudpickle.dumps(component))
    assert not read._made
    assert repr(read) == repr(component)
    assert read.prior({}, np.zeros(1)).widths == pytest.approx(
        component.prior({}, np.zeros(1)).widths
    )


def half_of(value: Any, mu: Any) -> Any:
    return -pt.abs(value - mu) / 2.0


def laplace_of(mu: Any, b: Any) -> Any:
    return pm.Laplace.dist(mu, b)


# Bounds and functions of the user are what pickle finds hardest.
PICKLED = {
    "class": lambda: dps.Component(
        pm.StudentT, nu=4, mu=pm.Uniform.dist(-9, 9), sigma=pm.HalfNormal.dist(1)
    ),
    "function": lambda: dps.Component(laplace_of, mu=pm.Normal.dist(0, 3), b=pm.Gamma.dist(2, 2)),
    "custom": lambda: dps.Component(pm.CustomDist, mu=pm.Normal.dist(0, 3), logp=half_of),
    "part": lambda: dps.Product(
        a=dps.Component(pm.Laplace, mu=pm.Normal.dist(0, 3), b=pm.HalfNormal.dist(1)),
        b=dps.Normal(0, 1, 2, 1),
    ),
}


@pytest.mark.compiled
@pytest.mark.parametrize("case", PICKLED)
def test_component_is_pickled_without_cloudpickle(case: str) -> None:
    rows = np.array([[0.5, 1.0], [-1.0, 2.0]])[:, : 2 if case == "part" else 1]
    component = PICKLED[case]().validate_rows(rows)
    read = pickle.loads(pickle.dumps(component))
    assert repr(read) == repr(component)
    values = component.check(component.hyperparameters, rows.shape[1])
    assert_array_equal(
        read.log_prior_predictive(rows, values), component.log_prior_predictive(rows, values)
    )


def test_components_that_share_graphs_do_so_after_pickling() -> None:
    component = PICKLED["class"]()
    first, second = pickle.loads(pickle.dumps((component, copy.copy(component))))
    assert first is not second
    assert first.graphs is second.graphs  # by which products know what they have compiled
    assert copy.copy(first.graphs).theta is first.graphs.theta


def test_component_of_a_lambda_is_named_by_pickle() -> None:
    component = dps.Component(lambda mu: pm.Normal.dist(mu, 1), mu=pm.Normal.dist(0, 3))
    with pytest.raises((pickle.PicklingError, AttributeError), match="<lambda>"):
        pickle.dumps(component)
    assert repr(pickle.loads(cloudpickle.dumps(component))) == repr(component)


@pytest.mark.slow
def test_shared_argument_may_be_a_variable() -> None:
    with pm.Model() as model:
        nu = pm.Gamma("nu", 4, 1)
        component = dps.Component(
            pm.StudentT, nu=nu, mu=pm.Normal.dist(0, 3), sigma=pm.HalfNormal.dist(1)
        )
        dps.DPMixture("x", 1.0, component, observed=DECLARED["StudentT"].rows)
        idata = pm.sample(**_SAMPLING)
    assert idata["posterior"]["x_labels"].shape == (1, 20, N_ROWS)
    assert idata["posterior"]["nu"].to_numpy().std() > 0
    pm.compute_log_likelihood(idata, model=model, progressbar=False)
    assert np.isfinite(idata["log_likelihood"]["x"]).all()


@pytest.mark.slow
def test_base_measure_may_hold_a_variable() -> None:
    with pm.Model() as model:
        centre = pm.Normal("centre", 0, 5)
        component = dps.Component(
            pm.StudentT, nu=4, mu=pm.Normal.dist(centre, 3), sigma=pm.HalfNormal.dist(1)
        )
        dps.DPMixture("x", 1.0, component, observed=DECLARED["StudentT"].rows)
        idata = pm.sample(**_SAMPLING)
    names = ["n_clusters", "new_weight", "weights", "mu", "sigma"]
    assert [rv.name for rv in model.free_RVs] == ["centre", *(f"x_{name}" for name in names)]
    assert "x_labels" not in idata["posterior"]
    assert idata["posterior"]["centre"].to_numpy().std() > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dist", "arguments", "family"),
    [
        (pm.Poisson, {"mu": lambda: pm.Gamma.dist(2.0, 0.5)}, "Poisson"),
        (pm.Bernoulli, {"p": lambda: pm.Beta.dist(2.0, 3.0)}, "Bernoulli"),
        (pm.Exponential, {"lam": lambda: pm.Gamma.dist(2.0, 0.5)}, "Exponential"),
        (pm.Categorical, {"p": lambda: pm.Dirichlet.dist([1.0, 2.0, 0.5])}, "Categorical"),
        (pm.Normal, {"mu": lambda: pm.Normal.dist(1.0, 2.0), "sigma": 0.5}, "NormalKnownSigma"),
    ],
)
def test_conjugate_pair_is_recognised(
    dist: Any, arguments: dict[str, Any], family: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {name: of() if callable(of) else of for name, of in arguments.items()}
    with caplog.at_level(logging.INFO, logger="pymc.dpsplit"):
        component = dps.Component(dist, **given)
    assert family in repr(component)
    assert family in caplog.text
    name, rng = next(iter(arguments)), np.random.default_rng(3)
    values = component.check(component.hyperparameters, 1)
    drawn = component.draw_base(rng, values, 5)
    law = arguments[name]()
    assert_allclose(
        component.log_base(component.graph_parameters(drawn), values, pt).eval(),
        pm.logp(law, drawn[name]).eval(),
        atol=1e-6,
    )
    labels = np.arange(5)
    rows = component.draw_rows(rng, drawn, labels)
    of_rows = dist.dist(**{**given, name: drawn[name]})
    assert_allclose(
        component.log_density(pt.as_tensor(rows), component.graph_parameters(drawn), pt).eval(),
        pm.logp(of_rows, rows.astype(of_rows.dtype)).eval(),
    )
    params = component.pack(drawn, np.zeros(1))
    assert_allclose(component.unpack(params, np.zeros(1))[name], drawn[name])
    with pm.Model():
        dps.DPMixture("x", 1.0, component, observed=rows)
        idata = pm.sample(**_SAMPLING)
    assert f"x_{name}" in idata["posterior"]


@pytest.mark.slow
def test_categorical_draws_are_those_of_the_family() -> None:
    codes = np.random.default_rng(2).integers(0, 3, 20)
    weights = np.array([1.0, 2.0, 0.5])
    component = dps.Component(pm.Categorical, p=pm.Dirichlet.dist(weights))
    traces = []
    for of, rows in ((component, codes), (dps.Categorical([weights]), codes[:, None])):
        with pm.Model():
            dps.DPMixture("x", pm.Gamma("alpha", 2, 2), of, observed=rows)
            traces.append(pm.sample(**_SAMPLING)["posterior"])
    own, expected = traces
    assert own["x_p"].dims == ("chain", "draw", "x_cluster", "x_p_dim_0")
    assert_array_equal(own["x_p"], expected["x_p"].squeeze("x_feature"))
    assert_array_equal(own["x_n_clusters"], expected["x_n_clusters"])
    # The control: other weights.
    other = dps.Component(pm.Categorical, p=pm.Dirichlet.dist(weights[::-1]))
    with pm.Model():
        dps.DPMixture("x", pm.Gamma("alpha", 2, 2), other, observed=codes)
        assert not pm.sample(**_SAMPLING)["posterior"]["x_p"].equals(own["x_p"])


def test_exchangeable_weights_are_not_taken_for_numbers() -> None:
    with pm.Model():
        rate = pm.Data("rate", 2.0)
        component = dps.Component(pm.Poisson, mu=pm.Gamma.dist(2.0, rate))
    assert type(component) is dps.Component


TIED = np.round(np.random.default_rng(7).normal(size=60), 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sigma",
    [
        lambda: pm.HalfNormal.dist(1.0),
        lambda: pm.HalfCauchy.dist(1.0),
        lambda: pm.HalfStudentT.dist(3.0, 1.0),
        lambda: pm.Exponential.dist(1.0),
        lambda: pm.Uniform.dist(0.0, 3.0),
        lambda: pm.Gamma.dist(2.0, 1.0),
    ],
    ids=["HalfNormal", "HalfCauchy", "HalfStudentT", "Exponential", "Uniform", "Gamma"],
)
def test_ties_under_a_scale_that_may_be_0_are_warned_of(sigma: Any) -> None:
    component = dps.Component(pm.StudentT, nu=4, mu=pm.Normal.dist(0, 3), sigma=sigma())
    with pytest.warns(
        UserWarning, match=r"^x: observed has ties .* give sigma=pm.LogNormal"
    ) as got:
        _declare(component, TIED)
    assert len(got) == 1
    assert got[0].filename == __file__


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        ({"sigma": lambda: pm.HalfNormal.dist(1.0)}, TIED + 1e-3 * np.arange(60) ** 0.5),
        ({"sigma": lambda: pm.HalfNormal.dist(1.0)}, np.r_[np.arange(9.0), 3.0]),
        ({"sigma": lambda: pm.LogNormal.dist(0.0, 1.0)}, TIED),
        ({"sigma": lambda: pm.InverseGamma.dist(2.0, 1.0)}, TIED),
        ({"sigma": lambda: pm.Uniform.dist(0.1, 3.0)}, TIED),
        ({"sigma": lambda: pm.Gamma.dist(20.0, 20.0)}, TIED),
        ({"sigma": 0.5, "nu": lambda: pm.Exponential.dist(1.0)}, TIED),
        ({"mu": 0.05, "sigma": lambda: pm.HalfNormal.dist(1.0)}, TIED),
    ],
    ids=["no ties", "one tie", "LogNormal", "InverseGamma", "away from 0", "Gamma", "known", "mu"],
)
def test_other_ties_and_scales_are_not_warned_of(arguments: Any, rows: np.ndarray) -> None:
    """Warnings are errors here."""
    given = {"nu": 4.0, "mu": lambda: pm.Normal.dist(0.0, 3.0), **arguments}
    given = {name: of() if callable(of) else of for name, of in given.items()}
    _declare(dps.Component(pm.StudentT, **given), rows)


def by_precision() -> dict[str, Any]:
    tau = pm.Gamma.dist(2.0, 3.0)
    return {"mu": pm.Normal.dist(1.5, tau=0.25 * tau), "tau": tau}


def by_variance() -> dict[str, Any]:
    variance = pm.InverseGamma.dist(2.0, 3.0)
    sigma = pm.math.sqrt(variance)
    return {"mu": pm.Normal.dist(1.5, sigma=2.0 * sigma), "sigma": sigma}


@pytest.mark.parametrize("arguments", [by_precision, by_variance])
def test_normal_inverse_gamma_is_recognised(
    arguments: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="pymc.dpsplit"):
        component = dps.Component(pm.Normal, **arguments())
    assert type(component) is dps.Normal
    assert "is conjugate: Normal(" in caplog.text
    found = component.hyperparameters
    assert found == pytest.approx({"mu0": 1.5, "kappa0": 0.25, "a0": 2.0, "b0": 3.0}, rel=1e-6)


def test_other_laws_of_mean_and_spread_are_not_taken_for_it() -> None:
    tau = pm.Gamma.dist(2.0, 3.0)
    for mu in (pm.Normal.dist(0.0, tau=tau**2), pm.Normal.dist(tau, tau=tau), pm.Normal.dist()):
        assert normal_inverse_gamma({"mu": mu, "tau": tau}) is None
    assert normal_inverse_gamma({"mu": pm.Normal.dist(0.0, tau=tau), "tau": tau**2}) is None


def test_what_is_not_conjugate_is_left_alone() -> None:
    component = dps.Component(pm.Normal, mu=pm.Normal.dist(), sigma=pm.HalfNormal.dist())
    assert type(component) is dps.Component
    component = dps.Component(pm.Poisson, mu=pm.LogNormal.dist(0.0, 1.0))
    assert type(component) is dps.Component
    twin = copy.copy(component)
    assert type(twin) is dps.Component
    assert twin._made is component._made


def _declare(component: Any, observed: Any) -> None:
    with pm.Model():
        dps.DPMixture("x", 1.0, component, observed=observed)


ERRORS: dict[str, tuple[Any, str]] = {
    "support": (
        lambda: _declare(DECLARED["Gamma"].make(), [1.0, -2.0, 3.0]),
        "observed has -2.0 in row 1",
    ),
    "not whole": (
        lambda: _declare(DECLARED["NegativeBinomial"].make(), [1.0, 2.5]),
        "give whole numbers",
    ),
    "negative counts": (
        lambda: _declare(DECLARED["NegativeBinomial"].make(), [1.0, -2.0]),
        "observed has -2.0 in row 1",
    ),
    "missing": (
        lambda: _declare(DECLARED["MvStudentT"].make(), [[1.0, np.nan], [0.0, 1.0]]),
        r"1 row that is missing in part \(column 1 of row 0\), but Component has no law",
    ),
    "nothing per cluster": (
        lambda: dps.Component(pm.StudentT, nu=4, mu=0.0, sigma=1.0),
        "no argument of pm.StudentT differs by cluster",
    ),
    "no distribution": (lambda: dps.Component(3.0, mu=pm.Normal.dist()), "a class of PyMC"),
    "returns no distribution": (
        lambda: dps.Component(lambda mu: mu + 1.0, mu=pm.Normal.dist()), "no distribution"
    ),
    "discrete base": (
        lambda: dps.Component(pm.Normal, mu=pm.Poisson.dist(2.0), sigma=1.0), "discrete"
    ),
    "nested": (
        lambda: dps.Component(
            pm.Normal, mu=pm.Normal.dist(pm.Normal.dist(), 1.0), sigma=pm.HalfNormal.dist()
        ),
        "unnamed distributions",
    ),
    "unknown argument": (
        lambda: dps.Component(pm.StudentT, nu=4, mean=pm.Normal.dist()), "depend on mean"
    ),
    "no log probability": (
        lambda: dps.Component(pm.CustomDist, mu=pm.Normal.dist(), random=draw_laplace),
        "no log-probability",
    ),
    "too few columns": (
        lambda: _declare(DECLARED["MvStudentT"].make(), np.zeros((7, 3))), "has 3 columns"
    ),
    "covariates": (
        lambda: _declare(DECLARED["regression"].make(), np.zeros(7)), "give one row"
    ),
    "density of a number": (
        lambda: dps.Component(pm.CustomDist, mu=pm.Normal.dist(), logp=lambda value, mu: 3.0),
        "the log density of CustomDist is 3.0; give a logp that returns an expression",
    ),
    "density that fails": (
        lambda: dps.Component(pm.CustomDist, mu=pm.Normal.dist(), logp=lambda value, mu: 1 / 0),
        "the log density of CustomDist cannot be computed .division by zero.; give a logp",
    ),
    "returns a number": (
        lambda: dps.Component(lambda mu: 3.0, mu=pm.Normal.dist()), "returned 3.0, which is no"
    ),
    "function that fails": (
        lambda: dps.Component(lambda mu: mu.nope, mu=pm.Normal.dist()), "cannot be made of mu"
    ),
    "law of a conjugate pair": (
        lambda: dps.Component(pm.Normal, mu=pm.Normal.dist(0, -1), sigma=1.0),
        "mu is a distribution whose arguments break sigma > 0; give",
    ),
    "law": (
        lambda: dps.Component(pm.StudentT, nu=4, mu=0.0, sigma=pm.HalfNormal.dist(-1)),
        "sigma is a distribution whose arguments break sigma > 0; give",
    ),
    "law of NaN": (
        lambda: dps.Component(pm.Normal, mu=pm.Normal.dist(np.nan, 1), sigma=1.0),
        "mu is a distribution whose arguments hold NaN; give",
    ),
    "law of probabilities": (
        lambda: dps.Component(pm.Categorical, p=pm.Dirichlet.dist([-1.0, 1.0])),
        "p is a distribution whose arguments break a > 0; give",
    ),
    "covariates by position": (
        lambda: dps.Component(pm.Normal, mu=pm.Normal.dist(), sigma=1.0, covariates=np.eye(2)),
        "covariates=.* is not a dict; give one",
    ),
    "collapsed": (
        lambda: sampled("StudentT", dpsplit={"kernel": "collapsed"}), "integrated out"
    ),
}  # fmt: skip


# Densities are called by address, which are compiled; that of many columns takes long to.
BY_ADDRESS = ("support", "negative counts", "collapsed", "too few columns")
FAULTS = [
    pytest.param(
        fault,
        marks=[pytest.mark.compiled] * (fault in BY_ADDRESS)
        + [pytest.mark.slow] * (fault == "too few columns"),
    )
    for fault in ERRORS
]


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_named(fault: str) -> None:
    act, words = ERRORS[fault]
    with pytest.raises(ValueError, match=words) as raised:
        act()
    assert "\n" not in str(raised.value)


def test_registered_variable_is_not_drawn_per_cluster() -> None:
    with pm.Model():
        mu = pm.Normal("mu", 0, 10)
        with pytest.raises(ValueError, match="which all clusters share"):
            dps.Component(pm.StudentT, nu=4, mu=mu, sigma=1.0)
