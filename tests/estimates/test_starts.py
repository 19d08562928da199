"""Chains that start from an estimate of the partition."""

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from tests.integration.test_reproducibility import OPTIONS, differences

ROWS = np.random.default_rng(5).normal(size=(40, 2)) + np.repeat([[-9.0], [9.0]], 20, axis=0)
# Without tuning no greedy move follows the start.
SHORT = {"draws": 3, "tune": 0, "chains": 2, "cores": 1, "random_seed": 3, **OPTIONS}


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        dps.DPMixture("x", 1e-6, dps.DiagNormal.from_data(ROWS), observed=ROWS)
    return model


def sampled(model, start, **arguments):
    with model:
        options = {"start_labels": start, "keep_labels": True}
        return pm.sample(**{**SHORT, "dpsplit": options, **arguments})


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["find_map", "dp_means", "labels"])
def test_chains_start_from_an_estimate(model, estimate):
    starts = {
        "find_map": lambda: dps.find_map(model, random_seed=1),
        "dp_means": lambda: dps.dp_means(ROWS, 80.0),
        "labels": lambda: np.repeat([7, 3], 20),
    }
    labels = sampled(model, starts[estimate]())["sample_stats"]["x_labels"].to_numpy()
    together = labels[..., None] == labels[..., None, :]
    expected = np.repeat([0, 1], 20)
    assert (together[:, 0] == (expected[:, None] == expected)).all()


def test_labels_of_another_length_are_refused_before_sampling(model):
    start = dps.dp_means(ROWS[:30], 80.0)
    with model, pytest.raises(ValueError, match="start_labels has 30 labels, but x has 40"):
        dps.DPSplitMerge(start_labels=start)


def test_labels_that_are_no_integers_are_refused(model):
    with model, pytest.raises(ValueError, match="start_labels is not a vector of integers"):
        dps.DPSplitMerge(start_labels=dps.find_map(model).weights)


@pytest.mark.slow
def test_checkpoint_of_such_a_run_continues(model, tmp_path):
    start = dps.find_map(model, random_seed=1)
    options = {"start_labels": start, "keep_labels": True}
    plain = sampled(model, start, draws=20)
    for n_draws in (10, 20):
        with model:
            step = dps.Checkpoint(tmp_path / "run", every=5, dpsplit=options)
            resumed = pm.sample(**{**SHORT, "draws": n_draws, "step": step})
    assert differences(plain, resumed) == []
