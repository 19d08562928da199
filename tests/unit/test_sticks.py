"""Sticks in their order: positions given the partition, sticks given positions, slices."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

from pymc_dpsplit import sampler
from pymc_dpsplit.samplers import sticks
from pymc_dpsplit.samplers.slice_sampler import choose_within_slices, draw_slices
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.statistics import LEVEL

ALPHA = 1.7
ROWS = dataset_of("Normal", "overlapping", 1)
LABELS = np.array([0, 0, 1, 0, 1, 1, 0, 0], np.int32)
TARGET = target_of(component_of("Normal", 1), ROWS, ALPHA)
STATE = sampler.resume(TARGET, LABELS)
N_DRAWS, _FEW = 3000, 600


def log_probability(sizes: dict[int, int], alpha: float) -> float:
    """Log probability of one label per observation, sticks integrated out.

    The product over sticks of B(1 + n_j, alpha + n_>j) / B(1, alpha).
    """
    total = 0.0
    for j in range(max(sizes) + 1):
        beyond = sum(n for position, n in sizes.items() if position > j)
        total += betaln(1.0 + sizes.get(j, 0), alpha + beyond) - betaln(1.0, alpha)
    return total


def positions_law(alpha: float, sizes: tuple[int, ...], n: int) -> dict[tuple[int, ...], float]:
    """Probability of all positions below n of clusters, given the partition.

    The partition has the probability of the Chinese restaurant process.
    """
    log_partition = len(sizes) * math.log(alpha) + math.lgamma(alpha)
    log_partition += sum(map(math.lgamma, sizes)) - math.lgamma(alpha + sum(sizes))
    return {
        at: math.exp(log_probability(dict(zip(at, sizes, strict=True)), alpha) - log_partition)
        for at in itertools.permutations(range(n), len(sizes))
    }


def test_positions_follow_their_law(rng: np.random.Generator) -> None:
    law = positions_law(ALPHA, (5, 3), 6)
    assert 0.8 < sum(law.values()) < 1.0
    found = dict.fromkeys(law, 0)
    n_beyond = 0
    for _ in range(N_DRAWS):
        at = tuple(sticks.draw_positions(TARGET.law, *STATE[:2], rng).tolist())
        n_beyond += at not in found
        if at in found:
            found[at] += 1
    counts = np.array([*found.values(), n_beyond])
    exact = np.array([*law.values(), 1.0 - sum(law.values())])
    common = N_DRAWS * exact > 5.0
    counts, exact = (np.append(of[common], of[~common].sum()) for of in (counts, N_DRAWS * exact))
    assert stats.chisquare(counts, exact).pvalue > LEVEL
    # Of another alpha.
    other = positions_law(2.0 * ALPHA, (5, 3), 6)
    wrong = N_DRAWS * np.array([*other.values(), 1.0 - sum(other.values())])
    wrong = np.append(wrong[common], wrong[~common].sum())
    assert stats.chisquare(counts, wrong).pvalue < LEVEL


def test_positions_are_kept_until_alpha_moves(rng: np.random.Generator) -> None:
    positions = np.array([4, 2])
    kept = sticks.positions_to_keep(TARGET.law, positions)
    for _ in range(3):
        same = sticks.kept_positions(TARGET.law, *STATE[:2], kept, rng)
        np.testing.assert_array_equal(same, positions)
    other = TARGET.law._replace(strength=2.0)
    drawn = [tuple(sticks.kept_positions(other, *STATE[:2], kept, rng)) for _ in range(20)]
    assert len(set(drawn)) > 1


def test_sticks_are_beta_variables(rng: np.random.Generator) -> None:
    positions, shares, mu = np.array([2, 0]), np.empty((N_DRAWS, 4)), np.empty((N_DRAWS, 4))
    for s in range(N_DRAWS):
        log_weights, log_rest, params = sticks.draw_sticks(TARGET, STATE.stats, positions, 4, rng)
        weights = np.exp(log_weights)
        assert weights.sum() + math.exp(log_rest) == pytest.approx(1.0, rel=1e-12)
        left = np.append(1.0, 1.0 - np.cumsum(weights))[:4]
        shares[s] = weights / left
        mu[s] = component_of("Normal", 1).unpack(params, TARGET.prior.shift)["mu"]
    n_at, n_beyond = (3, 0, 5, 0), (5, 5, 0, 0)
    for j in range(4):
        beta = stats.beta(1.0 + n_at[j], ALPHA + n_beyond[j])
        assert stats.kstest(shares[:, j], beta.cdf).pvalue > LEVEL
    # The clusters are at their positions; elsewhere the parameters have the base measure as law.
    for j, rows in enumerate((ROWS[LABELS == 1], ROWS[:0], ROWS[LABELS == 0], ROWS[:0])):
        exact = twin_of("Normal", 1).draw_parameters(rng, rows, N_DRAWS)["mu"]
        assert stats.ks_2samp(mu[:, j], exact).pvalue > LEVEL


def test_observations_go_to_sticks_above_their_slice(rng: np.random.Generator) -> None:
    positions = np.array([2, 0])
    log_weights, _, params = sticks.draw_sticks(TARGET, STATE.stats, positions, 4, rng)
    log_slices = draw_slices(LABELS, positions, log_weights, np.uint64(1))
    own = log_weights[positions[LABELS]]
    assert (log_slices < own).all()
    share = np.concatenate([
        np.exp(draw_slices(LABELS, positions, log_weights, np.uint64(key)) - own)
        for key in range(200)
    ])  # fmt: skip
    assert stats.kstest(share, "uniform").pvalue > LEVEL
    unpacked = component_of("Normal", 1).unpack(params, TARGET.prior.shift)
    density = np.exp([
        twin_of("Normal", 1).log_density(ROWS, {name: of[j] for name, of in unpacked.items()})
        for j in range(4)
    ])  # fmt: skip
    mass = density * (log_weights[:, None] > log_slices)
    exact, found = mass / mass.sum(axis=0), np.zeros((4, 8))
    labels = LABELS.copy()
    for key in range(_FEW):
        choose_within_slices(
            TARGET.prior, TARGET.data, labels, np.uint64(key), log_slices, log_weights, params
        )
        found[labels, np.arange(8)] += 1
    assert not found[mass == 0.0].any()
    for i in range(8):
        some = exact[:, i] > 0.0
        if some.sum() > 1:
            p = stats.chisquare(found[some, i], _FEW * exact[some, i]).pvalue
            assert p > LEVEL / 8


def test_positions_with_observations_are_numbered_in_their_order() -> None:
    labels = np.array([5, 2, 5, 0, 2, 2, 0, 5], np.int32)
    found, positions = sticks.number_atoms(TARGET.prior, TARGET.data, labels, np.zeros((7, 4)))
    assert list(positions) == [0, 2, 5]
    assert list(labels) == [2, 1, 2, 0, 1, 1, 0, 2]
    np.testing.assert_array_equal(found, sampler.resume(TARGET, labels).stats)


def test_too_many_sticks_are_refused(rng: np.random.Generator) -> None:
    target = target_of(component_of("Normal", 1), ROWS, 1e6)
    with pytest.raises(ValueError, match=r"alpha is 1e\+06, for which kernel='slice' breaks more"):
        sampler.advance("slice", target, STATE, rng, sampler.Schedule(1, 0.0, np.empty(0, int)))
