"""The workloads of the benchmarks are those on which other samplers were measured."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from benchmarks.predictive import held_out_score, log_student, oracle_score
from benchmarks.workloads import Workload, load, spheres


@pytest.mark.parametrize(
    ("name", "shape", "total"),
    [
        ("galaxies", (82, 1), 1708.18),
        ("faithful", (272, 2), 0.0),
        ("W2_1e3", (1000, 2), 329.380427),
        ("W2_1e4", (10_000, 2), 3493.916973),
        ("W2_1e5", (100_000, 2), 32205.021065),
        ("W3", (10_000, 8), 11582.306965),
    ],
)
def test_rows_are_the_published_ones(name, shape, total):
    rows = load(name).rows
    assert rows.shape == shape
    assert rows.sum() == pytest.approx(total, abs=5e-7)


@pytest.mark.parametrize(("name", "score"), [("W2_1e3", -4.3065), ("W3", -10.3609)])
def test_score_of_the_truth_is_the_published_one(name, score):
    workload = load(name)
    assert oracle_score(workload) == pytest.approx(score, abs=5e-5)
    # Fitting costs something, and little where rows are many.
    fitted = held_out_score(workload, workload.labels)
    assert score - 0.1 < fitted < score


def test_unknown_workload_is_refused():
    with pytest.raises(ValueError, match="no workload 'W4'"):
        load("W4")


def test_predictive_of_many_rows_is_their_density():
    mean, cov = np.array([1.0, -1.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    n = 1e9
    empty = np.empty((0, 2))
    prior = Workload(empty, np.eye(2), np.zeros(2), empty, None, empty, None)
    points = np.array([[0.0, 0.0], [3.0, 1.0]])
    found = log_student(points, n, mean, n * cov, prior)
    assert found == pytest.approx(multivariate_normal.logpdf(points, mean, cov), rel=1e-7)


def test_spheres_are_where_they_are_said_to_be():
    rows, labels, centres = spheres(20_000, 3, 4, 5.0)
    gaps = rows - centres[labels]
    assert np.abs(gaps.mean(0)).max() < 5.0 / np.sqrt(20_000)
    assert np.abs(np.cov(gaps.T) - np.eye(3)).max() < 10.0 / np.sqrt(20_000)
