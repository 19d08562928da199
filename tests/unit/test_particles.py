"""Particles against all partitions: estimates of the evidence, and of the law of the partition."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from pymc_dpsplit.samplers import particles
from pymc_dpsplit.samplers.particles import log_masses, resampled, run_particles
from tests.support.controls import altered
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.partitions import (
    enumerate_partitions,
    exact_posterior,
    n_clusters_law,
    subset_log_marginals,
)
from tests.support.statistics import LEVEL, combine

ALPHA = 1.5
ROWS = dataset_of("Normal", "overlapping", 1)[:5]
TARGET = target_of(component_of("Normal", 1), ROWS, ALPHA)
LOG_ALONE = np.array([twin_of("Normal", 1).log_marginal(row[None]) for row in ROWS])
LAW = n_clusters_law(exact_posterior(twin_of("Normal", 1), ROWS, ALPHA), len(ROWS))
ORDER = np.array([2, 0, 4, 1, 3])


# Few rows hardly change the weights: resample whenever they differ at all.
OFTEN = altered(run_particles, _LEAST_SHARE=1.0)


def log_evidence() -> float:
    """Marginal likelihood of the rows, by adding up all partitions."""
    log_marginals, terms = subset_log_marginals(twin_of("Normal", 1), ROWS), []
    for labels in enumerate_partitions(len(ROWS)):
        total = gammaln(ALPHA) - gammaln(ALPHA + len(ROWS))
        for k in set(labels):
            members = labels == k
            total += np.log(ALPHA) + gammaln(members.sum())
            total += log_marginals[members @ 2 ** np.arange(len(ROWS))]
        terms.append(total)
    return float(logsumexp(terms))


def p_value(run, rng: np.random.Generator, n_runs: int = 150, n_particles: int = 12) -> float:
    """P-value of the law of K, each run weighted by its evidence: that estimate is unbiased."""
    found, exact, n_all = np.empty((n_runs, len(ROWS) + 1)), log_evidence(), 0
    for i in range(n_runs):
        labels, log_weights, log_z, n_resampled = run(TARGET, ORDER, LOG_ALONE, n_particles, rng)
        n_all += n_resampled
        assert logsumexp(log_weights) == pytest.approx(0.0, abs=1e-9)
        n_clusters = labels.max(axis=1) + 1
        law = np.bincount(n_clusters, np.exp(log_weights), len(ROWS) + 1)
        found[i] = law * np.exp(log_z - exact)
    assert n_all > 0 or run is not OFTEN
    deviation = np.column_stack([found[:, 1:] - LAW[1:], found.sum(axis=1) - 1.0])
    scatter = deviation.std(axis=0, ddof=1) / np.sqrt(n_runs)
    return combine(2.0 * stats.t.sf(np.abs(deviation.mean(axis=0)) / scatter, n_runs - 1))


def test_evidence_and_partition_are_estimated_without_bias(rng: np.random.Generator) -> None:
    assert p_value(OFTEN, rng) > LEVEL


@pytest.mark.control
def test_choices_before_resampling_by_other_masses_are_caught(rng: np.random.Generator) -> None:
    def without_prior(target, i, own, caches, n_clusters, log_alone, out):
        total = log_masses(target, i, own, caches, n_clusters, log_alone, out)
        out[n_clusters] -= np.log(ALPHA)
        return total

    assert p_value(altered(run_particles, log_masses=without_prior), rng) < LEVEL


def test_resampling_copies_in_proportion_to_weight(rng: np.random.Generator) -> None:
    weights, n_draws = np.array([0.05, 0.5, 0.3, 0.15]), 4000
    counts = np.zeros((n_draws, 4))
    for i in range(n_draws):
        source = resampled(np.log(weights), rng.random())
        counts[i] = np.bincount(source, minlength=4)
        # Each is copied as often as its expected number, rounded down or up; those stay in place.
        assert (np.abs(counts[i] - 4 * weights) < 1.0).all()
        assert all(source[p] == p for p in np.flatnonzero(counts[i]))
    np.testing.assert_allclose(counts.mean(axis=0), 4 * weights, atol=0.06)


def test_particles_have_room_for_many_clusters(rng: np.random.Generator) -> None:
    rows = 50.0 * np.arange(20.0)[:, None]
    target = target_of(component_of("Normal", 1), rows, 1e4)
    log_alone = np.full(20, -5.0)
    labels, _, log_z, _ = particles.run_particles(target, np.arange(20), log_alone, 3, rng)
    assert labels.max() > 15
    assert np.isfinite(log_z)
