"""The estimator with the interface of scikit-learn, over the same model as elsewhere."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import pymc_dpsplit as dps
from pymc_dpsplit import scikit_learn
from tests.support.statistics import LEVEL

pytestmark = pytest.mark.compiled

QUIET = {"compute_convergence_checks": False, "cores": 1}
SHORT = dps.DirichletProcessMixture(
    alpha=1.0, draws=30, tune=30, chains=1, random_state=1, sample_options=QUIET
)
COUNTS = np.array([[1.0], [0.0], [2.0], [30.0], [28.0], [35.0]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the checks warn of other things than errors
@parametrize_with_checks([SHORT])
def test_scikit_learn_finds_its_interface(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def fitted() -> dps.DirichletProcessMixture:
    return dps.DirichletProcessMixture(
        dps.Poisson(0.5, 0.05), 5.0, draws=200, tune=50, chains=2, random_state=1,
        sample_options=QUIET,
    ).fit(COUNTS)  # fmt: skip


@pytest.fixture(scope="module")
def numbers() -> dps.DirichletProcessMixture:
    """The same of a family whose kernels other tests compile as well."""
    return dps.DirichletProcessMixture(
        dps.Normal(10.0, 0.01, 4.0, 4.0), 5.0, draws=200, tune=50, chains=2, random_state=1,
        sample_options=QUIET,
    ).fit(COUNTS)  # fmt: skip


@pytest.mark.slow
def test_clusters_are_those_of_the_partition_of_the_trace(fitted: Any) -> None:
    assert (fitted.labels_[3:] == 0).all()
    assert (fitted.labels_[:3] > 0).all()
    assert fitted.n_clusters_ == fitted.labels_.max() + 1
    assert fitted.idata_["posterior"].sizes["draw"] == 200
    found = dps.point_partition(fitted.idata_, model=fitted.model_, random_seed=1)
    assert found.labels.to_numpy().tolist() == fitted.labels_.tolist()


@pytest.mark.slow
def test_probabilities_are_those_of_predict(fitted: Any) -> None:
    new = np.array([[1.0], [33.0], [1000.0]])
    probabilities = fitted.predict_proba(new)
    assert probabilities.shape == (3, fitted.n_clusters_ + 1)
    assert probabilities.sum(1) == pytest.approx(1.0)
    assert fitted.predict(new)[1:].tolist() == [0, -1]
    found = dps.predict(fitted.idata_, new, model=fitted.model_)
    assert fitted.score_samples(new) == pytest.approx(found["log_predictive_density"].to_numpy())
    assert fitted.score(new) == pytest.approx(fitted.score_samples(new).mean())
    assert probabilities[:, -1] == pytest.approx(found["new_cluster_probability"].to_numpy())


def p_value_of_counts(fitted: Any) -> float:
    """P-value of drawn counts under the predictive distribution, those from 60 on as one."""
    inside = np.exp(fitted.score_samples(np.arange(60.0)[:, None]))
    cells = np.append(inside, 1.0 - inside.sum())
    drawn = np.minimum(fitted.sample(20_000)[:, 0], 60).astype(int)
    return float(stats.chisquare(np.bincount(drawn, minlength=61), 20_000 * cells).pvalue)


def p_value_of_numbers(fitted: Any) -> float:
    """P-value of drawn numbers under the predictive distribution, by cells, all outside as one."""
    edges = np.linspace(-10.0, 50.0, 61)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    inside = edges[:-1, None] + (nodes + 1.0) / 2.0
    density = np.exp(fitted.score_samples(inside.reshape(-1, 1))).reshape(inside.shape)
    mass = density @ weights / 2.0
    drawn = np.histogram(fitted.sample(20_000)[:, 0], edges)[0]
    counts = np.append(drawn, 20_000 - drawn.sum())
    return float(stats.chisquare(counts, 20_000 * np.append(mass, 1.0 - mass.sum())).pvalue)


def leave_out_new_clusters(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Break `sample`: rows of a new cluster are drawn from the last that is known."""
    draw = scikit_learn.draw_labelled_rows

    def without_new(rng: Any, family: Any, labels: Any, parameters: Any, values: Any) -> Any:
        known = np.minimum(labels, len(parameters[name]) - 1)
        return draw(rng, family, known, parameters, values)

    monkeypatch.setattr(scikit_learn, "draw_labelled_rows", without_new)


def test_samples_are_drawn_from_the_predictive_distribution(numbers: Any) -> None:
    assert p_value_of_numbers(numbers) > LEVEL


