"""The collapsed scan of groups of rows and of known labels, against joint densities by hand."""

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.components.shared_labels.items import SharedLabels
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.collapsed.scan import collapsed_scan, log_densities_alone
from pymc_dpsplit.moves.partition import gather_stats, log_joint
from pymc_dpsplit.moves.partition_law import PartitionLaw
from tests.support.choice import chosen
from tests.support.families import component_of
from tests.support.families import dataset_of as rows_of
from tests.support.shared_labels import known_labels, shared_labels, target_of_groups

ITEMS = {
    "known labels": known_labels(np.array([4, 0, 4, 2, -1, 2, -1, 2])),
    "groups with counts": shared_labels(8),
}
LAWS = PartitionLaw(0.0, 0.7), PartitionLaw(0.3, 0.4)
_N_ITEMS = 5


def _masses(target: sampler.Target, clusters: list[set[int]], i: int) -> np.ndarray:
    """Joint density with item i in each cluster that has others, and in a new one."""
    others = [members - {i} for members in clusters]
    log_mass = np.full(len(clusters) + 1, -np.inf)
    for p in [*(p for p, members in enumerate(others) if members), len(clusters)]:
        joined = [set(members) for members in [*others, set()]]
        joined[p].add(i)
        labels = np.empty(_N_ITEMS, np.int32)
        for k, members in enumerate(filter(None, joined)):
            labels[sorted(members)] = k
        log_mass[p] = log_joint(target, sampler.resume(target, labels).stats)
    return np.exp(log_mass - log_mass.max())


def _naive_scan(
    target: sampler.Target, clusters: list[set[int]], rng: np.random.Generator
) -> list[set[int]]:
    """Gibbs on sets; an empty set is a gap, which the next new cluster fills."""
    for i in range(_N_ITEMS):
        own = next(p for p, members in enumerate(clusters) if i in members)
        goal = chosen(_masses(target, clusters, i), rng.random())
        if goal == len(clusters) and clusters[own] == {i}:
            continue
        if goal == len(clusters):
            clusters = [*clusters, set()]
            goal = next(p for p, members in enumerate(clusters) if not members)
        clusters[own].remove(i)
        clusters[goal].add(i)
    return [members for members in clusters if members]


@pytest.mark.parametrize("law", LAWS, ids=["DP", "Pitman-Yor"])
@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize("family", [("Normal", 1), ("MvNormal", 2), ("Poisson", 2)])
def test_scan_draws_from_the_joint_density(
    family: tuple[str, int], items: str, law: PartitionLaw
) -> None:
    """The same labels from the same uniforms; the clusters are numbered by their positions."""
    shared: SharedLabels = ITEMS[items]
    rows, everyone = rows_of(family[0], "overlapping", family[1]), np.arange(_N_ITEMS)
    target = target_of_groups(component_of(*family), rows, shared, 1.0)._replace(law=law)
    log_alone = log_densities_alone(target.prior, target.data, everyone)
    labels = np.array([0, 1, 2, 1, 0], np.int32)
    stats = gather_stats(target.prior, target.data, labels, 3)
    ours, naive = np.random.default_rng(8), np.random.default_rng(8)
    n_changed = 0
    for _ in range(12):
        before = labels.copy()
        sets = [set(np.flatnonzero(labels == k).tolist()) for k in cluster_order(labels, stats)]
        stats = collapsed_scan(target, labels, stats, ours, everyone, log_alone)
        sets = _naive_scan(target, sets, naive)
        assert len(stats) == len(sets)
        for k, members in enumerate(sets):
            assert set(np.flatnonzero(labels == k).tolist()) == members
        fresh = gather_stats(target.prior, target.data, labels, len(sets))
        np.testing.assert_allclose(stats, fresh, rtol=1e-9, atol=1e-9)
        n_changed += not np.array_equal(before, labels)
    assert n_changed > 1
