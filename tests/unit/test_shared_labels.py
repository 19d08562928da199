"""Kernel operations of groups of rows against sums over their rows, for every family."""

from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.components.base import params_size, predictive_remove
from pymc_dpsplit.components.shared_labels.items import Items, SharedLabels
from pymc_dpsplit.components.shared_labels.kernels import N_BEFORE
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.moves.cost import is_sparse, work_of
from pymc_dpsplit.variables import find_mixtures
from tests.support.families import FAMILIES, component_of, dataset_of, target_of, twin_of
from tests.support.family_cases import Case, case_of, over_cases, over_datasets, rows_of
from tests.support.operations import (
    cache_of,
    densities,
    draws_of,
    enter,
    leave,
    marginal_of,
    overrelaxed,
    plug_in,
    predictives,
    stats_of,
)
from tests.support.shared_labels import (
    MarginalOfGroups,
    repeated,
    shared_labels,
    target_of_groups,
)


def case_with_groups(name: str, n_features: int, dataset: str) -> tuple[Case, SharedLabels]:
    case = case_of(name, rows_of(dataset, n_features))
    return case, shared_labels(len(case.rows))


def items_of(case: Case, shared: SharedLabels) -> tuple[Any, Any]:
    items = Items(case.component, shared)
    shift = np.array(case.prior.shift, np.float64)
    prior = items.prior(case.values, shift)
    return prior, shared.grouped(case.data)


@over_datasets
@over_cases
def test_marginals_and_predictives_are_those_of_all_rows(
    name: str, n_features: int, dataset: str, rng: np.random.Generator
) -> None:
    case, shared = case_with_groups(name, n_features, dataset)
    prior, data = items_of(case, shared)
    everyone = np.arange(shared.n_groups)

    def exact(groups: Any) -> float:
        rows = repeated(case.rows, shared, groups)
        if hasattr(case.twin, "totals"):
            case.twin.totals = rows.sum(1).astype(int)
        if FAMILIES[name].is_conditional:
            case.twin.covariates = rows[:, :-1]
        return float(case.twin.log_marginal(rows))

    for size in (0, 1, 2, len(everyone)):
        members = rng.permutation(everyone)[:size]
        stats = stats_of(prior, data, members)
        assert stats[0] == size
        assert stats[1] == len(repeated(case.rows, shared, members))
        assert marginal_of(prior, stats) == pytest.approx(exact(members), rel=1e-9, abs=1e-9)
        ours = predictives(prior, data, cache_of(prior, data, members))
        for g in everyone:
            expected = exact([*members, g]) - exact(members)
            assert ours[g] == pytest.approx(expected, rel=1e-8, abs=1e-8)


