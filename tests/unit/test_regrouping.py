"""Regrouping in early tuning: it climbs, keeps the books, and finds groups that are far apart."""

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.partition import gather_stats, log_joint
from pymc_dpsplit.moves.partition_law import PartitionLaw, finite_mixture
from pymc_dpsplit.moves.split_merge.regrouping import MOST_CLUSTERS, _regroup_some, regroup
from pymc_dpsplit.step.schedule import make_schedule
from tests.support.families import component_of, target_of

LAWS = {
    "Dirichlet": PartitionLaw(0.0, 1.0),
    "Pitman-Yor": PartitionLaw(0.3, 0.5),
    "three components": finite_mixture(1.0, 3),
}


def regrouped(target, labels, n_times, rng):
    """Labels and log joint densities after each of several regroupings."""
    labels = np.asarray(labels, np.int32).copy()
    stats = gather_stats(target.prior, target.data, labels, labels.max() + 1)
    densities = [log_joint(target, stats)]
    for _ in range(n_times):
        stats = regroup(target, labels, stats, rng)
        fresh = gather_stats(target.prior, target.data, labels, len(stats))
        np.testing.assert_allclose(stats, fresh, atol=1e-8 * np.abs(fresh).max())
        assert set(labels.tolist()) == set(range(len(stats)))
        densities.append(log_joint(target, stats))
    return labels, np.array(densities)


def far_apart(n_clusters, n_each, rng):
    """Rows of clusters that nothing confuses, and the cluster of each."""
    centres = 50.0 * rng.standard_normal((n_clusters, 2))
    truth = np.repeat(np.arange(n_clusters), n_each)
    return centres[truth] + rng.standard_normal((len(truth), 2)), truth


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("family", ["MvNormal", "Poisson", "Bernoulli"])
def test_the_joint_density_never_falls(family: str, law: str, rng: np.random.Generator) -> None:
    rows = rng.integers(0, 2, size=(30, 2)).astype(float)
    target = target_of(component_of(family, 2), rows, 1.0)._replace(law=LAWS[law])
    labels, densities = regrouped(target, np.arange(30) % 3, 12, rng)
    assert np.all(np.diff(densities) >= 0.0)
    if law == "three components":
        assert labels.max() < 3


@pytest.mark.compiled
@pytest.mark.parametrize("start", ["one cluster", "a cluster for each row", "mixed pairs"])
def test_groups_that_are_far_apart_are_found(start: str, rng: np.random.Generator) -> None:
    rows, truth = far_apart(6, 20, rng)
    target = target_of(dps.MvNormal(np.zeros(2), 0.001, 5.0, np.eye(2)), rows, 1.0)
    begins = {
        "one cluster": np.zeros(120, int),
        "a cluster for each row": np.arange(120),
        "mixed pairs": truth // 2,
    }
    labels, _ = regrouped(target, begins[start], 30, rng)
    pairs = {(int(a), int(b)) for a, b in zip(labels, truth, strict=True)}
    assert len(pairs) == 6
    assert labels.max() == 5


def test_one_row_and_equal_rows_are_left(rng: np.random.Generator) -> None:
    component = component_of("MvNormal", 2)
    for n_obs in (1, 2, 9):
        target = target_of(component, np.ones((n_obs, 2)), 1e-6)
        labels, _ = regrouped(target, np.zeros(n_obs, int), 3, rng)
        assert labels.max() == 0


@pytest.mark.compiled
def test_more_clusters_than_are_compared_at_once(rng: np.random.Generator) -> None:
    n_obs = MOST_CLUSTERS + 40
    target = target_of(component_of("Normal", 1), rng.normal(size=(n_obs, 1)), 1.0)
    labels, densities = regrouped(target, np.arange(n_obs), 2, rng)
    assert labels.max() < n_obs - 1
    assert np.all(np.diff(densities) >= 0.0)


def in_pairs(rng):
    """Rows of eight spheres, of which the highest partitions hold two or three together."""
    centres = np.repeat(2.0 * rng.standard_normal((8, 12)), 20, axis=0)
    prior = dps.MvNormal(np.zeros(12), 0.1, 14.0, np.eye(12))
    return target_of(prior, centres + rng.standard_normal((160, 12)), 1.0)


def test_a_neighbourhood_leaves_other_clusters_alone() -> None:
    target = in_pairs(np.random.default_rng(0))
    before = np.repeat(np.arange(8, dtype=np.int32), 20)
    labels = before.copy()
    stats = gather_stats(target.prior, target.data, labels, 8)
    _regroup_some(target, labels, stats, 3, 0.0, new_stream(np.uint64(1)))
    whole = [k for k in range(8) if len(np.unique(labels[before == k])) == 1]
    alone = [k for k in whole if np.array_equal(labels == labels[20 * k], before == k)]
    assert 5 <= len(alone) < 8


@pytest.mark.compiled
def test_neighbourhoods_climb_higher_than_the_whole() -> None:
    target = in_pairs(np.random.default_rng(1))
    reached: dict[str, list[float]] = {"whole": [], "neighbourhoods": []}
    for seed in range(8):
        start = np.random.default_rng(seed).permutation(np.arange(160) % 3).astype(np.int32)
        _, densities = regrouped(target, start, 6, np.random.default_rng(seed))
        reached["neighbourhoods"].append(densities[-1])
        labels, stream = start.copy(), new_stream(np.uint64(seed))
        stats = gather_stats(target.prior, target.data, labels, 3)
        for _ in range(6):
            stats = _regroup_some(target, labels, stats, MOST_CLUSTERS, 0.0, stream)
        reached["whole"].append(log_joint(target, stats))
    assert np.mean(reached["neighbourhoods"]) > np.mean(reached["whole"]) + 5.0


def test_a_draw_leaves_most_of_its_time_to_sweeps(rng: np.random.Generator) -> None:
    """With many clusters of words, whose pairs cost more than hundreds of sweeps, there is none."""
    rows = rng.integers(0, 2, size=(300, 500)).astype(float)
    target = target_of(dps.Multinomial(np.full(500, 0.1)), rows, 1.0)
    few, many = (sampler.resume(target, np.arange(300) % k) for k in (2, 300))
    assert 0.0 < make_schedule("exact", target, few).regroupings <= 0.5
    assert make_schedule("exact", target, many).regroupings < 0.05
