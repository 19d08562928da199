"""What the benchmark of the marginalized sampler says of its chains."""

import numpy as np
import pytest

from benchmarks import samplers
from benchmarks.marginalized import Chains, autocorrelation, iterations_to_arrive
from benchmarks.partition_scores import Scores
from pymc_dpsplit.sampler import KERNELS


def test_autocorrelation_is_that_of_the_process():
    rng, trace = np.random.default_rng(1), np.zeros((4, 20_000))
    for draw in range(1, trace.shape[1]):
        trace[:, draw] = 0.8 * trace[:, draw - 1] + rng.standard_normal(4)
    lags, found = autocorrelation(trace)
    assert lags[0] == 1
    assert found == pytest.approx(0.8**lags, abs=0.04)
    assert not autocorrelation(np.ones((2, 40)))[1].any()


def test_chain_arrives_where_it_is_later():
    later = np.array([-11.0, -9.0])
    scores = [Scores(np.zeros(2), later, np.zeros((2, 3)))] * 2
    first = [np.array([-90.0, -50.0, -12.0, -9.0]), np.array([-11.0, -10.0])]
    assert iterations_to_arrive(Chains(scores, first, np.ones((2, 2)), 0.1, 1)) == 2.0


def test_effective_draws_are_those_of_all_iterations():
    trace = np.random.default_rng(1).standard_normal((4, 1000))
    chains = Chains([], [], trace.copy(), 0.001, 5)
    # 4000 draws, each of five iterations of a millisecond.
    assert chains.effective(trace) == pytest.approx(200.0, rel=0.1)
    assert chains.effective(chains.numbers) == pytest.approx(1000.0, rel=0.1)


def test_every_kernel_is_compared_and_named_once():
    variants = samplers.variants()
    names = [variant.name for variant in variants]
    assert len(set(names)) == len(names)
    assert set(KERNELS) <= set(names)
    exact = {variant.name for variant in variants if variant.is_exact}
    assert {"auto", "neal2", "chang-fisher with repaired=True"} <= exact
    assert "chang-fisher" not in exact
