"""Kernels against plain NumPy and SciPy."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import special, stats

from pymc_dpsplit.kernels import views
from pymc_dpsplit.kernels.diagonal import fill_log_independent, fill_log_independent_plainly
from pymc_dpsplit.kernels.exponential import exp2_plainly
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.lanes import shape_of_registers
from pymc_dpsplit.kernels.linalg import (
    add_rank_one,
    cholesky_inplace,
    invert_lower,
    log_diagonal_sum,
    remove_rank_one,
    squared_solve,
)
from pymc_dpsplit.kernels.linear import fill_log_linear, fill_log_linear_plainly
from pymc_dpsplit.kernels.lookup import fill_log_lookup
from pymc_dpsplit.kernels.mass import (
    accumulate,
    accumulate_plainly,
    count_below,
    count_below_plainly,
    count_between,
    count_between_plainly,
)
from pymc_dpsplit.kernels.normal_wishart import draw_whitening, fill_moments
from pymc_dpsplit.kernels.outer import padded, sum_outer, sum_outer_plainly
from pymc_dpsplit.kernels.products import add_product, add_product_plainly
from pymc_dpsplit.kernels.quadratic import fill_log_normal, fill_log_normal_plainly
from pymc_dpsplit.kernels.random import draw_key, draw_log_gamma, hash_uniform
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.special import (
    LOG_ZERO,
    log_factorial,
    log_multigamma,
    log_sum_of_two,
)
from pymc_dpsplit.kernels.tiles import TILE, fill_members, fill_range
from pymc_dpsplit.kernels.views import part_of, row_of, square_of
from tests.support.statistics import LEVEL


def spd(rng: np.random.Generator, n: int) -> np.ndarray:
    root = rng.standard_normal((n, n + 2))
    return root @ root.T


def test_exp2_matches_numpy(rng: np.random.Generator) -> None:
    values = np.concatenate([-rng.exponential(50.0, 1000), [0.0, 0.5, -0.5, -1000.0, 5.0]])
    ratios = np.array([exp2_plainly(x) for x in values]) / np.exp2(values)
    assert np.abs(ratios - 1.0).max() < 1e-15


@pytest.mark.parametrize("value", [-np.inf, -1e6, -2000.0])
def test_exp2_of_very_negative_is_negligible(value: float) -> None:
    assert 0.0 <= exp2_plainly(value) < 1e-306


def masses(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Log masses (n_rows + 1, TILE) of very different size, some -inf, the last row not used."""
    log_mass = 300.0 * rng.standard_normal((n_rows + 1, TILE)) - 5000.0
    if n_rows > 1:
        log_mass[rng.integers(n_rows, size=TILE), np.arange(TILE)] = -np.inf
    return log_mass


