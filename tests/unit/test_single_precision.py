"""The sweep in float32: its labels are those of float64, and its errors are within their bound."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.base import fill_log_density, load_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.mass import accumulate
from pymc_dpsplit.kernels.norms import largest_norm, largest_norm_plainly
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.sweep.assignment import (
    begin_sweep,
    complete_atoms,
    lowest_slice,
    new_counter,
)
from pymc_dpsplit.moves.sweep.rounding import round_atoms, slack_of
from pymc_dpsplit.moves.sweep.single_precision import assign_in_single
from pymc_dpsplit.moves.sweep.tile_labels import Reach
from pymc_dpsplit.moves.sweep.unpruned import assign_unpruned
from tests.support.families import target_of

N_CLUSTERS = 6


# Prior of clusters of some variance, for rows (N, D), and numbers of features these may have.
FAMILIES: dict[str, tuple[Callable[[np.ndarray, float], Any], tuple[int, ...]]] = {
    "MvNormal": (
        lambda rows, v: dps.MvNormal(
            rows.mean(0), v, 2 * rows.shape[1], v * 2 * rows.shape[1] * np.eye(rows.shape[1])
        ),
        (1, 2, 4, 9, 33),
    ),
    "DiagNormal": (lambda rows, v: dps.DiagNormal(rows.mean(0), v, 2.0, v), (2, 17)),
    "Normal": (lambda rows, v: dps.Normal(float(rows.mean()), v, 2.0, v), (1,)),
    "SphericalNormal": (lambda rows, v: dps.SphericalNormal(rows.mean(0), v, 2.0, v), (3,)),
    "NormalKnownSigma": (lambda rows, v: dps.NormalKnownSigma(rows.mean(), 1.0, v**0.5), (1,)),
}
CASES = [(family, d) for family, (_, features) in FAMILIES.items() for d in features]
# Those that are few enough for kernels that run as Python.
QUICK = {("MvNormal", 2), ("Normal", 1)}


class Sweep(NamedTuple):
    """All that the labels of a sweep depend on."""

    target: sampler.Target
    labels: np.ndarray
    params: np.ndarray
    reach: Reach
    keys: tuple[np.uint64, np.uint64]


def begun(
    family: str,
    n_features: int,
    width: float = 0.3,
    n_obs: int = 500,
    dtype: type = np.float64,
    scale: float = 1.0,
    seed: int = 3,
) -> Sweep:
    """A sweep on clusters of some width, in pairs around centres of standard deviation 1."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(N_CLUSTERS, size=n_obs)
    centres = rng.standard_normal((N_CLUSTERS, n_features))
    centres[1::2] = centres[::2] + width * rng.standard_normal((N_CLUSTERS // 2, n_features))
    rows = scale * (centres[labels] + width * rng.standard_normal((n_obs, n_features)))
    # Some labels are wrong, but within pairs, or else clusters would be wide.
    labels[: n_obs // 5] ^= rng.integers(2, size=n_obs // 5)
    component = FAMILIES[family][0](rows, (scale * width) ** 2)
    target = target_of(component, rows.astype(dtype), 5.0)
    state = sampler.resume(target, labels)
    *drawn, slice_bounds, slice_key, label_key = begin_sweep(
        target, state.labels, state.stats, rng, no_atoms(target.prior)
    )
    keys = np.uint64(slice_key), np.uint64(label_key)
    lowest = lowest_slice(state.labels, slice_bounds, keys[0], new_counter())
    _, params, reach = complete_atoms(target, rng, *drawn, lowest)
    return Sweep(target, state.labels, params, reach, keys)


@jitted
def _rounded(prior, params):
    return round_atoms(prior, params, None)


def rounded(begin: Sweep) -> Any:
    return _rounded(begin.target.prior, begin.params)


def in_double(begin: Sweep) -> tuple[np.ndarray, np.ndarray]:
    """Labels (N,) and statistics (A, S) after the sweep in float64."""
    (prior, data, _), labels = begin.target, begin.labels.copy()
    stats = np.zeros((len(begin.params), len(_stats_of(begin))))
    assign_unpruned(
        prior, data, labels, 0, len(labels), begin.params, begin.reach, *begin.keys, stats
    )
    return labels, stats


def in_single(begin: Sweep, atoms: Any = None) -> tuple[np.ndarray, np.ndarray, int]:
    """The same by float32, and how many observations were drawn from masses of float64."""
    (prior, data, _), labels = begin.target, begin.labels.copy()
    stats = np.zeros((len(begin.params), len(_stats_of(begin))))
    atoms = rounded(begin) if atoms is None else atoms
    n_redone = assign_in_single(
        prior, data, labels, 0, len(labels), begin.params, atoms, begin.reach, *begin.keys, stats
    )
    return labels, stats, n_redone


def _stats_of(begin: Sweep) -> np.ndarray:
    return sampler.resume(begin.target, begin.labels).stats[0]


# --- labels -------------------------------------------------------------------------------


def _marked(cases: list[tuple[Any, ...]]) -> list[Any]:
    marks = [pytest.mark.slow, pytest.mark.compiled]
    return [c if c[:2] in QUICK else pytest.param(*c, marks=marks) for c in cases]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("family", "n_features"), _marked(CASES))
def test_labels_are_those_of_float64(family: str, n_features: int, dtype: str) -> None:
    begin = begun(family, n_features, dtype=np.dtype(dtype).type)
    labels, stats = in_double(begin)
    single, single_stats, n_redone = in_single(begin)
    assert np.count_nonzero(labels != begin.labels) > 20
    np.testing.assert_array_equal(single, labels)
    np.testing.assert_array_equal(single_stats, stats)
    assert n_redone < 0.05 * len(labels)


# From clusters that float32 resolves to those it cannot tell from points.
WIDTHS = [1.0, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-7]


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(("family", "n_features"), CASES)
def test_labels_are_those_of_float64_whatever_the_width(family: str, n_features: int) -> None:
    shares = []
    for width in WIDTHS:
        for seed in range(5):
            begin = begun(family, n_features, width, n_obs=5000, seed=seed)
            single, _, n_redone = in_single(begin)
            np.testing.assert_array_equal(single, in_double(begin)[0])
            shares.append(n_redone / len(single))
    assert min(shares) < 0.05
    assert max(shares) == 1.0


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("scale", [1e-150, 1e-42, 1e-36, 1e36, 1e42, 1e150])
@pytest.mark.parametrize("family", ["MvNormal", "DiagNormal"])
def test_labels_are_those_of_float64_whatever_the_scale(family: str, scale: float) -> None:
    begin = begun(family, 2, scale=scale)
    single, _, n_redone = in_single(begin)
    np.testing.assert_array_equal(single, in_double(begin)[0])
    assert n_redone == len(single)


@pytest.mark.slow
@pytest.mark.compiled
def test_labels_by_slices_are_those_of_float64() -> None:
    begin = begun("MvNormal", 2, n_obs=9001)
    for by_slice in (False, True):
        chosen = begin._replace(reach=begin.reach._replace(by_slice=by_slice))
        np.testing.assert_array_equal(in_single(chosen)[0], in_double(begin)[0])


@pytest.mark.control
@pytest.mark.slow
@pytest.mark.compiled
def test_labels_differ_without_the_bound() -> None:
    begin = begun("MvNormal", 2, 1e-5, n_obs=5000)
    labels, _ = in_double(begin)
    unbounded = rounded(begin)._replace(per_norm=0.0, constant=0.0)
    assert np.any(in_single(begin, unbounded)[0] != labels)
    assert np.all(in_single(begin)[0] == labels)


# --- bound --------------------------------------------------------------------------------


@jitted
def _cumulative(prior, data, rows, params, tile, mass, work, highest, total):
    load_tile(prior, data, rows, tile)
    for k in range(params.shape[0]):
        fill_log_density(prior, tile, params[k], mass[k], work)
    accumulate(mass, params.shape[0], highest, total)


def cumulative(begin: Sweep, rows: np.ndarray, params: np.ndarray, kind: type) -> Any:
    """Shares (A, TILE) of cumulative masses in the total, the largest log masses and the tile."""
    (prior, data, _), n_atoms = begin.target, len(params)
    tile, mass = np.zeros(data.shape[1] * TILE, kind), np.empty((n_atoms, TILE), kind)
    work, highest, total = np.empty(4 * TILE, kind), np.empty(TILE, kind), np.empty(TILE, kind)
    _cumulative(prior, data, rows, params, tile, mass, work, highest, total)
    return mass.astype(np.float64) / total.astype(np.float64), highest, tile


@pytest.mark.parametrize("width", [0.3, 1e-2, 1e-3])
@pytest.mark.parametrize(("family", "n_features"), _marked(CASES))
def test_errors_are_within_half_of_the_slack(family: str, n_features: int, width: float) -> None:
    begin = begun(family, n_features, width)
    atoms = rounded(begin)
    shares, n_obs = [], len(begin.labels)
    for first in range(0, n_obs - TILE, TILE):
        rows = np.arange(first, first + TILE)
        exact, _, _ = cumulative(begin, rows, begin.params, np.float64)
        found, highest, tile = cumulative(begin, rows, atoms.params, np.float32)
        at_zero, slope = slack_of(
            atoms.per_norm, atoms.constant, tile, n_features, len(atoms.params)
        )
        if at_zero == np.inf:
            continue
        slack = at_zero - slope * highest.astype(np.float64)
        shares.append(np.abs(found - exact).max(0) / slack)
    # A bound ten thousand times too large would be as bad as none.
    assert 1e-4 < np.max(shares, initial=1e-3) < 0.5
    assert len(shares) > 0 or width < 0.3


def test_families_without_a_bound_say_so() -> None:
    rows = np.arange(12.0).reshape(6, 2)
    target = target_of(dps.Poisson(a0=1.0, b0=1.0), rows, 1.0)
    assert _rounded(target.prior, np.zeros((1, 3))) is None


@pytest.mark.parametrize("norm_of", [largest_norm, largest_norm_plainly], ids=["lanes", "plain"])
@pytest.mark.parametrize("n_features", [1, 2, 5, 33])
def test_largest_norm_matches_numpy(
    norm_of: Callable[..., float], n_features: int, rng: np.random.Generator
) -> None:
    tile = rng.standard_normal((n_features, TILE)).astype(np.float32)
    expected = np.linalg.norm(tile.astype(np.float64), axis=0).max()
    assert norm_of(tile.ravel(), n_features) == pytest.approx(expected, rel=1e-5)
