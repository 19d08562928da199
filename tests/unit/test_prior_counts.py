"""How many counts the prior of multinomial clusters is worth, and what comes of it."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.metrics import adjusted_rand_score

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.prior_counts import mean_gain, prior_counts
from pymc_dpsplit.components.sparse_counts import compressed
from pymc_dpsplit.data.sparse_rows import column_totals
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.step.schedule import make_schedule

N, V = 240, 120


def bursty_rows(
    rng: np.random.Generator, spread: float = 1.0, total: float = 80.0, n_counts: int = 60
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four clusters, each row with shares of its own about theirs; and their clusters."""
    p = rng.dirichlet(np.full(V, spread), 4)
    labels = rng.integers(4, size=N)
    own = [rng.dirichlet(np.maximum(total * p[k], 1e-3)) for k in labels]
    return np.array([rng.multinomial(n_counts, q) for q in own]).astype(float), labels


def shares_of(rows: np.ndarray) -> np.ndarray:
    return rows.sum(0) / rows.sum()


def total_of(rows: np.ndarray) -> float:
    return float(dps.Multinomial.from_data(rows).hyperparameters["a0"].sum())


def test_gain_is_that_of_densities(rng: np.random.Generator) -> None:
    rows, _ = bursty_rows(rng)
    rows = rows[:, rows.sum(0) > 0]
    shares = shares_of(rows)
    for total in (3.0, 80.0, 1e4):
        alone = stats.dirichlet_multinomial(total * shares, 60).logpmf(rows.astype(int))
        pooled = stats.multinomial(60, shares).logpmf(rows)
        found = mean_gain(compressed(rows)[0], shares, total)
        assert found == pytest.approx((alone - pooled).mean(), rel=1e-6)


def test_total_is_the_first_that_rows_gain_enough_by(rng: np.random.Generator) -> None:
    rows, _ = bursty_rows(rng)
    sparse_rows, _ = compressed(rows)
    shares = np.maximum(column_totals(sparse_rows), 0.5)
    shares /= shares.sum()
    largest = min(rows.sum() / (1.0 / np.arange(1, N + 1)).sum(), 4.0 * V)
    total = prior_counts(sparse_rows, shares)
    n_halvings = np.log2(largest / total)
    assert n_halvings == pytest.approx(round(n_halvings), abs=1e-9)
    assert n_halvings >= 1
    assert mean_gain(sparse_rows, shares, total) >= np.log(N)
    assert mean_gain(sparse_rows, shares, 2.0 * total) < np.log(N)


def test_rows_of_one_law_leave_the_total_as_it_is(rng: np.random.Generator) -> None:
    few, many = np.full(4, 0.25), rng.dirichlet(np.full(400, 5.0))
    assert total_of(rng.multinomial(50, few, 300)) == pytest.approx(16.0)
    rows = rng.multinomial(50, many, 30)
    assert total_of(rows) == pytest.approx(1500.0 / (1.0 / np.arange(1, 31)).sum())


def test_rows_too_short_to_gain_enough_gain_what_they_can() -> None:
    rows = np.repeat(np.eye(3) * 2.0, 200, axis=0)
    total = total_of(rows)
    gains = [mean_gain(compressed(rows)[0], shares_of(rows), of) for of in (total / 2, total)]
    assert gains[1] < np.log(len(rows))
    assert gains[1] >= gains[0]
    assert total < 3.0


def test_sparse_rows_and_rows_without_counts(rng: np.random.Generator) -> None:
    rows, _ = bursty_rows(rng)
    of_array, of_matrix = (
        dps.Multinomial.from_data(x).hyperparameters["a0"] for x in (rows, sparse.csr_array(rows))
    )
    np.testing.assert_array_equal(of_array, of_matrix)
    assert (of_array > 0).all()
    empty = dps.Multinomial.from_data(np.zeros((3, 2))).hyperparameters["a0"]
    np.testing.assert_allclose(empty, 0.5)
    assert (dps.Multinomial.from_data([[5, 1]]).hyperparameters["a0"] > 0).all()


def labels_under(beta: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels after some iterations from one cluster."""
    component = dps.Multinomial(beta)
    values = component.check(component.hyperparameters, rows.shape[1])
    prior = component.prior(values, np.zeros(rows.shape[1]))
    target = sampler.Target(prior, component.arranged(rows), dirichlet_process(1.0))
    state = sampler.start(target, rng, 1)
    for iteration in range(60):
        schedule = make_schedule("exact", target, state)._replace(n_iterations=1)
        form = sampler.GREEDY if iteration < 30 else "exact"
        state, _ = sampler.advance(form, target, state, rng, schedule)
    return state.labels


@pytest.mark.slow
@pytest.mark.compiled
def test_clusters_are_what_rows_have_in_common(rng: np.random.Generator) -> None:
    rows, truth = bursty_rows(rng, 0.3, 40.0, 100)
    found = labels_under(dps.Multinomial.from_data(rows).hyperparameters["a0"], rows, rng)
    assert adjusted_rand_score(found, truth) > 0.9
    # The control: a tenth of a count for each column makes clusters of few rows.
    beta = 0.1 * V * shares_of(np.maximum(rows, 1e-3))
    assert labels_under(beta, rows, rng).max() > 3 * found.max()
