"""Prediction given the partition of MAP-DPM, and alpha by cross-validation, by direct formulas."""

import numpy as np
import pymc as pm
import pytest
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.estimates.alpha_choice import choose_alpha
from pymc_dpsplit.estimates.map_prediction import predictive_of_rows
from pymc_dpsplit.moves.partition_law import PartitionLaw, finite_mixture
from tests.reference import families as naive
from tests.support.families import FAMILIES, component_of, dataset_of, target_of, twin_of
from tests.support.quick import over_compiled

LABELS = np.array([0, 1, 0, 2, 1, 0])
TWO_LUMPS = np.array([0.0, 0.2, -0.1, 0.1, 5.0, 5.2, 4.9])
NORMAL = {"mu0": 1.0, "kappa0": 0.2, "a0": 2.0, "b0": 0.5}


def masses_of(family, rows, labels, new, law):
    """Log terms (K + 1, M) of eq. (12.4), and the log densities without weights."""
    n_clusters, total = labels.max() + 1, law.strength + len(labels)
    weights = [(labels == k).sum() - law.discount for k in range(n_clusters)]
    weights.append(law.strength + n_clusters * law.discount)
    members = [rows[labels == k] for k in range(n_clusters)] + [rows[:0]]
    densities = np.array([[family.log_predictive(row, of) for row in new] for of in members])
    with np.errstate(divide="ignore"):
        return np.log(np.array(weights) / total)[:, None] + densities, densities


@pytest.mark.parametrize("name", over_compiled(FAMILIES))
@pytest.mark.parametrize(
    "law", [PartitionLaw(0.0, 0.7), PartitionLaw(0.3, 0.7), finite_mixture(0.5, 3)]
)
def test_densities_are_those_of_the_formula(name, law):
    n_features = FAMILIES[name].n_features[-1]
    rows = dataset_of(name, "separated", n_features)
    rows, new = rows[: len(LABELS)], rows[::2]
    component = component_of(name, n_features)
    target = target_of(component, rows, 1.0)
    stats = sampler.resume(target, LABELS.astype(np.int32)).stats
    rule = predictive_of_rows("x", component, rows.shape[1], target.prior, stats, law)
    masses, densities = masses_of(twin_of(name, n_features), rows, LABELS, new, law)
    tolerance = {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(
        rule.log_density_of(new, "mixture"), logsumexp(masses, axis=0), **tolerance
    )
    best = masses.argmax(axis=0)
    expected = densities[best, np.arange(len(new))]
    np.testing.assert_allclose(rule.log_density_of(new, "cluster"), expected, **tolerance)


def declared(alpha=0.5, observed=TWO_LUMPS, **options):
    with pm.Model() as model:
        dps.DPMixture("x", alpha, dps.Normal(**NORMAL), observed=observed, **options)
    return model


@pytest.fixture(scope="module")
def found():
    return dps.find_map(declared(), random_seed=1)


def test_result_predicts_new_rows(found):
    new = np.array([0.1, 5.1, 2.5, 60.0])
    family, law = naive.Normal(**NORMAL), PartitionLaw(0.0, 0.5)
    masses, densities = masses_of(family, TWO_LUMPS[:, None], found.labels, new[:, None], law)
    np.testing.assert_allclose(found.log_predictive(new), logsumexp(masses, axis=0), rtol=1e-9)
    best = masses.argmax(axis=0)
    np.testing.assert_array_equal(found.likeliest_clusters(new), best)
    assert best[0] == 0
    assert best[1] == 1
    assert best[3] == found.n_clusters
    np.testing.assert_allclose(
        found.log_predictive(new, how="cluster"), densities[best, np.arange(4)], rtol=1e-9
    )


def test_densities_integrate_to_one(found):
    grid = np.linspace(-400.0, 400.0, 800_001)
    total = np.trapezoid(np.exp(found.log_predictive(grid)), grid)
    assert total == pytest.approx(1.0, abs=1e-3)


def test_groups_predict_a_new_row_by_the_number_of_groups():
    groups = [0, 0, 1, 1, 2, 3, 3]
    found = dps.find_map(declared(groups=groups), random_seed=1)
    labels = found.labels[np.array(groups)]
    family, new = naive.Normal(**NORMAL), np.array([[0.1], [5.0]])
    _, densities = masses_of(family, TWO_LUMPS[:, None], labels, new, PartitionLaw(0.0, 0.5))
    weights = np.append(np.bincount(found.labels), 0.5) / 4.5
    expected = logsumexp(np.log(weights)[:, None] + densities, axis=0)
    np.testing.assert_allclose(found.log_predictive(new[:, 0]), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("new", "how", "message"),
    [
        ([[0.1]], "mixture", r"new has shape \(1, 1\), but this component takes shape \(N,\); "),
        ([np.nan], "mixture", "new "),
        ([0.1], "median", "how='median' is no way to predict; give 'mixture' or 'cluster'"),
    ],
)
def test_wrong_arguments_are_refused(found, new, how, message):
    with pytest.raises(ValueError, match=message):
        found.log_predictive(new, how=how)


def test_another_number_of_columns_is_refused():
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Poisson(1.0, 1.0), observed=[[1, 2], [3, 4]])
    found = dps.find_map(model, random_seed=1)
    with pytest.raises(ValueError, match="new has 1 columns, but rows of x have 2; give the"):
        found.log_predictive([[1]])
    with pytest.raises(ValueError, match=r"^new (holds|has)"):
        found.log_predictive([[0.5, 1.0]])


