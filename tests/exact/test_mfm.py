"""Mixtures of finite mixtures: moves of the partition and of the number of components M together.

Partition and M are compared with enumeration over both, with M given K, with forward draws, and
without data.  `pm.sample` is in `test_laws_through_pymc`.  Level 1e-5 each; the controls are
mistakes in the move of M, and moves of the partition that do not see the law.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.forward import draw_partition
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process, log_number_factor
from pymc_dpsplit.moves.split_merge.anchored import anchored_attempt
from pymc_dpsplit.variables.concentration import ConcentrationPrior
from tests.support.components_move import (
    MoveOfComponents,
    draw_number,
    given_k,
    joint_law,
    prior_of_k,
    then_components,
)
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.flat import flat_target
from tests.support.moves import MOVES, PUBLISHED_FOR_EVERY_LAW, Move, sweep
from tests.support.partitions import (
    enumerate_partitions,
    n_clusters_law,
    partition_index,
)
from tests.support.quick import slow_unless
from tests.support.statistics import (
    LEVEL,
    combine,
    count_test,
    partition_test,
    two_sample_test,
)

_N_OBS, _CHAINS, _DRAWS = 6, 64, 60
_NUMBERS = np.arange(120)
# The prior of M in a model, and its probabilities.
PRIORS: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    "geometric": (lambda: pm.Geometric.dist(0.3), stats.geom(0.3).pmf(_NUMBERS)),
    "Poisson": (lambda: 1 + pm.Poisson.dist(3.0), stats.poisson(3.0, loc=1).pmf(_NUMBERS)),
    "uniform": (lambda: pm.DiscreteUniform.dist(2, 40), stats.randint(2, 41).pmf(_NUMBERS)),
    "negative binomial": (
        lambda: 1 + pm.NegativeBinomial.dist(n=2, p=0.4),
        stats.nbinom(2, 0.4, loc=1).pmf(_NUMBERS),
    ),
}
_GAMMA = 1.2


# --- M given the number of clusters -------------------------------------------------------


def given_k_p_value(name: str, n_clusters: int, gamma: float, rng: np.random.Generator) -> float:
    declare, prior = PRIORS[name]
    move = MoveOfComponents(gamma, declare)
    rows = np.arange(float(_N_OBS))[:, None]
    labels = np.minimum(np.arange(_N_OBS), n_clusters - 1).astype(np.int32)
    target = target_of(component_of("Normal", 1), rows, 1.0)
    state = sampler.resume(target._replace(law=move.law(n_clusters)), labels)
    exact = given_k(prior, gamma, n_clusters, _N_OBS)
    drawn = np.empty((8, 250), np.int64)
    for chain in drawn:
        m = draw_number(exact, rng)
        for s in range(len(chain)):
            _, m = move(m, target._replace(law=move.law(m)), state, rng)
            chain[s] = m
    return count_test(drawn, exact)


@pytest.mark.parametrize("n_clusters", [1, 3, 6])
@pytest.mark.parametrize("name", slow_unless("Poisson".__eq__, PRIORS))
def test_number_of_components_given_that_of_clusters(
    name: str, n_clusters: int, rng: np.random.Generator
) -> None:
    gamma = 0.3 if n_clusters == 3 else _GAMMA
    assert given_k_p_value(name, n_clusters, gamma, rng) > LEVEL


def twice_the_rows(law: PartitionLaw, n_clusters: int, n_obs: int) -> float:
    return log_number_factor(law, n_clusters, 2 * n_obs)


def no_empty_components(law: PartitionLaw, n_clusters: int, n_obs: int) -> float:
    """Without the number of ways in which clusters are assigned to components."""
    free = -law.strength / law.discount - np.arange(1, n_clusters)
    if free.min(initial=1.0) <= 0.0:
        return -np.inf
    return log_number_factor(law, n_clusters, n_obs) - np.log(free).sum()


@pytest.mark.control
@pytest.mark.parametrize("broken", [twice_the_rows, no_empty_components])
def test_wrong_law_of_components_is_caught(
    broken: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pymc_dpsplit.step.concentration_move.log_number_factor", broken)
    assert given_k_p_value("Poisson", 3, _GAMMA, rng) < LEVEL


@pytest.mark.control
def test_wrong_scale_of_components_is_caught(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConcentrationPrior, "log_volume", lambda self, number: 0.0)
    assert given_k_p_value("Poisson", 3, _GAMMA, rng) < LEVEL


# --- enumeration over partitions and M ----------------------------------------------------


def p_value(move: Move, rng: np.random.Generator, name: str = "geometric") -> float:
    """P-value of the partition, of the number of clusters and of M."""
    declare, prior = PRIORS[name]
    rows = dataset_of("Normal", "overlapping", 1)[:_N_OBS]
    joint = joint_law(prior, _GAMMA, twin_of("Normal", 1), rows)
    both = then_components(move, MoveOfComponents(_GAMMA, declare))
    start_law = PartitionLaw(-_GAMMA, _GAMMA)
    target = target_of(component_of("Normal", 1), rows, 1.0)._replace(law=start_law)
    starts = rng.choice(joint.size, _CHAINS, p=joint.ravel())
    labels = np.empty((_CHAINS, _DRAWS, _N_OBS), np.int8)
    numbers = np.empty((_CHAINS, _DRAWS), np.int64)
    for chain, start in enumerate(starts):
        m, which = np.unravel_index(start, joint.shape)
        m, at = int(m), target._replace(law=PartitionLaw(-_GAMMA, _GAMMA * int(m)))
        state = sampler.resume(at, enumerate_partitions(_N_OBS)[which])
        for draw in range(_DRAWS):
            m, at, state = both(m, at, state, rng)
            labels[chain, draw], numbers[chain, draw] = state.labels, m
    exact = joint.sum(0)
    n_clusters = (labels.max(axis=2) + 1).astype(np.int64)
    return combine(
        partition_test(partition_index(labels), exact),
        count_test(n_clusters, n_clusters_law(exact, _N_OBS)),
        count_test(np.minimum(numbers, len(joint) - 1), joint.sum(1)),
    )


_MOVES = (
    "slice",
    "over-relaxed slice",
    "collapsed",
    "anchored",
    "informed",
    "transfer",
    "partial scan",
    "exact kernel",
    *PUBLISHED_FOR_EVERY_LAW,
)
_ATTEMPTS = ("anchored", "informed", "transfer", "Jain-Neal", "SAMS")  # alone they mix slowly


@pytest.mark.slow
@pytest.mark.parametrize("move", _MOVES)
def test_moves_keep_the_joint_posterior(move: str, rng: np.random.Generator) -> None:
    if move in _ATTEMPTS:
        assert p_value(then(MOVES["collapsed"], MOVES[move]), rng) > LEVEL
    else:
        assert p_value(MOVES[move], rng) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIORS)
def test_sweep_keeps_the_joint_posterior_under_each_prior(
    name: str, rng: np.random.Generator
) -> None:
    assert p_value(MOVES["over-relaxed slice"], rng, name) > LEVEL


def then(first: Move, second: Move) -> Move:
    def both(target: Any, state: Any, rng: np.random.Generator) -> Any:
        return second(target, first(target, state, rng), rng)

    return both


def ratio_of_a_dirichlet_process(target, labels, stats, rng):
    seen = target._replace(law=dirichlet_process(target.law.strength))
    return anchored_attempt(seen, labels, stats, rng, np.zeros(4, np.int64))


@pytest.mark.slow
@pytest.mark.control
def test_ratio_of_a_dirichlet_process_is_caught(rng: np.random.Generator) -> None:
    broken = then(MOVES["collapsed"], sweep(ratio_of_a_dirichlet_process))
    assert p_value(broken, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("name", ["collapsed", "Neal 2", "Neal 8"])
def test_components_that_stay_are_caught(
    name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M follows the clusters, but the moves of the partition keep the law they began with."""
    move = MoveOfComponents.__call__

    def law_kept(self, n_components, target, state, rng):
        _, number = move(self, n_components, target, state, rng)
        return target, max(number, len(state.stats))

    monkeypatch.setattr(MoveOfComponents, "__call__", law_kept)
    assert p_value(MOVES[name], rng) < LEVEL