@pytest.mark.parametrize("n_rows", [1, 2, 7, 60])
@pytest.mark.parametrize("sum_up", [accumulate, accumulate_plainly], ids=["lanes", "plain"])
def test_cumulative_masses_match_numpy(
    sum_up: Callable[..., None], n_rows: int, rng: np.random.Generator
) -> None:
    log_mass = masses(rng, n_rows)
    given, highest, total = log_mass.copy(), np.empty(TILE), np.empty(TILE)
    sum_up(log_mass, n_rows, highest, total)
    np.testing.assert_array_equal(highest, given[:n_rows].max(0))
    expected = np.exp(given[:n_rows] - highest).cumsum(0)
    np.testing.assert_allclose(log_mass[:n_rows], expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(total, log_mass[n_rows - 1])
    np.testing.assert_array_equal(log_mass[n_rows], given[n_rows])


@pytest.mark.parametrize("n_rows", [1, 2, 7, 60])
@pytest.mark.parametrize("sum_up", [accumulate, accumulate_plainly], ids=["lanes", "plain"])
def test_cumulative_masses_of_float32_are_close(
    sum_up: Callable[..., None], n_rows: int, rng: np.random.Generator
) -> None:
    log_mass = (masses(rng, n_rows) / 50.0).astype(np.float32)
    given = log_mass[:n_rows].astype(np.float64)
    highest, total = np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    sum_up(log_mass, n_rows, highest, total)
    np.testing.assert_array_equal(highest, given.max(0))
    expected = np.exp(given - highest).cumsum(0)
    np.testing.assert_array_equal(total, log_mass[n_rows - 1])
    # Powers, which are largest where d exp(-d) is, and sums are rounded.
    error = (3.0 * n_rows + 4.0) * 2.0**-24
    assert np.all(np.abs(log_mass[:n_rows] - expected) <= error * expected[-1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_rows", [0, 1, 6])
@pytest.mark.parametrize("count", [count_between, count_between_plainly], ids=["lanes", "plain"])
def test_count_between_matches_numpy(
    count: Callable[..., None], n_rows: int, dtype: type, rng: np.random.Generator
) -> None:
    cumulative = rng.random((n_rows + 1, TILE)).cumsum(0).astype(dtype)
    lower = (rng.random(TILE) * cumulative[-1]).astype(dtype)
    lower[0] = cumulative[0, 0]
    upper = lower + dtype(0.1)
    lower[1], upper[1] = 0.5 * cumulative[0, 1], cumulative[0, 1]
    found = np.empty(TILE, np.int64 if dtype is np.float64 else np.int32)
    count(cumulative, n_rows, lower, upper, found)
    below, not_above = ((cumulative[:n_rows] <= end).sum(0) for end in (lower, upper))
    np.testing.assert_array_equal(found, np.where(below == not_above, below, -1))
    assert n_rows == 0 or (np.any(found == -1) and np.any(found >= 0))


@pytest.mark.parametrize("n_rows", [0, 1, 6])
@pytest.mark.parametrize("count", [count_below, count_below_plainly], ids=["lanes", "plain"])
def test_count_below_matches_numpy(
    count: Callable[..., None], n_rows: int, rng: np.random.Generator
) -> None:
    cumulative = rng.random((n_rows + 1, TILE)).cumsum(0)
    target = rng.random(TILE) * cumulative[-1]
    target[0] = cumulative[0, 0]
    found = np.empty(TILE, np.int64)
    count(cumulative, n_rows, target, found)
    np.testing.assert_array_equal(found, (cumulative[:n_rows] <= target).sum(0))


@pytest.mark.parametrize("n", [1, 3, 8])
def test_multigamma_matches_scipy(n: int) -> None:
    assert np.isclose(log_multigamma(7.3, n), special.multigammaln(7.3, n), rtol=1e-13)


SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 11, 33]


@pytest.mark.parametrize("n", SIZES)
def test_normal_densities_match_numpy_and_their_twin(n: int, rng: np.random.Generator) -> None:
    tile, whitening, centre = (rng.standard_normal(s) for s in ((n, TILE), (n, n), n))
    out, twin, scratch = np.empty(TILE), np.empty(TILE), np.empty(4 * TILE)
    # Above the diagonal anything may stand.
    fill_log_normal(tile.ravel(), whitening, centre, 0.7, out, scratch)
    fill_log_normal_plainly(tile.ravel(), whitening, centre, 0.7, twin, scratch)
    squares = (np.tril(whitening) @ tile - centre[:, None]) ** 2
    np.testing.assert_allclose(out, 0.7 - 0.5 * squares.sum(0), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(out, twin, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("n", SIZES)
def test_independent_densities_match_numpy_and_their_twin(n: int, rng: np.random.Generator) -> None:
    tile, mu = rng.standard_normal((n, TILE)), 1e3 * rng.standard_normal(n)
    precision = rng.exponential(1.0, n)
    out, twin = np.empty(TILE), np.empty(TILE)
    fill_log_independent(tile.ravel(), mu, precision, -0.3, out)
    fill_log_independent_plainly(tile.ravel(), mu, precision, -0.3, twin)
    squares = ((tile - mu[:, None]) * precision[:, None]) ** 2
    np.testing.assert_allclose(out, -0.3 - 0.5 * squares.sum(0), rtol=1e-13)
    np.testing.assert_allclose(out, twin, rtol=1e-14)


@pytest.mark.parametrize("n", SIZES)
def test_densities_of_float32_are_close(n: int, rng: np.random.Generator) -> None:
    tile = rng.standard_normal((n, TILE)).astype(np.float32)
    whitening, centre = (rng.standard_normal(s).astype(np.float32) for s in ((n, n), n))
    work, constant = np.empty(4 * TILE, np.float32), np.float32(0.7)
    precision = np.exp(centre)
    full = ((np.tril(whitening) @ tile - centre[:, None]).astype(np.float64) ** 2).sum(0)
    diagonal = (((tile - centre[:, None]) * precision[:, None]).astype(np.float64) ** 2).sum(0)
    for fill in (fill_log_normal, fill_log_normal_plainly):
        out = np.empty(TILE, np.float32)
        fill(tile.ravel(), whitening, centre, constant, out, work)
        np.testing.assert_allclose(out, 0.7 - 0.5 * full, rtol=1e-4, atol=1e-5)
    for fill in (fill_log_independent, fill_log_independent_plainly):
        out = np.empty(TILE, np.float32)
        fill(tile.ravel(), centre, precision, constant, out)
        np.testing.assert_allclose(out, 0.7 - 0.5 * diagonal, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_rows", [0, 1, 5])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("sum_up", [sum_outer, sum_outer_plainly], ids=["lanes", "plain"])
def test_scatter_matches_numpy(
    sum_up: Callable[..., None], n: int, n_rows: int, rng: np.random.Generator
) -> None:
    width = padded(n)
    packed, square = np.zeros((n_rows + 1, width)), np.empty((width, width))
    packed[:, :n] = rng.standard_normal((n_rows + 1, n))
    sum_up(packed.ravel(), n_rows, width, square.reshape(-1))
    expected = packed[:n_rows].T @ packed[:n_rows]
    np.testing.assert_allclose(np.tril(square), np.tril(expected), rtol=1e-13, atol=1e-13)


# Rows and columns that fill, exceed or fall short of what is taken at once; out of wider arrays.
@pytest.mark.parametrize("n_inner", [0, 1, 6])
@pytest.mark.parametrize("columns", [(0, 3), (2, 8), (0, 33), (5, 70)])
@pytest.mark.parametrize("rows", [(0, 1), (2, 6), (1, 8)])
@pytest.mark.parametrize("add", [add_product, add_product_plainly], ids=["lanes", "plain"])
def test_product_is_added_where_it_belongs(
    add: Callable[..., None],
    rows: tuple[int, int],
    columns: tuple[int, int],
    n_inner: int,
    rng: np.random.Generator,
) -> None:
    left, right = rng.standard_normal((9, 7)), rng.standard_normal((6, 75))[:, 1:72]
    out = rng.standard_normal((9, 80))[:, 3:75]
    expected = out.copy()
    at = slice(*rows), slice(*columns)
    expected[at] -= left[at[0], :n_inner] @ right[:n_inner, at[1]]
    add(-1.0, left, right, rows, n_inner, columns, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({"avx512f", "avx2", "fma"}, (8, 4)),
        ({"avx2", "fma"}, (4, 2)),
        ({"avx2"}, (0, 0)),
        ({"neon"}, (2, 4)),
        (set(), (0, 0)),
    ],
)
def test_lanes_suit_the_processor(features: set[str], expected: tuple[int, int]) -> None:
    lanes, vectors = shape_of_registers(features)
    assert (lanes, vectors) == expected
    assert TILE % max(1, lanes * vectors) == 0


@jitted
def take_all(counter, taken):
    """Count what this thread takes of len(taken) pieces."""
    piece = take_next(counter)
    while piece < taken.shape[0]:
        taken[piece] += 1
        piece = take_next(counter)


def test_threads_take_each_piece_once() -> None:
    counter, taken = np.zeros(1, np.int64), np.zeros(1_000_000, np.int64)
    take_all(np.ones(1, np.int64), taken[:1])  # compiled before the threads start
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: take_all(counter, taken), range(4)))
    assert (taken == 1).all()
    assert counter[0] == len(taken) + 4


@jitted
def views_of(matrix, vector):
    """Change elements through views of arguments."""
    row_of(matrix, 1)[0] += 10.0
    part_of(vector, 2, 3)[1] += 20.0
    square_of(vector, 4, 2)[1, 0] += 30.0
    return part_of(vector, 2, 3).shape[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_views_reach_the_elements_they_name(dtype: type) -> None:
    matrix, vector = np.zeros((3, 4), dtype), np.zeros(9, dtype)
    assert views_of(matrix, vector) == 3
    assert matrix[1, 0] == matrix.sum() == 10.0
    assert vector.tolist() == [0.0, 0.0, 0.0, 20.0, 0.0, 0.0, 30.0, 0.0, 0.0]


def test_plain_views_lie_within_the_array() -> None:
    for start, size in ((-1, 2), (2, -1), (2, 2)):
        with pytest.raises(IndexError, match="of 3 elements"):
            views._plain_part(np.zeros(3), start, size)
        with pytest.raises(IndexError, match="of 3 columns"):
            views._plain_columns(np.zeros((2, 3)), start, size)


def test_views_of_what_they_would_misread_are_refused() -> None:
    with pytest.raises(TypeError, match="contiguous"):
        views_of(np.zeros((4, 3)).T, np.zeros(9))
    with pytest.raises(TypeError, match="contiguous"):
        views_of(np.zeros((3, 4), np.float16), np.zeros(9))


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9, 33])
def test_cholesky_and_inverse_match_numpy(n: int, rng: np.random.Generator) -> None:
    a = spd(rng, n)
    factor, inverse = a.copy(), np.full((n, n), np.nan)
    cholesky_inplace(factor, np.zeros(n))
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a), rtol=1e-10)
    invert_lower(factor, inverse)
    np.testing.assert_allclose(inverse @ np.tril(factor), np.eye(n), atol=1e-9)
    x = rng.standard_normal(n)
    expected = x @ np.linalg.solve(a, x)
    assert np.isclose(squared_solve(factor, x.copy()), expected, rtol=1e-9)


