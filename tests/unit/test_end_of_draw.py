"""What follows the iterations of a draw, against the moves and functions that it is made of."""

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.measure import draw_measure
from pymc_dpsplit.moves.partition import entropy, log_joint
from tests.support.families import component_of, target_of

LABELS = np.array([0, 1, 1, 2, 2, 2, 1, 3], np.int32)


@pytest.fixture
def target(rng: np.random.Generator) -> sampler.Target:
    return target_of(component_of("Normal", 1), rng.normal(size=(len(LABELS), 1)), 1.0)


def test_measure_is_that_of_draw_measure_in_order_of_weight(target: sampler.Target) -> None:
    state = sampler.resume(target, LABELS)
    measure = sampler.measure(target, state, np.random.default_rng(1))
    log_weights, log_rest, params = draw_measure(
        target, state.stats, np.random.default_rng(1), cluster_order(state.labels, state.stats)
    )
    assert (np.diff(measure.weights) <= 0.0).all()
    np.testing.assert_allclose(measure.weights[measure.rank], np.exp(log_weights), rtol=1e-14)
    np.testing.assert_array_equal(measure.params[measure.rank], params)
    assert measure.log_rest == log_rest
    assert measure.sum_log_weights == pytest.approx(log_weights.sum(), rel=1e-14)


def test_summary_is_that_of_the_partition(target: sampler.Target) -> None:
    state = sampler.resume(target, LABELS)
    measure = sampler.measure(target, state, np.random.default_rng(1))
    assert measure.log_joint == log_joint(target, state.stats)
    assert measure.entropy == entropy(state.stats)
    assert measure.largest_share == 3.0 / len(LABELS)
