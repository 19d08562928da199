"""Discrete variables on which a mixture depends: their steps must hold the clusters fixed."""

import numpy as np
import pymc as pm
import pytest
from pymc.sampling.mcmc import assign_step_methods

import pymc_dpsplit as dps

ROWS = np.array([-0.4, 0.1, 0.5])


def declared(of_distribution):
    with pm.Model() as model:
        k = of_distribution("k")
        dps.DPMixture("x", 1.0, dps.Normal(1.5 * k - 1.5, 0.5, 2.0, 0.6), observed=ROWS)
        pm.Bernoulli("other", 0.5)
    return model


BINARY = {
    "Bernoulli": lambda name: pm.Bernoulli(name, 0.5),
    "Categorical": lambda name: pm.Categorical(name, [0.5, 0.5]),
}


@pytest.mark.parametrize("kind", BINARY)
def test_the_step_by_default_holds_other_variables_fixed(kind):
    model = declared(BINARY[kind])
    _, selected = assign_step_methods(model)
    assert [str(of.name) for of in selected[pm.Metropolis]] == ["k"]
    assert [str(of.name) for of in selected[pm.BinaryGibbsMetropolis]] == ["other"]


def test_steps_that_take_all_variables_as_inputs_are_refused():
    with declared(BINARY["Bernoulli"]) as model:
        with pytest.raises(ValueError, match="given k, on which a mixture depends"):
            assign_step_methods(model, pm.BinaryGibbsMetropolis([model["k"]]))
        assign_step_methods(model, pm.BinaryGibbsMetropolis([model["other"]]))
