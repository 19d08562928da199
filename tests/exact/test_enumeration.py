"""Every move with every family against the posterior enumerated over all partitions.

Chains start from exact draws of the posterior, so that whatever a move does to the law of the
partition is its own fault, and each chain is an independent replicate: the tests need no
burn-in and no thinning.  Level 1e-5 each.
"""

import numpy as np
import pytest

from pymc_dpsplit import sampler
from tests.support.controls import (
    CONTROLS,
    sweep_by_number,
    wrong_by,
)
from tests.support.datasets import DATASETS
from tests.support.families import (
    DISCRETE,
    FAMILIES,
    component_of,
    dataset_of,
    target_of,
    twin_of,
)
from tests.support.moves import MOVES, Move
from tests.support.partitions import (
    coclustering,
    enumerate_partitions,
    exact_posterior,
    n_clusters_law,
    partition_index,
)
from tests.support.pruned import uncertified_sweep
from tests.support.quick import (
    COMPILED_FAMILY,
    QUICK_ALPHAS,
    QUICK_CONTROLS,
    QUICK_DATASET,
    QUICK_FAMILIES,
    QUICK_MOVE,
    slow_unless,
)
from tests.support.statistics import (
    LEVEL,
    coclustering_test,
    combine,
    count_test,
    partition_test,
)

ALPHAS = (0.1, 1.0, 5.0)
_CHAINS = 64
_SHORT = 150
# Moves of a chain in a long run: they find a concentration that is wrong by a twentieth, see
# `test_a_small_error_is_caught_by_long_runs`.  Moves that are made of several have fewer draws.
_LONG = 1000
_MOVES_IN_A_DRAW = {"over-relaxed slice": 3, "exact kernel": 2}
# Exact starts among the draws of a chain.  An informed choice hardly ever divides some clusters or
# joins them again, so that a run of it alone stays in a part of the partitions: were the chains not
# begun anew, the share of those that begin there would decide.
# Transfers leave the number of clusters as it is.
_TRANSFERS = "transfer", "transfer without its way back", "transfer by any anchors"
_STARTS = {"informed": 10, **dict.fromkeys(_TRANSFERS, 30)}
CASES = [
    (family, n_features, data)
    for family, row in FAMILIES.items()
    for n_features in row.n_features
    for data in DATASETS
]
_FIRST = {("Normal", 1), ("DiagNormal", 2), ("MvNormal", 2)}
_OTHERS = FAMILIES.keys() - {name for name, _ in _FIRST}
_OTHERS -= {name for name, row in FAMILIES.items() if row.has_kernels_of}
# A move sees of a family its marginals and draws, which unit tests compare for all data sets.  So
# some families have short runs of every move on all data sets, the others on one; the moves that
# are not here are in the short runs of one-step invariance.
_FOR_OTHERS = ("slice", "pruned slice", "collapsed", "exact kernel")


# Products of parts whose rows have a law only as a whole.
_WITH_PARTS = ("ProductWithMultinomial", "ProductWithLinearRegression")


def is_short(row: tuple[str, tuple[str, int, str], float]) -> bool:
    """Whether every move has a short run with these, besides the families of `_FIRST`."""
    _, (family, _, data), alpha = row
    return family in QUICK_FAMILIES and data == QUICK_DATASET and alpha in QUICK_ALPHAS


def is_quick(row: tuple[str, tuple[str, int, str], float]) -> bool:
    """Whether a short run is in the quick suite."""
    return is_short(row) and row[1][0] == COMPILED_FAMILY and row[0] == QUICK_MOVE