def test_rows_in_groups_are_refused():
    with pm.Model() as model:
        dps.HDPMixture(
            "x", 1.0, 1.0, dps.Normal(**NORMAL), groups=[0, 0, 1], observed=TWO_LUMPS[:3]
        )
    found = dps.find_map(model, n_restarts=1, random_seed=1)
    with pytest.raises(ValueError, match="x is an HDPMixture, whose new rows a partition does"):
        found.log_predictive([0.0])
    with pytest.raises(ValueError, match="x is an HDPMixture, which choose_alpha does not take"):
        choose_alpha(model, candidates=[1.0])


# --- alpha by cross-validation --------------------------------------------------------------


@pytest.mark.parametrize("how", ["mixture", "cluster"])
def test_left_out_rows_are_predicted_by_the_partition_of_the_others(how):
    """Each row left out on its own, eq. (12.6): the folds are then known."""
    alphas = [0.1, 1.0, 1000.0]
    chosen = choose_alpha(
        declared(), candidates=alphas, how=how, n_folds=len(TWO_LUMPS), random_seed=2
    )
    for alpha, elpd in zip(alphas, chosen.elpd, strict=True):
        expected = 0.0
        for i in range(len(TWO_LUMPS)):
            others = dps.find_map(declared(alpha, np.delete(TWO_LUMPS, i)), random_seed=2)
            expected += others.log_predictive(TWO_LUMPS[[i]], how=how)[0]
        assert elpd == pytest.approx(expected, abs=1e-8)
    assert chosen.alpha == alphas[int(chosen.elpd.argmax())]
    assert chosen.se_of_difference[chosen.elpd.argmax()] == 0.0
    assert chosen.n_clusters[0] < chosen.n_clusters[2]


def test_a_seed_gives_the_same_choice_again():
    first, second = (
        choose_alpha(declared(), candidates=[0.1, 1.0], n_folds=3, random_seed=4) for _ in range(2)
    )
    np.testing.assert_array_equal(first.elpd, second.elpd)


def test_climbs_that_were_stopped_are_reported():
    with pytest.warns(UserWarning, match="choose_alpha stopped climbs after 1 iterations; raise"):
        choose_alpha(declared(), candidates=[1e3], n_restarts=1, max_iterations=1)


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, {"candidates": [0.0]}, r"candidates=\[0.0\] is not one or several positive numbers"),
        ({}, {"n_folds": 8}, "n_folds=8 exceeds the 7 observations of x; give no more"),
        ({}, {"n_folds": 1}, "n_folds"),
        ({}, {"how": "median"}, "how='median' is no way to predict; give"),
        ({"groups": [0, 0, 1, 1, 2, 3, 3]}, {}, "x has rows that share labels, which choose_alpha"),
    ],
)
def test_wrong_choices_are_refused(options, arguments, message):
    with pytest.raises(ValueError, match=message):
        choose_alpha(declared(**options), **{"candidates": [1.0], **arguments})


def test_a_finite_mixture_has_no_alpha_to_choose():
    with pm.Model() as model:
        dps.FiniteMixture("x", 1.0, dps.Normal(**NORMAL), n_components=2, observed=TWO_LUMPS)
    with pytest.raises(ValueError, match="x has a finite number of components and no alpha; dec"):
        choose_alpha(model, candidates=[1.0])
