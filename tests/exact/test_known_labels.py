"""Partly known labels against enumeration over the partitions of the rows that respect them."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.components import base, dispatch, multiplicity
from pymc_dpsplit.components.shared_labels import kernels
from pymc_dpsplit.components.shared_labels.items import SharedLabels
from pymc_dpsplit.moves.partition import log_joint
from tests.support.families import component_of, twin_of
from tests.support.families import dataset_of as rows_of
from tests.support.moves import MOVES, PUBLISHED, PUBLISHED_FOR_EVERY_LAW, Move
from tests.support.partition_laws import LAWS, LogPrior
from tests.support.partitions import (
    coclustering,
    enumerate_partitions,
    n_clusters_law,
    n_clusters_of,
    partition_index,
)
from tests.support.quick import slow_unless
from tests.support.shared_labels import known_labels, law_of_known_labels, target_of_groups
from tests.support.statistics import (
    LEVEL,
    coclustering_test,
    combine,
    count_test,
    partition_test,
)

ALPHA, _CHAINS, _DRAWS = 1.3, 64, 150
# Labels of two and three rows that are not side by side, of one row, and two unknown ones.
KNOWN = np.array([4, 0, 4, 2, -1, 2, -1, 2])
N_ITEMS = 5
FAMILIES = (("Normal", 1), ("MvNormal", 2), ("Poisson", 2))
_TESTED = ("exact kernel", "collapsed", "slice", "anchored", "informed", "transfer", "partial scan")
CASES = [(of, move) for of in FAMILIES for move in _TESTED]
CASES += [(of, move) for of in FAMILIES for move in PUBLISHED]


def law_of_items(name: str, n_features: int, log_prior: LogPrior | None = None) -> np.ndarray:
    """Posterior of every partition of the items, from that of the partitions of the rows."""
    rows, twin = rows_of(name, "overlapping", n_features), twin_of(name, n_features)
    partitions, law = law_of_known_labels(twin, rows, KNOWN, ALPHA, log_prior)
    of_items = known_labels(KNOWN).group_of_row
    first = np.unique(of_items, return_index=True)[1]
    n_partitions = len(enumerate_partitions(N_ITEMS))
    assert len(partitions) == n_partitions
    return np.bincount(partition_index(partitions[:, first]), law, n_partitions)


def target_for(name: str, n_features: int, shared: SharedLabels | None = None) -> sampler.Target:
    rows = rows_of(name, "overlapping", n_features)
    shared = known_labels(KNOWN) if shared is None else shared
    return target_of_groups(component_of(name, n_features), rows, shared, ALPHA)


def p_value_of_move(
    move: Move, target: sampler.Target, law: np.ndarray, rng: np.random.Generator
) -> float:
    """P-value of draws (chains, draws, items) of chains that start from the law itself."""
    starts = rng.choice(len(law), _CHAINS, p=law)
    drawn = np.empty((_CHAINS, _DRAWS, N_ITEMS), np.int8)
    for chain, start in enumerate(enumerate_partitions(N_ITEMS)[starts]):
        state = sampler.resume(target, start)
        for draw in range(_DRAWS):
            state = move(target, state, rng)
            drawn[chain, draw] = state.labels
    index = partition_index(drawn)
    return combine(
        partition_test(index, law),
        count_test(n_clusters_of(N_ITEMS)[index], n_clusters_law(law, N_ITEMS)),
        coclustering_test(drawn, coclustering(law, N_ITEMS)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_joint_density_is_that_of_the_rows(family: tuple[str, int]) -> None:
    target, law = target_for(*family), law_of_items(*family)
    states = [sampler.resume(target, labels) for labels in enumerate_partitions(N_ITEMS)]
    assert all(state.stats[:, 0].sum() == len(KNOWN) for state in states)
    found = np.array([log_joint(target, state.stats) for state in states])
    np.testing.assert_allclose(np.exp(found - found.max()), law / law[found.argmax()], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "move"), slow_unless([(FAMILIES[0], "exact kernel")].__contains__, CASES)
)
def test_moves_leave_the_law_of_rows_with_known_labels(
    family: tuple[str, int], move: str, rng: np.random.Generator
) -> None:
    assert p_value_of_move(MOVES[move], target_for(*family), law_of_items(*family), rng) > LEVEL


# --- under other laws of the partition -----------------------------------------------------

_OTHER_LAWS = ("Pitman-Yor", "Pitman-Yor, negative strength", "finite")
_QUICK_UNDER_LAWS = {("Pitman-Yor", "exact kernel"), ("finite", "collapsed")}


@pytest.mark.parametrize("name", _OTHER_LAWS)
def test_the_joint_density_is_that_of_the_rows_under_every_law(name: str) -> None:
    law, log_prior = LAWS[name]
    target = target_for(*FAMILIES[0])._replace(law=law)
    expected = law_of_items(*FAMILIES[0], log_prior)
    states = [sampler.resume(target, labels) for labels in enumerate_partitions(N_ITEMS)]
    found = np.array([log_joint(target, state.stats) for state in states])
    found = np.exp(found - found.max())
    np.testing.assert_allclose(found, expected / expected[found.argmax()], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "move"),
    slow_unless(
        _QUICK_UNDER_LAWS.__contains__,
        [(law, move) for law in _OTHER_LAWS for move in (*_TESTED, *PUBLISHED_FOR_EVERY_LAW)],
    ),
)
def test_moves_leave_the_law_of_known_labels_under_every_law(
    name: str, move: str, rng: np.random.Generator
) -> None:
    law, log_prior = LAWS[name]
    target, expected = target_for(*FAMILIES[0]), law_of_items(*FAMILIES[0], log_prior)
    assert p_value_of_move(MOVES[move], target._replace(law=law), expected, rng) > LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("name", slow_unless({"Pitman-Yor"}.__contains__, _OTHER_LAWS))
def test_labels_that_are_one_observation_each_are_caught_under_every_law(
    name: str, rng: np.random.Generator
) -> None:
    law, log_prior = LAWS[name]
    known = known_labels(KNOWN)
    target = target_for(*FAMILIES[0], SharedLabels(known.group_of_row, known.counts))
    expected = law_of_items(*FAMILIES[0], log_prior)
    wrong = target._replace(law=law)
    assert p_value_of_move(MOVES["exact kernel"], wrong, expected, rng) < LEVEL


# --- controls --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("move", ["exact kernel", *PUBLISHED])
def test_labels_that_are_one_observation_each_are_caught(
    move: str, rng: np.random.Generator
) -> None:
    """The law of `groups=`, under which a label counts once."""
    known = known_labels(KNOWN)
    target = target_for(*FAMILIES[0], SharedLabels(known.group_of_row, known.counts))
    law = law_of_items(*FAMILIES[0])
    assert p_value_of_move(MOVES[move], target, law, rng) < LEVEL


class WeightUsedOnce(NamedTuple):
    """A prior whose kernels have one factor of the weight for each label, not for each row."""

    shift: np.ndarray
    rows: Any


def _register_wrong_kernels() -> None:
    right, left_out = kernels.SharedLabelsPrior, multiplicity.note_log_weight
    for operation, prior in list(dispatch._implementations):
        # Compiled calls take the first implementation that was registered.
        if prior is right and operation not in (base.fill_log_density, left_out):
            dispatch.implements(operation, WeightUsedOnce)(
                dispatch._implementations[operation, prior]
            )

    def fill_log_density(prior, tile, params, out, scratch):
        base.fill_log_density(right(prior.shift, prior.rows), tile, params, out, scratch)

    dispatch.implements(base.fill_log_density, WeightUsedOnce)(fill_log_density)


@pytest.mark.slow
@pytest.mark.control
def test_weights_used_once_are_caught(rng: np.random.Generator) -> None:
    _register_wrong_kernels()
    target = target_for(*FAMILIES[0])
    wrong = target._replace(prior=WeightUsedOnce(*target.prior))
    law = law_of_items(*FAMILIES[0])
    assert p_value_of_move(MOVES["slice"], wrong, law, rng) < LEVEL
