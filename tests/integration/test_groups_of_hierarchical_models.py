"""How groups of a hierarchical mixture are given, and its number of clusters at the start."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.hierarchical.state import start_groups
from pymc_dpsplit.hierarchical_model import step as hierarchical_step

ROWS = np.array([0.1, 5.2, 0.3, -0.2, 5.0, 4.8])
GROUPS = ["b", "a", "b", "b", "a", "c"]
NORMAL = dps.Normal(0.0, 0.1, 2.0, 1.0)


def test_groups_are_a_column_of_the_observations():
    frame = pd.DataFrame({"u": ROWS, "patient": GROUPS, "v": ROWS})
    component = dps.DiagNormal.from_data(frame[["u", "v"]])
    given = {"groups": "patient", "observed": frame, "dims": ("row", "feature")}
    with pm.Model() as model:
        dps.HDPMixture("x", 1.0, 1.0, component, **given)
    assert list(model.coords["feature"]) == ["u", "v"]
    assert list(model["x_groups"].eval()) == [1, 0, 1, 1, 0, 2]
    message = "x: groups='site' is no column of observed beside others"
    with pm.Model(), pytest.raises(ValueError, match=message):
        dps.HDPMixture("x", 1.0, 1.0, component, **{**given, "groups": "site"})


def test_groups_are_data_of_the_model():
    with pm.Model() as model:
        groups = pm.Data("patient", [1, 0, 1, 1, 0, 2])
        dps.HDPMixture("x", 1.0, 1.0, NORMAL, groups=groups, observed=ROWS)
        assert dps.HDPMixtureStep().mixture.groups.group_of_row.tolist() == [1, 0, 1, 1, 0, 2]
        pm.set_data({"patient": [0, 0, 1, 1, 0, 2]})
        with pytest.raises(ValueError, match="x: groups=patient has other values than when x was"):
            dps.HDPMixtureStep()
    assert list(model["x_group_sizes"].eval()) == [2, 3, 1]
    with pm.Model(), pytest.raises(ValueError, match="x: groups=p is no array of ids; give one"):
        dps.HDPMixture("x", 1.0, 1.0, NORMAL, groups=pm.Poisson("p", 1.0, shape=6), observed=ROWS)


def test_chains_start_from_the_number_of_clusters_that_is_given(monkeypatch):
    given = []

    def start(target, n_centres, rng):
        given.append(n_centres)
        return start_groups(target, n_centres, rng)

    monkeypatch.setattr(hierarchical_step, "start_groups", start)
    with pm.Model() as model:
        dps.HDPMixture("x", 1.0, 1.0, NORMAL, groups=GROUPS, observed=ROWS)
        step = dps.HDPMixtureStep()
    step.step({**model.initial_point(), "x_n_clusters": np.array(4)})
    assert given == [4]
