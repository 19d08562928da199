"""Rows of counts: what is special to them, beside what every family is tested for."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.base import fill_log_density, load_tile
from pymc_dpsplit.components.optional import begin_tile, fill_by_table, find_table
from pymc_dpsplit.components.sparse_counts import compressed, rows_of_sparse
from pymc_dpsplit.data.sparse_rows import as_array, column_totals, row_totals
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.sparse_sums import WIDTH, fill_sums, fill_sums_plainly, sum_entries
from pymc_dpsplit.kernels.special import log_rising
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.sweep.assignment import slice_sweep
from pymc_dpsplit.moves.sweep.density import fill_log_mixture, log_prior_predictive
from pymc_dpsplit.moves.sweep.threaded_sweep import threaded_sweep
from tests.support.pruned import pruned_sweep


def some_counts(rng: np.random.Generator, shape: tuple[int, int] = (150, 40)) -> np.ndarray:
    """Counts most of which are zero; a row without any, and one with one column alone."""
    counts = rng.poisson(2.0, shape) * (rng.random(shape) < 0.15)
    counts[3], counts[4] = 0, 0
    counts[4, -1] = 7
    return counts.astype(float)


def target_of(observed: Any, beta: Any = 0.3) -> sampler.Target:
    component = dps.Multinomial(beta)
    rows = rows_of_sparse(observed) if sparse.issparse(observed) else observed
    n_columns = rows.shape[1]
    prior = component.prior(
        component.check(component.hyperparameters, n_columns), np.zeros(n_columns)
    )
    return sampler.Target(prior, component.arranged(rows), dirichlet_process(1.0))


# --- the sparse form ----------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_every_format_is_read(form: str, kind: str, rng: np.random.Generator) -> None:
    counts = some_counts(rng, (30, 40))
    given = getattr(sparse, f"{form}_{kind}")(counts.astype(np.int16))
    rows = rows_of_sparse(given)
    np.testing.assert_array_equal(as_array(rows), counts)
    np.testing.assert_array_equal(row_totals(rows), counts.sum(1))
    np.testing.assert_array_equal(column_totals(rows), counts.sum(0))
    from_array, is_wrong = compressed(counts)
    assert not is_wrong.any()
    for one, other in zip(rows.parts, from_array.parts, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
        assert not one.flags.writeable


def test_repeated_and_zero_entries_are_tidied_up_in_a_copy() -> None:
    given = sparse.coo_array(([2, 3, 0, 1], ([0, 0, 0, 1], [2, 2, 1, 0])), shape=(3, 4))
    as_csr = sparse.csr_array(given)
    as_csr.data[0] = 5
    untidy = sparse.csr_array(([1.0, 0.0, 4.0], [3, 1, 3], [0, 3, 3]), shape=(2, 4))
    before = untidy.data.copy()
    rows = rows_of_sparse(untidy)
    assert rows.values.tolist() == [5]
    assert rows.indices.tolist() == [3]
    np.testing.assert_array_equal(untidy.data, before)
    np.testing.assert_array_equal(as_array(rows_of_sparse(given))[0], [0, 0, 5, 0])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([[1.0, -2.0]], "observed has -2 in column 1; give counts"),
        ([[1.5, 0.0]], "observed has 1.5 in column 0; give counts"),
        ([[3e9, 0.0]], r"observed has 3e\+09 in column 0; give counts"),
        ([[0.0, np.nan]], "observed has 1 NaN entry, which nobody can impute"),
        ([[0.0, np.inf]], "observed has inf in column 1; give counts"),
    ],
)
def test_entries_that_are_no_counts_are_refused(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows_of_sparse(sparse.csr_array(wrong))
    with pytest.raises(ValueError, match="observed has"):
        dps.Multinomial.from_data(wrong)


def test_shapes_and_types_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one row and one column"):
        rows_of_sparse(sparse.csr_array((0, 3)))
    with pytest.raises(ValueError, match="at least one row and one column"):
        rows_of_sparse(sparse.coo_array(np.ones(3)))
    with pytest.raises(ValueError, match="dtype complex128, which is not numeric"):
        rows_of_sparse(sparse.csr_array(np.ones((2, 2), complex)))


# --- sums ---------------------------------------------------------------------------------


def test_vector_code_does_what_the_plain_code_does(rng: np.random.Generator) -> None:
    rows, _ = compressed(some_counts(rng))
    table = rng.standard_normal((rows.shape[1], WIDTH))
    some = rng.integers(0, rows.shape[0], TILE)
    some[:2] = 3, 4
    by_lanes, plainly = np.empty((TILE, WIDTH)), np.empty((TILE, WIDTH))
    _call(fill_sums, rows.parts, some, table, by_lanes)
    fill_sums_plainly(*rows.parts, some, table, plainly)
    np.testing.assert_allclose(by_lanes, plainly, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(by_lanes, as_array(rows)[some] @ table, rtol=1e-12, atol=1e-12)
    column = np.ascontiguousarray(table[:, 3])
    for t in (0, 1, 7):
        start, stop = rows.indptr[some[t]], rows.indptr[some[t] + 1]
        assert sum_entries(rows.indices, rows.values, start, stop, column) == pytest.approx(
            plainly[t, 3], rel=1e-14, abs=1e-14
        )


@jitted
def _fill(indptr, indices, values, rows, table, out):
    fill_sums(indptr, indices, values, rows, table, out)


def _call(_: Any, parts: list[np.ndarray], rows: np.ndarray, table: Any, out: Any) -> None:
    _fill(*parts, rows, table, out)


@pytest.mark.parametrize("a", [1e-300, 1e-3, 0.4, 1.0, 17.3, 1e6])
@pytest.mark.parametrize("n", [0.0, 1.0, 2.0, 16.0, 17.0, 400.0])
def test_log_rising_factorial(a: float, n: float) -> None:
    expected = np.log(a + np.arange(n)).sum()
    assert log_rising(a, n) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert log_rising(1e17, 3.0) == pytest.approx(3.0 * np.log(1e17))


# --- densities ----------------------------------------------------------------------------


@jitted
def _one_by_one(prior, data, params, out):
    rows, tile, scratch = new_rows(), begin_tile(prior, data), new_scratch(4)
    for first in range(0, data.shape[0], TILE):
        fill_range(rows, first, data.shape[0])
        load_tile(prior, data, rows, tile)
        for k in range(params.shape[0]):
            fill_log_density(prior, tile, params[k], out[first // TILE, k], scratch)


@jitted
def _at_once(prior, data, params, out):
    fill_by_table(prior, data, 0, data.shape[0], find_table(prior, params), out)


@pytest.mark.parametrize("n_atoms", [1, WIDTH, WIDTH + 1, 3 * WIDTH - 1])
def test_table_has_the_densities_of_all_atoms(n_atoms: int, rng: np.random.Generator) -> None:
    target = target_of(some_counts(rng))
    n_rows, n_columns = target.data.shape
    params = np.log(rng.dirichlet(np.full(n_columns + 1, 0.5), n_atoms))
    shape = ((n_rows + TILE - 1) // TILE, n_atoms + WIDTH, TILE)
    table, single = np.zeros(shape), np.zeros(shape)
    _at_once(target.prior, target.data, params, table)
    _one_by_one(target.prior, target.data, params, single)
    np.testing.assert_allclose(table[:, :n_atoms], single[:, :n_atoms], rtol=1e-13)
    # The control: the parameters of another atom.
    if n_atoms > 1:
        assert not np.allclose(table[:, 0], single[:, 1], rtol=1e-6)


def test_density_and_predictive_sum_to_one_over_rows_of_a_total(rng: np.random.Generator) -> None:
    every = [x for x in itertools.product(range(6), repeat=3) if sum(x) == 5]
    target = target_of(np.array(every, float), beta=[0.6, 0.9, 0.5])
    p = np.log(rng.dirichlet(np.ones(3), 2))
    out = np.empty(len(every))
    # Half of a cluster, and half of the prior predictive.
    params = np.column_stack([np.zeros(2), p])
    alone = log_prior_predictive(target.prior, target.data)
    fill_log_mixture(target.prior, target.data, alone, np.log([0.3, 0.2]), params, np.log(0.5), out)
    assert np.exp(out).sum() == pytest.approx(1.0, abs=1e-12)


# --- the sweep ----------------------------------------------------------------------------


def test_sweep_by_table_and_cluster_by_cluster_draw_the_same_labels(
    rng: np.random.Generator,
) -> None:
    p = rng.dirichlet(np.full(40, 0.3), 4)
    counts = np.array([rng.multinomial(6, p[k]) for k in rng.integers(4, size=3000)], float)
    target = target_of(counts)
    start = sampler.start(target, rng, 6)
    found = []
    for sweep in (slice_sweep, pruned_sweep):
        labels, stats, own = start.labels.copy(), start.stats, np.random.default_rng(5)
        for _ in range(3):
            stats = sweep(target, labels, stats, own)
        found.append((labels, stats))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)
    assert (found[0][0] != start.labels).any()


def test_large_counts_are_exact() -> None:
    """A sum beyond 2^31, and a coefficient of large counts."""
    counts = np.array([[2.0**31 - 1, 1.0, 0.0], [2.0**31 - 1, 0.0, 2.0]])
    target = target_of(counts)
    state = sampler.resume(target, np.zeros(2, np.int32))
    np.testing.assert_array_equal(state.stats[0, 2:], [2.0**32 - 2, 1.0, 2.0])
    expected = [math.log(math.comb(2**31, 1)), math.log(math.comb(2**31 + 1, 2))]
    np.testing.assert_allclose(target.data.log_coefficients, expected, rtol=1e-12)


def test_threads_draw_what_one_thread_draws(rng: np.random.Generator) -> None:
    p = rng.dirichlet(np.full(30, 0.3), 5)
    counts = rng.multinomial(8, p[rng.integers(5, size=9000)]).astype(float)
    target = target_of(counts)
    start = sampler.start(target, rng, 8)
    alone, labels = np.random.default_rng(4), start.labels.copy()
    stats = slice_sweep(target, labels, start.stats, alone)
    with ThreadPoolExecutor(3) as pool:
        ours, atoms = start.labels.copy(), no_atoms(target.prior)
        again = np.random.default_rng(4)
        shared, _ = threaded_sweep(target, ours, start.stats, again, atoms, pool)
    np.testing.assert_array_equal(ours, labels)
    np.testing.assert_array_equal(shared, stats)
