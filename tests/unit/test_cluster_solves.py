"""Squared distances under all clusters, of which those of unlikely ones are left unfinished."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import linalg

from pymc_dpsplit.kernels.cluster_solves import (
    fill_squared_solves,
    fill_squared_solves_plainly,
    fill_triangle,
)
from pymc_dpsplit.kernels.cluster_table import WIDE, place_of, whole_blocks
from pymc_dpsplit.kernels.jit import jitted

N_CLUSTERS, N_MEMBERS, RATIO = 21, 200.0, 1.02
GAP = 10  # a position without a cluster


@jitted
def _by_lanes(*given):
    fill_squared_solves(*given)


over_forms = pytest.mark.parametrize(
    "fill", [_by_lanes, fill_squared_solves_plainly], ids=["lanes", "plain"]
)


class Clusters:
    """Clusters whose centres are some distance apart, in a table."""

    def __init__(self, n_features: int, spread: float, rng: np.random.Generator) -> None:
        self.d, self.capacity = n_features, whole_blocks(N_CLUSTERS)
        self.means = spread * rng.standard_normal((N_CLUSTERS, n_features))
        shapes = rng.standard_normal((N_CLUSTERS, 3 * n_features, n_features))
        scatter = shapes.transpose(0, 2, 1) @ shapes / (3 * n_features)
        psi = N_MEMBERS * (0.5 * np.eye(n_features) + scatter)
        self.factors = np.linalg.cholesky(psi)
        self.height = 4 + 2 * n_features + n_features * (n_features - 1) // 2
        self.table = np.zeros(self.capacity * self.height)
        log_diagonal = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(1)
        self.coefficients = np.stack(
            [
                -log_diagonal,
                np.full(N_CLUSTERS, 0.99),
                np.full(N_CLUSTERS, 0.5 * (N_MEMBERS + n_features + 3.0)),
                -log_diagonal - 0.1,
            ]
        )
        self.sizes = np.zeros(self.capacity)
        self.sizes[:N_CLUSTERS] = N_MEMBERS
        self.sizes[GAP] = 0.0
        for p in range(N_CLUSTERS):
            self._write(p)

    def _write(self, p: int) -> None:
        at, factor = place_of(self.height, p), self.factors[p]
        numbers = np.append(self.means[p], 1.0 / np.diag(factor))
        self.table[at : at + 2 * self.d * WIDE : WIDE] = numbers
        fill_triangle(factor, self.d, self.table, at + 2 * self.d * WIDE)
        at += (self.height - 4) * WIDE
        self.table[at : at + 4 * WIDE : WIDE] = self.coefficients[:, p]

    def expected(self, row: np.ndarray) -> np.ndarray:
        solved = [
            linalg.solve_triangular(factor, row - mean, lower=True)
            for factor, mean in zip(self.factors, self.means, strict=True)
        ]
        return (np.array(solved) ** 2).sum(1)

    def log_densities(self, squared: np.ndarray) -> np.ndarray:
        c, f, h, _ = self.coefficients
        return c - h * np.log1p(f * squared)

    def log_density_of_rest(self, squared: np.ndarray, own: int) -> float:
        _, f, h, c = self.coefficients[:, own]
        return float(c + (h - 1.0) * np.log1p(-RATIO * f * squared[own]))

    def found(
        self,
        fill: Callable[..., Any],
        row: np.ndarray,
        own: int,
        least: float = -np.inf,
        drop: float = np.inf,
    ) -> np.ndarray:
        squared, scratch = np.full(self.capacity, np.nan), np.empty(self.d * WIDE)
        limits = RATIO, least, drop, self.sizes
        fill(self.table, self.height, row, N_CLUSTERS, own, *limits, scratch, squared)
        return squared[:N_CLUSTERS]


@over_forms
@pytest.mark.parametrize("n_features", [*range(1, 14), 50])
@pytest.mark.parametrize("own", [-1, 0, 9, 20])
def test_without_limits_all_are_solved(
    fill: Callable[..., Any], n_features: int, own: int, rng: np.random.Generator
) -> None:
    clusters = Clusters(n_features, 2.0, rng)
    row = rng.standard_normal(n_features)
    squared = clusters.found(fill, row, own)
    np.testing.assert_allclose(squared, clusters.expected(row), rtol=1e-11)


def _assert_bounds(
    clusters: Clusters, squared: np.ndarray, exact: np.ndarray, limit: float
) -> np.ndarray:
    """What is unfinished is a lower bound that suffices; return which are finished."""
    is_exact = np.isclose(squared, exact, rtol=1e-11)
    rest = ~is_exact & (np.arange(N_CLUSTERS) != GAP)
    assert (squared[rest] < exact[rest]).all()
    assert (clusters.log_densities(squared)[rest] < limit).all()
    return is_exact


@over_forms
@pytest.mark.parametrize("n_features", [9, 12, 18, 50])
@pytest.mark.parametrize(
    ("spread", "finished"), [(0.5, (0.8, 1.0)), (1.5, (0.0, 1.0)), (8.0, (0.3, 0.75))]
)
def test_what_is_unfinished_has_no_weight(
    fill: Callable[..., Any],
    n_features: int,
    spread: float,
    finished: tuple[float, float],
    rng: np.random.Generator,
) -> None:
    clusters, n_exact = Clusters(n_features, spread, rng), 0
    for own in range(N_CLUSTERS):
        row = clusters.means[own] + 0.5 * rng.standard_normal(n_features)
        exact = clusters.expected(row)
        limit = clusters.log_density_of_rest(exact, own) - 30.0
        squared = clusters.found(fill, row, own, drop=30.0)
        is_exact = _assert_bounds(clusters, squared, exact, limit)
        assert is_exact[own // WIDE * WIDE : own // WIDE * WIDE + WIDE].all()
        n_exact += is_exact.sum()
    assert finished[0] <= n_exact / N_CLUSTERS**2 <= finished[1]


@over_forms
def test_a_row_without_own_cluster_has_the_limit_it_is_given(
    fill: Callable[..., Any], rng: np.random.Generator
) -> None:
    clusters = Clusters(12, 5.0, rng)
    row = clusters.means[3] + 0.5 * rng.standard_normal(12)
    exact = clusters.expected(row)
    limit = clusters.log_densities(exact)[3] - 30.0
    is_exact = _assert_bounds(clusters, clusters.found(fill, row, -1, least=limit), exact, limit)
    assert is_exact[:WIDE].all()
    assert not is_exact[WIDE:].any()
    everything = clusters.found(fill, row, -1, least=1e300)
    assert (everything < exact).all()


@over_forms
def test_a_row_that_hides_the_others_of_its_cluster_sets_no_limit(
    fill: Callable[..., Any], rng: np.random.Generator
) -> None:
    """By the determinant lemma nothing is left of the density without it."""
    clusters = Clusters(12, 5.0, rng)
    row = clusters.means[3] + 1e6
    squared = clusters.found(fill, row, 3, drop=30.0)
    np.testing.assert_allclose(squared, clusters.expected(row), rtol=1e-11)


def test_both_forms_leave_the_same_unfinished(rng: np.random.Generator) -> None:
    clusters = Clusters(13, 3.0, rng)
    for own in (-1, 4, 17):
        row = clusters.means[own] + rng.standard_normal(13)
        given = row, own, -200.0, 40.0
        forms = [clusters.found(fill, *given) for fill in (_by_lanes, fill_squared_solves_plainly)]
        np.testing.assert_allclose(*forms, rtol=1e-12)


@pytest.mark.control
def test_a_bound_that_is_taken_for_less_is_found_out(rng: np.random.Generator) -> None:
    """A cluster within 30 of the own one is left unfinished if 0 is asked for."""
    clusters = Clusters(12, 1.5, rng)
    row = clusters.means[3] + 0.5 * rng.standard_normal(12)
    exact = clusters.expected(row)
    limit = clusters.log_density_of_rest(exact, 3) - 30.0
    squared = clusters.found(_by_lanes, row, 3, drop=0.0)
    with pytest.raises(AssertionError):
        _assert_bounds(clusters, squared, exact, limit)
