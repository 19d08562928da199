"""Missing entries, imputed in the step, against enumeration and quadrature over the entries."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from tests.support.families import (
    DISCRETE,
    FAMILIES,
    HYPERPARAMETERS,
    component_of,
    dataset_of,
    twin_of,
)
from tests.support.quadrature import (
    Holes,
    block_average,
    fixed,
    holes_table,
    posterior,
    summed_holes_table,
)
from tests.support.runs import draws_of, labels_test, run
from tests.support.statistics import LEVEL, combine, mean_test

pytestmark = pytest.mark.slow

ALPHA = 1.2
N = 5
# Family, number of features, and the row and feature of each hole.
CASES: dict[str, tuple[str, int, list[tuple[int, int]]]] = {
    "scalar": ("Normal", 1, [(2, 0)]),
    "diagonal": ("DiagNormal", 2, [(1, 0), (3, 1)]),
    "full, two rows": ("MvNormal", 2, [(1, 0), (3, 1)]),
    "full, all but one entry": ("MvNormal", 3, [(2, 0), (2, 2)]),
    "counts": ("Poisson", 2, [(1, 0), (3, 1)]),
    "zeros and ones": ("Bernoulli", 2, [(1, 0), (3, 1)]),
    "codes": ("Categorical", 2, [(1, 0), (3, 1), (4, 1)]),
}
SLOWER = {"counts", "zeros and ones"}


def rows_of(name: str) -> np.ndarray:
    """Rows (N, D) with NaN where an entry is missing."""
    _, n_features, holes = CASES[name]
    rows = dataset_of(CASES[name][0], "overlapping", n_features)[:N]
    rows[tuple(np.transpose(holes))] = np.nan
    return rows


def observed_of(name: str) -> np.ndarray:
    return rows_of(name)[:, 0] if CASES[name][0] == "Normal" else rows_of(name)


def table_of(name: str) -> Holes:
    """Marginals of every subset of the rows, and means of a bounded function of the holes."""
    family, n_features, _ = CASES[name]
    known = twin_of(family, n_features), rows_of(name), np.tanh
    if family in DISCRETE:
        return summed_holes_table(*known, FAMILIES[family].support)
    return holes_table(*known)


def p_value(name: str, n_draws: int = 1500, **options: Any) -> float:
    """P-value of the partition and of what is imputed."""
    family, n_features, holes = CASES[name]
    found = table_of(name)
    exact = posterior(found.table[None], np.zeros(1), fixed(ALPHA))
    first, second = block_average(exact.joint, found.values[None])[tuple(np.transpose(holes))].T
    with pm.Model():
        component = component_of(family, n_features)
        dps.DPMixture("x", ALPHA, component, observed=observed_of(name))
        idata = run(n_draws, **options)
    # Student's tails have few moments: a bounded function of the entries has all of them.
    imputed = np.tanh(draws_of(idata, "x_unobserved"))
    return combine(
        labels_test(idata, "x", exact.partitions),
        mean_test(imputed, first, second - first**2),
    )


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOWER else name for name in CASES],
)
def test_missing_entries_are_exact(name: str) -> None:
    assert p_value(name, iterations=2) > LEVEL


@pytest.mark.parametrize("name", ["scalar", "full, two rows"])
def test_missing_entries_are_exact_without_moves_of_labels(name: str) -> None:
    assert p_value(name, iterations=2, exchanges=0) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["exact", "collapsed"])
@pytest.mark.parametrize("name", CASES)
def test_missing_entries_are_exact_in_long_runs(name: str, kernel: str) -> None:
    assert p_value(name, 10_000, kernel=kernel) > LEVEL


@pytest.mark.control
def test_imputation_that_ignores_the_row_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(
        self: Any, rng: Any, rows: Any, is_missing: Any, parameters: Any, labels: Any
    ) -> np.ndarray:
        return self.draw_rows(rng, parameters, labels)

    monkeypatch.setattr(dps.MvNormal, "draw_missing", broken)
    assert p_value("full, two rows", iterations=2) < LEVEL


@pytest.mark.control
def test_labels_that_ignore_the_entries_present_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(component: Any, rows: np.ndarray, *_: Any) -> np.ndarray:
        return np.zeros(len(rows))

    monkeypatch.setattr("pymc_dpsplit.step.joint_label_row_update.log_density_of_present", broken)
    assert p_value("full, two rows", iterations=2) < LEVEL


def naive_density(name: str, draw: Any) -> np.ndarray:
    """Log density (N,) of the present entries of each row, given one draw of the measure."""
    family, n_features, _ = CASES[name]
    if family in DISCRETE:
        return discrete_density(name, draw)
    n_clusters = int(draw["x_n_clusters"])
    weights = draw["x_weights"].to_numpy()[:n_clusters]
    mu = draw["x_mu"].to_numpy()[:n_clusters].reshape(n_clusters, -1)
    if family == "MvNormal":
        cov = draw["x_cov"].to_numpy()[:n_clusters]
    else:
        sigma = draw["x_sigma"].to_numpy()[:n_clusters].reshape(n_clusters, -1)
        cov = np.eye(n_features) * sigma[:, None] ** 2
    density = []
    for row in rows_of(name):
        kept = np.flatnonzero(~np.isnan(row))
        if not len(kept):
            density.append(1.0)
            continue
        inside = [
            stats.multivariate_normal.pdf(row[kept], m[kept], c[np.ix_(kept, kept)])
            for m, c in zip(mu, cov, strict=True)
        ]
        density.append(weights @ inside + float(draw["x_new_weight"]) * new_density(name, row))
    return np.log(density)


def discrete_density(name: str, draw: Any) -> np.ndarray:
    """Do the same for a family with independent columns, by its twin of the columns present."""
    family, n_features, _ = CASES[name]
    component = component_of(family, n_features)
    (key,) = component.parameters
    weights = draw["x_weights"].to_numpy()[: int(draw["x_n_clusters"])]
    density = []
    for row in rows_of(name):
        kept = np.flatnonzero(~np.isnan(row))
        few, present = twin_of(family, n_features).restricted(kept), row[kept][None]
        values = draw[f"x_{key}"].to_numpy()[: len(weights), kept]
        inside = [np.exp(few.log_density(present, {key: value})[0]) for value in values]
        outside = float(draw["x_new_weight"]) * np.exp(few.log_marginal(present))
        density.append(weights @ inside + outside)
    return np.log(density)


def new_density(name: str, row: np.ndarray) -> float:
    """Density of the present entries of a row under the base measure: Student's law."""
    family, n_features, _ = CASES[name]
    kept = np.flatnonzero(~np.isnan(row))
    if family == "MvNormal":
        mu0, kappa0, nu0, psi0 = HYPERPARAMETERS[family](n_features).values()
        df = nu0 - n_features + 1
        shape = (psi0 * (kappa0 + 1) / (kappa0 * df))[np.ix_(kept, kept)]
        return float(stats.multivariate_t.pdf(row[kept], mu0[kept], shape, df=df))
    given = HYPERPARAMETERS[family](n_features)
    whole = {key: np.broadcast_to(value, n_features)[kept] for key, value in given.items()}
    twin = FAMILIES["DiagNormal"].twin(**whole)
    return float(np.exp(twin.log_marginal(row[kept][None])))


@pytest.mark.parametrize("name", CASES)
def test_density_of_a_row_is_that_of_its_present_entries(name: str) -> None:
    family, n_features, _ = CASES[name]
    with pm.Model() as model:
        component = component_of(family, n_features)
        dps.DPMixture("x", ALPHA, component, observed=observed_of(name))
        idata = run(5)
        pm.compute_log_likelihood(idata, model=model, progressbar=False)
    observed = observed_of(name)
    is_seen = ~np.isnan(observed).reshape(len(observed), -1).all(1)
    for chain in range(4):
        for draw in range(5):
            values = idata["log_likelihood"]["x"].to_numpy()[chain, draw]
            measure = idata["posterior"].isel(chain=chain, draw=draw)
            np.testing.assert_allclose(values, naive_density(name, measure)[is_seen], rtol=1e-9)