def test_cholesky_never_falls_below_its_floor() -> None:
    # A matrix that rounding has made indefinite, as a cancelled scatter does.
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    floor = np.array([0.5, 0.25])
    cholesky_inplace(a, floor)
    assert a[1, 1] ** 2 == pytest.approx(0.25)


def test_rank_one_matches_refactorisation(rng: np.random.Generator) -> None:
    a, x = spd(rng, 6), rng.standard_normal(6)
    factor = np.linalg.cholesky(a)
    add_rank_one(factor, x.copy())
    np.testing.assert_allclose(factor, np.linalg.cholesky(a + np.outer(x, x)), atol=1e-9)
    assert remove_rank_one(factor, x.copy())
    np.testing.assert_allclose(factor, np.linalg.cholesky(a), atol=1e-9)


def test_long_vector_leaves_the_digits_of_the_rest(rng: np.random.Generator) -> None:
    """The determinant of A + x x' is that of A times 1 + x' A^-1 x."""
    a, x = spd(rng, 4), 1e12 * rng.standard_normal(4)
    factor = np.linalg.cholesky(a)
    expected = log_diagonal_sum(factor) + 0.5 * np.log1p(x @ np.linalg.solve(a, x))
    add_rank_one(factor, x.copy())
    assert log_diagonal_sum(factor) == pytest.approx(expected, rel=1e-12)