# --- forward draws, and no data -----------------------------------------------------------


def one_step(move: Move, rng: np.random.Generator, n_obs: int = 20, n: int = 600) -> float:
    """P-value that a step leaves the law of exact forward draws of M, partition and rows."""
    declare, prior = PRIORS["Poisson"]
    components = MoveOfComponents(_GAMMA, declare)
    both = then_components(move, components)
    component = component_of("Normal", 1)
    values = component.check(component.hyperparameters, 1)
    before, after = np.empty((2, n, 6))

    def statistics(m: int, target: Any, state: Any) -> list[float]:
        sizes = state.stats[:, 0]
        together = state.labels[0] == state.labels[1]
        return [m, m**2, len(sizes), sizes.max(), together, log_joint(target, state.stats)]

    for r in range(n):
        m = draw_number(prior, rng)
        labels = draw_partition(rng, components.law(m), n_obs)
        parameters = component.draw_base(rng, values, int(labels.max()) + 1)
        rows = component.draw_rows(rng, parameters, labels)[:, None]
        target = target_of(component, rows, 1.0)._replace(law=components.law(m))
        state = sampler.resume(target, labels)
        before[r] = statistics(m, target, state)
        after[r] = statistics(*both(m, target, state, rng))
    return two_sample_test(before, after)


@pytest.mark.slow
@pytest.mark.parametrize("move", ["exact kernel", "collapsed", "Neal 2", "Neal 8"])
def test_one_step_is_invariant(move: str, rng: np.random.Generator) -> None:
    assert one_step(MOVES[move], rng) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_step_given_the_wrong_rows_is_caught(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(law: PartitionLaw, n_clusters: int, n_obs: int) -> float:
        return log_number_factor(law, n_clusters, n_obs // 2)

    monkeypatch.setattr("pymc_dpsplit.step.concentration_move.log_number_factor", half)
    assert one_step(MOVES["collapsed"], rng) < LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("move", ["collapsed", "over-relaxed slice", "Neal 2", "Neal 8"])
def test_prior_is_recovered_without_data(move: str, rng: np.random.Generator) -> None:
    declare, prior = PRIORS["Poisson"]
    n_obs, n_chains, n_draws = 12, 20, 150
    components = MoveOfComponents(_GAMMA, declare)
    both = then_components(MOVES[move], components)
    numbers = np.empty((2, n_chains, n_draws), np.int64)
    for chain in range(n_chains):
        m = draw_number(prior, rng)
        target = flat_target(n_obs, 1.0)._replace(law=components.law(m))
        state = sampler.resume(target, draw_partition(rng, components.law(m), n_obs))
        for draw in range(n_draws):
            m, target, state = both(m, target, state, rng)
            numbers[:, chain, draw] = m, len(state.stats)
    found = count_test(numbers[0], prior), count_test(numbers[1], prior_of_k(prior, _GAMMA, n_obs))
    assert combine(*found) > LEVEL
