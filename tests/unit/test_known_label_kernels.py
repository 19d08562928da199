"""Kernel operations of rows with known labels, each an observation of the process, by hand."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from pymc_dpsplit import sampler
from pymc_dpsplit.components.multiplicity import multiplicity, observation_at
from pymc_dpsplit.components.shared_labels.items import Items
from pymc_dpsplit.components.shared_labels.kernels import N_BEFORE
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.moves.collapsed.conditional_modes import climb_by_rows
from pymc_dpsplit.moves.collapsed.scan_list import log_founding_odds
from pymc_dpsplit.moves.partition import log_joint, members_of
from pymc_dpsplit.moves.partition_law import (
    PartitionLaw,
    dirichlet_process,
    finite_mixture,
    log_founding_factor,
    log_joining_factor,
    log_probability,
    most_clusters,
)
from pymc_dpsplit.moves.sweep.assignment import weigh
from pymc_dpsplit.moves.sweep.density import add_log_weights
from pymc_dpsplit.variables.log_density import log_masses, log_mixture_density
from tests.support.families import component_of, target_of, twin_of
from tests.support.families import dataset_of as rows_of
from tests.support.operations import (
    cache_of,
    densities,
    draws_of,
    marginal_of,
    predictives,
    stats_of,
)
from tests.support.partitions import enumerate_partitions
from tests.support.shared_labels import known_labels, target_of_groups

KNOWN = np.array([4, 0, 4, 2, -1, 2, -1, 2])
SHARED = known_labels(KNOWN)
SIZES = np.array([2, 1, 3, 1, 1])
ALPHA = 0.7
OVER_FAMILIES = pytest.mark.parametrize(
    ("name", "n_features"), [("Normal", 1), ("MvNormal", 2), ("Poisson", 2)]
)


def targets(name: str, n_features: int) -> tuple[sampler.Target, sampler.Target]:
    """Target of the items, and of the rows with labels of their own."""
    rows, component = rows_of(name, "overlapping", n_features), component_of(name, n_features)
    return target_of_groups(component, rows, SHARED, ALPHA), target_of(component, rows, ALPHA)


def rows_in(items: Any) -> np.ndarray:
    return np.flatnonzero(np.isin(SHARED.group_of_row, items))


@OVER_FAMILIES
def test_statistics_and_marginals_are_those_of_the_rows(name: str, n_features: int) -> None:
    target, of_rows = targets(name, n_features)
    for members in ([], [2], [0, 3], [4, 1, 2], range(5)):
        items = np.array(members, np.int64)
        stats = stats_of(target.prior, target.data, items)
        expected = stats_of(of_rows.prior, of_rows.data, rows_in(items))
        assert stats[0] == len(rows_in(items))
        np.testing.assert_allclose(stats[1:], expected, rtol=1e-12, atol=1e-12)
        ours = predictives(target.prior, target.data, cache_of(target.prior, target.data, items))
        for g in range(5):
            both = np.concatenate([rows_in(items), rows_in([g])])
            joined = stats_of(of_rows.prior, of_rows.data, both)
            change = marginal_of(of_rows.prior, joined) - marginal_of(of_rows.prior, expected)
            assert ours[g] == pytest.approx(change, rel=1e-8, abs=1e-8)


@OVER_FAMILIES
def test_every_row_has_a_factor_of_the_weight(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    target, of_rows = targets(name, n_features)
    prior, data = target.prior, target.data
    params = draws_of(prior, stats_of(prior, data, np.arange(5)), 2, rng)
    log_weights, floor = np.log([0.6, 0.01]), 0.2
    plain = [densities(of_rows.prior, of_rows.data, of[N_BEFORE:].copy()) for of in params]
    own = np.array([np.bincount(SHARED.group_of_row, of) for of in plain])
    weighted = add_log_weights(prior, params, log_weights)
    sliced = weigh(prior, log_weights, params, floor)
    for k in range(2):
        expected = own[k] + SIZES * log_weights[k]
        np.testing.assert_allclose(densities(prior, data, weighted[k]), expected, rtol=1e-12)
        # The slice takes one factor, eq. (7.53).
        expected -= np.log(min(np.exp(log_weights[k]), floor))
        np.testing.assert_allclose(densities(prior, data, sliced[k]), expected, rtol=1e-12)
    np.testing.assert_array_equal(params[:, :N_BEFORE], 0.0)


def test_places_of_the_process_are_those_of_rows() -> None:
    target, of_rows = targets("Normal", 1)
    found = [observation_at(target.prior, target.data, place) for place in range(8)]
    np.testing.assert_array_equal(np.bincount(found), SIZES)
    sizes = [multiplicity(target.prior, target.data, i) for i in range(5)]
    np.testing.assert_array_equal(sizes, SIZES)
    assert observation_at(of_rows.prior, of_rows.data, 3) == 3
    assert multiplicity(of_rows.prior, of_rows.data, 3) == 1.0
    state = sampler.resume(target, np.array([0, 1, 1, 0, 1]))
    np.testing.assert_array_equal(members_of(state.labels, state.stats, 0, 0), [0, 3])
    np.testing.assert_array_equal(members_of(state.labels, state.stats, 0, 1), np.arange(5))
    assert state.n_observations == 8


@pytest.mark.parametrize("law", [dirichlet_process(0.7), PartitionLaw(0.3, 0.4)])
def test_rows_that_join_together_join_one_after_the_other(law: PartitionLaw) -> None:
    sizes = np.array([3.0, 2.0])
    for m in (1, 2, 5):
        before = log_probability(law, sizes)
        joined = log_probability(law, sizes + np.array([m, 0])) - before
        opened = log_probability(law, np.array([*sizes, m])) - before
        ours = log_joining_factor(law, sizes[0], float(m))
        assert ours - log_founding_factor(law, 2, float(m)) == pytest.approx(joined - opened)
        steps = sum(math.log(sizes[0] - law.discount + j) for j in range(m))
        assert ours == pytest.approx(steps, rel=1e-12)


def test_draws_of_the_remainder_are_together_with_this_probability() -> None:
    expected = {1: 1.0, 2: 1 / (1 + ALPHA), 3: 2 / ((1 + ALPHA) * (2 + ALPHA))}
    found = np.exp(SHARED.log_together(ALPHA))
    np.testing.assert_allclose(found, [expected[m] for m in SIZES])


@pytest.mark.parametrize("discount", [0.3, -0.4])
def test_draws_of_the_remainder_are_together_under_every_law(discount: float) -> None:
    """By seating them one after the other: each joins the first, of which n - sigma count."""
    strength = 1.2
    expected = {1: 1.0, 2: (1.0 - discount) / (strength + 1.0)}
    expected[3] = expected[2] * (2.0 - discount) / (strength + 2.0)
    found = np.exp(SHARED.log_together(strength, discount))
    np.testing.assert_allclose(found, [expected[m] for m in SIZES])


@pytest.mark.parametrize("law", [PartitionLaw(0.3, 0.5), finite_mixture(0.7, 4)])
def test_the_remainder_of_the_mixture_density_has_its_own_law(law: PartitionLaw) -> None:
    rows, component = rows_of("Normal", "overlapping", 1), component_of("Normal", 1)
    values = component.check(component.hyperparameters, 1)
    parameters = component.draw_base(np.random.default_rng(1), values, 2)
    given = np.array([0.5, 0.3]), 0.2, parameters, values
    items, centre = Items(component, SHARED), column_centres(rows)
    terms = log_masses(items, rows, *given, centre, law.strength, law.discount)
    process = log_masses(items, rows, *given, centre, ALPHA)
    np.testing.assert_array_equal(terms[:2], process[:2])
    together = SHARED.log_together(law.strength + 2 * law.discount, law.discount)
    alone = process[2] - SHARED.log_together(ALPHA)
    np.testing.assert_allclose(terms[2], alone + together, rtol=1e-9)
    found = log_mixture_density(items, rows, *given, law.strength, law.discount)
    np.testing.assert_allclose(found, logsumexp(terms, axis=0), rtol=1e-9)


def test_the_mixture_density_has_every_factor() -> None:
    rows, twin = rows_of("Normal", "overlapping", 1), twin_of("Normal", 1)
    component = component_of("Normal", 1)
    values = component.check(component.hyperparameters, 1)
    weights, rest = np.array([0.5, 0.3]), 0.2
    parameters = component.draw_base(np.random.default_rng(1), values, 2)
    law = weights, rest, parameters, values
    items = Items(component, SHARED)
    found = log_mixture_density(items, rows, *law, ALPHA)
    terms = log_masses(items, rows, *law, column_centres(rows), ALPHA)
    mu, sigma = parameters["mu"], parameters["sigma"]
    for g in range(5):
        own = rows[rows_in([g])]
        m = len(own)
        density = -0.5 * ((own - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
        alone = twin.log_marginal(own) + SHARED.log_together(ALPHA)[g]
        expected = [*(m * np.log(weights) + density.sum(0)), m * np.log(rest) + alone]
        np.testing.assert_allclose(terms[:, g], expected, rtol=1e-9)
        assert found[g] == pytest.approx(logsumexp(expected), rel=1e-9)


@pytest.mark.parametrize("law", [PartitionLaw(0.3, 0.4), finite_mixture(0.7, 3)])
def test_modes_climb_under_every_law(law: PartitionLaw) -> None:
    target = targets("Normal", 1)[0]._replace(law=law)
    for labels in enumerate_partitions(5):
        state = sampler.resume(target, labels)
        if len(state.stats) > most_clusters(law, 5):
            continue
        before = log_joint(target, state.stats)
        climb_by_rows(target, state.labels, state.stats, np.arange(5))
        after = sampler.resume(target, np.unique(state.labels, return_inverse=True)[1])
        assert log_joint(target, after.stats) >= before - 1e-9


def test_modes_climb_and_odds_count_rows() -> None:
    target, _ = targets("Normal", 1)
    for labels in enumerate_partitions(5):
        state = sampler.resume(target, labels)
        before = log_joint(target, state.stats)
        climb_by_rows(target, state.labels, state.stats, np.arange(5))
        after = sampler.resume(target, np.unique(state.labels, return_inverse=True)[1])
        assert log_joint(target, after.stats) >= before - 1e-9
    one = sampler.resume(target, np.zeros(5, np.int32))
    odds = log_founding_odds(target, one.stats)
    single = target_of_groups(
        component_of("Normal", 1), rows_of("Normal", "overlapping", 1),
        known_labels(np.full(8, -1)), ALPHA,
    )  # fmt: skip
    of_rows = log_founding_odds(single, sampler.resume(single, np.zeros(8, np.int32)).stats)
    # Row 1 is by itself in both; of other items each row adds a factor.
    assert odds[1] == pytest.approx(of_rows[1], rel=1e-9)
    assert (odds[[0, 2]] < 0).all()


def test_names_and_labels_of_items() -> None:
    names = ["label 4", "label 0", "label 2", "row 4", "row 6"]
    assert SHARED.dimension_in("x") == ("x_item", names)
    items = Items(component_of("Normal", 1), SHARED)
    of_rows = items.recorded(np.array([0, 1, 2, 1, 0]))
    np.testing.assert_array_equal(of_rows, [0, 1, 0, 2, 1, 2, 0, 2])
    np.testing.assert_array_equal(items.of_recorded(of_rows), [0, 1, 2, 1, 0])
    with pytest.raises(ValueError, match="start_labels has rows 3 and 7 in two clusters, but"):
        items.of_recorded(np.array([0, 1, 0, 2, 1, 2, 0, 1]))