def test_impossible_downdate_is_reported() -> None:
    assert not remove_rank_one(np.eye(2), np.array([2.0, 0.0]))


def test_hash_uniforms_are_uniform_and_unrelated() -> None:
    rng = np.random.default_rng(5)
    n = 20_000
    keys = [draw_key(rng), draw_key(rng)]
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        keys.append(keys[0] + golden)
    u = np.array([[hash_uniform(key, i) for i in range(n)] for key in keys])
    assert u.min() > 0.0
    assert u.max() < 1.0
    for row in u:
        assert stats.kstest(row, "uniform").pvalue > LEVEL
        assert stats.pearsonr(row[:-1], row[1:]).pvalue > LEVEL
    # A stream must not be another one shifted, which a plain SplitMix64 would give here.
    for a, b in ((u[0], u[1]), (u[0], u[2]), (u[0][1:], u[2][:-1]), (u[0][:-1], u[2][1:])):
        assert stats.pearsonr(a, b).pvalue > LEVEL


@pytest.mark.parametrize("shape", [0.001, 0.3, 1.0, 25.0])
def test_log_gamma_has_its_law(shape: float, rng: np.random.Generator) -> None:
    draws = np.array([draw_log_gamma(rng, shape) for _ in range(20_000)])
    assert np.isfinite(draws).all()
    assert stats.kstest(draws, stats.loggamma(shape).cdf).pvalue > LEVEL


