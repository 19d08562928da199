"""Observations visited by their slices get the same labels; sticks out of reach are left out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.random import hash_uniform
from pymc_dpsplit.moves.measure import break_remainder, no_atoms
from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process, slice_floor
from pymc_dpsplit.moves.sweep import visits
from pymc_dpsplit.moves.sweep.assignment import (
    assign_strips,
    begin_sweep,
    complete_atoms,
    lowest_slice,
    new_counter,
    new_strip_stats,
)
from pymc_dpsplit.moves.sweep.tile_labels import Reach, first_in_reach
from pymc_dpsplit.moves.sweep.visits import fill_visits, new_visits, saves_by_slice
from tests.support.families import component_of, dataset_of, target_of
from tests.support.statistics import LEVEL, two_sample_test

LAW = PartitionLaw(0.2, 3.0)
N_OBS = 700


class Sweep(NamedTuple):
    """All that the labels of a sweep depend on."""

    target: sampler.Target
    labels: np.ndarray
    params: np.ndarray
    reach: Reach
    keys: tuple[np.uint64, np.uint64]


def begun(rng: np.random.Generator, law: PartitionLaw = LAW) -> Sweep:
    rows = rng.standard_normal((N_OBS, 1))
    target = target_of(component_of("Normal", 1), rows, 1.0)._replace(law=law)
    # Also clusters of few observations, whose slices are low.
    labels = np.minimum(rng.geometric(0.5, N_OBS) - 1, 9)
    state = sampler.resume(target, np.unique(labels, return_inverse=True)[1])
    *drawn, slice_bounds, slice_key, label_key = begin_sweep(
        target, state.labels, state.stats, rng, no_atoms(target.prior)
    )
    keys = np.uint64(slice_key), np.uint64(label_key)
    lowest = lowest_slice(state.labels, slice_bounds, keys[0], new_counter())
    _, params, reach = complete_atoms(target, rng, *drawn, lowest)
    return Sweep(target, state.labels, params, reach, keys)


def finished(begin: Sweep, by_slice: bool, keys: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Labels (N,) and statistics (A, S) after the sweep."""
    prior, data, _ = begin.target
    labels, reach = begin.labels.copy(), begin.reach._replace(by_slice=by_slice)
    strips = new_strip_stats(prior, N_OBS, len(reach.slice_bounds))
    keys = begin.keys if keys is None else keys
    assign_strips(prior, data, labels, begin.params, reach, None, *keys, strips, new_counter())
    return labels, strips[0]


def slices_of(begin: Sweep) -> np.ndarray:
    uniforms = np.array([hash_uniform(begin.keys[0], i) for i in range(N_OBS)])
    return uniforms * begin.reach.slice_bounds[begin.labels]


def test_labels_do_not_depend_on_the_order_of_visits(rng: np.random.Generator) -> None:
    for _ in range(3):
        begin = begun(rng)
        labels, stats = finished(begin, by_slice=False)
        by_slice, stats_by_slice = finished(begin, by_slice=True)
        assert np.count_nonzero(labels != begin.labels) > 200
        np.testing.assert_array_equal(by_slice, labels)
        np.testing.assert_array_equal(stats_by_slice, stats)


@pytest.mark.control
def test_labels_of_another_key_are_caught(rng: np.random.Generator) -> None:
    begin = begun(rng)
    slice_key, label_key = begin.keys
    other = finished(begin, by_slice=True, keys=(slice_key, np.uint64(int(label_key) ^ 1)))
    assert np.any(other[0] != finished(begin, by_slice=False)[0])


@pytest.mark.parametrize(("start", "stop"), [(0, N_OBS), (64, 128), (64, 333), (699, 700)])
def test_visits_are_the_observations_by_slice(
    start: int, stop: int, rng: np.random.Generator
) -> None:
    begin = begun(rng)
    order = fill_visits(begin.labels, start, stop, begin.reach, begin.keys[0], new_visits(True))
    np.testing.assert_array_equal(np.sort(order), np.arange(stop - start))
    in_order = slices_of(begin)[start + order]
    # In a class of slices the order is that of the observations.
    assert np.all(np.diff(in_order) > -begin.reach.floor / visits._CLASSES)