SHORT_CASES = [
    (name, case, alpha)
    for name in MOVES
    for case in CASES
    for alpha in ALPHAS
    if case[:2] in _FIRST or (case[0] in _OTHERS and is_short((name, case, alpha)))
]
SHORT_CASES += [
    (name, case, 1.0)
    for name in _FOR_OTHERS
    for case in CASES
    if case[0] in _OTHERS - set(QUICK_FAMILIES) and case[2] == QUICK_DATASET
]
# Every family and move on every second data set, with one alpha each: the next move and the next
# family have the other data sets.
LONG_CASES = [
    (name, case, ALPHAS[(i + j) % len(ALPHAS)])
    for i, name in enumerate(MOVES)
    for j, case in enumerate(CASES)
    if (i + j + j // len(DATASETS)) % 2 == 0
]


def labels_drawn(
    move: Move,
    target: sampler.Target,
    starts: np.ndarray,
    n_draws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Labels (chains, draws, N) of chains that start from the partitions `starts`."""
    drawn = np.empty((len(starts), n_draws, starts.shape[1]), np.int8)
    for chain, start in enumerate(starts):
        state = sampler.resume(target, start)
        for draw in range(n_draws):
            state = move(target, state, rng)
            drawn[chain, draw] = state.labels
    return drawn


def p_value(
    move: Move,
    case: tuple[str, int, str],
    alpha: float,
    n_draws: int,
    rng: np.random.Generator,
    n_starts: int = 1,
) -> float:
    """P-value over partitions, number of clusters and co-clustering."""
    family, n_features, data = case
    rows = dataset_of(family, data, n_features)
    exact = exact_posterior(twin_of(family, n_features), rows, alpha)
    n_obs = len(rows)
    starts = enumerate_partitions(n_obs)[rng.choice(len(exact), _CHAINS * n_starts, p=exact)]
    target = target_of(component_of(family, n_features), rows, alpha)
    labels = labels_drawn(move, target, starts, n_draws // n_starts, rng)
    labels = labels.reshape(_CHAINS, -1, n_obs)
    index = partition_index(labels)
    n_clusters = labels.max(axis=2) + 1
    return combine(
        partition_test(index, exact),
        count_test(n_clusters.astype(np.int64), n_clusters_law(exact, n_obs)),
        coclustering_test(labels, coclustering(exact, n_obs)),
    )


@pytest.mark.parametrize(("name", "case", "alpha"), slow_unless(is_quick, SHORT_CASES), ids=str)
def test_move_keeps_the_posterior(
    name: str, case: tuple[str, int, str], alpha: float, rng: np.random.Generator
) -> None:
    assert p_value(MOVES[name], case, alpha, _SHORT, rng, _STARTS.get(name, 1)) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case", "alpha"), LONG_CASES, ids=str)
def test_move_keeps_the_posterior_long(
    name: str, case: tuple[str, int, str], alpha: float, rng: np.random.Generator
) -> None:
    n_draws = _LONG // _MOVES_IN_A_DRAW.get(name, 1)
    assert p_value(MOVES[name], case, alpha, n_draws, rng, _STARTS.get(name, 1)) > LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("factor", [0.95, 1.05])
@pytest.mark.parametrize("family", QUICK_FAMILIES)
def test_a_small_error_is_caught_by_long_runs(
    family: str, factor: float, rng: np.random.Generator
) -> None:
    assert p_value(wrong_by(factor), (family, 2, "overlapping"), 1.0, _LONG, rng) < LEVEL


@pytest.mark.control
@pytest.mark.parametrize(
    "family", slow_unless(COMPILED_FAMILY.__eq__, ["Normal", "DiagNormal", COMPILED_FAMILY])
)
@pytest.mark.parametrize("name", slow_unless(QUICK_CONTROLS.__contains__, CONTROLS))
def test_broken_move_is_caught(name: str, family: str, rng: np.random.Generator) -> None:
    case = (family, 1 if family == "Normal" else 2, "overlapping")
    n_draws = _LONG if name in _TRANSFERS else _SHORT
    assert p_value(CONTROLS[name], case, 1.0, n_draws, rng, _STARTS.get(name, 1)) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_pruning_without_certificate_is_caught(rng: np.random.Generator) -> None:
    case = ("MvNormal", 2, "overlapping")
    assert p_value(uncertified_sweep, case, 1.0, _SHORT, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_atoms_by_number_are_caught(rng: np.random.Generator) -> None:
    assert p_value(sweep_by_number, ("Normal", 1, "overlapping"), 5.0, _SHORT, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("name", ["slice", "collapsed", "exact kernel"])
@pytest.mark.parametrize("family", [*DISCRETE, *_WITH_PARTS])
def test_wrong_family_is_caught(
    family: str, name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose prior takes the hyperparameters for twice what they are."""
    honest = FAMILIES[family].component.prior

    def broken(self, values, shift):
        return honest(self, {key: 2.0 * value for key, value in values.items()}, shift)

    monkeypatch.setattr(FAMILIES[family].component, "prior", broken)
    case = (family, FAMILIES[family].n_features[-1], "overlapping")
    assert p_value(MOVES[name], case, 1.0, 2 * _SHORT, rng) < LEVEL


@pytest.mark.parametrize("family", slow_unless(COMPILED_FAMILY.__eq__, FAMILIES))
def test_kernel_is_ergodic(family: str, rng: np.random.Generator) -> None:
    # From one cluster and from singletons alike, every likely partition is visited.
    n_features = FAMILIES[family].n_features[-1]
    rows = dataset_of(family, "separated", n_features)
    exact = exact_posterior(twin_of(family, n_features), rows, 1.0)
    target = target_of(component_of(family, n_features), rows, 1.0)
    starts = np.array([np.zeros(len(rows), int), np.arange(len(rows))])
    labels = labels_drawn(MOVES["exact kernel"], target, starts, 3000, rng)
    for chain in partition_index(labels):
        assert set(np.flatnonzero(exact > 0.005)) <= set(chain)
