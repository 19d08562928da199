"""Labels are drawn by their masses although visits leave densities of far clusters unfinished.

One label is drawn many times, in a plain mixture and of a row in a group.  Level 1e-5 each.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special
from scipy.stats import chisquare

from pymc_dpsplit import sampler
from pymc_dpsplit.hierarchical import scan
from pymc_dpsplit.hierarchical.scan import scan_some_rows
from pymc_dpsplit.hierarchical.state import GroupedTarget
from pymc_dpsplit.kernels.jit import COMPILES
from pymc_dpsplit.moves.collapsed import unfinished_densities
from pymc_dpsplit.moves.collapsed.scan import log_densities_alone
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import PartitionLaw
from tests.support.controls import scan_of_bounds
from tests.support.family_cases import case_of
from tests.support.statistics import LEVEL
from tests.support.triples import triples_apart

# All three clusters of its triple are likely, and they are in two blocks.
ROW, N_DRAWS, N_CLUSTERS = 111, 600, 24
ROWS, LABELS = triples_apart(np.random.default_rng(3))
IS_OTHER = np.arange(len(ROWS)) != ROW
VISITED = np.array([ROW])
GROUPS, ALPHA = np.arange(len(ROWS)) % 2, 1.5

Draw = Callable[[np.ndarray, np.ndarray, np.random.Generator], None]


def _target() -> sampler.Target:
    case = case_of("MvNormal", ROWS)
    return sampler.Target(case.prior, case.data, PartitionLaw(0.0, 1.0))


def _p_value(draw: Draw, prior_masses: np.ndarray, new: float) -> float:
    """P-value of many draws of the label against prior masses times predictive densities."""
    case, target = case_of("MvNormal", ROWS), _target()
    stats = gather_stats(case.prior, case.data, LABELS, N_CLUSTERS)
    members = [np.flatnonzero((k == LABELS) & IS_OTHER) for k in range(N_CLUSTERS)]
    log_density = [case.twin.log_predictive(ROWS[ROW], ROWS[each]) for each in members]
    log_alone = log_densities_alone(target.prior, target.data, VISITED)
    log_masses = np.log([*prior_masses, new]) + np.append(log_density, log_alone)
    drawn, rng = np.zeros(N_CLUSTERS + 1), np.random.default_rng(11)
    for _ in range(N_DRAWS):
        labels = LABELS.copy()
        draw(labels, stats, rng)
        mates = LABELS[(labels == labels[ROW]) & IS_OTHER]
        drawn[mates[0] if len(mates) else N_CLUSTERS] += 1
    expected = N_DRAWS * special.softmax(log_masses)
    is_often = expected > 10.0
    assert is_often.sum() == 3
    cells = [[*counts[is_often], counts[~is_often].sum()] for counts in (drawn, expected)]
    return float(chisquare(*cells).pvalue)


def _p_value_of_visits(kernel: Callable[..., np.ndarray]) -> float:
    target = _target()
    log_alone = log_densities_alone(target.prior, target.data, VISITED)

    def draw(labels: np.ndarray, stats: np.ndarray, rng: np.random.Generator) -> None:
        kernel(target, labels, stats, rng, VISITED, log_alone)

    return _p_value(draw, np.bincount(LABELS[IS_OTHER]), 1.0)


def _p_value_in_groups() -> float:
    target = GroupedTarget(_target(), GROUPS, np.bincount(GROUPS), ALPHA)
    log_alone = log_densities_alone(*target.of_rows[:2], VISITED)
    weights = np.random.default_rng(5).dirichlet(np.full(N_CLUSTERS + 1, 4.0))

    def draw(labels: np.ndarray, stats: np.ndarray, rng: np.random.Generator) -> None:
        given = weights[:-1].copy(), np.log(weights[-1]), rng, VISITED, log_alone
        scan_some_rows(target, labels, stats, *given)

    mates = LABELS[IS_OTHER & (GROUPS[ROW] == GROUPS)]
    of_clusters = np.bincount(mates, minlength=N_CLUSTERS) + ALPHA * weights[:-1]
    return _p_value(draw, of_clusters, ALPHA * weights[-1])


@pytest.mark.parametrize("unlikely", [8.0, -30.0])
def test_bounds_do_not_change_the_law_of_a_visit(unlikely: float) -> None:
    """Also where clusters are left that have e^30 times the mass of staying."""
    assert _p_value_of_visits(scan_of_bounds(unlikely)) > LEVEL


@pytest.mark.control
def test_bounds_in_the_place_of_masses_change_the_law_of_a_visit() -> None:
    assert _p_value_of_visits(scan_of_bounds(-30.0, finishes=False)) < LEVEL


@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the limit and what they call")
@pytest.mark.parametrize("unlikely", [8.0, -30.0])
def test_bounds_do_not_change_the_law_in_groups(
    unlikely: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_densities, "_UNLIKELY", unlikely)
    assert _p_value_in_groups() > LEVEL


@pytest.mark.control
@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the limit and what they call")
def test_bounds_in_the_place_of_masses_change_the_law_in_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unfinished_densities, "_UNLIKELY", -30.0)
    monkeypatch.setattr(scan, "finish_choice", lambda *given: given[-2])
    assert _p_value_in_groups() < LEVEL
