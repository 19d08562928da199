"""Fewer rows per draw than clusters: the law of the chain does not change in silence."""

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from tests.support.datasets import DATASETS
from tests.support.families import HYPERPARAMETERS, component_of, twin_of
from tests.support.partitions import exact_posterior
from tests.support.runs import draws_of, labels_test, run
from tests.support.statistics import LEVEL

pytestmark = pytest.mark.slow

ALPHA = 1.2
NORMAL = HYPERPARAMETERS["Normal"](1)
ROWS = DATASETS["overlapping"](1)[:6]


@pytest.mark.parametrize("kernel", ["exact", "collapsed"])
def test_one_row_for_many_clusters_changes_no_law(kernel: str) -> None:
    with pm.Model():
        component = component_of("Normal", 1)
        dps.DPMixture("x", ALPHA, component, observed=ROWS[:, 0], max_clusters=1)
        idata = run(kernel=kernel)
    assert draws_of(idata, "x_weights").shape[-1] == 1
    assert draws_of(idata, "x_n_clusters").max() > 1
    assert labels_test(idata, "x", exact_posterior(twin_of("Normal", 1), ROWS, ALPHA)) > LEVEL


def test_latent_rows_need_all_clusters() -> None:
    with pm.Model():
        b = dps.DPMixture("b", ALPHA, component_of("Normal", 1), shape=6, max_clusters=2)
        pm.Normal("y", b, 0.5, observed=ROWS[:, 0])
        with pytest.raises(ValueError, match="max_clusters=2") as error:
            run()
    assert "set max_clusters= higher" in str(error.value)


def test_hyperpriors_need_all_clusters() -> None:
    with pm.Model():
        b0 = pm.Gamma("b0", 2.0, 2.0)
        component = dps.Normal(**{**NORMAL, "b0": b0})
        dps.DPMixture("x", ALPHA, component, observed=ROWS[:, 0], max_clusters=1)
        with pytest.raises(ValueError, match="max_clusters=1"):
            run()


def test_errors_of_a_regression_need_all_clusters() -> None:
    with pm.Model():
        slope = pm.Normal("slope")
        observed = ROWS[:, 0] - np.arange(6.0) * slope
        dps.DPMixture("x", ALPHA, component_of("Normal", 1), observed=observed, max_clusters=1)
        with pytest.raises(ValueError, match="max_clusters=1"):
            run()
