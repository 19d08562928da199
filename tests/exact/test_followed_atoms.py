"""Which atoms the next sweep follows must depend on the partitions alone, not on the measure.

Given the partition, the weight w of a block of n observations has E log w = psi(n) - psi(N +
alpha), so log w - psi(n) + psi(N + alpha), summed over blocks that are chosen by the partitions
before and after other moves, has mean zero.  A choice that looks at the numbers of clusters
fails, because numbers tell which clusters were born last and which sticks were long.  Level 1e-5.
"""

import numpy as np
import pytest
from scipy.special import digamma

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.collapsed.scan import collapsed_scan, log_densities_alone
from pymc_dpsplit.moves.measure import Atoms, atoms_to_follow, no_atoms
from pymc_dpsplit.moves.split_merge.anchored import anchored_attempt
from pymc_dpsplit.moves.sweep.assignment import next_sweep
from tests.support.families import component_of, target_of
from tests.support.statistics import LEVEL, mean_test

pytestmark = pytest.mark.slow

ALPHA = 2.0
ROWS = np.array([-1.3, -0.8, -0.5, 0.0, 0.3, 0.9, 1.2])
TWINS = np.array([-1.3, -1.3, -0.5, -0.5, -0.5, 0.9, 0.9])
NORMAL_MEAN = dps.NormalKnownSigma(mu0=0.1, sigma0=1.5, sigma=0.7)
_QUICK, _LONG = 64_000, 4_000_000
COLUMNS = ("followed", "same number", "other number", "last number", "first row")


@jitted
def _unchanged(labels, before, n_clusters, n_before):
    """Cluster before that had the members of each cluster, or -1."""
    found = np.full(n_clusters, -1)
    n_now, n_then = np.zeros(n_clusters), np.zeros(n_before)
    for i in range(labels.shape[0]):
        found[labels[i]] = before[i]
        n_now[labels[i]] += 1.0
        n_then[before[i]] += 1.0
    for i in range(labels.shape[0]):
        k = labels[i]
        if found[k] != before[i] or n_now[k] != n_then[before[i]]:
            n_now[k] = -1.0
    for k in range(n_clusters):
        found[k] = found[k] if n_now[k] > 0.0 else -1
    return found


@jitted
def linked_sweeps(target, labels, stats, rng, scanned, n_attempts, psi, sums):
    """Sum the statistic over the blocks of each choice, (S, choices), a sweep a row."""
    atoms, acceptance_counts = no_atoms(target.prior), np.zeros(4, np.int64)
    value = np.empty(labels.shape[0])
    for s in range(sums.shape[0]):
        stats, atoms = next_sweep(target, labels, stats, rng, atoms)
        n_before, before = stats.shape[0], labels.copy()
        for a in range(n_before):
            value[a] = atoms.log_weights[a] - psi[int(atoms.stats[a, 0])] + psi[0]
        sums[s, 3], sums[s, 4] = value[n_before - 1], value[labels[0]]
        if scanned.shape[0] > 0:
            log_alone = log_densities_alone(target.prior, target.data, scanned)
            stats = collapsed_scan(target, labels, stats, rng, scanned, log_alone)
        for _ in range(n_attempts):
            stats = anchored_attempt(target, labels, stats, rng, acceptance_counts)
        followed = atoms_to_follow(stats, atoms)
        blocks = _unchanged(labels, before, stats.shape[0], n_before)
        for k in range(stats.shape[0]):
            if followed[k] >= 0:
                sums[s, 0] += value[followed[k]]
            if blocks[k] >= 0:
                sums[s, 1 if blocks[k] == k else 2] += value[blocks[k]]


