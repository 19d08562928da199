"""A step that was made before `pm.set_data` replaced what it read is refused, not used."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.sampling.mcmc import assign_step_methods
from pymc.step_methods.compound import CompoundStep

import pymc_dpsplit as dps

ROWS = np.random.default_rng(3).normal(size=12)
GROUPS = np.repeat([0, 1], 6)


def normal(mu0=0.0):
    return dps.Normal(mu0, 0.1, 2.0, 1.0)


def rows():
    dps.DPMixture("x", 1.0, normal(), observed=pm.Data("data", ROWS))
    return dps.DPSplitMerge()


def alpha():
    dps.DPMixture("x", pm.Data("data", 1.0), normal(), observed=ROWS)
    return dps.DPSplitMerge()


def prior_of_alpha():
    dps.DPMixture("x", pm.Gamma("alpha", pm.Data("data", 2.0), 4.0), normal(), observed=ROWS)
    return dps.DPSplitMerge()


def hyperparameter():
    dps.DPMixture("x", 1.0, normal(pm.Data("data", 0.0)), observed=ROWS)
    return dps.DPSplitMerge()


def covariates():
    regression = dps.LinearRegression.from_data(ROWS, pm.Data("data", ROWS[:, None] ** 2))
    dps.DPMixture("x", 1.0, regression, observed=ROWS)
    return dps.DPSplitMerge()


def rows_in_groups():
    dps.HDPMixture("x", 1.0, 1.0, normal(), groups=GROUPS, observed=pm.Data("data", ROWS))
    return dps.HDPMixtureStep()


def topics():
    dps.HDPTopics("x", pm.Data("data", 1.0), 1.0, 0.1, observed=[[3, 1, 0], [0, 0, 4]])
    return dps.HDPTopicsStep()


def rows_of_a_likelihood():
    b = dps.DPMixture("x", 1.0, normal(), shape=12)
    pm.Normal("y", b[pm.Data("data", np.arange(12))], 0.5, observed=ROWS)
    return dps.DPSplitMerge()


def rows_of_groups_of_a_likelihood():
    b = dps.HDPMixture("x", 1.0, 1.0, normal(), groups=GROUPS, shape=12)
    pm.Normal("y", b, 0.5, observed=pm.Data("data", ROWS))
    return dps.HDPMixtureStep()


MODELS = [rows, alpha, prior_of_alpha, hyperparameter, covariates, rows_in_groups, topics]
MODELS += [rows_of_a_likelihood, rows_of_groups_of_a_likelihood]


def declared(model):
    with pm.Model() as of:
        step = model()
    return of, step


@pytest.mark.parametrize("model", MODELS)
def test_a_step_made_before_the_data_is_refused(model):
    of, step = declared(model)
    before = of["data"].get_value()
    with of:
        pm.set_data({"data": before + 1})
        with pytest.raises(ValueError, match=r"x: pm\.set_data has replaced data since"):
            pm.sample(step=step, progressbar=False, quiet=True)
        with pytest.raises(ValueError, match="make the step anew"):
            pm.sample(step=[CompoundStep([step])], progressbar=False, quiet=True)
        # The same values again, in another array.
        pm.set_data({"data": before.copy()})
    assert step in assign_step_methods(of, [step])[0]


def test_another_number_of_rows_is_noticed():
    of, step = declared(rows)
    with of:
        pm.set_data({"data": ROWS[:5]})
        with pytest.raises(ValueError, match="has replaced data"):
            pm.sample(step=step, progressbar=False, quiet=True)


def test_data_on_which_the_mixture_does_not_depend_may_change():
    with pm.Model() as of:
        other = pm.Data("other", 1.0)
        dps.DPMixture("x", 1.0, normal(), observed=ROWS)
        pm.Normal("y", other, 1.0, observed=[1.0])
        step = dps.DPSplitMerge()
        pm.set_data({"other": 5.0})
    assert step in assign_step_methods(of, [step])[0]


def test_a_pickled_step_leaves_the_data_it_read_where_they_are():
    _, step = declared(rows)
    assert cloudpickle.loads(cloudpickle.dumps(step)).data_read._read == []
