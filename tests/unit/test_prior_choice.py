"""Which prior `from_data` of the Gaussian families chooses, and by what."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.prior_choice import covariance, partitions, variances
from pymc_dpsplit.components.prior_choice.partitions import (
    ALPHA,
    Numbers,
    divided,
    provisional_partitions,
    standardised,
    sums_of,
)
from pymc_dpsplit.demo import DATA_SETS
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.partition_law import dirichlet_process

FAMILIES = [dps.MvNormal, dps.DiagNormal, dps.SphericalNormal]


def exact_log_joint(component: Any, rows: np.ndarray, labels: np.ndarray) -> float:
    """Log joint density as the sampler computes it."""
    values = component.check(component.hyperparameters, rows.shape[1])
    prior = component.prior(values, np.zeros(rows.shape[1]))
    target = sampler.Target(prior, rows, dirichlet_process(ALPHA))
    return float(log_joint(target, sampler.resume(target, labels.astype(np.int32)).stats))


def clustered(rng: np.random.Generator, n_rows: int = 60, n_features: int = 3) -> np.ndarray:
    centres = 3.0 * np.eye(3, n_features)
    return rng.normal(size=(n_rows, n_features)) + centres[np.arange(n_rows) % 3]


def correlated(rng: np.random.Generator, n_rows: int = 200) -> np.ndarray:
    """Two clusters of four columns that are nearly one."""
    common = rng.normal(size=(n_rows, 1)) + 4.0 * (np.arange(n_rows)[:, None] % 2)
    return common + 0.05 * rng.normal(size=(n_rows, 4))


def values_of(component: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in component.hyperparameters.items()}


# --- the scores -----------------------------------------------------------------------------


def scores_of_covariances(rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores of three candidates, and the exact log joint densities."""
    shape = covariance.tied(covariance.correlations(rows), 0.9) * np.outer([1, 2, 3], [1, 2, 3])
    candidates = covariance.Candidates(
        np.array([1.0, 8.0, 8.0]), np.array([0.25, 1.0, 2.0]), np.array([1e-3, 0.1, 3.0])
    )
    found = covariance.log_joint(sums_of(rows, labels, by_column=False), shape, candidates)
    wanted = []
    for which in range(3):
        excess, factor = candidates.excess[which], candidates.factor[which]
        component = dps.MvNormal(
            0.0, candidates.kappa0[which], excess + 4.0, excess * factor * shape
        )
        wanted.append(exact_log_joint(component, rows, labels))
    return found.diagonal(), np.array(wanted)


