"""`smc`: a trace like that of `pm.sample`, near the posterior, and what it refuses."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from tests.support.families import component_of, dataset_of, twin_of
from tests.support.partitions import exact_posterior, n_clusters_law
from tests.support.quick import slow_unless
from tests.support.statistics import LEVEL

ROWS = dataset_of("Normal", "overlapping", 1)[:, 0]
NORMAL = component_of("Normal", 1)


def model_of(alpha=1.0, component=NORMAL, **options):
    with pm.Model() as model:
        dps.DPMixture("x", alpha, component, **{"observed": ROWS, **options})
    return model


@pytest.mark.slow
def test_trace_has_the_layout_of_a_sample():
    model = model_of()
    with model:
        sampled = pm.sample(20, tune=20, chains=1, random_seed=1, progressbar=False, quiet=True)
    found = dps.smc(model, particles=50, random_seed=2)
    assert found["posterior"].sizes["draw"] == 50
    assert set(found["posterior"]) == set(sampled["posterior"])
    for name, of in sampled["posterior"].items():
        assert found["posterior"][name].dims == of.dims
        assert found["posterior"][name].dtype == of.dtype
    assert set(found["sample_stats"]) < set(sampled["sample_stats"])
    labels = dps.sample_labels(found, model=model, random_seed=3)
    assert labels.shape == (1, 50, len(ROWS))
    again = dps.smc(model, particles=50, random_seed=2)
    np.testing.assert_array_equal(found["posterior"]["x_mu"], again["posterior"]["x_mu"])
    assert found["posterior"].attrs["n_partitions"] <= 50
    assert again["posterior"].attrs["log_evidence"] == found["posterior"].attrs["log_evidence"]


@pytest.mark.slow
def test_number_of_clusters_is_near_the_posterior():
    exact = n_clusters_law(exact_posterior(twin_of("Normal", 1), ROWS[:, None], 1.0), len(ROWS))
    model, found = model_of(), np.zeros((40, len(ROWS) + 1))
    for seed in range(40):
        idata = dps.smc(model, particles=200, random_seed=seed)
        numbers = idata["posterior"]["x_n_clusters"].to_numpy().ravel()
        found[seed] = np.bincount(numbers, minlength=len(ROWS) + 1) / 200
    deviation, likely = found.mean(axis=0) - exact, exact > 0.01
    scatter = found.std(axis=0, ddof=1) / np.sqrt(40)
    p_values = 2.0 * stats.t.sf(np.abs(deviation[likely]) / scatter[likely], 39)
    assert p_values.min() * likely.sum() > LEVEL


REFUSED = {
    "particles": (model_of, {"particles": 1}, "particles=1 is out of range; give an integer of"),
    "discount": (
        lambda: model_of(discount=0.2),
        {},
        "smc is for Dirichlet processes, and x has another law; use pm.sample",
    ),
    "family": (
        lambda: model_of(
            component=dps.Component(pm.StudentT, nu=4, mu=pm.Normal.dist(), sigma=1.0)
        ),
        {},
        "whose parameters cannot be integrated out, as smc does; use pm.sample",
    ),
    "missing": (
        lambda: model_of(observed=np.append(ROWS, np.nan)),
        {},
        "x has missing entries, and smc needs complete observations",
    ),
    "name": (model_of, {"var_name": "y"}, "var_name='y' is no mixture of the model; it has x"),
}


@pytest.mark.filterwarnings("ignore:.*missing:UserWarning", "ignore:.*[Ii]mput:UserWarning")
@pytest.mark.parametrize("fault", slow_unless("family".__ne__, REFUSED))
def test_what_it_cannot_treat_is_refused(fault):
    model, options, message = REFUSED[fault]
    with pytest.raises(ValueError, match=r"\.$") as caught:
        dps.smc(model(), **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_variables_are_refused():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1.0, 1.0)
        dps.DPMixture("x", alpha, NORMAL, observed=ROWS)
    with pytest.raises(ValueError, match="the model has the variables alpha besides x, and smc"):
        dps.smc(model)