def p_values(
    component: ComponentFamily,
    rows: np.ndarray,
    n_scanned: int,
    n_attempts: int,
    n_sweeps: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """P-value of mean zero for each choice of blocks."""
    target, n_obs = target_of(component, rows, ALPHA), len(rows)
    state = sampler.resume(target, np.zeros(n_obs, np.int64))
    psi = np.append(digamma(n_obs + ALPHA), digamma(np.arange(1.0, n_obs + 1.0)))
    sums = np.zeros((n_sweeps, len(COLUMNS)))
    arguments = (target, *state[:2], rng, np.arange(n_scanned), n_attempts, psi, sums)
    linked_sweeps(*arguments)
    chains = sums.reshape(64, -1, len(COLUMNS))
    return {name: mean_test(chains[..., j], 0.0) for j, name in enumerate(COLUMNS)}


MOVES_BETWEEN = {"scan": (7, 0), "attempts": (0, 6), "both": (3, 3)}


@pytest.mark.parametrize("rows", [ROWS, TWINS], ids=["distinct", "twins"])
@pytest.mark.parametrize("between", MOVES_BETWEEN)
def test_followed_atoms_have_the_law_of_their_blocks(
    between: str, rows: np.ndarray, rng: np.random.Generator
) -> None:
    found = p_values(NORMAL_MEAN, rows[:, None], *MOVES_BETWEEN[between], _QUICK, rng)
    assert found["followed"] > LEVEL
    assert found["first row"] > LEVEL


@pytest.mark.parametrize("between", MOVES_BETWEEN)
def test_followed_atoms_have_the_law_of_their_blocks_long(
    between: str, rng: np.random.Generator
) -> None:
    found = p_values(NORMAL_MEAN, ROWS[:, None], *MOVES_BETWEEN[between], _LONG, rng)
    assert found["followed"] > LEVEL


@pytest.mark.parametrize(
    ("family", "n_features", "n_obs"), [("Normal", 1, 60), ("DiagNormal", 5, 100)]
)
def test_larger_sets_too(
    family: str, n_features: int, n_obs: int, rng: np.random.Generator
) -> None:
    hyperparameters = {"mu0": 0.2, "kappa0": 0.3, "a0": 2.0, "b0": 0.6}
    if n_features > 1:
        hyperparameters = {key: np.full(n_features, x) for key, x in hyperparameters.items()}
    component = type(component_of(family, 1 if n_features == 1 else 2))(**hyperparameters)
    rows = rng.standard_normal((n_obs, n_features)) + 2.0 * (np.arange(n_obs) % 2)[:, None]
    found = p_values(component, rows, n_obs // 3, 2, 400_000, rng)
    assert found["followed"] > LEVEL
    assert found["first row"] > LEVEL


@pytest.mark.control
def test_choice_by_number_is_caught(rng: np.random.Generator) -> None:
    # Attempts give the number that a merge sets free to the last cluster and leave all others.
    found = p_values(NORMAL_MEAN, ROWS[:, None], 0, 6, _QUICK, rng)
    assert found["same number"] < LEVEL
    assert found["other number"] < LEVEL
    assert found["last number"] < LEVEL


# --- the rule itself ----------------------------------------------------------------------


def followed_by(statistics: list[list[float]], before: list[list[float]]) -> list[int]:
    """Atoms that clusters with these statistics follow."""
    old = np.array(before, float).reshape(len(before), 2)
    atoms = Atoms(old, np.zeros(len(old)), np.zeros((len(old), 1)))
    return list(atoms_to_follow(np.array(statistics, float), atoms))


def test_a_block_follows_its_atom_under_any_number() -> None:
    before = [[3.0, 1.5], [1.0, 0.5], [2.0, -1.0]]
    assert followed_by([before[2], before[0], before[1]], before) == [2, 0, 1]
    assert followed_by([[3.0, 1.25], before[1]], before) == [-1, 1]
    assert followed_by(before, []) == [-1, -1, -1]


def test_equal_statistics_are_not_followed() -> None:
    twin, other = [1.0, 0.5], [4.0, 2.0]
    assert followed_by([twin, other, twin], [twin, other]) == [-1, 1, -1]
    assert followed_by([twin, other], [other, twin, twin]) == [-1, 0]
    assert followed_by([twin, twin], [twin, twin]) == [-1, -1]


def test_many_clusters_follow_their_atoms(rng: np.random.Generator) -> None:
    before = np.column_stack([rng.integers(1, 9, 100), rng.standard_normal(100)])
    order = rng.permutation(100)
    assert followed_by(before[order].tolist(), before.tolist()) == list(order)
