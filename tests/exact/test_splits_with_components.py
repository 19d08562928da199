"""Splits and merges that take a component with them, in a mixture of finite mixtures.

Nothing else moves the number of components M; collapsed sweeps move the partition given M.  Both
are compared with enumeration, level 1e-5.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.collapsed.scan import collapsed_sweep
from pymc_dpsplit.moves.partition_law import PartitionLaw, finite_mixture
from pymc_dpsplit.moves.split_merge.anchored import anchored_attempt
from pymc_dpsplit.moves.split_merge.with_component import component_attempt
from pymc_dpsplit.moves.strength import StrengthPrior
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.sampler import resume
from pymc_dpsplit.variables import concentration_prior, find_mixtures
from tests.support.components_move import joint_law
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.partitions import enumerate_partitions, n_clusters_law, partition_index
from tests.support.statistics import LEVEL, combine, count_test, partition_test

GAMMA, N_OBS, N_CHAINS, N_DRAWS = 1.2, 6, 64, 600
NUMBERS = np.arange(80)
# A distribution on all numbers, and one that ends on both sides.
PRIORS: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    "geometric": (lambda: pm.Geometric.dist(0.3), stats.geom(0.3).pmf(NUMBERS)),
    "uniform": (lambda: pm.DiscreteUniform.dist(2, 5), stats.randint(2, 6).pmf(NUMBERS)),
}


@jitted
def without_prior_of_components(target, labels, cluster_stats, rng, strength, counts):
    """The attempt given one component more, which is taken without its prior."""
    law = PartitionLaw(target.law.discount, strength.present[1] - target.law.discount)
    before = cluster_stats.shape[0]
    given = Target(target.prior, target.data, law)
    cluster_stats = anchored_attempt(given, labels, cluster_stats, rng, counts)
    more = cluster_stats.shape[0] - before
    strength.present[0] = math.log(math.exp(strength.present[0]) + more)
    strength.present[1] -= more * target.law.discount
    return cluster_stats


def chain_of(attempt: Any) -> Any:
    """Return a function that writes labels (S, N) and M (S,) of a chain."""

    @jitted
    def run(target, labels, cluster_stats, rng, strength, kept, numbers):
        counts = np.zeros(4, np.int64)
        for s in range(numbers.shape[0]):
            law = PartitionLaw(target.law.discount, strength.present[1])
            target = Target(target.prior, target.data, law)
            cluster_stats = collapsed_sweep(target, labels, cluster_stats, rng)
            for _ in range(3):
                cluster_stats = attempt(target, labels, cluster_stats, rng, strength, counts)
            kept[s] = labels
            numbers[s] = int(math.exp(strength.present[0]))

    return run


def compiled_prior(prior: Callable[[], Any]) -> StrengthPrior:
    """Prior of M as kernels read it, from a model."""
    with pm.Model() as model:
        family = dps.Normal(0.0, 0.1, 2.0, 1.0)
        dps.MFMixture("x", GAMMA, family, n_components=prior(), observed=[0.0, 1.0])
    point = model.initial_point()
    of = concentration_prior(find_mixtures(model)["x"], model, point)
    assert of is not None
    return of.strength_prior(point, GAMMA, np.random.default_rng(0))


def p_value(name: str, attempt: Any, rng: np.random.Generator) -> float:
    """P-value of the partition, of the number of clusters and of M."""
    declare, prior = PRIORS[name]
    rows = dataset_of("Normal", "overlapping", 1)[:N_OBS]
    joint = joint_law(prior, GAMMA, twin_of("Normal", 1), rows)
    strength, run = compiled_prior(declare), chain_of(attempt)
    target = target_of(component_of("Normal", 1), rows, 1.0)
    labels = np.empty((N_CHAINS, N_DRAWS, N_OBS), np.int32)
    numbers = np.empty((N_CHAINS, N_DRAWS), np.int64)
    starts = rng.choice(joint.size, N_CHAINS, p=joint.ravel())
    for chain, start in enumerate(starts):
        m, which = np.unravel_index(start, joint.shape)
        law = finite_mixture(GAMMA, int(m))
        state = resume(target._replace(law=law), enumerate_partitions(N_OBS)[which])
        strength.present[:] = math.log(m + rng.random()), law.strength
        at = target._replace(law=law)
        run(at, state.labels, state.stats, rng, strength, labels[chain], numbers[chain])
    exact = joint.sum(0)
    n_clusters = labels.max(axis=2).astype(np.int64) + 1
    assert (n_clusters <= numbers).all()
    return combine(
        partition_test(partition_index(labels), exact),
        count_test(n_clusters, n_clusters_law(exact, N_OBS)),
        count_test(np.minimum(numbers, len(prior) - 1), joint.sum(1)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIORS)
def test_attempts_keep_the_joint_posterior(name: str, rng: np.random.Generator) -> None:
    assert p_value(name, component_attempt, rng) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_component_without_its_prior_is_caught(rng: np.random.Generator) -> None:
    assert p_value("geometric", without_prior_of_components, rng) < LEVEL