@over_cases
def test_the_density_of_a_group_is_the_sum_over_its_rows(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case, shared = case_with_groups(name, n_features, "overlapping")
    prior, data = items_of(case, shared)
    stats = stats_of(prior, data, np.arange(shared.n_groups))
    for params in (*draws_of(prior, stats, 2, rng), *plug_in(prior, stats)):
        assert params[0] == 0.0
        assert len(params) == params_size(prior)
        params[0] = -1.7  # a log weight, which counts once per group
        own = shared.counts * densities(
            case.prior, case.data, np.ascontiguousarray(params[N_BEFORE:])
        )
        expected = np.bincount(shared.group_of_row, weights=own) - 1.7
        np.testing.assert_allclose(densities(prior, data, params), expected, rtol=1e-12)


@over_cases
def test_the_cache_follows_its_groups(name: str, n_features: int, rng: np.random.Generator) -> None:
    case, shared = case_with_groups(name, n_features, "separated")
    prior, data = items_of(case, shared)
    order = rng.permutation(shared.n_groups)
    cache = cache_of(prior, data, order[:0])
    for i in order:
        enter(prior, data, i, cache)
    for j, i in enumerate(order[:-1]):
        fresh = cache_of(prior, data, order[j + 1 :])
        if not leave(prior, data, i, cache):
            cache = fresh.copy()
        np.testing.assert_allclose(
            predictives(prior, data, cache), predictives(prior, data, fresh), rtol=1e-8, atol=1e-8
        )


@over_cases
def test_over_relaxation_is_that_of_the_rows(name: str, n_features: int) -> None:
    case, shared = case_with_groups(name, n_features, "overlapping")
    prior, data = items_of(case, shared)
    stats = stats_of(prior, data, np.arange(shared.n_groups))
    before = draws_of(prior, stats, 1, np.random.default_rng(1))
    ours = overrelaxed(prior, stats, before, np.random.default_rng(2))
    own = np.ascontiguousarray(stats[1:]), np.ascontiguousarray(before[:, N_BEFORE:])
    expected = overrelaxed(case.prior, *own, np.random.default_rng(2))
    np.testing.assert_array_equal(ours[:, N_BEFORE:], expected)
    assert ours[0, 0] == 0.0


@pytest.mark.parametrize(
    "name", ["Product", "ProductWithMultinomial", "ProductWithLinearRegression"]
)
def test_groups_of_rows_of_a_product(name: str, rng: np.random.Generator) -> None:
    (n_features,) = FAMILIES[name].n_features
    rows, twin = dataset_of(name, "overlapping", n_features), twin_of(name, n_features)
    shared, component = shared_labels(len(rows)), component_of(name, n_features)
    target = target_of_groups(component, rows, shared, 1.0)
    exact = MarginalOfGroups(twin, rows, shared)
    for members in ([0], [1, 3], [4, 2, 0], range(shared.n_groups)):
        stats = stats_of(target.prior, target.data, np.array(members))
        ours = marginal_of(target.prior, stats)
        assert ours == pytest.approx(exact.log_marginal(np.array(members)), rel=1e-9)
    # The kernels of a sweep, with rows in the form of the parts.
    plain = target_of(component, rows, 1.0)
    (params,) = draws_of(target.prior, stats, 1, rng)
    own = shared.counts * densities(
        plain.prior, plain.data, np.ascontiguousarray(params[N_BEFORE:])
    )
    expected = np.bincount(shared.group_of_row, weights=own)
    np.testing.assert_allclose(densities(target.prior, target.data, params), expected, rtol=1e-12)
    assert is_sparse(target.data) == (name == "ProductWithMultinomial")
    assert work_of(target.data) == pytest.approx(work_of(plain.data) * len(rows) / shared.n_groups)


def test_groups_longer_than_a_tile(rng: np.random.Generator) -> None:
    n_rows = 3 * TILE + 5
    rows = np.ascontiguousarray(rng.normal(size=(n_rows, 2)))
    component = component_of("MvNormal", 2)
    values = component.check(component.hyperparameters, 2)
    group_of_row = np.concatenate([rng.integers(0, 3, n_rows - 80), np.arange(3, 83)])
    shared = SharedLabels(group_of_row, np.ones(n_rows))
    shift = rows.mean(0)
    items, plain = Items(component, shared), Items(component)
    prior, data = items.prior(values, shift), items.arranged(rows)
    stats = stats_of(prior, data, np.arange(shared.n_groups))
    (params,) = draws_of(prior, stats, 1, rng)
    own = densities(plain.prior(values, shift), plain.arranged(rows), params[N_BEFORE:].copy())
    expected = np.bincount(group_of_row, weights=own)
    np.testing.assert_allclose(densities(prior, data, params), expected, rtol=1e-12)


def test_a_removal_that_costs_digits_is_refused() -> None:
    rows = np.array([[0.1], [0.2], [1e6]])
    component = component_of("Normal", 1)
    items = Items(component, SharedLabels(np.arange(3), np.ones(3)))
    prior = items.prior(component.check(component.hyperparameters, 1), np.zeros(1))
    data = items.arranged(rows)
    cache = cache_of(prior, data, np.arange(3))
    assert not predictive_remove(prior, data, 2, cache)
    cache = cache_of(prior, data, np.arange(3))
    assert predictive_remove(prior, data, 0, cache)


def test_parameters_are_those_of_the_rows() -> None:
    component, shift = component_of("MvNormal", 2), np.array([1.0, -2.0])
    values = component.check(component.hyperparameters, 2)
    drawn = component.draw_base(np.random.default_rng(1), values, 3)
    items = Items(component, shared_labels(8))
    params = items.pack(drawn, values, shift)
    np.testing.assert_array_equal(params[:, 0], 0.0)
    for key, value in items.unpack(params, values, shift).items():
        np.testing.assert_allclose(value, drawn[key])


# --- declaration --------------------------------------------------------------------------

ROWS = np.array([0.1, 0.2, 5.0, 5.1])
BASE = dps.Normal(0, 0.1, 2, 1)


def declared(groups: Any = None, counts: Any = None, observed: Any = ROWS) -> pm.Model:
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, BASE, observed=observed, groups=groups, counts=counts)
    return model


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        ([7, 3, 7, 3], [7, 3]),
        (["b", "a", "b", "b"], ["b", "a"]),
        (np.array([2.0, 1.0, 2.0, 5.0]), [2, 1, 5]),
        (pd.Series(["b", "a", "b", "b"], dtype="category"), ["b", "a"]),
        (pd.Series([4, 4, 1, 2]), [4, 1, 2]),
        ([True, False, True, True], ["True", "False"]),
    ],
)
def test_groups_of_any_type_are_named_in_the_order_of_the_rows(groups: Any, names: Any) -> None:
    model = declared(groups)
    shared = find_mixtures(model)["x"].items.shared
    assert shared is not None
    assert list(model.coords["x_group"]) == names
    same = np.equal.outer(shared.group_of_row, shared.group_of_row)
    np.testing.assert_array_equal(same, np.array([[a == b for b in groups] for a in groups]))
    assert find_mixtures(model)["x"].max_clusters == len(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": [1, 2, 3]}, r"groups has shape \(3,\).*give one id for each"),
        ({"groups": [[1, 2], [3, 4]]}, r"groups has shape"),
        ({"groups": "ab"}, r"groups='ab' is no array"),
        ({"groups": [1.0, np.nan, 2.0, 2.0]}, r"groups has 1 missing id; give every row"),
        ({"groups": ["a", None, None, "b"]}, r"groups has 2 missing ids; give"),
        ({"groups": pd.Series([1, None, 2, 2], dtype="Int64")}, r"groups has 1 missing id"),
        ({"groups": np.ma.masked_equal([1, 2, 3, 3], 1)}, r"groups has 1 missing id"),
        ({"groups": [0.5, 1.0, 1.0, 2.0]}, r"not whole; give ids"),
        ({"groups": [1, "1", 2, 2]}, r"ids of type int, str; give ids of one type"),
        ({"groups": pd.Series([1, 2, 2, 1], index=list("abcd")),
          "observed": pd.Series(ROWS, index=list("badc"))}, r"groups has another index"),
        ({"counts": [1, 2, 3]}, r"counts has shape \(3,\), but observed has 4 rows"),
        ({"counts": [1, 0, 3, 1]}, r"counts has 0 in row 1; give whole numbers from 1"),
        ({"counts": [1, 1.5, 3, 1]}, r"counts has 1.5 in row 1"),
        ({"counts": [1, -2, 3, 1]}, r"counts has -2 in row 1"),
        ({"counts": [1, np.nan, 3, 1]}, r"counts has nan in row 1"),
        ({"counts": ["1", "2", "3", "4"]}, r"counts=.* which is not numeric|counts=.*not numbers"),
        ({"groups": [1, 1, 2, 2], "observed": [0.1, np.nan, 5.0, 5.1]}, r"1 missing entries"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declared(**arguments)


def test_mixtures_whose_rows_cannot_share_labels_are_refused() -> None:
    groups = [1, 1, 2, 2]
    with pm.Model():
        data, mean = pm.Data("data", ROWS), pm.Normal("mean")
        sigma = pm.HalfNormal("sigma")
        with pytest.raises(ValueError, match="each value of a latent mixture"):
            dps.DPMixture("x", 1.0, BASE, shape=4, groups=groups)
        for observed in (data, ROWS - mean):
            with pytest.raises(ValueError, match="is a variable, whose rows may change; give"):
                dps.DPMixture("x", 1.0, BASE, observed=observed, groups=groups)
        known = dps.NormalKnownSigma(0.0, 1.0, sigma)
        with pytest.raises(ValueError, match="depends on a variable"):
            dps.DPMixture("x", 1.0, known, observed=ROWS, groups=groups)


def test_names_that_are_taken_are_refused() -> None:
    taken = pytest.raises(ValueError, match="already has x_group; choose another name")
    with pm.Model(coords={"x_group": range(3)}), taken:
        dps.DPMixture("x", 1.0, BASE, observed=ROWS, groups=[1, 1, 2, 2])
