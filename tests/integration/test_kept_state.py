"""Samplers whose state has more than the partition, through the step and `pm.sample`."""

import warnings
from dataclasses import replace

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.step_methods.state import equal_dataclass_values

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from tests.support.quick import slow_unless

ROWS = np.random.default_rng(5).normal(size=45) + np.repeat([-7.0, 0.0, 7.0], 15)
NORMAL = dps.Normal(0.0, 0.05, 2.0, 1.0)
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
# Kernels that keep auxiliary variables from draw to draw, and options with which they keep others.
KEEPING = [(name, {}) for name, row in SAMPLERS.items() if row.conjugate.keeps]
KEEPING += [
    ("chang-fisher", {"repaired": True}),
    ("av-parallel", {"shares": (0.6, 0.3, 0.1)}),
]


def model_of():
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, NORMAL, observed=ROWS)
    return model


def step_of(model, kernel, options):
    with model, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "kernel=.* is here for comparison", UserWarning)
        return dps.DPSplitMerge(model.free_RVs, kernel=kernel, iterations=3, **options)


def begun(kernel, options, n_steps):
    """A model, a step with a chain begun, and the point it reached."""
    model = model_of()
    step = step_of(model, kernel, options)
    step.setup_chain(np.random.default_rng(8), 9, 20)
    return model, step, advanced(step, model.initial_point(), n_steps)


def advanced(step, point, n_steps):
    for _ in range(n_steps):
        point, _ = step.step(point)
    return point


@pytest.mark.parametrize(("kernel", "options"), slow_unless(("slice", {}).__eq__, KEEPING), ids=str)
def test_restored_and_pickled_steps_go_on_identically(kernel, options):
    model, step, point = begun(kernel, options, 6)
    state, pickled = step.sampling_state, cloudpickle.loads(cloudpickle.dumps(step))
    assert len(state.of_clusters) == len(state.cluster_stats)
    other, forgetful = (step_of(model, kernel, options) for _ in range(2))
    other.sampling_state = state
    rows, clusters = sampler.NOTHING_KEPT
    forgetful.sampling_state = replace(state, of_rows=rows, of_clusters=clusters)
    expected = advanced(step, point, 4)
    for again in (other, pickled):
        np.testing.assert_array_equal(advanced(again, point, 4)["x_mu"], expected["x_mu"])
        assert equal_dataclass_values(again.sampling_state, step.sampling_state)
    # Without what the kernel keeps, the chain is another one.
    advanced(forgetful, point, 4)
    assert not equal_dataclass_values(forgetful.sampling_state, step.sampling_state)


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "options"), KEEPING, ids=str)
def test_groups_that_lie_apart_are_found(kernel, options):
    with model_of(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        idata = pm.sample(
            200, tune=300, chains=2, cores=1, random_seed=3, **QUIET,
            dpsplit={"kernel": kernel, "keep_labels": True, "iterations": 5, **options},
        )  # fmt: skip
    said = [str(found.message) for found in caught if "for comparison" in str(found.message)]
    assert len(said) == (0 if SAMPLERS[kernel].is_exact_with(options) else 1)
    labels = idata["sample_stats"]["x_labels"].to_numpy()[:, -100:].reshape(-1, 45)
    together = (labels[:, :, None] == labels[:, None, :]).mean(axis=0)
    group = np.repeat([0, 1, 2], 15)
    assert together[group[:, None] != group].max() < 0.05
    assert together[group[:, None] == group].mean() > 0.5
