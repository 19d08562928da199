"""Split/merge attempts: their number, their random numbers, and iterations by threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.streams import new_stream, next_index, next_key, next_uniform
from pymc_dpsplit.moves.n_attempts import n_attempts
from pymc_dpsplit.moves.partition_law import PartitionLaw
from tests.support.families import component_of, target_of
from tests.support.statistics import LEVEL


def target_for(
    n_obs: int, family: str, rng: np.random.Generator, law: PartitionLaw | None = None
) -> sampler.Target:
    """Three clouds that overlap: splits and merges are often accepted."""
    centres = np.array([[-1.5, 0.0], [1.5, 0.0], [0.0, 2.0]])
    rows = centres[rng.integers(3, size=n_obs)] + 0.8 * rng.standard_normal((n_obs, 2))
    target = target_of(component_of(family, 2), rows, 2.0)
    return target if law is None else target._replace(law=law)


@pytest.mark.compiled
@pytest.mark.parametrize("form", ["exact", "greedy"])
def test_iterations_do_not_depend_on_threads(form: str, rng: np.random.Generator) -> None:
    target = target_for(9000, "MvNormal", rng)
    state = sampler.start(target, rng, 6)
    schedule = sampler.Schedule(5, 2.5, np.arange(0, 9000, 500))
    alone, counted = sampler.advance(form, target, state, np.random.default_rng(3), schedule)
    with ThreadPoolExecutor(3) as pool:
        shared, acceptance_counts = sampler.advance(
            form, target, state, np.random.default_rng(3), schedule, pool
        )
    np.testing.assert_array_equal(alone.labels, shared.labels)
    np.testing.assert_array_equal(alone.stats, shared.stats)
    np.testing.assert_array_equal(counted, acceptance_counts)
    assert counted[[0, 2]].sum() > 0


@pytest.mark.parametrize(
    ("attempts", "n_obs", "possible"),
    [
        (2.0, 100, {2}),
        (2.0, 10**5, {2}),
        (1.3, 100, {1, 2}),
        (1.3, 10**5, {0, 8}),
        (0.0, 10**5, {0}),
    ],
)
def test_attempts_are_as_many_as_planned(
    attempts: float, n_obs: int, possible: set[int], rng: np.random.Generator
) -> None:
    made = np.array([n_attempts(attempts, n_obs, rng) for _ in range(4000)])
    assert set(made.tolist()) == possible
    if len(possible) == 2:
        least, most = min(possible), max(possible)
        share = (attempts - least) / (most - least)
        assert stats.binomtest(int((made == most).sum()), len(made), share).pvalue > LEVEL


def test_streams_are_uniform_and_do_not_depend_on_order() -> None:
    ones, others = (new_stream(np.uint64(key)) for key in (3, 2**63 + 3))
    mixed = np.array([[next_uniform(ones), next_uniform(others)] for _ in range(20_000)])
    again = new_stream(np.uint64(3))
    np.testing.assert_array_equal(mixed[:, 0], [next_uniform(again) for _ in range(20_000)])
    for column in mixed.T:
        assert stats.kstest(column, "uniform").pvalue > LEVEL
        assert stats.pearsonr(column[:-1], column[1:]).pvalue > LEVEL
    assert stats.pearsonr(mixed[:, 0], mixed[:, 1]).pvalue > LEVEL
    counts = np.bincount([next_index(again, 7) for _ in range(7000)], minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > LEVEL
    bits = np.array([int(next_key(again)) >> shift & 1 for shift in range(64) for _ in range(500)])
    assert stats.binomtest(int(bits.sum()), len(bits)).pvalue > LEVEL