@pytest.mark.control
def test_samples_of_known_clusters_alone_are_caught(
    numbers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out_new_clusters(monkeypatch, "mu")
    assert p_value_of_numbers(numbers) < LEVEL


@pytest.mark.slow
def test_counts_are_drawn_from_the_predictive_distribution(fitted: Any) -> None:
    assert p_value_of_counts(fitted) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_counts_of_known_clusters_alone_are_caught(
    fitted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out_new_clusters(monkeypatch, "rate")
    assert p_value_of_counts(fitted) < LEVEL


def test_names_of_columns_are_coordinates_and_missing_entries_are_taken() -> None:
    import pandas as pd

    rows = np.array([[0.0, 1.0], [0.1, np.nan], [9.0, 7.0], [9.2, 7.1]])
    frame = pd.DataFrame(rows, columns=["length", "width"])
    mixture = dps.DirichletProcessMixture(
        dps.DiagNormal, None, draws=20, tune=20, chains=1, random_state=3, sample_options=QUIET
    ).fit(frame)
    assert mixture.idata_["posterior"]["feature"].values.tolist() == ["length", "width"]
    assert "alpha" in mixture.idata_["posterior"]
    assert np.isfinite(mixture.score_samples(frame)).all()
    assert mixture.sample(3).shape == (3, 2)


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"alpha": -1.0}, COUNTS, "alpha=-1 is not positive; give a number above 0, or None."),
        ({"component": "normal"}, COUNTS, "component='normal' is no family of clusters; "),
        (
            {"component": dps.Normal(0, 1, 2, 1)},
            np.ones((3, 2)),
            "X has 2 columns, ",
        ),
        ({"draws": 0}, COUNTS, "draws=0 "),
        ({"sample_options": 5}, COUNTS, "sample_options=5 is not a dict; "),
        ({"sample_options": {"draws": 5}}, COUNTS, "sample_options has 'draws', which the "),
        (
            {"sample_options": {"return_inferencedata": False}},
            COUNTS,
            "sample_options has return_inferencedata=False, but .*; leave it out.",
        ),
        ({"component": dps.Component}, COUNTS, "component=Component is a class .*; give an inst"),
        *(
            ({"component": of}, COUNTS, "component=[A-Za-z]+ has covariates, .*; give it to a DPM")
            for of in (
                dps.LinearRegression,
                dps.LinearRegression(mu0=0.0, lambda0=0.1, a0=2.0, b0=1.0),
                dps.Product(a=dps.LinearRegression(mu0=0.0, lambda0=0.1, a0=2.0, b0=1.0)),
                dps.Component(
                    lambda mu, x: pm.Normal.dist(mu * x, 1.0),
                    mu=pm.Normal.dist(0, 1),
                    covariates={"x": COUNTS[:, 0]},
                ),
            )
        ),
    ],
)
def test_wrong_arguments_are_refused(options: Any, rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message):
        dps.DirichletProcessMixture(**options).fit(rows)


def test_model_of_no_rows_is_refused() -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = dps.DirichletProcessMixture().model_


def test_what_was_fitted_stays_when_its_origins_change() -> None:
    rows = COUNTS.copy()
    fitted = clone(SHORT).set_params(component=dps.Normal(10.0, 0.01, 4.0, 4.0)).fit(rows)
    before, labels = fitted.score_samples(COUNTS), fitted.labels_.copy()
    rows -= rows.mean()
    fitted.set_params(alpha=None, component=None)
    assert fitted.score_samples(COUNTS) == pytest.approx(before)
    assert fitted.predict(COUNTS).tolist() == labels.tolist()
    assert "alpha" not in fitted.model_.named_vars
    stored = pickle.loads(pickle.dumps(fitted))
    assert stored.score_samples(COUNTS) == pytest.approx(before)


@pytest.mark.slow
def test_fitted_component_is_pickled() -> None:
    component = dps.Component(pm.Laplace, mu=pm.Normal.dist(0, 30), b=pm.LogNormal.dist(0, 1))
    fitted = clone(SHORT).set_params(component=component).fit(COUNTS)
    stored = pickle.loads(pickle.dumps(fitted))
    assert stored.score_samples(COUNTS) == pytest.approx(fitted.score_samples(COUNTS))


def test_samples_of_no_rows_are_refused(numbers: Any) -> None:
    with pytest.raises(ValueError, match=r"^n_samples=0 "):
        numbers.sample(0)


COLUMNS = {"strings": ["a", "b"], "dates": pd.date_range("2020", periods=2)}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_that_are_not_of_numbers_are_refused(kind: str) -> None:
    frame = pd.DataFrame({"height": [0.0, 1.0], "other": COLUMNS[kind]})
    for component in (None, dps.Product, dps.DiagNormal):
        with pytest.raises(ValueError, match=r"^X has columns that are not of numbers, .*; encode"):
            dps.DirichletProcessMixture(component).fit(frame)
