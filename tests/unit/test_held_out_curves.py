"""Curves of held-out density: what their rows say, and how they are stored."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

from benchmarks import held_out_curves, workloads
from benchmarks.held_out_curves import Curve, keep_curves, read_curves, rows_of, seconds_to
from benchmarks.held_out_rows import divide, log_masses, score_of, split_counts, split_vectors
from benchmarks.map_dpm import best_alpha, sweeps_from
from benchmarks.predictive import held_out_score, log_student
from pymc_dpsplit import Multinomial, Normal, sampler
from pymc_dpsplit.moves.partition_law import dirichlet_process

CURVE = Curve("GIBBS", [0.0, 0.1, 0.2, 0.3], [-9.0, -2.0, -3.0, -2.0], [-90.0] * 4, 3, 12)


def test_time_is_that_after_which_the_score_stays():
    assert seconds_to(CURVE, -9.5) == 0.0
    assert seconds_to(CURVE, -2.5) == 0.3
    assert math.isnan(seconds_to(CURVE, -1.0))


def test_rows_name_setting_and_kernel():
    (row,) = rows_of("alpha = 1, from 10", [CURVE], -2.0)
    assert row.name == "alpha = 1, from 10: GIBBS"
    assert row.measured == 0.3
    assert "ends at +0.0000" in row.note


def test_curves_come_back_as_they_were(tmp_path, monkeypatch):
    monkeypatch.setattr(held_out_curves, "FOLDER", tmp_path)
    keep_curves("some", {"from 1": -2.5}, {"from 1": [CURVE]})
    assert read_curves("some") == ({"from 1": -2.5}, {"from 1": [CURVE]})


def test_kernels_have_names_of_their_own():
    names = [line.name for line in held_out_curves.LINES]
    assert len(set(names)) == len(names)


def test_score_counts_a_new_cluster_with_alpha():
    workload = workloads.load("W2_1e3")
    n, rows = len(workload.rows), workload.rows
    gaps = rows - rows.mean(0)
    whole = log_student(workload.test, float(n), rows.mean(0), gaps.T @ gaps, workload)
    new = log_student(workload.test, 0.0, workload.mu0, np.zeros((2, 2)), workload)
    exact = logsumexp([np.log(n) + whole, np.log(50.0) + new], axis=0).mean() - np.log(n + 50.0)
    assert held_out_score(workload, np.zeros(n, int), 50.0) == pytest.approx(exact, rel=1e-12)


def test_sweeps_alone_end_where_no_row_gains():
    rows = np.concatenate([np.zeros(5), np.full(5, 9.0)])[:, None]
    rows += np.random.default_rng(1).normal(scale=0.1, size=(10, 1))
    component, start = Normal(4.5, 0.1, 1.0, 1.0), np.arange(10) % 2
    mode = sweeps_from(start, rows, component, 1.0)
    assert len(set(mode.labels[:5])) == len(set(mode.labels[5:])) == 1
    assert mode.labels[0] != mode.labels[9]
    again = sweeps_from(mode.labels, rows, component, 1.0)
    assert again.n_sweeps == 1
    best = best_alpha(start, rows, component, np.array([0.5, 1.0, 40.0]))
    assert best.log_joint >= mode.log_joint


def test_score_of_any_family_is_that_of_gaussians_by_scipy():
    workload = workloads.load("W2_1e3")
    split = split_vectors(workload.rows, workload.test, workload.component)
    labels = np.arange(len(workload.rows)) % 3
    target = split.target._replace(law=dirichlet_process(2.0))
    score = score_of(split, target, sampler.resume(target, labels))
    assert 2.0 * score == pytest.approx(held_out_score(workload, labels, 2.0), rel=1e-10)


def test_score_of_counts_is_a_dirichlet_multinomial_for_each_word():
    counts = sparse.csr_array(np.array([[2, 0, 1], [0, 3, 0], [1, 0, 0]]))
    split = split_counts(counts[:2], counts[2:], Multinomial([0.5, 0.5, 0.5]))
    state = sampler.resume(split.target, np.array([0, 1]))
    # One word, the first, under clusters with counts (2, 0, 1) and (0, 3, 0), and under neither.
    exact = math.log((2.5 / 4.5 + 0.5 / 4.5 + 0.5 / 1.5) / 3.0)
    assert score_of(split, split.target, state) == pytest.approx(exact, rel=1e-12)
    assert log_masses(split.target, state, split.new).argmax() == 0


def test_rows_are_divided_once_and_alike():
    rows = np.arange(20.0)[:, None]
    known, new = divide(rows, 5)
    assert sorted(np.concatenate([known, new])[:, 0]) == list(rows[:, 0])
    assert (divide(rows, 5)[1] == new).all()
