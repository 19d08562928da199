"""What `initvals` may hold of a mixture, and one sentence for everything else, before sampling."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dpsplit as dps

ROWS = np.linspace(-1.0, 1.0, 12)
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
RAGGED = [[1], [2, 3]]


def declared(kind):
    """A model with a mixture `x` of scalars: complete, with a hole, less a mean, latent or with a
    variable in the prior of its clusters."""
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 4)
        observed = {
            "complete": lambda: ROWS,
            "hole": lambda: np.where(np.arange(12) == 3, np.nan, ROWS),
            "errors": lambda: pt.as_tensor(ROWS) - pm.Normal("mean"),
            "latent": lambda: None,
            "prior": lambda: ROWS,
        }[kind]()
        shape = 12 if kind == "latent" else None
        mu0 = pm.Normal("mean") if kind == "prior" else 0.0
        dps.DPMixture("x", alpha, dps.Normal(mu0, 0.1, 2, 1), observed=observed, shape=shape)
    return model


@pytest.fixture(scope="module")
def models():
    return {kind: declared(kind) for kind in ("complete", "hole", "errors", "latent", "prior")}


def sampled(model, initvals):
    with model:
        idata = pm.sample(draws=1, tune=0, chains=1, random_seed=1, initvals=initvals, **QUIET)
    return idata["posterior"]


REFUSED = {
    "number": ("complete", 5, "initvals=5 is not a dict; give one"),
    "string": ("complete", "x", "initvals='x' is not a dict; give one"),
    "list of numbers": ("complete", [5], r"initvals=.5. is not a dict; give one"),
    "clusters below none": ("complete", {"x_n_clusters": -1}, "=-1 is negative; give"),
    "clusters of one chain": ("complete", [{"x_n_clusters": -1}], "=-1 is negative; give"),
    "clusters in part": ("complete", {"x_n_clusters": 1.5}, "=1.5 is not whole; give"),
    "clusters NaN": ("complete", {"x_n_clusters": np.nan}, "=nan has NaN or infinite"),
    "clusters of 400 digits": ("complete", {"x_n_clusters": 10**400}, "not numbers; give"),
    "clusters too many": ("complete", {"x_n_clusters": 1e19}, "is too large; give"),
    "clusters listed": ("complete", {"x_n_clusters": [1, 2]}, r"has shape \(2,\); give a single"),
    "clusters ragged": ("complete", {"x_n_clusters": RAGGED}, "is ragged"),
    "clusters of text": ("complete", {"x_n_clusters": "many"}, "is not numeric; give"),
    "clusters complex": ("complete", {"x_n_clusters": 1j}, "is not numeric; give"),
    "clusters true": ("complete", {"x_n_clusters": True}, "is a truth value; give"),
    "weights too few": ("complete", {"x_weights": [1.0]}, r"give an array of shape \(12,\)"),
    "weights in a matrix": ("complete", {"x_weights": np.eye(12)}, r"has shape \(12, 12\); give"),
    "weight alone": ("complete", {"x_weights": 1.0}, r"has shape \(\); give an array"),
    "weights ragged": ("complete", {"x_weights": RAGGED}, "is ragged"),
    "weights negative": ("complete", {"x_weights": -ROWS**2, "x_n_clusters": 1}, "is negative"),
    "weights of text": ("complete", {"x_weights": ["a"] * 12}, "is not numeric"),
    "weights alone": ("complete", {"x_weights": np.ones(12) / 12}, "cannot start; give x_n_cl"),
    "parameters too few": ("complete", {"x_mu": [1.0], "x_n_clusters": 1}, "has shape .1,.; give"),
    "parameters ragged": ("complete", {"x_mu": RAGGED}, "is ragged"),
    "new weight negative": ("complete", {"x_new_weight": -1.0}, "is no weight; give"),
    "new weight above 1": ("complete", {"x_new_weight": 2.0}, "is no weight; give"),
    "new weight of several": ("complete", {"x_new_weight": [1.0, 1.0]}, "give a single number"),
    "new weight alone": ("complete", {"x_new_weight": 0.5}, "holds x_new_weight, from which a mix"),
    "new weight's logarithm": ("complete", {"x_new_weight_log__": -0.1}, "cannot start; give x_n_"),
    "new weight's expression": ("complete", {"x_new_weight": pt.as_tensor(0.5)}, "cannot start"),
    "alpha negative": ("complete", {"alpha": -1.0}, r"'alpha'.=-1.0 is no value that the prior of"),
    "alpha zero": ("complete", [{"alpha": 1.0}, {"alpha": 0.0}], r"'alpha'.=0.0 is no value that"),
    "alpha's logarithm NaN": ("complete", {"alpha_log__": np.nan}, "=nan is no value that the pri"),
    "alpha ragged": ("complete", {"alpha": RAGGED}, r"initvals.'alpha'. is ragged"),
    "alpha a set": ("complete", {"alpha": {1.0}}, r"initvals.'alpha'. is a set"),
    "no labels": ("complete", {"x_labels": np.zeros(12, int)}, 'give dpsplit={"start_labels":'),
    "labels too few": ("errors", {"x_labels": [0, 1]}, r"give an array of shape \(12,\)"),
    "labels ragged": ("errors", {"x_labels": RAGGED}, "is ragged"),
    "labels in part": ("errors", {"x_labels": [0.5] * 12}, "is not whole; give"),
    "labels beyond int16": ("errors", {"x_labels": [2**40] * 12}, "give labels from 0 to max_cl"),
    "labels negative": ("errors", {"x_labels": [-1] * 12}, "holds labels -1 to -1; give labels"),
    "values too few": ("latent", {"x": [1.0]}, r"give an array of shape \(12,\)"),
    "values NaN": ("latent", {"x": [np.nan] * 12}, "has NaN or infinite entries; give"),
    "values of text": ("latent", {"x": ["a"] * 12}, "is not numeric; give"),
    "entries too many": ("hole", {"x_unobserved": [1.0, 2.0]}, r"give an array of shape \(1,\)"),
    "entries infinite": ("hole", {"x_unobserved": [np.inf]}, "has NaN or infinite entries; give"),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_what_no_chain_can_start_from_is_one_sentence(fault, models):
    kind, initvals, message = REFUSED[fault]
    with pytest.raises(ValueError, match=message) as raised:
        sampled(models[kind], initvals)
    text = str(raised.value)
    assert "initvals" in text
    assert text.endswith(".")
    assert "\n" not in text


def test_rows_in_groups_start_from_a_number_of_clusters_too():
    with pm.Model() as model:
        alpha, groups = pm.Gamma("alpha", 2, 4), np.arange(12) % 2
        dps.HDPMixture("x", alpha, 1.0, dps.Normal(0.0, 0.1, 2, 1), groups=groups, observed=ROWS)
    for initvals in ({"x_new_weight": 0.5}, {"x_mu": np.zeros(12)}):
        with pytest.raises(ValueError, match="cannot start; give x_n_clusters"):
            sampled(model, initvals)
    with pytest.raises(ValueError, match=r"'alpha'.=-1.0 is no value that the prior of alpha al"):
        sampled(model, {"alpha": -1.0})
    with model:
        step = dps.HDPMixtureStep()
    step.step({**model.initial_point(), "x_n_clusters": np.array(3)})


def test_a_constant_is_told_of_no_prior(models):
    with pm.Model() as grouped:
        alpha, groups = pm.Gamma("alpha", 2, 4), np.arange(12) % 2
        dps.HDPMixture("x", alpha, 1.0, dps.Normal(0.0, 0.1, 2, 1), groups=groups, observed=ROWS)
    with pm.Model() as topics:
        alpha = pm.Gamma("alpha", 2, 4)
        dps.HDPTopics("x", alpha, 1.0, 0.1, observed=[[3, 1, 0], [0, 0, 4]])
    message = "^x: alpha is -1, but must be positive and finite; give such a number"
    for model in (models["complete"], grouped, topics):
        with pytest.raises(ValueError, match=message):
            sampled(pm.do(model, {"alpha": -1.0}), None)


def test_variables_may_be_keys(models):
    model = models["complete"]
    with pytest.raises(ValueError, match=r"initvals\['x_weights'\] has shape \(1,\)"):
        sampled(model, {model["x_weights"]: [1.0]})


TAKEN = {
    "number": ("complete", {"x_n_clusters": np.float64(2.0)}),
    "number beside NUTS": ("prior", {"x_n_clusters": 5}),
    "strategy": ("complete", {"x_n_clusters": "support_point", "alpha": "prior"}),
    "transformed": ("complete", {"alpha_log__": 0.0}),
    "by chain": ("complete", [{"alpha": 1.0}]),
    "none by chain": ("complete", [None]),
    "expression": ("complete", {"alpha": pt.as_tensor(0.5)}),
    "labels": ("errors", {"x_labels": np.arange(12) % 3}),
    "entries": ("hole", {"x_unobserved": [0.5]}),
    "values": ("latent", {"x": ROWS.tolist()}),
}


@pytest.mark.slow
@pytest.mark.parametrize("given", TAKEN)
def test_what_a_chain_can_start_from_is_taken(given, models):
    kind, initvals = TAKEN[given]
    assert sampled(models[kind], initvals).sizes["draw"] == 1


@pytest.mark.parametrize("n_clusters", [0, 1, 5, 12])
def test_density_of_promised_clusters_is_finite(n_clusters, models):
    """NUTS moves before the first draw of the clusters from which a chain starts."""
    model = models["prior"]
    point = {**model.initial_point(), "x_n_clusters": np.asarray(n_clusters)}
    assert np.isfinite(model.compile_logp(vars=[model["mean"], model["x_mu"]])(point))


@pytest.mark.compiled
def test_a_draw_of_another_run_is_taken(models):
    drawn = sampled(models["complete"], None).isel(chain=0, draw=0)
    names = ("alpha", "x_n_clusters", "x_weights", "x_new_weight", "x_mu", "x_sigma")
    start = {name: drawn[name].to_numpy() for name in names}
    assert sampled(models["complete"], start).sizes["draw"] == 1