def test_atoms_in_reach_are_found(rng: np.random.Generator) -> None:
    begin = begun(rng)
    bounds = begin.reach.slice_bounds
    for lowest in (0.0, *rng.choice(bounds, 20), *slices_of(begin)[:20]):
        first = first_in_reach(bounds, begin.reach.order, lowest)
        expected = [k for k in begin.reach.order if bounds[k] > lowest]
        np.testing.assert_array_equal(begin.reach.order[first:], expected)


def test_tiles_share_slices_where_it_pays(rng: np.random.Generator) -> None:
    reach = begun(rng).reach
    assert reach.by_slice == saves_by_slice(reach.slice_bounds, reach.floor)
    heavy, light, out_of_reach = (np.full(50, share * 0.1) for share in (1.0, 0.1, 1e-4))
    assert saves_by_slice(light, 0.1)
    assert not saves_by_slice(heavy, 0.1)
    assert not saves_by_slice(out_of_reach, 0.1)


def test_floor_is_an_observation_unless_there_are_a_discount_and_many_observations() -> None:
    assert slice_floor(dirichlet_process(2.0), 100_000) == 1e-5
    assert slice_floor(PartitionLaw(-1.0, 5.0), 100_000) == 1e-5
    assert [slice_floor(LAW, n) * n for n in (1, 100, 1600, 10_000)] == [1.0, 1.0, 1.0, 2.5]
    assert slice_floor(LAW, 10**7) == 8e-7


# --- sticks left out ----------------------------------------------------------------------

_LOG_FLOOR, _LOG_LEAST = -6.0, -4.0


def kept(sticks: np.ndarray) -> list[float]:
    """Number, sum and largest of the weights of the sticks in reach."""
    weights = np.exp(sticks[sticks >= _LOG_LEAST])
    return [len(weights), weights.sum(), weights.max(initial=0.0), weights.min(initial=1.0)]


def p_of_sticks(break_kept: Callable[..., np.ndarray], rng: np.random.Generator) -> float:
    """P-value that sticks with some left out are those of a remainder with none left out."""
    target = target_of(component_of("Normal", 1), dataset_of("Normal", "overlapping", 1), 1.0)
    target = target._replace(law=PartitionLaw(0.3, 0.5))
    params = begun(rng).params[:0]
    every, some = [], []
    for _ in range(3000):
        whole = break_remainder(target, rng, np.empty(0), 0.0, params, _LOG_FLOOR)[0]
        every.append(kept(whole))
        some.append(kept(break_kept(target, rng, params)))
    return two_sample_test(np.array(every), np.array(some))


def test_sticks_in_reach_have_their_law(rng: np.random.Generator) -> None:
    def break_kept(target: Any, rng: np.random.Generator, params: np.ndarray) -> np.ndarray:
        weights, rows, _ = break_remainder(
            target, rng, np.empty(0), 0.0, params, _LOG_FLOOR, _LOG_LEAST
        )
        assert np.all(weights >= _LOG_LEAST)
        assert len(rows) == len(weights)
        return weights

    assert p_of_sticks(break_kept, rng) > LEVEL


@pytest.mark.control
def test_sticks_broken_only_until_one_is_out_of_reach_are_caught(rng: np.random.Generator) -> None:
    def break_kept(target: Any, rng: np.random.Generator, params: np.ndarray) -> np.ndarray:
        weights = break_remainder(target, rng, np.empty(0), 0.0, params, _LOG_FLOOR)[0]
        lighter = np.flatnonzero(weights < _LOG_LEAST)
        return weights[: lighter[0]] if len(lighter) else weights

    assert p_of_sticks(break_kept, rng) < LEVEL
