"""Labels are drawn by their masses although visits leave densities of far clusters unfinished.

One label is drawn many times, in a mixture and of a row in a group.  Level 1e-5 each.
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

N_DRAWS, N_CLUSTERS, ALPHA = 300, 24, 1.5
FAMILIES = pytest.mark.parametrize("family", ["MvNormal", "DiagNormal"])

Draw = Callable[[np.ndarray, np.ndarray, np.random.Generator], None]


class Visit:
    """A row of which all three clusters of its triple are likely; they are in two blocks."""

    def __init__(self, family: str) -> None:
        n_features, self.i = {"MvNormal": (9, 111), "DiagNormal": (18, 140)}[family]
        self.rows, self.labels = triples_apart(np.random.default_rng(3), n_features)
        self.case, everyone = case_of(family, self.rows), np.arange(len(self.rows))
        self.is_other, self.visited = everyone != self.i, everyone[self.i : self.i + 1]
        self.target = sampler.Target(self.case.prior, self.case.data, PartitionLaw(0.0, 1.0))
        given = self.case.prior, self.case.data, self.visited
        self.log_alone = log_densities_alone(*given)
        self.groups = everyone % 2

    def log_densities(self) -> np.ndarray:
        """Log predictive densities under all clusters, and of the row alone."""
        row, twin = self.rows[self.i], self.case.twin
        members = [self.rows[(self.labels == k) & self.is_other] for k in range(N_CLUSTERS)]
        return np.array([*(twin.log_predictive(row, each) for each in members), self.log_alone[0]])

    def p_value(self, draw: Draw, prior_masses: np.ndarray) -> float:
        """P-value of many draws of the label against prior masses times predictive densities."""
        stats = gather_stats(self.case.prior, self.case.data, self.labels, N_CLUSTERS)
        drawn, rng = np.zeros(N_CLUSTERS + 1), np.random.default_rng(11)
        for _ in range(N_DRAWS):
            labels = self.labels.copy()
            draw(labels, stats, rng)
            mates = self.labels[(labels == labels[self.i]) & self.is_other]
            drawn[mates[0] if len(mates) else N_CLUSTERS] += 1
        expected = N_DRAWS * special.softmax(np.log(prior_masses) + self.log_densities())
        is_often = expected > 10.0
        assert is_often.sum() == 3
        cells = [[*counts[is_often], counts[~is_often].sum()] for counts in (drawn, expected)]
        return float(chisquare(*cells).pvalue)


def _p_value_of_visits(family: str, kernel: Callable[..., np.ndarray]) -> float:
    visit = Visit(family)

    def draw(labels: np.ndarray, stats: np.ndarray, rng: np.random.Generator) -> None:
        kernel(visit.target, labels, stats, rng, visit.visited, visit.log_alone)

    return visit.p_value(draw, np.append(np.bincount(visit.labels[visit.is_other]), 1.0))


def _p_value_in_groups(family: str) -> float:
    visit = Visit(family)
    groups, visited, log_alone = visit.groups, visit.visited, visit.log_alone
    target = GroupedTarget(visit.target, groups, np.bincount(groups), ALPHA)
    weights = np.random.default_rng(5).dirichlet(np.full(N_CLUSTERS + 1, 4.0))

    def draw(labels: np.ndarray, stats: np.ndarray, rng: np.random.Generator) -> None:
        given = weights[:-1].copy(), np.log(weights[-1]), rng, visited, log_alone
        scan_some_rows(target, labels, stats, *given)

    mates = visit.labels[visit.is_other & (groups == groups[visit.i])]
    return visit.p_value(draw, np.bincount(mates, minlength=N_CLUSTERS + 1) + ALPHA * weights)


@FAMILIES
@pytest.mark.parametrize("unlikely", [8.0, -30.0])
def test_bounds_do_not_change_the_law_of_a_visit(family: str, unlikely: float) -> None:
    """Also where clusters are left that have e^30 times the mass of staying."""
    assert _p_value_of_visits(family, scan_of_bounds(unlikely)) > LEVEL


@FAMILIES
@pytest.mark.control
def test_bounds_in_the_place_of_masses_change_the_law_of_a_visit(family: str) -> None:
    assert _p_value_of_visits(family, scan_of_bounds(-30.0, finishes=False)) < LEVEL


@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the limit and what they call")
@FAMILIES
@pytest.mark.parametrize("unlikely", [8.0, -30.0])
def test_bounds_do_not_change_the_law_in_groups(
    family: str, unlikely: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_densities, "_UNLIKELY", unlikely)
    assert _p_value_in_groups(family) > LEVEL


@pytest.mark.control
@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the limit and what they call")
@FAMILIES
def test_bounds_in_the_place_of_masses_change_the_law_in_groups(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_densities, "_UNLIKELY", -30.0)
    monkeypatch.setattr(scan, "finish_choice", lambda *given: given[-2])
    assert _p_value_in_groups(family) < LEVEL
