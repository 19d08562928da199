"""Identities that every component family obeys, and agreement with its naive twin.

Generic over the examples of families, see `tests.reference.example`.
"""

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import pymc_dpsplit as dps
from pymc_dpsplit.components.base import log_predictive, predictive_add, predictive_remove
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.moves.sweep.density import fill_log_mixture, log_prior_predictive
from tests.support.families import (
    BOUNDED,
    CONTINUOUS,
    DISCRETE,
    EXAMPLES,
    FAMILIES,
    GAUSSIAN,
    HYPERPARAMETERS,
    SINGLE,
)
from tests.support.family_cases import (
    CASES,
    CASES_BY_COLUMN,
    Case,
    case_of,
    hyperparameters_of,
    of_quick,
    over_cases,
    over_cases_by_column,
    over_cases_by_column_of_quick,
    over_cases_of_quick,
    over_datasets,
    over_discrete,
    over_gaussian,
    over_gaussian_of_quick,
    over_independent_of_quick,
    rows_of,
    sizes_of,
)
from tests.support.operations import (
    cache_of,
    densities,
    draws_of,
    enter,
    group_stats,
    labelled_stats,
    leave,
    marginal_of,
    overrelaxed,
    plug_in,
    predictives,
    predictives_of_list,
    stats_of,
)
from tests.support.quick import is_quick_family, over_families, slow_unless
from tests.support.statistics import LEVEL, combine

N_DRAWS = 20_000
BY_COLUMN = [name for name in DISCRETE if FAMILIES[name].by_column]


def some_subsets(n_obs: int, rng: np.random.Generator, n_subsets: int = 12) -> list[np.ndarray]:
    """Subsets of 0 .. n_obs - 1 in random order: none, one, all, and others."""
    sizes = [0, 1, n_obs, *rng.integers(2, n_obs, n_subsets)]
    return [rng.permutation(n_obs)[:size] for size in sizes]


# --- marginals, predictives and their caches ----------------------------------------------


@over_datasets
@over_cases
def test_log_marginal_matches_the_twin(
    name: str, n_features: int, dataset: str, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of(dataset, n_features))
    for members in some_subsets(len(case.rows), rng):
        ours = marginal_of(case.prior, stats_of(case.prior, case.data, members))
        assert ours == pytest.approx(case.twin.log_marginal(case.rows[members]), rel=1e-9, abs=1e-9)


@over_cases
def test_groups_are_added_like_rows(name: str, n_features: int, rng: np.random.Generator) -> None:
    case = case_of(name, rows_of("separated", n_features))
    scattered = 2.0 * rng.standard_normal((3 * TILE, n_features))
    wide = FAMILIES[name].rows_from(rows_of("separated", n_features).mean(0) + scattered)
    wide = case.component.arranged(wide)
    members = rng.permutation(3 * TILE)
    bounds = np.array([0, 1, 1, 5, 2 * TILE + 9])  # one of them empty, one longer than a tile
    ours = group_stats(case.prior, wide, members, bounds)
    for k in range(4):
        one_by_one = stats_of(case.prior, wide, members[bounds[k] : bounds[k + 1]])
        np.testing.assert_allclose(ours[k], one_by_one, rtol=1e-11, atol=1e-11)


@over_cases
def test_labelled_rows_are_added_like_rows(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("separated", n_features))
    n_obs = len(case.rows)
    labels = rng.integers(3, size=n_obs).astype(np.int32)
    is_added, ours = labelled_stats(case.prior, case.data, labels, 1, n_obs, 3)
    for k in range(3):
        members = 1 + np.flatnonzero(labels[1:] == k) if is_added else np.empty(0, np.int64)
        one_by_one = stats_of(case.prior, case.data, members)
        np.testing.assert_allclose(ours[k], one_by_one, rtol=1e-11, atol=1e-11)


@over_datasets
@over_cases
def test_predictives_chain_to_the_marginal_in_any_order(
    name: str, n_features: int, dataset: str, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of(dataset, n_features))
    everyone = np.arange(len(case.rows))
    marginal = marginal_of(case.prior, stats_of(case.prior, case.data, everyone))
    for _ in range(3):
        cache, chain = cache_of(case.prior, case.data, everyone[:0]), 0.0
        for i in rng.permutation(everyone):
            chain += predictives(case.prior, case.data, cache)[i]
            enter(case.prior, case.data, i, cache)
        assert chain == pytest.approx(marginal, rel=1e-9, abs=1e-9)


