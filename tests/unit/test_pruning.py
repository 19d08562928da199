"""The pruned sweep: its bounds hold, and its labels are those of the full sweep."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks.workloads import spheres
from pymc_dpsplit import MvNormal, sampler
from pymc_dpsplit.components.base import (
    fill_excess,
    fill_log_density,
    find_bounds,
    load_tile,
)
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.projections import HEAD, fill_highest, fill_highest_plainly
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.transposition import transpose_rows, transpose_rows_plainly
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.sweep.assignment import (
    assign_strips,
    begin_sweep,
    complete_atoms,
    lowest_slice,
    new_counter,
    new_strip_stats,
    slice_sweep,
)
from pymc_dpsplit.moves.sweep.group_factors import GroupFactors
from pymc_dpsplit.moves.sweep.pruning import SMALL, Pruning, assign_pruned, plan_pruning
from pymc_dpsplit.moves.sweep.tile_labels import Reach
from tests.support.families import target_of
from tests.support.moves import sweep, threaded_sweep
from tests.support.pruned import bounded, forced_pruning

N_OBS, N_FEATURES, N_CLUSTERS = 3000, 16, 8
SPREADS = (4.0, 2.0, 1.0, 0.5, 0.25)


class Sweep(NamedTuple):
    """All that the labels of a sweep depend on."""

    target: sampler.Target
    labels: np.ndarray
    stats: np.ndarray
    params: np.ndarray
    reach: Reach
    keys: tuple[np.uint64, np.uint64]


def wide_clusters(rows: np.ndarray) -> MvNormal:
    """A prior that the choice of `from_data` does not change."""
    n_features = rows.shape[1]
    return MvNormal(rows.mean(0), 0.1, n_features + 2, 0.1 * np.diag(rows.var(0)))


def begun(
    spread: float,
    n_features: int = N_FEATURES,
    n_wrong: int = 300,
    dtype: type = np.float64,
    seed: int = 3,
) -> Sweep:
    """A sweep from labels that are mostly right."""
    rng = np.random.default_rng(seed)
    rows, labels, _ = spheres(N_OBS, n_features, N_CLUSTERS, spread, seed)
    labels[:n_wrong] = rng.integers(N_CLUSTERS, size=n_wrong)
    target = target_of(wide_clusters(rows), rows.astype(dtype), 5.0)
    target = target._replace(prior=bounded(target.prior))
    state = sampler.resume(target, labels)
    *drawn, slice_bounds, slice_key, label_key = begin_sweep(
        target, state.labels, state.stats, rng, no_atoms(target.prior)
    )
    keys = np.uint64(slice_key), np.uint64(label_key)
    lowest = lowest_slice(state.labels, slice_bounds, keys[0], new_counter())
    _, params, reach = complete_atoms(target, rng, *drawn, lowest)
    return Sweep(target, state.labels, state.stats, params, reach, keys)


def finished(begin: Sweep, pruning: Pruning | None) -> tuple[np.ndarray, np.ndarray]:
    """Labels (N,) and statistics (A, S) after the sweep."""
    prior, data, _ = begin.target
    labels, n_atoms = begin.labels.copy(), len(begin.reach.slice_bounds)
    strips = new_strip_stats(prior, N_OBS, n_atoms)
    assign_strips(
        prior, data, labels, begin.params, begin.reach, pruning, *begin.keys, strips, new_counter()
    )
    return labels, strips.sum(0)


def redone(begin: Sweep, pruning: Pruning) -> tuple[np.ndarray, int]:
    """Labels after the pruned sweep, and how many observations were drawn with all atoms."""
    prior, data, _ = begin.target
    labels = begin.labels.copy()
    stats = np.zeros_like(new_strip_stats(prior, N_OBS, len(begin.reach.slice_bounds))[0])
    n_redone = assign_pruned(
        prior, data, labels, 0, N_OBS, begin.params, begin.reach, pruning, *begin.keys, stats
    )
    return labels, n_redone


def forced(
    begin: Sweep, small: float = SMALL, slack: float | None = None, bounding: Any = None
) -> Pruning:
    """Pruning with some margin, whether or not it pays, by bounds from other parameters or not."""
    slack = small if slack is None else slack
    bounding = begin.params if bounding is None else bounding
    return forced_pruning(begin.target.prior, bounding, len(begin.stats), small, slack)


# --- labels -------------------------------------------------------------------------------


# Few enough for kernels that run as Python; what is compiled for the others nothing else needs.
QUICK_SWEEPS = {(4.0, 2, SMALL, "float64"), (1.0, 2, 2.0**-4, "float64")}
SWEEPS = [
    case
    if case in QUICK_SWEEPS
    else pytest.param(*case, marks=[pytest.mark.slow, pytest.mark.compiled])
    for case in product(
        SPREADS, (2, N_FEATURES), (SMALL, 2.0**-8, 2.0**-4, 2.0**-2), ("float64", "float32")
    )
]


@pytest.mark.parametrize(("spread", "n_features", "small", "dtype"), SWEEPS)
def test_labels_are_those_of_the_full_sweep(
    spread: float, n_features: int, small: float, dtype: type
) -> None:
    begin = begun(spread, n_features, dtype=dtype)
    labels, stats = finished(begin, None)
    pruned, pruned_stats = finished(begin, forced(begin, small))
    assert np.count_nonzero(labels != begin.labels) > 200
    np.testing.assert_array_equal(pruned, labels)
    np.testing.assert_allclose(pruned_stats, stats, rtol=1e-11, atol=1e-9)
    np.testing.assert_array_equal(pruned_stats[:, 0], np.bincount(labels, minlength=len(stats)))


MARGINS = [
    case
    if case == (4.0, 2)
    else pytest.param(*case, marks=[pytest.mark.slow, pytest.mark.compiled])
    for case in product(SPREADS, (2, N_FEATURES))
]


@pytest.mark.parametrize(("spread", "n_features"), MARGINS)
def test_margins_send_observations_to_the_full_draw(spread: float, n_features: int) -> None:
    begin = begun(spread, n_features)
    counts = [redone(begin, forced(begin, small))[1] for small in (SMALL, 2.0**-8, 2.0**-4)]
    assert counts[0] < 10
    assert 100 < counts[1] < counts[2]


@pytest.mark.control
@pytest.mark.parametrize("spread", SPREADS[:3])
def test_labels_differ_without_the_certificate(spread: float) -> None:
    begin = begun(spread, 2)
    labels, n_redone = redone(begin, forced(begin, 2.0**-2, slack=0.0))
    assert n_redone == 0
    assert np.any(labels != finished(begin, None)[0])


@pytest.mark.slow
@pytest.mark.compiled
def test_threads_change_nothing(rng: np.random.Generator) -> None:
    rows, labels, _ = spheres(20_000, 32, N_CLUSTERS, 2.0)
    target = target_of(wide_clusters(rows), rows, 1.0)
    assert target.prior.has_bounds
    state = sampler.resume(target, labels)
    alone = sweep(slice_sweep)(target, state, np.random.default_rng(1))
    shared = threaded_sweep(target, state, np.random.default_rng(1))
    np.testing.assert_array_equal(alone.labels, shared.labels)
    np.testing.assert_array_equal(alone.stats, shared.stats)
    full = target._replace(prior=bounded(target.prior, None))
    unpruned = sweep(slice_sweep)(full, state, np.random.default_rng(1))
    np.testing.assert_array_equal(alone.labels, unpruned.labels)
    assert np.any(alone.stats != unpruned.stats)  # added in another order: it was pruned


# --- groups -------------------------------------------------------------------------------


def grouped(begin: Sweep, spread_of_factors: float) -> tuple[Sweep, np.ndarray]:
    """The same sweep with factors of four groups, and parameters with the largest of each atom."""
    rng, n_atoms = np.random.default_rng(8), len(begin.params)
    log_factors = spread_of_factors * rng.standard_normal((n_atoms, 4))
    # A part of the rows is in order of groups, as those of most users are.
    groups = np.sort(rng.integers(4, size=N_OBS))
    groups[: N_OBS // 2] = rng.permutation(groups[: N_OBS // 2])
    bounding = begin.params.copy()
    bounding[:, 0] += log_factors.max(axis=1)
    reach = begin.reach._replace(factors=GroupFactors(log_factors, groups))
    return begin._replace(reach=reach), bounding


@pytest.mark.parametrize("spread", [4.0, pytest.param(1.0, marks=pytest.mark.slow)])
def test_labels_of_rows_in_groups_are_those_of_the_full_sweep(spread: float) -> None:
    begin = begun(spread, 2)
    in_groups, bounding = grouped(begin, 3.0)
    labels, stats = finished(in_groups, None)
    assert np.count_nonzero(labels != finished(begin, None)[0]) > 10
    pruned, pruned_stats = finished(in_groups, forced(in_groups, 2.0**-8, bounding=bounding))
    np.testing.assert_array_equal(pruned, labels)
    np.testing.assert_allclose(pruned_stats, stats, rtol=1e-11, atol=1e-9)


@pytest.mark.control
def test_labels_differ_if_bounds_leave_out_factors_of_groups() -> None:
    in_groups, _ = grouped(begun(4.0, 2), 10.0)
    labels = finished(in_groups, None)[0]
    assert np.any(finished(in_groups, forced(in_groups))[0] != labels)


# --- when ---------------------------------------------------------------------------------


def test_pruning_is_planned_where_it_pays() -> None:
    far, near = begun(4.0, n_wrong=0), begun(0.5, n_wrong=0)
    planned = plan_pruning(far.target.prior, far.stats, far.params, 1)
    assert planned.bounds.shape[0] == len(far.stats)
    assert planned.slack == SMALL
    assert planned.log_small < np.log(SMALL)
    assert plan_pruning(near.target.prior, near.stats, near.params, 1).bounds.shape[0] == 0
    none = bounded(far.target.prior, None)
    assert plan_pruning(none, far.stats, far.params, 1) is None


@pytest.mark.parametrize(("n_features", "has_bounds"), [(2, None), (8, None), (50, True)])
def test_few_features_are_compiled_without_bounds(n_features: int, has_bounds: bool | None) -> None:
    rows = np.random.default_rng(0).standard_normal((100, n_features))
    assert target_of(wide_clusters(rows), rows, 1.0).prior.has_bounds is has_bounds


# --- bounds -------------------------------------------------------------------------------


@jitted
def _log_densities(prior, data, rows, params, tile, scratch):
    load_tile(prior, data, rows, tile)
    out = np.empty((params.shape[0], TILE))
    for k in range(params.shape[0]):
        fill_log_density(prior, tile, params[k], out[k], scratch)
    return out


@jitted
def _excess(prior, tile, bound, reference, n_atoms):
    out = np.empty((n_atoms + 3) // 4 * 4)
    fill_excess(prior, tile, bound, reference, out)
    return out[:n_atoms]


@jitted
def _found(prior, params, n_clusters):
    return find_bounds(prior, params, n_clusters)


@pytest.mark.slow
@pytest.mark.parametrize("spread", SPREADS)
def test_bounds_hold(spread: float, rng: np.random.Generator) -> None:
    begin = begun(spread)
    prior, data, _ = begin.target
    bounds, forecast = _found(prior, begin.params, len(begin.stats))
    assert forecast.shape == (len(begin.stats),) * 2
    tile, scratch = np.empty(TILE * N_FEATURES), np.empty(4 * TILE)
    reference = rng.standard_normal(TILE)
    for z, bound in enumerate(bounds):
        # Bounds are close for observations of the cluster, and hold for all.
        for rows in (np.flatnonzero(begin.labels == z), np.arange(N_OBS)):
            some = rng.choice(rows, TILE)
            density = _log_densities(prior, data, some, begin.params, tile, scratch)
            excess = _excess(prior, tile, bound, reference, len(begin.params))
            assert np.all(excess >= (density - reference).max(1) - 1e-9)


def test_bounds_touch_at_the_mean() -> None:
    begin = begun(2.0)
    prior, _, _ = begin.target
    n_clusters, n_atoms = len(begin.stats), len(begin.params)
    bounds, _ = _found(prior, begin.params, n_clusters)
    tile, scratch = np.empty(TILE * N_FEATURES), np.empty(4 * TILE)
    for z, bound in enumerate(bounds):
        whitening = begin.params[z, 1 + N_FEATURES :].reshape(N_FEATURES, N_FEATURES)
        mean = np.linalg.solve(whitening, begin.params[z, 1 : 1 + N_FEATURES])
        rows = np.tile(mean + prior.shift, (TILE, 1))
        density = _log_densities(prior, rows, np.arange(TILE), begin.params, tile, scratch)
        excess = _excess(prior, tile, bound, np.zeros(TILE), n_atoms)
        np.testing.assert_allclose(excess, density[:, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_features", [1, 5, 32])
@pytest.mark.parametrize("fill", [fill_highest, fill_highest_plainly], ids=["lanes", "plain"])
def test_highest_matches_numpy(
    fill: Callable[..., None], n_features: int, rng: np.random.Generator
) -> None:
    tile = rng.standard_normal((n_features, TILE))
    table = rng.standard_normal((12, HEAD + n_features))
    reference, out = rng.standard_normal(TILE), np.empty(12)
    fill(tile.ravel(), table.ravel(), n_features, reference, out)
    gap = table[:, HEAD:] @ tile - table[:, 1:2]
    expected = (table[:, :1] - 0.5 * gap**2 - reference).max(1)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "of_tile"),
    [(np.float64, np.float64), (np.float32, np.float64), (np.float64, np.float32)],
)
@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5, 7, 8, 9, 16, 33])
@pytest.mark.parametrize(
    "transpose", [transpose_rows, transpose_rows_plainly], ids=["lanes", "plain"]
)
def test_transposed_rows_are_those_of_numpy(
    transpose: Callable[..., None],
    n_features: int,
    dtype: type,
    of_tile: type,
    rng: np.random.Generator,
) -> None:
    # Adjacent columns of a wider matrix, so that the last row ends where the memory does.
    x = rng.standard_normal((100, n_features + 2)).astype(dtype)[:, 2:]
    x.flags.writeable = False
    shift, rows = rng.standard_normal(n_features), rng.integers(100, size=TILE)
    rows[-1] = 99
    tile = np.full((n_features + 1) * TILE, np.nan, of_tile)
    transpose(x, shift, rows, tile)
    np.testing.assert_array_equal(tile[:-TILE], (x[rows] - shift).T.ravel().astype(of_tile))
    assert np.all(np.isnan(tile[-TILE:]))
