"""Models whose rows `pm.do` has replaced: there is nothing given which a mixture is sampled."""

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps

ROWS = np.array([-3.0, -3.1, -2.9, 3.0, 3.1, np.nan])
SCALARS = dps.Normal(0.0, 0.1, 2.0, 1.0)
GROUPS = np.repeat([0, 1], 3)
WORDS = np.array([[3, 0, 1], [0, 2, 2]])


def latent(b):
    pm.Normal("y", b, 0.5, observed=np.zeros(6))


DECLARED = {
    "observed": lambda: dps.DPMixture("x", pm.Gamma("alpha", 2, 4), SCALARS, observed=ROWS[:5]),
    "missing entries": lambda: dps.DPMixture("x", 1.0, SCALARS, observed=ROWS),
    "latent": lambda: latent(dps.DPMixture("x", 1.0, SCALARS, shape=6)),
    "in groups": lambda: dps.HDPMixture("x", 1.0, 1.0, SCALARS, groups=GROUPS, observed=ROWS),
    "latent in groups": lambda: latent(
        dps.HDPMixture("x", 1.0, 1.0, SCALARS, groups=GROUPS, shape=6)
    ),
    "topics": lambda: dps.HDPTopics("x", 1.0, 1.0, 0.5, observed=WORDS),
}


def replaced(form, others=False):
    with pm.Model() as model:
        DECLARED[form]()
        if others:
            dps.DPMixture("z", 1.0, SCALARS, observed=ROWS)
    lengths = {"observed": 5, "topics": WORDS.shape}
    return pm.do(model, {"x": np.zeros(lengths.get(form, 6))})


def assert_refused(model):
    with pytest.raises(ValueError, match=r"^x: pm\.do has replaced x, given which [^\n]*\.$") as at:
        pm.sample(draws=2, tune=2, chains=1, model=model, progressbar=False)
    for text in ("x_n_", "; sample the original model, or draw from this one with pm.sample_pr"):
        assert text in str(at.value)
    return str(at.value)


@pytest.mark.parametrize("form", DECLARED)
def test_replaced_rows_are_named(form):
    assert_refused(replaced(form))


def test_one_of_two_mixtures_is_named():
    assert "z_" not in assert_refused(replaced("latent", others=True))


def test_such_a_model_is_drawn_from():
    prior = pm.sample_prior_predictive(3, model=replaced("observed"), random_seed=1)["prior"]
    assert prior["x_mu"].shape[:2] == (1, 3)