@over_cases
def test_log_predictive_matches_the_twin(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    for members in some_subsets(len(case.rows), rng):
        ours = predictives(case.prior, case.data, cache_of(case.prior, case.data, members))
        twins = [case.twin.log_predictive(row, case.rows[members]) for row in case.rows]
        np.testing.assert_allclose(ours, twins, rtol=1e-9, atol=1e-9)


@over_cases
def test_predictives_of_a_list_are_those_of_its_rows(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    listed = rng.integers(len(case.rows), size=2 * TILE + 5)
    for members in some_subsets(len(case.rows), rng, n_subsets=2):
        cache = cache_of(case.prior, case.data, members)
        found = predictives_of_list(case.prior, case.data, listed, cache)
        one_by_one = predictives(case.prior, case.data, cache)[listed]
        np.testing.assert_allclose(found, one_by_one, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("name", "n_features"), [("Normal", 1), ("DiagNormal", 3), ("MvNormal", 3)]
)
def test_predictive_of_a_row_whose_square_overflows_is_zero(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    rows = rng.standard_normal((5, n_features))
    case = case_of(name, rows)
    cache = cache_of(case.prior, case.data, np.arange(4))
    rows[4, 0] = 1e170
    found = predictives_of_list(case.prior, rows, np.arange(5), cache)
    assert np.isfinite(found[:4]).all()
    assert found[4] == -np.inf


@over_datasets
@over_cases
def test_cache_follows_its_members(
    name: str, n_features: int, dataset: str, rng: np.random.Generator
) -> None:
    """Added to or removed from, it predicts as one filled from the statistics does."""
    case = case_of(name, rows_of(dataset, n_features))
    order = rng.permutation(len(case.rows))
    cache = cache_of(case.prior, case.data, order[:0])
    for j, i in enumerate(order):
        enter(case.prior, case.data, i, cache)
        fresh = cache_of(case.prior, case.data, order[: j + 1])
        np.testing.assert_allclose(
            predictives(case.prior, case.data, cache),
            predictives(case.prior, case.data, fresh),
            rtol=1e-9,
            atol=1e-9,
        )
    for j, i in enumerate(order[:-1]):
        assert leave(case.prior, case.data, i, cache)
        fresh = cache_of(case.prior, case.data, order[j + 1 :])
        np.testing.assert_allclose(
            predictives(case.prior, case.data, cache),
            predictives(case.prior, case.data, fresh),
            rtol=1e-9,
            atol=1e-9,
        )


@over_cases
def test_add_then_remove_is_the_identity(name: str, n_features: int) -> None:
    case = case_of(name, rows_of("outlier", n_features))
    cache = cache_of(case.prior, case.data, np.arange(3))
    before = predictives(case.prior, case.data, cache)
    for i in range(len(case.rows)):
        enter(case.prior, case.data, i, cache)
        assert not np.allclose(predictives(case.prior, case.data, cache), before, rtol=1e-3)
        assert leave(case.prior, case.data, i, cache)
        np.testing.assert_allclose(
            predictives(case.prior, case.data, cache), before, rtol=1e-9, atol=1e-9
        )


@over_cases
def test_statistics_add_up(name: str, n_features: int, rng: np.random.Generator) -> None:
    case = case_of(name, rows_of("separated", n_features))
    everyone = np.arange(len(case.rows))
    whole = stats_of(case.prior, case.data, everyone)
    assert whole[0] == len(everyone)
    for members in some_subsets(len(everyone), rng):
        rest = np.setdiff1d(everyone, members)
        both = stats_of(case.prior, case.data, members) + stats_of(case.prior, case.data, rest)
        np.testing.assert_allclose(both, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", BY_COLUMN)
def test_predictive_and_density_of_one_feature_sum_to_one(
    name: str, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", 1))
    support = np.array(FAMILIES[name].support, np.float64)[:, None]
    for members in (np.arange(0), np.arange(1), np.arange(len(case.rows))):
        values = predictives(case.prior, support, cache_of(case.prior, case.data, members))
        assert np.exp(values).sum() == pytest.approx(1.0, abs=1e-9)
        statistics = stats_of(case.prior, case.data, members)
        (params,) = draws_of(case.prior, statistics, 1, rng)
        total = np.exp(densities(case.prior, support, params)).sum()
        assert total == pytest.approx(1.0, abs=1e-9)


@over_discrete
def test_rows_outside_the_support_have_no_probability(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    """Nor do they spoil that of the others, in whatever column they are wrong."""
    case = case_of(name, rows_of("overlapping", n_features))
    everyone = stats_of(case.prior, case.data, np.arange(len(case.rows)))
    (params,) = draws_of(case.prior, everyone, 1, rng)
    cache = cache_of(case.prior, case.data, np.arange(3))
    good = densities(case.prior, case.data, params)
    for wrong in (-1.0, 0.5, -1e30, 1e30):
        if FAMILIES[name].is_endless and wrong > 1.0:
            continue
        rows = case.rows.copy()
        rows[2, -1] = wrong
        data = case.component.arranged(rows)
        for function, of in ((densities, params), (predictives, cache)):
            values = function(case.prior, data, of)
            assert values[2] < -1e299
        kept = np.arange(len(good)) != 2
        np.testing.assert_array_equal(densities(case.prior, data, params)[kept], good[kept])


@pytest.mark.parametrize("name", BOUNDED)
def test_negative_numbers_have_no_probability(name: str, rng: np.random.Generator) -> None:
    case = case_of(name, rows_of("overlapping", 3))
    everyone = stats_of(case.prior, case.data, np.arange(len(case.rows)))
    (params,) = draws_of(case.prior, everyone, 1, rng)
    cache, good = cache_of(case.prior, case.data, np.arange(3)), np.arange(len(case.rows)) != 2
    for column in range(3):
        data = case.data.copy()
        data[2, column] = -1e-9
        for function, of in ((densities, params), (predictives, cache)):
            values = function(case.prior, data, of)
            assert values[2] < -1e299
            expected = function(case.prior, case.data, of)[good]
            np.testing.assert_array_equal(values[good], expected)


def test_zero_is_a_time(rng: np.random.Generator) -> None:
    rows = FAMILIES["Exponential"].rows_from(rows_of("overlapping", 2))
    case = case_of("Exponential", rows_of("overlapping", 2))
    rows[[1, 4], [0, 1]] = 0.0
    everyone = stats_of(case.prior, rows, np.arange(len(rows)))
    assert marginal_of(case.prior, everyone) == pytest.approx(case.twin.log_marginal(rows))
    (params,) = draws_of(case.prior, everyone, 1, rng)
    one = {"rate": case.component.unpack(params[None], case.shift)["rate"]}
    ours = densities(case.prior, rows, params)
    np.testing.assert_allclose(ours, case.twin.log_density(rows, one))
    np.testing.assert_allclose(ours, case.component.log_density(rows, one, np))
    found = predictives(case.prior, rows, cache_of(case.prior, rows, np.arange(3)))
    np.testing.assert_allclose(found, [case.twin.log_predictive(x, rows[:3]) for x in rows])


def line(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Entries (G, 1) that a family may have, on a grid on which tails end smoothly, and widths."""
    if FAMILIES[name].component.is_bounded:
        logs = np.linspace(-60.0, 60.0, 20_001)
        return np.exp(logs)[:, None], np.exp(logs) * (logs[1] - logs[0])
    angle = np.linspace(-np.pi / 2, np.pi / 2, 20_003)[1:-1]
    return np.tan(angle)[:, None], (angle[1] - angle[0]) / np.cos(angle) ** 2


@pytest.mark.parametrize("name", CONTINUOUS)
def test_predictive_of_one_feature_integrates_to_one(name: str) -> None:
    rows = rows_of("overlapping", 1)
    grid, width = line(name)
    case = case_of(name, rows)
    for members in (np.arange(0), np.arange(1), np.arange(len(rows))):
        values = predictives(case.prior, grid, cache_of(case.prior, case.data, members))
        assert np.exp(values) @ width == pytest.approx(1.0, abs=1e-6)


@over_gaussian
def test_log_marginal_survives_a_far_origin(name: str, n_features: int) -> None:
    """Centring makes up for an offset of 1e8, in which scatter would drown."""
    rows = rows_of("overlapping", n_features)
    everyone = np.arange(len(rows))
    near = case_of(name, rows)
    expected = marginal_of(near.prior, stats_of(near.prior, near.data, everyone))
    moved = {key: np.array(value) for key, value in near.values.items()}
    moved["mu0"] = moved["mu0"] + 1e8
    far = rows + 1e8
    centred = near.component.prior(moved, far.mean(0))
    found = marginal_of(centred, stats_of(centred, far, everyone))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    raw = near.component.prior(moved, np.zeros(n_features))
    assert marginal_of(raw, stats_of(raw, far, everyone)) != pytest.approx(expected, rel=1e-6)


# --- caches under stress ------------------------------------------------------------------


@jitted
def predictive_error(prior, data, inside, cache):
    """Largest error of a log predictive against a cache filled afresh; infinite for NaN."""
    fresh = cache_of(prior, data, np.flatnonzero(inside))
    worst = 0.0
    for i in range(data.shape[0]):
        expected = log_predictive(prior, data, i, fresh)
        error = abs(log_predictive(prior, data, i, cache) - expected) / max(1.0, abs(expected))
        if not error <= worst:
            worst = error if error == error else np.inf
    return worst


@jitted
def churn(prior, data, n_steps, every, rng):
    """Add and remove observations at random, one per step.

    Returns
    -------
    worst : float
        Largest `predictive_error` of every `every`-th step, and of every one after a refill.
    n_refills : int
        How often `predictive_remove` asked for a fresh cache.
    """
    inside = np.ones(data.shape[0], np.bool_)
    cache = cache_of(prior, data, np.flatnonzero(inside))
    size, worst, n_refills = data.shape[0], 0.0, 0
    for step in range(n_steps):
        i = np.int64(rng.random() * data.shape[0])
        refilled = False
        if not inside[i]:
            inside[i] = True
            size += 1
            predictive_add(prior, data, i, cache)
        elif size > 1:
            inside[i] = False
            size -= 1
            if not predictive_remove(prior, data, i, cache):
                cache = cache_of(prior, data, np.flatnonzero(inside))
                n_refills += 1
                refilled = True
        if refilled or step % every == 0:
            worst = max(worst, predictive_error(prior, data, inside, cache))
    return worst, n_refills


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "n_features"), [(name, 5) for name in SINGLE if FAMILIES[name].component.row_ndim]
)
def test_cache_is_sound_after_a_million_updates(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rng.standard_normal((60, n_features)))
    worst, n_refills = churn(case.prior, case.data, 1_000_000, 1000, rng)
    assert worst < 1e-6
    assert n_refills < 20_000


def narrow(name: str, n_features: int, rows: np.ndarray) -> Case:
    """A family that lets a cluster be as narrow as 1e-6; data are not centred."""
    hyperparameters = hyperparameters_of(name, n_features)
    scale = "psi0" if "psi0" in hyperparameters else "b0"
    hyperparameters[scale] = hyperparameters[scale] * 1e-12
    hyperparameters["mu0"] = hyperparameters["mu0"] * 0.0
    component = FAMILIES[name].component(**hyperparameters)
    values = component.check(component.hyperparameters, n_features)
    shift = np.zeros(n_features)
    twin = FAMILIES[name].twin(**hyperparameters)
    return Case(component, values, twin, rows, shift, component.prior(values, shift), rows)


def remove_in_turn(case: Case, leaving: range, cache: np.ndarray) -> tuple[np.ndarray, int]:
    """Remove rows from a cache of all from the first on; the cache and the number of refills."""
    n_refills = 0
    for i in leaving:
        if not leave(case.prior, case.data, i, cache):
            cache = cache_of(case.prior, case.data, np.arange(i + 1, len(case.rows)))
            n_refills += 1
    return cache, n_refills


def assert_predicts(case: Case, members: np.ndarray, cache: np.ndarray) -> None:
    """The cache predicts its members as the twin does."""
    ours = predictives(case.prior, case.data, cache)[members]
    twins = [case.twin.log_predictive(row, case.rows[members]) for row in case.rows[members]]
    np.testing.assert_allclose(ours, twins, rtol=1e-4, atol=1e-4)


# Clusters of the others are as wide as they are declared, so that nothing in a cache can cancel.
over_small_cases = pytest.mark.parametrize(
    ("name", "n_features"),
    [
        case
        for case in CASES
        if case[0] in GAUSSIAN
        and case[1] <= 3
        and {"b0", "psi0"} & set(HYPERPARAMETERS[case[0]](case[1]))
    ],
)


@over_small_cases
def test_losing_a_far_row_is_noticed(name: str, n_features: int, rng: np.random.Generator) -> None:
    """Of the scatter that is left no digit was in the cache."""
    rows = 1e-6 * rng.standard_normal((9, n_features))
    rows[0] = 1e3
    case = narrow(name, n_features, rows)
    cache = cache_of(case.prior, case.data, np.arange(9))
    cache, n_refills = remove_in_turn(case, range(1), cache)
    assert n_refills == 1
    assert_predicts(case, np.arange(1, 9), cache)


@over_small_cases
def test_losses_over_many_removals_are_noticed(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    """Rows leave from the widest group to the narrowest, each a hundredth of the one before."""
    per_group = 4 * n_features
    scales = np.repeat([1e3, 1e1, 1e-1, 1e-3, 1e-5, 1e-6], per_group)
    case = narrow(
        name, n_features, scales[:, None] * rng.standard_normal((len(scales), n_features))
    )
    cache, n_refills = cache_of(case.prior, case.data, np.arange(len(scales))), 0
    for first in range(0, 5 * per_group, per_group):
        cache, more = remove_in_turn(case, range(first, first + per_group), cache)
        n_refills += more
        assert_predicts(case, np.arange(first + per_group, len(scales)), cache)
    assert 0 < n_refills < 5 * per_group


def test_losing_a_long_time_is_noticed(rng: np.random.Generator) -> None:
    """Nothing of the other rows is left in the sum that it was added to."""
    rows = 1e-9 * rng.standard_gamma(2.0, (9, 2))
    rows[0] = 1e9
    component = dps.Gamma(2.0, 1.0, 1e-9)
    values, shift = component.check(component.hyperparameters, 2), np.zeros(2)
    twin = FAMILIES["Gamma"].twin(**values)
    case = Case(component, values, twin, rows, shift, component.prior(values, shift), rows)
    cache, n_refills = remove_in_turn(case, range(2), cache_of(case.prior, rows, np.arange(9)))
    assert n_refills == 1
    assert_predicts(case, np.arange(2, 9), cache)


# --- densities and parameters -------------------------------------------------------------


@over_cases
def test_log_density_matches_the_twin(name: str, n_features: int, rng: np.random.Generator) -> None:
    case = case_of(name, rows_of("separated", n_features))
    wide = FAMILIES[name].rows_from(2.0 * rng.standard_normal((TILE + 7, n_features)))
    statistics = stats_of(case.prior, case.data, np.arange(4))
    params = draws_of(case.prior, statistics, 3, rng)
    named = case.component.unpack(params, case.shift)
    for k in range(3):
        twins = case.twin.log_density(wide, {key: value[k] for key, value in named.items()})
        ours = densities(case.prior, case.component.arranged(wide), params[k])
        np.testing.assert_allclose(ours, twins, rtol=1e-9, atol=1e-9)


@over_cases
def test_first_parameter_is_a_constant_term(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("separated", n_features))
    params = draws_of(case.prior, stats_of(case.prior, case.data, np.arange(4)), 1, rng)[0]
    before = densities(case.prior, case.data, params)
    params[0] -= 1.25
    np.testing.assert_allclose(densities(case.prior, case.data, params), before - 1.25, rtol=1e-12)


@over_cases
def test_pack_and_unpack_are_inverse(name: str, n_features: int, rng: np.random.Generator) -> None:
    case = case_of(name, rows_of("separated", n_features))
    params = draws_of(case.prior, stats_of(case.prior, case.data, np.arange(4)), 5, rng)
    named = case.component.unpack(params, case.shift)
    assert set(named) == set(case.component.parameters)
    for key, ndim in case.component.parameters.items():
        assert named[key].shape == (5, *case.component.shape_of(key, ndim, n_features))
    np.testing.assert_allclose(case.component.pack(named, case.shift), params, rtol=1e-8, atol=1e-8)
    drawn = case.component.draw_base(rng, case.values, 5)
    again = case.component.unpack(case.component.pack(drawn, case.shift), case.shift)
    for key in drawn:
        np.testing.assert_allclose(again[key], drawn[key], rtol=1e-8, atol=1e-8)


@over_cases
def test_parameters_of_a_row_do_not_depend_on_other_rows(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    """Not in the last digit either: draws are converted one at a time or many at once."""
    case = case_of(name, rows_of("separated", n_features))
    params = draws_of(case.prior, stats_of(case.prior, case.data, np.arange(4)), 67, rng)
    together = case.component.unpack(params, case.shift)
    for size in 1, 2, 5:
        parts = [params[k : k + size] for k in range(0, len(params), size)]
        named = [case.component.unpack(part, case.shift) for part in parts]
        for key, values in together.items():
            np.testing.assert_array_equal(np.concatenate([of[key] for of in named]), values)


def law_p_value(name: str, twin: Any, rows: np.ndarray, draws: dict[str, np.ndarray]) -> float:
    """P-value of independent draws of the parameters against the posterior of the twin."""
    law = EXAMPLES[name].law
    assert law is not None
    uniforms = law(twin, rows, draws)
    return combine(*(stats.kstest(column, "uniform").pvalue for column in uniforms.T))


@pytest.mark.parametrize("dataset", ["overlapping", "duplicates"])
@over_cases_of_quick
@pytest.mark.compiled
def test_parameters_have_the_posterior_law(
    name: str, n_features: int, dataset: str, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of(dataset, n_features))
    statistics = stats_of(case.prior, case.data, np.arange(len(case.rows)))
    draws = draws_of(case.prior, statistics, N_DRAWS, rng)
    named = case.component.unpack(draws, case.shift)
    assert law_p_value(name, case.twin, case.rows, named) > LEVEL


OVERRELAXED = ("Normal", "NormalKnownSigma", "DiagNormal", "MvNormal")


@pytest.mark.parametrize("dataset", ["overlapping", "duplicates"])
@over_cases_of_quick
@pytest.mark.compiled
def test_overrelaxed_parameters_have_the_posterior_law(
    name: str, n_features: int, dataset: str, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of(dataset, n_features))
    statistics = stats_of(case.prior, case.data, np.arange(len(case.rows)))
    first = draws_of(case.prior, statistics, N_DRAWS, rng)
    second = overrelaxed(case.prior, statistics, first, rng)
    third = overrelaxed(case.prior, statistics, second, rng)
    for draws in (second, third):
        named = case.component.unpack(draws, case.shift)
        assert law_p_value(name, case.twin, case.rows, named) > LEVEL
    is_correlated = stats.pearsonr(first[:, 1], second[:, 1]).statistic < -0.5
    assert is_correlated == (name in OVERRELAXED)


@pytest.mark.control
@pytest.mark.compiled
@pytest.mark.parametrize("name", over_families(OVERRELAXED))
def test_following_draws_of_another_posterior_is_caught(
    name: str, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", sizes_of(name)[-1]))
    fewer = stats_of(case.prior, case.data, np.arange(len(case.rows) - 1))
    statistics = stats_of(case.prior, case.data, np.arange(len(case.rows)))
    draws = overrelaxed(case.prior, statistics, draws_of(case.prior, fewer, N_DRAWS, rng), rng)
    named = case.component.unpack(draws, case.shift)
    assert law_p_value(name, case.twin, case.rows, named) < LEVEL


@pytest.mark.control
@over_cases_of_quick
@pytest.mark.compiled
def test_posterior_without_one_row_is_caught(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    statistics = stats_of(case.prior, case.data, np.arange(len(case.rows)))
    named = case.component.unpack(draws_of(case.prior, statistics, N_DRAWS, rng), case.shift)
    assert law_p_value(name, case.twin, case.rows[:-1], named) < LEVEL


@over_cases_of_quick
@pytest.mark.compiled
def test_base_measure_is_the_law_of_empty_clusters(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    nothing = stats_of(case.prior, case.data, np.arange(0))
    compiled = case.component.unpack(draws_of(case.prior, nothing, N_DRAWS, rng), case.shift)
    assert law_p_value(name, case.twin, case.rows[:0], compiled) > LEVEL
    drawn = case.component.draw_base(rng, case.values, N_DRAWS)
    assert law_p_value(name, case.twin, case.rows[:0], drawn) > LEVEL


@pytest.mark.control
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "wrong"),
    slow_unless(
        lambda case: is_quick_family(case[0]),
        [(name, key) for name in SINGLE for key in HYPERPARAMETERS[name](1)],
    ),
)
def test_wrong_hyperparameter_is_caught(name: str, wrong: str, rng: np.random.Generator) -> None:
    n_features = sizes_of(name)[-1]
    case = case_of(name, rows_of("overlapping", n_features))
    hyperparameters = hyperparameters_of(name, n_features)
    right = hyperparameters[wrong]
    hyperparameters[wrong] = np.where(right == 0.0, 0.0, 1.2 * right + 0.05)
    # The base measure need not hold what the density of a row does; the posterior must.
    n_rows = len(case.rows) if wrong in case.component.likelihood_arguments else 0
    statistics = stats_of(case.prior, case.data, np.arange(n_rows))
    named = case.component.unpack(draws_of(case.prior, statistics, N_DRAWS, rng), case.shift)
    twin = FAMILIES[name].twin(**hyperparameters)
    assert law_p_value(name, twin, case.rows[:n_rows], named) < LEVEL


def rows_p_value(ours: np.ndarray, twins: np.ndarray) -> float:
    """P-value that two samples of rows (n, D) have one law: features, sums and radii."""
    samples = []
    for rows in (ours, twins):
        signed = rows * np.cos(1.0 + np.arange(rows.shape[1]))
        samples.append([*rows.T, signed.sum(1), np.abs(signed).sum(1)])
    pairs = zip(*samples, strict=True)
    return combine(*(stats.ks_2samp(x, y, method="asymp").pvalue for x, y in pairs))


@over_cases_of_quick
def test_rows_have_the_law_of_their_cluster(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    parameters = case.component.draw_base(rng, case.values, 3)
    labels = rng.permutation(np.repeat(np.array([0, 2]), N_DRAWS))
    drawn = case.component.draw_rows(rng, parameters, labels)
    assert drawn.ndim == 1 + case.component.row_ndim
    drawn = drawn.reshape(len(labels), -1)
    for k in (0, 2):
        own = {key: value[k] for key, value in parameters.items()}
        twins = case.twin.draw_rows(rng, own, N_DRAWS)
        assert rows_p_value(drawn[labels == k], twins) > LEVEL
        # The control: rows of the other cluster.
        assert rows_p_value(drawn[labels != k], twins) < LEVEL


@over_cases_of_quick
def test_plug_in_estimate_is_always_finite(name: str, n_features: int) -> None:
    case = case_of(name, rows_of("duplicates", n_features))
    everyone = np.arange(len(case.rows))
    for members in (everyone[:0], everyone[:1], everyone[:3], everyone, np.zeros(10_000, np.int64)):
        params = plug_in(case.prior, stats_of(case.prior, case.data, members))
        assert np.isfinite(params).all()
        assert np.isfinite(densities(case.prior, case.data, params[0])).all()
        named = case.component.unpack(params, case.shift)
        assert all(np.isfinite(value).all() for value in named.values())


@over_cases_of_quick
@pytest.mark.compiled
def test_plug_in_estimate_approaches_the_truth(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    truth = case.component.draw_base(rng, case.values, 1)
    rows = case.component.draw_rows(rng, truth, np.zeros(N_DRAWS, np.int64))
    data = case.component.arranged(rows.reshape(N_DRAWS, -1))
    params = plug_in(case.prior, stats_of(case.prior, data, np.arange(N_DRAWS)))
    loss = densities(case.prior, data, case.component.pack(truth, case.shift)[0])
    # Twice the gain in likelihood of a fit is chi-square, its mean the number of parameters.
    gain = 2.0 * (densities(case.prior, data, params[0]) - loss).sum()
    assert -5.0 < gain < stats.chi2.isf(LEVEL, params.shape[1])


# --- some features alone ------------------------------------------------------------------

over_wide_cases_of_quick = of_quick([case for case in CASES_BY_COLUMN if case[1] > 1])


def restricted(case: Case, features: np.ndarray) -> Case:
    """The case of some features alone."""
    values = case.component.restrict(case.values, features)
    component = with_values(case.component, values)
    shift, rows = case.shift[features], case.rows[:, features]
    prior, data = component.prior(values, shift), np.ascontiguousarray(case.data[:, features])
    return Case(component, values, case.twin.restricted(features), rows, shift, prior, data)


def some_features(n_features: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The first feature, the last, all in reverse, and some of them in random order."""
    few = rng.permutation(n_features)[: (n_features + 1) // 2]
    return [np.array([0]), np.array([n_features - 1]), np.arange(n_features)[::-1], few]


def own_features(
    case: Case, one: dict[str, np.ndarray], features: np.ndarray
) -> dict[str, np.ndarray]:
    """The parameters of one cluster, of some features."""
    ndims = case.component.parameters
    return {key: value[np.ix_(*[features] * ndims[key])] for key, value in one.items()}


@over_cases_by_column
def test_restricted_hyperparameters_are_legal_copies(name: str, n_features: int) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    for features in (np.arange(n_features), np.arange(1)):
        values = case.component.restrict(case.values, features)
        checked = case.component.check(values, len(features))
        for key, value in case.values.items():
            np.testing.assert_array_equal(values[key], checked[key])
            assert values[key].dtype == np.float64
            assert not np.shares_memory(values[key], value)
    everything = case.component.restrict(case.values, np.arange(n_features))
    for key, value in case.values.items():
        np.testing.assert_array_equal(everything[key], value)


@over_cases_by_column
def test_restricted_parameters_are_copies_of_those_of_the_features(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    parameters = case.component.draw_base(rng, case.values, 4)
    for features in some_features(n_features, rng):
        taken = case.component.restrict_parameters(parameters, features)
        assert list(taken) == list(case.component.parameters)
        for key, value in parameters.items():
            assert not np.shares_memory(taken[key], value)
        for k in range(4):
            wanted = own_features(
                case, {key: value[k] for key, value in parameters.items()}, features
            )
            for key in wanted:
                np.testing.assert_array_equal(taken[key][k], wanted[key])


@over_cases_by_column
def test_restricted_marginal_matches_the_twin(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    for features in some_features(n_features, rng):
        few = restricted(case, features)
        for members in some_subsets(len(case.rows), rng, 4):
            ours = marginal_of(few.prior, stats_of(few.prior, few.data, members))
            wanted = few.twin.log_marginal(few.rows[members])
            assert ours == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", BY_COLUMN)
def test_restricted_predictive_is_the_full_one_summed(name: str) -> None:
    case = case_of(name, rows_of("overlapping", 2))
    support, nothing = np.array(FAMILIES[name].support, np.float64), np.arange(0)
    for kept in (0, 1):
        few = restricted(case, np.array([kept]))
        ours = predictives(few.prior, few.data, cache_of(few.prior, few.data, nothing))
        for i in (0, 5):
            grid = np.empty((len(support), 2))
            grid[:, kept], grid[:, 1 - kept] = case.data[i, kept], support
            full = predictives(case.prior, grid, cache_of(case.prior, grid, nothing))
            assert np.log(np.exp(full).sum()) == pytest.approx(ours[i], abs=1e-9)


@pytest.mark.parametrize(
    "name", [name for name in CONTINUOUS if 2 in sizes_of(name) and FAMILIES[name].by_column]
)
def test_restricted_predictive_is_the_full_one_integrated(name: str) -> None:
    case = case_of(name, rows_of("overlapping", 2))
    left_out, width = line(name)
    nothing = np.arange(0)
    for kept in (0, 1):
        few = restricted(case, np.array([kept]))
        ours = predictives(few.prior, few.data, cache_of(few.prior, few.data, nothing))
        for i in (0, 5):
            grid = np.empty((len(left_out), 2))
            grid[:, kept], grid[:, 1 - kept] = case.data[i, kept], left_out[:, 0]
            full = predictives(case.prior, grid, cache_of(case.prior, grid, nothing))
            assert np.log(np.exp(full) @ width) == pytest.approx(ours[i], abs=1e-6)


@over_wide_cases_of_quick
def test_restricted_base_measure_is_the_law_of_its_features(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    drawn = case.component.draw_base(rng, case.values, N_DRAWS)
    for features in some_features(n_features, rng):
        few = restricted(case, features)
        taken = case.component.restrict_parameters(drawn, features)
        assert law_p_value(name, few.twin, few.rows[:0], taken) > LEVEL
        again = few.component.draw_base(rng, few.values, N_DRAWS)
        assert law_p_value(name, few.twin, few.rows[:0], again) > LEVEL
        # The control: other features, and degrees of freedom that were not reduced.
        other = restricted(case, np.roll(np.arange(n_features), 1)[: len(features)])
        if not np.array_equal(np.sort(other.shift), np.sort(few.shift)):
            assert law_p_value(name, other.twin, few.rows[:0], taken) < LEVEL
        if "nu0" in case.values and len(features) < n_features:
            few.twin.nu0 = float(case.values["nu0"])
            assert law_p_value(name, few.twin, few.rows[:0], taken) < LEVEL


@over_cases_by_column
def test_mixture_density_of_some_features_matches_the_twin(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    drawn = case.component.draw_base(rng, case.values, 3)
    log_weights, log_rest = np.log([0.3, 0.25, 0.15]), np.log(0.3)
    for features in some_features(n_features, rng):
        few = restricted(case, features)
        params = few.component.pack(few.component.restrict_parameters(drawn, features), few.shift)
        out = np.empty(len(few.rows))
        alone = log_prior_predictive(few.prior, few.data)
        fill_log_mixture(few.prior, few.data, alone, log_weights, params, log_rest, out)
        terms = [log_rest + np.array([few.twin.log_predictive(x, few.rows[:0]) for x in few.rows])]
        for k in range(3):
            one = own_features(case, {key: value[k] for key, value in drawn.items()}, features)
            terms.append(log_weights[k] + few.twin.log_density(few.rows, one))
        np.testing.assert_allclose(out, special.logsumexp(terms, axis=0), rtol=1e-9, atol=1e-9)


# --- missing entries ----------------------------------------------------------------------


def some_holes(n_features: int) -> np.ndarray:
    """Patterns (m, D) of missing entries: all, the first, the last, and every other one."""
    every_other = np.arange(n_features) % 2 == 0
    ends = np.eye(n_features, dtype=bool)[[0, -1]]
    return np.unique(np.vstack([np.ones(n_features, bool), ends, every_other]), axis=0)


def conditional_p_value(
    drawn: np.ndarray, holes: np.ndarray, mean: np.ndarray, cov: np.ndarray
) -> float:
    """P-value of rows (n, D), whose `holes` are draws of a normal law: moments and distribution."""
    whitened = np.linalg.solve(np.linalg.cholesky(cov), (drawn[:, holes] - mean).T).T
    n, d = whitened.shape
    z = whitened.mean(0) * np.sqrt(n)
    squares = (whitened**2).sum(0)
    return combine(
        2.0 * stats.norm.sf(np.abs(z)),
        2.0 * np.minimum(stats.chi2.cdf(squares, n), stats.chi2.sf(squares, n)),
        *(stats.kstest(column, "norm").pvalue for column in whitened.T),
        stats.kstest((whitened**2).sum(1), "chi2", args=(d,)).pvalue,
    )


@over_independent_of_quick
def test_missing_entries_have_the_law_of_their_cluster(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    """Which is that of the same entries of rows that the twin draws; rows of two clusters mixed."""
    case = case_of(name, rows_of("overlapping", n_features))
    parameters = case.component.draw_base(rng, case.values, 3)
    labels = rng.permutation(np.repeat(np.array([0, 2]), N_DRAWS))
    for holes in some_holes(n_features):
        is_missing = np.tile(holes, (len(labels), 1))
        rows = np.where(is_missing, np.nan, case.rows[3])
        drawn = case.component.draw_missing(rng, rows, is_missing, parameters, labels)
        for k in (0, 2):
            own = {key: value[k] for key, value in parameters.items()}
            twins = case.twin.draw_rows(rng, own, N_DRAWS)[:, holes]
            assert rows_p_value(drawn[labels == k][:, holes], twins) > LEVEL
            # The control: the law in the other cluster, which may be alike in a single column.
            if holes.all():
                assert rows_p_value(drawn[labels != k], twins) < LEVEL


@over_gaussian_of_quick
def test_missing_entries_have_their_conditional_law(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    """Given the rest of the row; rows of two clusters and all patterns come mixed."""
    case = case_of(name, rows_of("overlapping", n_features))
    parameters = case.component.draw_base(rng, case.values, 3)
    patterns = some_holes(n_features)
    kinds = [(k, p) for k in (0, 2) for p in range(len(patterns))]
    kind = rng.permutation(np.repeat(np.arange(len(kinds)), N_DRAWS))
    labels, which = np.array(kinds)[kind].T
    is_missing = patterns[which]
    rows = np.where(is_missing, np.nan, case.rows[3])
    drawn = case.component.draw_missing(rng, rows, is_missing, parameters, labels)
    for j, (k, p) in enumerate(kinds):
        one, other = ({key: v[c] for key, v in parameters.items()} for c in (k, 2 - k))
        law = case.twin.conditional(case.rows[3], patterns[p], one)
        assert conditional_p_value(drawn[kind == j], patterns[p], *law) > LEVEL
        # The controls: the conditional law in the other cluster, and the marginal in this one.
        wrong = case.twin.conditional(case.rows[3], patterns[p], other)
        assert conditional_p_value(drawn[kind == j], patterns[p], *wrong) < LEVEL
        if "cov" in one and not patterns[p].all():
            holes = np.flatnonzero(patterns[p])
            marginal = one["mu"][holes], one["cov"][np.ix_(holes, holes)]
            assert conditional_p_value(drawn[kind == j], patterns[p], *marginal) < LEVEL


@over_cases_by_column_of_quick
def test_imputing_leaves_the_law_of_rows_as_it_is(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    parameters = case.component.draw_base(rng, case.values, 1)
    one = {key: value[0] for key, value in parameters.items()}
    rows, twins = (case.twin.draw_rows(rng, one, N_DRAWS) for _ in range(2))
    labels = np.zeros(N_DRAWS, np.int64)
    for holes in some_holes(n_features):
        is_missing = np.tile(holes, (N_DRAWS, 1))
        drawn = case.component.draw_missing(rng, rows, is_missing, parameters, labels)
        assert rows_p_value(drawn, twins) > LEVEL


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@over_cases_by_column
def test_only_missing_entries_change(
    name: str, n_features: int, dtype: type, rng: np.random.Generator
) -> None:
    case = case_of(name, rows_of("overlapping", n_features))
    parameters = case.component.draw_base(rng, case.values, 3)
    n_obs = len(case.rows)
    labels = rng.integers(0, 3, n_obs).astype(dtype)
    nothing, everything = np.zeros((n_obs, n_features), bool), np.ones((n_obs, n_features), bool)
    some = rng.random((n_obs, n_features)) < 0.5
    for is_missing in (nothing, everything, some, nothing[:0]):
        rows = np.where(is_missing, np.nan, case.rows[: len(is_missing)])
        before = rows.copy()
        drawn = case.component.draw_missing(
            rng, rows, is_missing, parameters, labels[: len(is_missing)]
        )
        np.testing.assert_array_equal(rows, before)
        assert drawn.shape == rows.shape
        assert drawn.dtype == np.float64
        assert not np.shares_memory(drawn, rows)
        assert np.isfinite(drawn).all()
        np.testing.assert_array_equal(drawn[~is_missing], rows[~is_missing])


# --- documented defaults ------------------------------------------------------------------


@pytest.mark.parametrize("name", GAUSSIAN)
def test_defaults_from_data_are_those_documented(name: str) -> None:
    family = FAMILIES[name].component
    rows = rows_of("separated", sizes_of(name)[-1])
    observed = rows[:, 0] if family.row_ndim == 0 else rows
    defaults = family.from_data(observed).hyperparameters
    np.testing.assert_allclose(defaults["mu0"], observed.mean(0))
    variance = 0.1 * observed.var(0)
    if "sigma0" in defaults:
        assert defaults["sigma0"] == pytest.approx(observed.std())
        assert defaults["sigma"] == pytest.approx(np.sqrt(variance))
        return
    assert defaults["kappa0"] == pytest.approx(0.1)
    if "psi0" in defaults:
        assert defaults["nu0"] == rows.shape[1] + 2.0
        np.testing.assert_allclose(defaults["psi0"], np.diag(variance))
    elif "cov" in defaults:
        np.testing.assert_allclose(defaults["cov"], np.diag(variance))
    else:
        assert defaults["a0"] == pytest.approx(2.0)
        one_for_all = np.ndim(defaults["b0"]) == 0
        np.testing.assert_allclose(defaults["b0"], variance.mean() if one_for_all else variance)


def test_defaults_of_positive_numbers_are_those_documented() -> None:
    rows = FAMILIES["Gamma"].rows_from(rows_of("separated", 3))
    gamma = dps.Gamma.from_data(rows).hyperparameters
    wanted = np.maximum(10.0 * rows.mean(0) ** 2 / rows.var(0), 1.0)
    np.testing.assert_allclose(gamma["shape"], wanted)
    np.testing.assert_allclose(gamma["shape"] / (gamma["a0"] / gamma["b0"]), rows.mean(0))
    times = dps.Exponential.from_data(np.column_stack([rows, np.zeros(len(rows))])).hyperparameters
    np.testing.assert_allclose(times["b0"], 2.0 * np.append(rows.mean(0), 1.0))


@pytest.mark.filterwarnings("ignore:observed has the same number:UserWarning")
@pytest.mark.parametrize("name", SINGLE)
def test_defaults_exist_where_features_do_not_vary(name: str) -> None:
    family = FAMILIES[name].component
    rows = FAMILIES[name].rows_from(np.column_stack([np.full(4, 3.0), np.arange(4.0)]))
    observed = rows[:, 0] if family.row_ndim == 0 else rows
    component = family.from_data(observed)
    n_features = 1 if family.row_ndim == 0 else 2
    values = component.check(component.hyperparameters, n_features)
    assert all(np.isfinite(value).all() for value in values.values())
