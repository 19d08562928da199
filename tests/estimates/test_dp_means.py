"""DP-means against a naive twin; its objective never rises."""

import numpy as np
import pandas as pd
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.kernels.centres import descend_by_centres, farthest_first
from tests.reference import estimates as naive

PENALTIES = (0.05, 1.0, 6.0, 100.0)


def rows_of(n_obs, n_features):
    rng = np.random.default_rng([n_obs, n_features])
    return rng.normal(size=(n_obs, n_features)) + 4.0 * rng.integers(-1, 2, (n_obs, 1))


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_descent_is_that_of_its_twin_and_never_rises(n_features, penalty):
    rows = rows_of(60, n_features)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(60)
        labels, first = np.empty(60, np.int64), rows[:1] if seed else rows.mean(0)[None]
        centres, path, has_settled = descend_by_centres(
            rows, order, first.copy(), penalty, 100, labels
        )
        expected, expected_path = naive.dp_means(rows, order, first[0], penalty, len(path))
        assert has_settled
        np.testing.assert_allclose(path, expected_path)
        np.testing.assert_array_equal(labels[:, None] == labels, expected[:, None] == expected)
        np.testing.assert_allclose(centres[labels], [rows[labels == k].mean(0) for k in labels])
        assert np.diff(path).max(initial=0.0) <= 1e-9


@pytest.mark.control
def test_founding_too_early_makes_the_objective_rise():
    """The twin with its threshold halved, judged by the true penalty."""
    rises = 0
    for seed in range(5):
        rows, order = rows_of(60, 2), np.random.default_rng(seed).permutation(60)
        path = []
        for t in range(1, 6):
            labels, _ = naive.dp_means(rows, order, rows.mean(0), 3.0, t)
            centres = np.array([rows[labels == k].mean(0) for k in range(labels.max() + 1)])
            path.append(np.sum((rows - centres[labels]) ** 2) + 12.0 * len(centres))
        rises += np.diff(path).max() > 1e-6
    assert rises > 0


def test_rows_are_with_the_nearest_centre_and_restarts_are_no_worse():
    rows = rows_of(80, 2)
    for penalty in PENALTIES:
        found = dps.dp_means(rows, penalty, random_seed=1)
        squares = ((rows[:, None] - found.centres) ** 2).sum(-1)
        np.testing.assert_array_equal(found.labels, squares.argmin(1))
        assert squares.min(1).max() <= penalty
        objective = squares.min(1).sum() + penalty * found.n_clusters
        np.testing.assert_allclose(found.objective, objective)
        assert found.objective == found.objectives.min()
        assert found.objectives[0] == dps.dp_means(rows, penalty, n_restarts=1).objective


def test_result_describes_the_partition():
    rows = np.array([[0.0, 0.0], [9.0, 9.0], [9.0, 8.0], [8.0, 9.0], [0.0, 1.0]])
    found = dps.dp_means(rows, 4.0)
    np.testing.assert_array_equal(found.labels, [1, 0, 0, 0, 1])
    np.testing.assert_allclose(found.centres, [[26 / 3, 26 / 3], [0.0, 0.5]])
    assert found.n_clusters == 2
    np.testing.assert_allclose(found.objective, 4 / 3 + 0.5 + 8.0)
    scalars = dps.dp_means(rows[:, 0], 4.0)
    assert scalars.centres.shape == (2,)


def test_forms_of_the_data_agree():
    rows = rows_of(50, 2).astype(np.float32)
    expected = dps.dp_means(rows.astype(float), 3.0, random_seed=1)
    for form in (rows, rows.tolist(), np.asfortranarray(rows), pd.DataFrame(rows)):
        found = dps.dp_means(form, 3.0, random_seed=1)
        np.testing.assert_array_equal(found.labels, expected.labels)
        assert found.objective == expected.objective


def test_penalty_is_the_squared_distance_of_the_last_row_taken():
    rows = rows_of(40, 2)
    taken = [rows.mean(0)]
    for n_rounds in range(1, 6):
        nearest = [min(np.sum((row - point) ** 2) for point in taken) for row in rows]
        taken.append(rows[int(np.argmax(nearest))])
        np.testing.assert_allclose(dps.dp_means_penalty(rows, n_rounds), max(nearest))
        np.testing.assert_allclose(farthest_first(rows, n_rounds), max(nearest))


FAULTS = {
    "penalty=0 must be positive": ([0.0, 1.0], {"penalty": 0}),
    "penalty='1'": ([0.0, 1.0], {"penalty": "1"}),
    "n_restarts=0 is out of range": ([0.0, 1.0], {"penalty": 1, "n_restarts": 0}),
    "max_iterations=0 is out of range": ([0.0, 1.0], {"penalty": 1, "max_iterations": 0}),
    "observed has 1 NaN or infinite entry": ([0.0, np.nan], {"penalty": 1}),
    "observed is ragged": ([[0.0], [1.0, 2.0]], {"penalty": 1}),
    "observed has 3 dimensions; give shape": (np.zeros((2, 2, 2)), {"penalty": 1}),
    "observed is empty": (np.zeros((0, 2)), {"penalty": 1}),
    "observed has dtype <U1": (["a", "b"], {"penalty": 1}),
}


@pytest.mark.parametrize("message", FAULTS)
def test_bad_argument_is_refused(message):
    rows, arguments = FAULTS[message]
    with pytest.raises(ValueError, match=message):
        dps.dp_means(rows, **arguments)


@pytest.mark.parametrize(
    ("n_clusters", "message"),
    [
        (0, "n_clusters=0 is out of range"),
        (4, "n_clusters=4 exceeds the 3 rows"),
        (3, "n_clusters=3 exceeds the number of different rows"),
    ],
)
def test_impossible_number_of_clusters_is_refused(n_clusters, message):
    with pytest.raises(ValueError, match=message):
        dps.dp_means_penalty([0.0, 0.0, 5.0], n_clusters)


def test_being_stopped_early_is_told():
    with pytest.warns(UserWarning, match="raise max_iterations"):
        dps.dp_means(rows_of(60, 2), 1.0, max_iterations=1)