@pytest.mark.parametrize("n", SIZES)
def test_moments_match_numpy(n: int, rng: np.random.Generator) -> None:
    shift, centres = rng.standard_normal(n), rng.standard_normal((4, n))
    whitening = np.array([np.linalg.cholesky(spd(rng, n)) for _ in centres])
    params = np.column_stack([np.zeros(4), centres, whitening.reshape(4, n * n)])
    mu, cov = np.full((4, n), np.nan), np.full((4, n, n), np.nan)
    fill_moments(params, shift, mu, cov)
    whitened = np.einsum("kij,kj->ki", whitening, mu - shift)
    np.testing.assert_allclose(whitened, centres, atol=1e-9)
    np.testing.assert_array_equal(cov, cov.transpose(0, 2, 1))
    identity = whitening @ cov @ whitening.transpose(0, 2, 1)
    np.testing.assert_allclose(identity, np.broadcast_to(np.eye(n), cov.shape), atol=1e-8)


def test_whitening_gives_a_wishart(rng: np.random.Generator) -> None:
    # Diagonal blocks of a Wishart are chi-square, its trace and determinant have known laws.
    n, nu = 3, 5.5
    psi = spd(rng, n)
    inverse = np.linalg.inv(np.linalg.cholesky(psi))
    precisions = np.empty((5000, n, n))
    for draw in precisions:
        w = np.zeros((n, n))
        draw_whitening(inverse, nu, rng, w)
        draw[:] = np.tril(w).T @ np.tril(w)
    scale = np.linalg.inv(psi)
    direction = rng.standard_normal(n)
    quadratic = np.einsum("i,sij,j->s", direction, precisions, direction)
    expected = stats.chi2(nu, scale=direction @ scale @ direction)
    assert stats.kstest(quadratic, expected.cdf).pvalue > LEVEL
    log_det = np.linalg.slogdet(precisions)[1] - np.linalg.slogdet(scale)[1]
    mean = special.digamma((nu - np.arange(n)) / 2).sum() + n * np.log(2)
    z = (log_det.mean() - mean) / (log_det.std() / np.sqrt(len(log_det)))
    assert 2 * stats.norm.sf(abs(z)) > LEVEL


def test_short_tiles_repeat_their_last_row() -> None:
    rows = np.empty(TILE, np.int64)
    fill_range(rows, 10, 13)
    assert rows[:4].tolist() == [10, 11, 12, 12]
    assert rows[-1] == 12
    fill_members(rows, np.array([7, 3, 5]), 1)
    assert rows[:3].tolist() == [3, 5, 5]


@pytest.mark.parametrize("n_features", [1, 2, 5, 33])
@pytest.mark.parametrize("fill", [fill_log_linear, fill_log_linear_plainly], ids=["lanes", "plain"])
def test_linear_density_matches_numpy(
    fill: Callable[..., None], n_features: int, rng: np.random.Generator
) -> None:
    tile = rng.standard_normal((n_features + 2, TILE))
    slopes, out = rng.standard_normal(n_features), np.empty(TILE)
    fill(tile.ravel(), slopes, 0.7, out)
    expected = 0.7 + tile[n_features] + slopes @ tile[:n_features]
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_features", [1, 3, 4, 9])
def test_looked_up_density_matches_numpy(n_features: int, rng: np.random.Generator) -> None:
    table, out = rng.standard_normal(70_000), np.empty(TILE)
    tile = rng.integers(0, len(table), (n_features + 2, TILE)).astype(float)
    tile[n_features] = rng.standard_normal(TILE)
    fill_log_lookup(tile.ravel(), table, n_features, 0.7, out)
    expected = 0.7 + tile[n_features] + table[tile[:n_features].astype(int)].sum(0)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_log_factorial_matches_scipy() -> None:
    """In the table and beyond it."""
    numbers = np.array([0.0, 1.0, 2.0, 17.0, 255.0, 256.0, 1e4, 2e9])
    ours = [log_factorial(n) for n in numbers]
    np.testing.assert_allclose(ours, special.gammaln(numbers + 1.0), rtol=1e-14)


def test_log_sum_of_two_matches_numpy() -> None:
    pairs = [(0.0, 1.0), (-900.0, -901.0), (LOG_ZERO, -3.0), (5.0, LOG_ZERO), (2.0, 2.0)]
    for a, b in pairs:
        assert log_sum_of_two(a, b) == pytest.approx(np.logaddexp(a, b), rel=1e-14)
