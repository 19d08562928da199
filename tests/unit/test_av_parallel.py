"""Processors of clusters: partition and processors by listing both, and the published ratio."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chisquare

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.samplers.av_parallel import (
    draw_processors,
    local_labels,
    local_sweeps,
    log_factorials,
    published_processors,
    shares_of,
)
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.partitions import enumerate_partitions, partition_index, subset_log_marginals
from tests.support.statistics import LEVEL, partition_test

ALPHA, N_PROCESSORS = 4.0, 2
EQUAL, UNEVEN = np.array([0.5, 0.5]), np.array([0.8, 0.2])
ROWS = dataset_of("Normal", "overlapping", 1)[:4]
TARGET = target_of(component_of("Normal", 1), ROWS, ALPHA)
PARTITIONS = enumerate_partitions(len(ROWS))
# The processor of every observation.
ON = np.array(list(product(range(N_PROCESSORS), repeat=len(ROWS))))


def law_of_both(shares: np.ndarray) -> np.ndarray:
    """Probability of every partition (rows) and processors of observations (columns).

    Dirichlet-multinomial processors, and on each a Chinese restaurant with alpha times its share.
    """
    log_marginals = subset_log_marginals(twin_of("Normal", 1), ROWS)
    log_p = np.full((len(PARTITIONS), len(ON)), -np.inf)
    for i, labels in enumerate(PARTITIONS):
        for j, on in enumerate(ON):
            if any(len(set(on[labels == k])) > 1 for k in labels):
                continue
            total = 0.0
            for p in range(N_PROCESSORS):
                n_here, share = (on == p).sum(), ALPHA * shares[p]
                total += gammaln(n_here + share) - gammaln(share)
                total += gammaln(share) - gammaln(n_here + share)
            for k in set(labels):
                members = labels == k
                share = ALPHA * shares[on[members][0]]
                total += math.log(share) + gammaln(members.sum())
                total += log_marginals[members @ 2 ** np.arange(len(ROWS))]
            log_p[i, j] = total
    return np.exp(log_p - logsumexp(log_p))


LAW = law_of_both(EQUAL)


def p_value(
    sweeps, n_chains: int, n_draws: int, rng: np.random.Generator, shares: np.ndarray = EQUAL
) -> float:
    """P-value of partition and processors after local sweeps and a global step, repeated."""
    law = law_of_both(shares)
    log_alone = np.array([twin_of("Normal", 1).log_marginal(row[None]) for row in ROWS])
    drawn = np.empty((n_chains, n_draws), np.int64)
    for chain, cell in enumerate(rng.choice(law.size, n_chains, p=law.ravel())):
        start, j = np.unravel_index(cell, law.shape)
        labels, stats, _, _ = sampler.resume(TARGET, PARTITIONS[start])
        processors = np.array([ON[j][labels == k][0] for k in range(len(stats))])
        for draw in range(n_draws):
            stats, processors = sweeps(TARGET, labels, stats, processors, shares, log_alone, rng)
            processors = draw_processors(labels, stats, shares, rng)
            j = processors[labels] @ N_PROCESSORS ** np.arange(len(ROWS))[::-1]
            drawn[chain, draw] = partition_index(labels) * len(ON) + j
    return partition_test(drawn, law.ravel())


def test_processors_are_uniform_given_the_partition() -> None:
    for of_partition, labels in zip(LAW, PARTITIONS, strict=True):
        possible = of_partition[of_partition > 0.0]
        assert len(possible) == N_PROCESSORS ** (labels.max() + 1)
        np.testing.assert_allclose(possible, possible[0], rtol=1e-10)


def test_processors_have_their_shares_given_the_partition() -> None:
    for of_partition, labels in zip(law_of_both(UNEVEN), PARTITIONS, strict=True):
        for j, on in enumerate(ON):
            if all(len(set(on[labels == k])) == 1 for k in labels):
                of_clusters = [UNEVEN[on[labels == k][0]] for k in range(labels.max() + 1)]
                exact = of_partition.sum() * np.prod(of_clusters)
                assert of_partition[j] == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("shares", [EQUAL, UNEVEN], ids=["equal", "uneven"])
def test_partition_and_processors_keep_their_law(
    shares: np.ndarray, rng: np.random.Generator
) -> None:
    assert p_value(local_sweeps, 40, 40, rng, shares) > LEVEL


@pytest.mark.control
def test_undivided_concentration_is_caught(rng: np.random.Generator) -> None:
    def undivided(target, labels, stats, processors, shares, log_alone, rng):
        more = target._replace(law=dirichlet_process(ALPHA * N_PROCESSORS))
        return local_sweeps(more, labels, stats, processors, shares, log_alone, rng)

    assert p_value(undivided, 40, 40, rng) < LEVEL


@pytest.mark.control
def test_equal_concentrations_under_uneven_shares_are_caught(rng: np.random.Generator) -> None:
    def equal(target, labels, stats, processors, shares, log_alone, rng):
        return local_sweeps(target, labels, stats, processors, EQUAL, log_alone, rng)

    assert p_value(equal, 40, 80, rng, UNEVEN) < LEVEL


def test_published_ratio_decides(rng: np.random.Generator) -> None:
    # Two clusters of one size are apart twice as often as together, instead of as often.
    labels, stats, _, _ = sampler.resume(TARGET, np.array([0, 1, 2, 2]))
    processors, apart = np.zeros(3, np.int64), 0
    for _ in range(3000):
        processors = published_processors(labels, stats, processors, EQUAL, rng)
        apart += processors[0] != processors[1]
    assert abs(apart / 3000 - 2.0 / 3.0) < 0.05
    assert abs(apart / 3000 - 0.5) > 0.1


def test_ratio_is_that_of_the_paper() -> None:
    # Three clusters of size 1 and two of size 2: a = (2, 1) and (1, 1) on two processors.
    sizes = np.array([1.0, 2.0, 1.0, 2.0, 1.0])
    assert log_factorials(sizes, np.array([0, 0, 1, 1, 0])) == pytest.approx(math.log(2.0))
    assert log_factorials(sizes, np.array([0, 1, 0, 1, 0])) == pytest.approx(math.log(12.0))
    assert log_factorials(sizes, np.arange(5)) == 0.0


def test_local_labels() -> None:
    labels, processors = np.array([0, 1, 2, 1, 0], np.int32), np.array([1, 0, 1])
    own, clusters, rows = local_labels(labels, processors, 1)
    np.testing.assert_array_equal(own, [0, -1, 1, -1, 0])
    np.testing.assert_array_equal(clusters, [0, 2])
    np.testing.assert_array_equal(rows, [0, 2, 4])


def test_observations_stay_on_their_processor(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(30, 1))
    target = target_of(component_of("Normal", 1), rows, 3.0)
    labels, stats, _, _ = sampler.resume(target, np.arange(30) % 7)
    processors = np.array([0, 2, 1, 0, 2, 0, 0])
    on = processors[labels]
    for _ in range(5):
        stats, processors = local_sweeps(
            target, labels, stats, processors, np.full(4, 0.25), np.zeros(30), rng
        )
        np.testing.assert_array_equal(processors[labels], on)
        np.testing.assert_array_equal(stats, sampler.resume(target, labels).stats)


@pytest.mark.parametrize(
    "options", [{"processors": 3}, {"processors": 3, "published": True}, {"shares": [3, 2, 1]}]
)
def test_numbers_of_clusters_do_not_matter(options: dict[str, Any]) -> None:
    rows = np.random.default_rng(1).normal(size=(30, 1))
    target = target_of(component_of("Normal", 1), rows, 3.0)
    settings = SAMPLERS["av-parallel"].settings(options)
    schedule = sampler.Schedule(3, 0.0, np.empty(0, np.int64), settings=settings)
    found = []
    for number in (np.arange(7), np.array([3, 5, 0, 1, 6, 2, 4])):
        state = sampler.resume(target, number[np.arange(30) % 7])
        rng = np.random.default_rng(3)
        for _ in range(2):
            state, _ = sampler.advance("av-parallel", target, state, rng, schedule)
        found.append(state)
    np.testing.assert_array_equal(found[0].labels, found[1].labels)
    np.testing.assert_array_equal(found[0].of_clusters, found[1].of_clusters)


def test_one_processor_is_the_collapsed_sweep() -> None:
    log_alone = np.array([twin_of("Normal", 1).log_marginal(row[None]) for row in ROWS])
    start = sampler.resume(TARGET, np.array([0, 1, 1, 2]))
    schedule = sampler.Schedule(1, 0.0, np.empty(0, np.int64))
    expected, _ = sampler.advance("collapsed", TARGET, start, np.random.default_rng(4), schedule)
    labels = start.labels.copy()
    local_sweeps(
        TARGET,
        labels,
        start.stats,
        np.zeros(3, np.int64),
        np.ones(1),
        log_alone,
        np.random.default_rng(4),
    )
    np.testing.assert_array_equal(labels, expected.labels)


def test_shares_are_those_given_or_equal() -> None:
    settings = SAMPLERS["av-parallel"].settings
    np.testing.assert_allclose(shares_of(settings({})), np.full(4, 0.25))
    np.testing.assert_allclose(shares_of(settings({"processors": 2})), [0.5, 0.5])
    np.testing.assert_allclose(shares_of(settings({"shares": (3, 1)})), [0.75, 0.25])


def test_clusters_go_to_processors_by_share(rng: np.random.Generator) -> None:
    labels, stats, _, _ = sampler.resume(TARGET, np.array([0, 1, 1, 0]))
    found = np.zeros((2, 2))
    for _ in range(3000):
        a, b = draw_processors(labels, stats, UNEVEN, rng)
        found[a, b] += 1
    assert chisquare(found.ravel(), 3000 * np.outer(UNEVEN, UNEVEN).ravel()).pvalue > LEVEL


def test_uneven_shares_cost_more_than_equal_ones() -> None:
    row = SAMPLERS["av-parallel"]
    cost = [row.cost(TARGET, 40, 0.0, row.settings({"shares": of})) for of in ([9, 1], [1, 1])]
    assert cost[0] > cost[1]
