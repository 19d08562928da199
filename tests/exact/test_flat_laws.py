"""With a flat likelihood every move must reproduce the law of the partition, whatever the law.

The number of clusters of 30 observations is compared with a recursion over customers.  Level 1e-5
each.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition_law import PartitionLaw, finite_mixture
from tests.support.flat import flat_target
from tests.support.moves import MOVES, PUBLISHED_FOR_EVERY_LAW, Move
from tests.support.quick import slow_unless
from tests.support.statistics import LEVEL, count_test

N_OBS, _CHAINS, _DRAWS = 30, 10, 2000


class Rule(NamedTuple):
    """How customers are seated: masses of joining a table of a size, and of opening beside k."""

    joining: Callable[[np.ndarray], np.ndarray]
    opening: Callable[[int], float]


def pitman_yor(alpha: float, discount: float) -> Rule:
    return Rule(lambda sizes: sizes - discount, lambda k: alpha + discount * k)


def components(gamma: float, n_components: int) -> Rule:
    return Rule(lambda sizes: sizes + gamma, lambda k: gamma * (n_components - k))


LAWS = {
    "Pitman-Yor": (PartitionLaw(0.3, 0.5), pitman_yor(0.5, 0.3)),
    "Pitman-Yor, negative strength": (PartitionLaw(0.2, -0.1), pitman_yor(-0.1, 0.2)),
    "finite": (finite_mixture(0.7, 6), components(0.7, 6)),
}
_MOVES = (
    "slice",
    "collapsed",
    "anchored",
    "informed",
    "partial scan",
    "exact kernel",
    *PUBLISHED_FOR_EVERY_LAW,
)
_QUICK = (("collapsed", "Pitman-Yor"), ("collapsed", "finite"))


def n_clusters_under(rule: Rule) -> np.ndarray:
    """P(K = k) for k = 0 .. N, (N + 1,)."""
    law = np.zeros(N_OBS + 1)
    # The first customer opens a table whatever the strength.
    law[1] = 1.0
    opening = np.array([rule.opening(k) for k in range(N_OBS + 1)])
    # The masses of all tables together depend on their number and on the customers alone.
    joining_one = float(rule.joining(np.ones(1))[0]) - 1.0
    for n in range(1, N_OBS):
        opens = opening / (opening + n + joining_one * np.arange(N_OBS + 1))
        law[1:] = (1.0 - opens[1:]) * law[1:] + opens[:-1] * law[:-1]
    return law


def seated(rule: Rule, rng: np.random.Generator) -> np.ndarray:
    """Labels of one partition, customer by customer."""
    sizes, labels = np.ones(1), np.zeros(N_OBS, np.int32)
    for i in range(1, N_OBS):
        masses = np.append(rule.joining(sizes), rule.opening(len(sizes)))
        labels[i] = rng.choice(len(masses), p=masses / masses.sum())
        sizes = np.bincount(labels[: i + 1]).astype(float)
    return labels


def p_value(move: Move, law: PartitionLaw, rule: Rule, rng: np.random.Generator) -> float:
    """P-value of the law of K; each chain begins from the prior."""
    target = flat_target(N_OBS, 1.0)._replace(law=law)
    draws = np.empty((_CHAINS, _DRAWS), np.int64)
    for chain in range(_CHAINS):
        state = sampler.resume(target, seated(rule, rng))
        for draw in range(_DRAWS):
            state = move(target, state, rng)
            draws[chain, draw] = len(state.stats)
    return count_test(draws, n_clusters_under(rule))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("move", "name"),
    slow_unless(_QUICK.__contains__, [(move, name) for move in _MOVES for name in LAWS]),
)
def test_law_is_recovered(move: str, name: str, rng: np.random.Generator) -> None:
    assert p_value(MOVES[move], *LAWS[name], rng) > LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("move", ["slice", "collapsed", "exact kernel", *PUBLISHED_FOR_EVERY_LAW])
def test_moves_without_the_discount_are_caught(move: str, rng: np.random.Generator) -> None:
    law, rule = LAWS["Pitman-Yor"]
    assert p_value(MOVES[move], law._replace(discount=0.0), rule, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_moves_with_a_component_more_are_caught(rng: np.random.Generator) -> None:
    rule = LAWS["finite"][1]
    assert p_value(MOVES["exact kernel"], finite_mixture(0.7, 7), rule, rng) < LEVEL
