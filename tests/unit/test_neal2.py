"""The marginal sampler: the law of a label given parameters, and that of a new cluster."""

import numpy as np
import pytest
from scipy import stats

from pymc_dpsplit import sampler
from pymc_dpsplit.components.base import load_tile
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch
from pymc_dpsplit.samplers.neal2 import draw_position, found_cluster, marginal_sweep
from pymc_dpsplit.samplers.neal8 import begin_clusters, leave_cluster
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.statistics import LEVEL

ALPHA, N_DRAWS = 1.7, 2000
ROWS = dataset_of("Normal", "overlapping", 1)
LABELS = np.array([0, 0, 1, 0, 2, 1, 0, 0], np.int32)
TARGET = target_of(component_of("Normal", 1), ROWS, ALPHA)
PRIOR, DATA, LAW = TARGET
TWIN = twin_of("Normal", 1)
LOG_ALONE = np.array([TWIN.log_marginal(row[None]) for row in ROWS])


def clusters_of(rng: np.random.Generator):
    return begin_clusters(PRIOR, LABELS, sampler.resume(TARGET, LABELS).stats, rng)


def test_an_observation_joins_by_size_times_density_or_founds_by_the_marginal(
    rng: np.random.Generator,
) -> None:
    clusters, i = clusters_of(rng), 3
    clusters.log_density[:3, i] = [-1.0, -2.0, -0.5]
    n_clusters = leave_cluster(clusters, 0, 1.0, 3)
    assert n_clusters == 3
    found = np.zeros(4)
    for _ in range(N_DRAWS):
        p = draw_position(LAW, i, 1.0, LOG_ALONE[i], clusters, n_clusters, rng)
        found[3 if p == 3 else clusters.slots[p]] += 1
    mass = np.array([4.0, 2.0, 1.0, ALPHA]) * np.exp([-1.0, -2.0, -0.5, LOG_ALONE[i]])
    assert stats.chisquare(found, N_DRAWS * mass / mass.sum()).pvalue > LEVEL


def test_a_cluster_that_loses_its_only_member_is_gone(rng: np.random.Generator) -> None:
    clusters = clusters_of(rng)
    assert leave_cluster(clusters, 2, 1.0, 3) == 2
    assert 2 not in clusters.slots[:2]


def test_parameters_of_a_new_cluster_are_drawn_given_its_observation(
    rng: np.random.Generator,
) -> None:
    clusters, i, mu = clusters_of(rng), 4, np.empty(N_DRAWS)
    rows, tile = new_rows(), begin_tile(PRIOR, DATA)
    fill_range(rows, 0, len(ROWS))
    load_tile(PRIOR, DATA, rows, tile)
    for s in range(N_DRAWS):
        found_cluster(PRIOR, DATA, tile, i, clusters, 5, new_scratch(4), rng)
        drawn = component_of("Normal", 1).unpack(clusters.params[5:6], PRIOR.shift)
        mu[s] = np.ravel(drawn["mu"])[0]
    exact = TWIN.draw_parameters(rng, ROWS[i : i + 1], N_DRAWS)["mu"]
    assert stats.ks_2samp(mu, exact).pvalue > LEVEL
    density = TWIN.log_density(ROWS, {name: value[0] for name, value in drawn.items()})
    np.testing.assert_allclose(clusters.log_density[5, : len(ROWS)], density, rtol=1e-9)


def test_statistics_are_those_of_the_labels(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(3 * TILE + 5, 1))
    target = target_of(component_of("Normal", 1), rows, 30.0)
    log_alone = np.array([TWIN.log_marginal(row[None]) for row in rows])
    # More clusters are founded than there is room for at the start.
    labels = np.zeros(len(rows), np.int32)
    found = sampler.resume(target, labels).stats
    for _ in range(5):
        found = marginal_sweep(target, labels, found, log_alone, rng)
        np.testing.assert_array_equal(found, sampler.resume(target, labels).stats)
    assert len(found) > 10


def test_a_draw_of_the_kernel_counts_no_attempts(rng: np.random.Generator) -> None:
    schedule = sampler.Schedule(2, 0.0, np.empty(0, np.int64))
    state, counts = sampler.advance("neal2", TARGET, sampler.resume(TARGET, LABELS), rng, schedule)
    assert not counts.any()
    assert state.stats[:, 0].sum() == pytest.approx(len(ROWS))
