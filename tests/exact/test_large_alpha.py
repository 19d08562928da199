"""Concentrations beyond the number of observations: sweeps that break no sticks."""

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition_law import (
    PartitionLaw,
    breaks_sticks,
    dirichlet_process,
    finite_mixture,
)
from tests.reference.families import DiagNormal
from tests.support.families import dataset_of, target_of
from tests.support.moves import MOVES
from tests.support.partition_laws import posterior_under, seated
from tests.support.partitions import enumerate_partitions, exact_posterior, partition_index
from tests.support.statistics import LEVEL, partition_test

pytestmark = pytest.mark.slow

_HYPERPARAMETERS = {"mu0": np.zeros(2), "kappa0": 0.1, "a0": 2.0, "b0": 1.0}
_ROWS = dataset_of("DiagNormal", "overlapping", 2)[:6]
_CHAINS, _DRAWS = 64, 200


def p_value(name: str, alpha: float, assumed: float, rng: np.random.Generator) -> float:
    """P-value over partitions of chains under `alpha` that start from exact draws for `assumed`."""
    exact = exact_posterior(DiagNormal(**_HYPERPARAMETERS), _ROWS, assumed)
    target = target_of(dps.DiagNormal(**_HYPERPARAMETERS), _ROWS, alpha)
    return chains_p_value(name, target, exact, rng)


def chains_p_value(
    name: str, target: sampler.Target, exact: np.ndarray, rng: np.random.Generator
) -> float:
    """P-value over partitions of chains of a kernel that start from exact draws."""
    starts = enumerate_partitions(len(_ROWS))[rng.choice(len(exact), _CHAINS, p=exact)]
    labels = np.empty((_CHAINS, _DRAWS, len(_ROWS)), np.int8)
    for chain, start in enumerate(starts):
        state = sampler.resume(target, start)
        for draw in range(_DRAWS):
            state = MOVES[name](target, state, rng)
            labels[chain, draw] = state.labels
    return partition_test(partition_index(labels), exact)


# Just below N = 6 sticks are broken, above they are not.
@pytest.mark.parametrize("alpha", [5.9, 6.1, 50.0])
def test_kernel_keeps_the_posterior(alpha: float, rng: np.random.Generator) -> None:
    assert breaks_sticks(dirichlet_process(alpha), len(_ROWS)) == (alpha < 6)
    assert p_value("exact kernel", alpha, alpha, rng) > LEVEL


@pytest.mark.parametrize(
    ("law", "breaks"),
    [
        (PartitionLaw(0.1, 1.0), True),
        (PartitionLaw(0.3, 0.5), True),
        (PartitionLaw(0.5, -0.2), False),
        (PartitionLaw(0.7, 0.5), False),
        (PartitionLaw(0.999, -0.9), False),
        (finite_mixture(0.1, 1000), False),
        (finite_mixture(1.0, 6), True),
        (finite_mixture(0.001, 1000), True),
    ],
)
def test_sticks_are_broken_where_they_are_few(law: PartitionLaw, breaks: bool) -> None:
    assert breaks_sticks(law, len(_ROWS)) == breaks


@pytest.mark.parametrize("law", [PartitionLaw(0.3, 0.5), PartitionLaw(0.7, 0.5)])
def test_kernel_keeps_the_posterior_under_a_large_discount(
    law: PartitionLaw, rng: np.random.Generator
) -> None:
    assert p_value_under(law, law, rng) > LEVEL


@pytest.mark.control
def test_other_discount_is_caught(rng: np.random.Generator) -> None:
    assert p_value_under(PartitionLaw(0.7, 0.5), PartitionLaw(0.6, 0.5), rng) < LEVEL


def p_value_under(law: PartitionLaw, assumed: PartitionLaw, rng: np.random.Generator) -> float:
    """P-value over partitions of chains under `law` that start from exact draws for `assumed`."""
    log_prior = seated(assumed.strength, assumed.discount)
    exact = posterior_under(log_prior, DiagNormal(**_HYPERPARAMETERS), _ROWS)
    target = target_of(dps.DiagNormal(**_HYPERPARAMETERS), _ROWS, 1.0)._replace(law=law)
    return chains_p_value("exact kernel", target, exact, rng)


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_work_does_not_grow_with_the_discount(discount: float, rng: np.random.Generator) -> None:
    """Slices of 200 rows need millions of sticks and more, which the sweep refuses to break."""
    # Three groups, so that no kernel ends with one cluster by chance.
    rows = rng.standard_normal((200, 2)) + 20.0 * (np.arange(200) % 3)[:, None]
    law = PartitionLaw(discount, 1.0)
    target = target_of(dps.DiagNormal(**_HYPERPARAMETERS), rows, 1.0)._replace(law=law)
    state = sampler.start(target, rng, 4)
    schedule = sampler.Schedule(3, 1.0, np.empty(0, np.int64))
    for kernel in ("exact", "greedy"):
        state, _ = sampler.advance(kernel, target, state, rng, schedule)
    assert len(state.stats) >= 3


@pytest.mark.control
def test_other_alpha_is_caught(rng: np.random.Generator) -> None:
    assert p_value("exact kernel", 7.5, 6.1, rng) < LEVEL


@pytest.mark.parametrize("alpha", [1e4, 1e6, 1e12])
def test_work_does_not_grow_with_alpha(alpha: float, rng: np.random.Generator) -> None:
    """One iteration visits each row once: 1e6 sticks would take more than the memory."""
    rows = rng.standard_normal((40, 2))
    target = target_of(dps.DiagNormal(**_HYPERPARAMETERS), rows, alpha)
    state = sampler.start(target, rng, 4)
    schedule = sampler.Schedule(5, 1.0, np.empty(0, np.int64))
    for kernel in ("exact", "greedy"):
        state, _ = sampler.advance(kernel, target, state, rng, schedule)
    assert len(state.stats) > 20
