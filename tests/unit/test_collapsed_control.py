"""The control of the mixing benchmarks samples the posterior of the partition."""

import math

import numpy as np
import pytest

from benchmarks import collapsed_control
from benchmarks.partition_scores import scores_of
from benchmarks.workloads import Workload
from tests.reference.families import MvNormal
from tests.support.partitions import canonical, enumerate_partitions

_N = 6
_ALPHA = 0.7


def workload_of(n_features: int) -> Workload:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((_N, n_features)) + np.array([0, 0, 0, 3, 3, 40.0])[:, None]
    psi0 = np.eye(n_features) + 0.3
    points = rows[:3] + 0.5
    return Workload(rows, psi0, rows.mean(0), points, None, rows[:0], None, kappa0=0.2)


def log_joints(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """All partitions, and log p(rows, partition) of each, by the naive family."""
    naive = MvNormal(workload.mu0, workload.kappa0, workload.nu0, workload.psi0)
    partitions = enumerate_partitions(_N)
    found = []
    for labels in partitions:
        n_clusters = labels.max() + 1
        members = [workload.rows[labels == k] for k in range(n_clusters)]
        log_prior = n_clusters * math.log(_ALPHA) + sum(math.lgamma(len(one)) for one in members)
        log_prior += math.lgamma(_ALPHA) - math.lgamma(_ALPHA + _N)
        found.append(log_prior + sum(naive.log_marginal(one) for one in members))
    return partitions, np.array(found)


def z_score(draws: np.ndarray, values: np.ndarray, weights: np.ndarray) -> float:
    """How far the mean of correlated draws is from the exact one, by means of 40 batches."""
    batches = draws[: len(draws) // 40 * 40].reshape(40, -1).mean(1)
    return float((batches.mean() - values @ weights) / (batches.std(ddof=1) / math.sqrt(40)))


def z_scores(workload: Workload, alpha: float) -> tuple[float, float]:
    """Of K and the log joint, the control run under a concentration."""
    partitions, joints = log_joints(workload)
    weights = np.exp(joints - joints.max())
    weights /= weights.sum()
    index = {tuple(labels): at for at, labels in enumerate(partitions.tolist())}
    control = collapsed_control.control_of(workload)
    rng = np.random.default_rng(6)
    labels, _ = collapsed_control.sample(control, partitions[0], 1200, rng, alpha=alpha)
    visited = np.array([index[tuple(one)] for one in canonical(labels).tolist()])
    n_clusters = partitions.max(1) + 1.0
    of_k = z_score(n_clusters[visited], n_clusters, weights)
    return of_k, z_score(joints[visited], joints, weights)


@pytest.mark.parametrize("n_features", [1, 3])
def test_control_agrees_with_enumeration(n_features: int) -> None:
    assert np.abs(z_scores(workload_of(n_features), _ALPHA)).max() < 4.5


@pytest.mark.control
def test_another_concentration_is_caught() -> None:
    assert np.abs(z_scores(workload_of(1), 1.7 * _ALPHA)).max() > 4.5


def test_scores_are_those_of_the_naive_family() -> None:
    workload = workload_of(2)
    partitions, joints = log_joints(workload)
    some = slice(0, None, 17)
    gaps = 3 * partitions[some].astype(int)  # numbers of clusters need not be 0, 1, ..
    scores = scores_of(workload, gaps, _ALPHA)
    np.testing.assert_array_equal(scores.k, partitions[some].max(1) + 1)
    np.testing.assert_allclose(scores.log_joint, joints[some], rtol=1e-10)
    naive = MvNormal(workload.mu0, workload.kappa0, workload.nu0, workload.psi0)
    for labels, found in zip(partitions[some], scores.points, strict=True):
        for point, value in zip(workload.points, found, strict=True):
            density = _ALPHA * math.exp(naive.log_predictive(point, workload.rows[:0]))
            for k in range(labels.max() + 1):
                members = workload.rows[labels == k]
                density += len(members) * math.exp(naive.log_predictive(point, members))
            assert value == pytest.approx(math.log(density / (_ALPHA + _N)), rel=1e-10)


def test_masses_are_those_of_the_naive_family() -> None:
    """Those of a row under the other clusters, and under its own without it; far away, too."""
    workload = workload_of(2)
    control = collapsed_control.control_of(workload)
    naive = MvNormal(workload.mu0, workload.kappa0, workload.nu0, workload.psi0)
    labels = np.array([0, 0, 1, 1, 0, 0], np.int32)
    clusters = collapsed_control._empty(control, 8)
    collapsed_control._refresh(control, labels, 2, clusters)
    gap, mass = np.empty(16), np.empty(8)
    for i in range(_N):
        collapsed_control._fill_masses(control, labels, i, int(labels[i]), 2, clusters, gap, mass)
        for k in range(2):
            others = workload.rows[(labels == k) & (np.arange(_N) != i)]
            expected = math.log(len(others)) + naive.log_predictive(workload.rows[i], others)
            assert mass[k] == pytest.approx(expected, rel=1e-9)


def test_alpha_is_drawn_given_the_number_of_clusters() -> None:
    """E[log alpha] under p(alpha | K) by quadrature."""
    rng, grid = np.random.default_rng(7), np.exp(np.linspace(-9.0, 5.0, 4000))
    log_density = 2.0 * np.log(grid) - 4.0 * grid + 5.0 * np.log(grid)
    log_density += np.array([math.lgamma(a) - math.lgamma(a + 30.0) for a in grid])
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    draws = np.zeros(6001)
    for s in range(1, len(draws)):
        draws[s] = collapsed_control._draw_log_alpha(draws[s - 1], 5, 30, 2.0, 4.0, rng)
    assert abs(z_score(draws[1:], np.log(grid), weights)) < 4.5