def test_scores_of_covariances_are_log_joint_densities(rng: np.random.Generator) -> None:
    rows = clustered(rng)
    found, wanted = scores_of_covariances(rows, np.arange(60) % 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    # The control: another partition has another density.
    assert np.abs(scores_of_covariances(rows, np.arange(60) % 2)[0] - wanted).min() > 1.0


@pytest.mark.parametrize("spherical", [False, True])
def test_scores_of_variances_are_log_joint_densities(
    rng: np.random.Generator, spherical: bool
) -> None:
    rows, labels = clustered(rng), np.arange(60) % 3
    grid = np.array([[0.1, 1.0, 0.25], [1.0, 4.0, 2.0]])
    shares = np.array([0.3]) if spherical else np.array([0.1, 0.7, 2.0])
    found = variances.log_joint(sums_of(rows, labels, by_column=True), grid, shares, spherical)
    family = dps.SphericalNormal if spherical else dps.DiagNormal
    for score, (kappa0, excess, factor) in zip(found, grid, strict=True):
        b0 = excess * factor * (shares[0] if spherical else shares)
        component = family(0.0, kappa0, excess + 1.0, b0)
        assert score == pytest.approx(exact_log_joint(component, rows, labels), rel=1e-10)


# --- the shares -----------------------------------------------------------------------------


def log_joints_of_shares(family: str, n_steps: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """Log joint density of three clusters after some steps of the EM algorithm."""
    rows, labels = clustered(np.random.default_rng(1), 90, 4), np.arange(90) % 3
    rows = (rows - rows.mean(0)) / rows.std(0)
    guess = Numbers(0.3, 2.0, np.array([0.1, 3.0, 0.5, 0.01]), 0.5 if family == "MvNormal" else 0.0)
    if family == "MvNormal":
        monkeypatch.setattr(covariance, "SHARE_STEPS", n_steps)
        correlated = covariance.correlations(rows)
        shares = covariance.shares_raised(sums_of(rows, labels, False), correlated, guess)
        root = np.sqrt(shares)
        psi0 = 2.0 * np.outer(root, root) * covariance.tied(correlated, 0.5)
        return exact_log_joint(dps.MvNormal(0.0, 0.3, 7.0, psi0), rows, labels)
    monkeypatch.setattr(variances, "SHARE_STEPS", n_steps)
    spherical = family == "SphericalNormal"
    if spherical:
        guess = guess._replace(shares=guess.shares[1:2])
    shares = variances.shares_raised(sums_of(rows, labels, True), guess, spherical)
    b0 = 2.0 * (shares[0] if spherical else shares)
    return exact_log_joint(getattr(dps, family)(0.0, 0.3, 3.0, b0), rows, labels)


@pytest.mark.parametrize("family", ["MvNormal", "DiagNormal", "SphericalNormal"])
def test_steps_for_shares_raise_the_density(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [log_joints_of_shares(family, n_steps, monkeypatch) for n_steps in (0, 1, 2, 5, 200)]
    assert (np.diff(found) > 0.0).all()
    # At the end they stand still.
    assert log_joints_of_shares(family, 201, monkeypatch) == pytest.approx(found[-1], abs=1e-3)


@pytest.mark.parametrize("family", [dps.MvNormal, dps.DiagNormal])
def test_columns_have_their_own_shares(family: Any, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(300, 5))
    rows[:, 0] += 8.0 * (np.arange(300) % 3)
    values = values_of(family.from_data(rows))
    if family is dps.MvNormal:
        shares = values["psi0"].diagonal() / rows.var(0)
    else:
        shares = values["b0"] / rows.var(0)
    assert (shares[0] < 0.1 * shares[1:]).all()
    assert shares[1:].max() < 2.0 * shares[1:].min()


def spiked(rng: np.random.Generator) -> np.ndarray:
    """Rows whose last column is nearly 0 in half of them, and has another scale in the others."""
    rows = rng.normal(size=(400, 4))
    rows[:, 3] = np.where(np.arange(400) % 2, 20.0 + 5.0 * rows[:, 3], 0.01 * rows[:, 3])
    return rows


def test_spikes_are_given_room(rng: np.random.Generator) -> None:
    rows = spiked(rng)
    labels = np.arange(400) % 2
    chosen = dps.MvNormal.from_data(rows)
    weak = dps.MvNormal(rows.mean(0), 0.1, 6.0, np.diag(0.1 * rows.var(0)))
    gain = exact_log_joint(chosen, rows, labels) - exact_log_joint(weak, rows, labels)
    assert gain > 200.0
    # The control: one share for all columns has no such prior.
    same = dps.MvNormal.from_data(rows, within=0.1)
    assert exact_log_joint(same, rows, labels) < exact_log_joint(chosen, rows, labels) - 100.0


def test_clusters_are_divided_at_spikes(rng: np.random.Generator) -> None:
    rows = spiked(rng)
    rows /= rows.std(0)
    np.testing.assert_array_equal(divided(rows, np.zeros(400, np.int64)), np.arange(400) % 2)
    # Rows without a reason stay together, and so do equal numbers.
    noise = rng.normal(size=(400, 4))
    assert (divided(noise, np.zeros(400, np.int64)) == 0).all()
    assert (divided(np.ones((40, 2)), np.zeros(40, np.int64)) == 0).all()
    few = np.arange(400) // 7
    np.testing.assert_array_equal(divided(rows, few), few)


# --- the choice -----------------------------------------------------------------------------


@pytest.mark.parametrize("family", [dps.MvNormal, dps.DiagNormal])
def test_classes_of_wine_are_likelier_than_one_cluster(family: Any) -> None:
    rows, classes = load_wine(return_X_y=True)
    rows = (rows - rows.mean(0)) / rows.std(0)
    one = np.zeros(len(rows), np.int64)
    chosen = family.from_data(rows)
    assert exact_log_joint(chosen, rows, classes) > exact_log_joint(chosen, rows, one) + 50.0
    if family is dps.MvNormal:  # the control: what was the default
        weak = dps.MvNormal(0.0, 0.1, 15.0, 0.1 * np.eye(13))
        assert exact_log_joint(weak, rows, classes) < exact_log_joint(weak, rows, one)


def test_correlations_that_clusters_share_are_expected(rng: np.random.Generator) -> None:
    psi0 = values_of(dps.MvNormal.from_data(correlated(rng)))["psi0"]
    assert (psi0 / psi0[0, 0] > 0.8).all()
    independent = values_of(dps.MvNormal.from_data(rng.normal(size=(200, 4))))["psi0"]
    off_diagonal = independent[~np.eye(4, dtype=bool)]
    assert np.abs(off_diagonal).max() < 0.3 * independent.diagonal().min()


def test_share_within_clusters_is_found(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(300, 6))
    apart = rows + 6.0 * (np.arange(300) % 2)[:, None]
    for family in (dps.DiagNormal, dps.SphericalNormal):
        shares = []
        for observed in (rows, apart):
            values = values_of(family.from_data(observed))
            shares.append(np.mean(values["b0"] / (values["a0"] - 1.0)) / observed.var(0).mean())
        assert shares[0] >= 0.7
        assert shares[1] <= 0.2


def test_default_is_kept_without_evidence() -> None:
    weak = values_of(dps.Normal.from_data(np.arange(12.0)))
    assert (weak["kappa0"], weak["a0"]) == (0.1, 2.0)
    assert weak["b0"] == pytest.approx(0.1 * np.arange(12.0).var())
    few = np.random.default_rng(2).normal(size=(12, 3))
    weak = values_of(dps.MvNormal.from_data(few))
    assert (weak["kappa0"], weak["nu0"]) == (0.1, 5.0)
    np.testing.assert_allclose(weak["psi0"], np.diag(0.1 * few.var(0)))


def test_a_single_column_keeps_its_default() -> None:
    galaxies = DATA_SETS["galaxies"].load()[0]
    values = values_of(dps.Normal.from_data(galaxies))
    assert (values["kappa0"], values["a0"]) == (0.1, 2.0)
    assert values["b0"] == pytest.approx(0.1 * galaxies.var())


def test_given_numbers_are_kept(rng: np.random.Generator) -> None:
    rows = clustered(rng)
    values = values_of(dps.MvNormal.from_data(rows, within=0.4, nu0=6.5))
    assert values["nu0"] == 6.5
    np.testing.assert_allclose(values["psi0"].diagonal(), 2.5 * 0.4 * rows.var(0))
    for family in (dps.DiagNormal, dps.SphericalNormal):
        values = values_of(family.from_data(rows, within=0.4, a0=3.0))
        assert values["a0"] == 3.0
        assert np.mean(values["b0"]) == pytest.approx(0.8 * rows.var(0).mean())
    assert values_of(dps.Normal.from_data(rows[:, 0], within=1.0, a0=3.0))["a0"] == 3.0


@pytest.mark.parametrize("within", [0.0, 1.5, -1.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_shares_out_of_range_are_refused(family: Any, within: float) -> None:
    with pytest.raises(ValueError, match=r"within=.* is no share of a variance; give a number"):
        family.from_data(np.eye(3), within=within)


def test_priors_without_a_mean_are_refused() -> None:
    with pytest.raises(ValueError, match=r"nu0=4 is too small .*; give more than D \+ 1 = 4"):
        dps.MvNormal.from_data(np.eye(3), nu0=4.0)
    with pytest.raises(ValueError, match=r"a0=1 is too small .*; give more than 1"):
        dps.DiagNormal.from_data(np.eye(3), a0=1.0)


# --- hard but legal data ----------------------------------------------------------------------


def hard_data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    rows = clustered(rng)
    holey = rows.copy()
    holey[np.arange(60), np.arange(60) % 3] = np.nan
    few_holes = rows.copy()
    few_holes[::7, 1] = np.nan
    heavy = rows.copy()
    heavy[0] = 1e12
    return {
        "one row": rows[:1],
        "two rows": rows[:2],
        "equal rows": np.repeat(rows[:1], 40, axis=0),
        "three different rows": np.tile(rows[:3], (20, 1)),
        "constant column": np.column_stack([rows, np.full(60, 1 / 3)]),
        "column twice": np.column_stack([rows, rows[:, 0]]),
        "more columns than rows": rng.normal(size=(20, 40)),
        "no complete row": holey,
        "missing entries": few_holes,
        "whole numbers": rng.integers(3, size=(50, 4)).astype(float),
        "an outlier": heavy,
        "single precision": rows.astype(np.float32),
    }


@pytest.mark.filterwarnings("ignore:observed has ")  # that they are hard
@pytest.mark.parametrize("name", list(hard_data()))
@pytest.mark.parametrize("family", FAMILIES)
def test_hard_data_give_legal_priors(family: Any, name: str) -> None:
    observed = hard_data()[name]
    component = family.from_data(observed)
    values = component.check(component.hyperparameters, observed.shape[1])
    assert all(np.isfinite(value).all() for value in values.values())


@pytest.mark.parametrize("units", [1e-100, 1e100])
@pytest.mark.parametrize("family", [dps.MvNormal, dps.DiagNormal])
def test_choice_does_not_depend_on_units(family: Any, units: float) -> None:
    rows = correlated(np.random.default_rng(3))
    scale = np.array([units, 1.0, 1.0 / units, 3.0])
    plain, scaled = (values_of(family.from_data(x)) for x in (rows, rows * scale))
    for name in plain.keys() - {"mu0", "psi0", "b0"}:
        np.testing.assert_array_equal(scaled[name], plain[name])
    if family is dps.MvNormal:
        np.testing.assert_allclose(scaled["psi0"] / scale / scale[:, None], plain["psi0"])
    else:
        np.testing.assert_allclose(scaled["b0"] / scale**2, plain["b0"])


def test_column_that_does_not_vary_changes_no_other() -> None:
    rows = correlated(np.random.default_rng(3))
    with pytest.warns(UserWarning, match="the same number in column 4 in all rows"):
        widened = values_of(dps.MvNormal.from_data(np.column_stack([rows, np.full(200, 7.0)])))
    plain = values_of(dps.MvNormal.from_data(rows))
    assert widened["nu0"] == plain["nu0"] + 1.0
    np.testing.assert_allclose(widened["psi0"][:4, :4], plain["psi0"])
    assert (widened["psi0"][4, :4] == 0.0).all()


# --- what is hardly meant -----------------------------------------------------------------------

GAUSSIAN = [*FAMILIES, dps.MvNormalKnownCov]


@pytest.mark.parametrize("family", GAUSSIAN)
def test_transposed_rows_are_noticed(family: Any, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(30, 4))
    family.from_data(rows)
    match = r"^observed has more columns, 30, than rows, 4; .* give observed\.T\.$"
    with pytest.warns(UserWarning, match=match) as caught:
        family.from_data(rows.T)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("family", GAUSSIAN)
def test_columns_that_do_not_vary_are_noticed(family: Any, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(30, 4))
    rows[:, 2] = 0.1
    rows[5, 2] = np.nan
    match = "same number in column 2 in all rows, so that its scale .* leave such columns out"
    with pytest.warns(UserWarning, match=match) as caught:
        family.from_data(rows)
    assert [warning.filename for warning in caught] == [__file__]
    rows[:, 3] = 7.0
    with pytest.warns(UserWarning, match=r"in all rows \(and in 1 more such columns\)"):
        family.from_data(rows)
    with pytest.warns(UserWarning, match="and 1 is used; give the hyperparameters"):
        family.from_data(np.ones((5, 2)))


@pytest.mark.parametrize("family", [dps.Normal, dps.NormalKnownSigma])
def test_equal_scalars_are_noticed(family: Any) -> None:
    with pytest.warns(UserWarning, match="the same number in all rows, so that"):
        family.from_data([3.0, 3.0, 3.0])


def test_columns_of_tables_are_noticed_by_name() -> None:
    table = {"age": [0.5, 0.5, 0.5], "height": [1.5, 1.25, 1.75], "colour": ["red"] * 3}
    with pytest.warns(UserWarning, match="the same number in column 'age' in all rows, so"):
        dps.Product.from_data(table)
    wide = {f"x{d}": [0.5, 1.5 + d] for d in range(4)}
    assert dps.Product.from_data(wide).families.keys() == {"numeric"}


def test_counts_and_made_up_rows_are_not_noticed() -> None:
    dps.Poisson.from_data([[1, 0, 0, 5]])
    dps.MvNormal(0.0, 0.1, 6.0, np.eye(4)).example_hyperparameters(4)


# --- what is looked at --------------------------------------------------------------------------


def test_many_rows_are_sampled_and_always_alike(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(5000, 2))
    rows[::10, 0] = np.nan
    z, varies = standardised(rows, np.zeros(2), np.array([1.0, 2.0]))
    assert 1700 < len(z) < 1900
    assert varies.all()
    np.testing.assert_array_equal(z, standardised(rows, np.zeros(2), np.array([1.0, 2.0]))[0])
    assert np.isin(2.0 * z[:, 1], rows[:, 1]).all()
    wide = np.tile(rows[:, 1:], 50)
    assert len(standardised(wide, np.zeros(50), np.ones(50))[0]) == 1000


def test_provisional_partitions_are_of_all_sizes_and_good(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(60, 8)) + 12.0 * np.eye(3, 8)[np.arange(60) % 3]
    partitions = list(provisional_partitions(rows))
    sizes = [len(np.unique(labels)) for labels in partitions]
    assert sizes[:4] == [1, 2, 3, 4]
    truth = np.arange(60) % 3
    same = partitions[2][:, None] == partitions[2]
    np.testing.assert_array_equal(same, truth[:, None] == truth)


def narrow_in_wide(seed: int) -> np.ndarray:
    """Rows of a narrow cluster in the middle of a wide one, which k-means cuts into sectors."""
    rows = np.random.default_rng(seed).normal(size=(400, 3))
    rows[:200] *= 0.05
    return rows


@pytest.mark.parametrize("seed", [1, 2])
def test_clusters_of_unequal_extent_are_found(seed: int) -> None:
    rows = narrow_in_wide(seed)
    assert values_of(dps.MvNormal.from_data(rows))["nu0"] == 5.0
    assert values_of(dps.DiagNormal.from_data(rows))["a0"].max() == 2.0


@pytest.mark.control
@pytest.mark.parametrize("seed", [1, 2])
def test_k_means_alone_does_not_find_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "reassigned", lambda labels, log_masses: labels)
    monkeypatch.setattr(partitions, "divided", lambda z, labels: labels)
    rows = narrow_in_wide(seed)
    assert values_of(dps.MvNormal.from_data(rows))["nu0"] > 5.0
    assert values_of(dps.DiagNormal.from_data(rows))["a0"].max() > 2.0


def test_numeric_columns_of_products_are_treated_alike(rng: np.random.Generator) -> None:
    rows = clustered(rng)
    numeric = dps.Product.from_data(rows).families["numeric"]
    for name, value in values_of(dps.DiagNormal.from_data(rows)).items():
        np.testing.assert_array_equal(numeric.hyperparameters[name], value)
