"""Kernels against plain NumPy and SciPy."""

import numpy as np
import pytest
from scipy import special, stats

from pymc_dpsplit.kernels.linalg import (
    cholesky_inplace,
    invert_lower,
    rank_one_inplace,
    squared_solve,
)
from pymc_dpsplit.kernels.normal_wishart import draw_whitening
from pymc_dpsplit.kernels.quadratic import fill_squared_norm, padded
from pymc_dpsplit.kernels.random import draw_key, draw_log_gamma, hash_uniform
from pymc_dpsplit.kernels.special import exp_inplace, log_multigamma
from pymc_dpsplit.kernels.tiles import TILE, fill_members, fill_range
from tests.support.statistics import LEVEL


def spd(rng: np.random.Generator, n: int) -> np.ndarray:
    root = rng.standard_normal((n, n + 2))
    return root @ root.T


def test_exp_matches_numpy(rng: np.random.Generator) -> None:
    values = np.concatenate([-rng.exponential(50.0, 1000), [0.0, 1e-300, -690.0, 5.0]])
    expected = np.exp(values)
    tolerance = 1e-15 + 2e-16 * np.abs(values)
    exp_inplace(values, np.empty_like(values))
    assert np.all(np.abs(values / expected - 1.0) <= tolerance)


@pytest.mark.parametrize("value", [-np.inf, -1e6, -2000.0])
def test_exp_of_very_negative_is_negligible(value: float) -> None:
    values = np.full(TILE, value)
    exp_inplace(values, np.empty(TILE))
    assert np.all((values >= 0.0) & (values < 1e-300))


@pytest.mark.parametrize("n", [1, 3, 8])
def test_multigamma_matches_scipy(n: int) -> None:
    assert np.isclose(log_multigamma(7.3, n), special.multigammaln(7.3, n), rtol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11])
def test_squared_norm_matches_numpy(n: int, rng: np.random.Generator) -> None:
    p = padded(n)
    tile, whitening, centre = np.zeros((p, TILE)), np.zeros((p, p)), np.zeros(p)
    tile[:n] = rng.standard_normal((n, TILE))
    whitening[:n, :n] = np.tril(rng.standard_normal((n, n)))
    centre[:n] = rng.standard_normal(n)
    out = np.empty(TILE)
    fill_squared_norm(tile.ravel(), whitening, centre, n, out, np.empty(4 * TILE))
    np.testing.assert_allclose(out, ((whitening @ tile - centre[:, None]) ** 2).sum(0), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_cholesky_and_inverse_match_numpy(n: int, rng: np.random.Generator) -> None:
    a = spd(rng, n)
    factor, inverse = a.copy(), np.zeros((n, n))
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


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rank_one_matches_refactorisation(sign: float, rng: np.random.Generator) -> None:
    a, x = spd(rng, 6), rng.standard_normal(6)
    base = a + np.outer(x, x)
    factor = np.linalg.cholesky(base)
    assert rank_one_inplace(factor, x.copy(), sign)
    np.testing.assert_allclose(factor, np.linalg.cholesky(base + sign * np.outer(x, x)), atol=1e-9)


def test_impossible_downdate_is_reported() -> None:
    assert not rank_one_inplace(np.eye(2), np.array([2.0, 0.0]), -1.0)


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
