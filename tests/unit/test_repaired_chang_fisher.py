"""The repaired sampler of Chang & Fisher: its sub-clusters know nothing of the partition."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.samplers import sub_cluster_chain as chain
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from pymc_dpsplit.samplers.sub_cluster_proposals import (
    decide_by_sub_clusters,
    draw_anchors_apart,
    fit_sub_clusters,
)
from pymc_dpsplit.step.options import check_published
from tests.support.families import component_of, dataset_of, target_of
from tests.support.partitions import canonical
from tests.support.statistics import LEVEL

ROWS = np.concatenate([
    np.random.default_rng(5).normal(centre, 0.3, (20, 1)) for centre in (-6.0, 0.0, 6.0)
])  # fmt: skip
TARGET = target_of(component_of("Normal", 1), ROWS, 1.0)
PRIOR, DATA, _ = TARGET
SETTINGS = SAMPLERS["chang-fisher"].settings({"repaired": True})


def advanced(
    state: sampler.ChainState, n: int = 1, seed: int = 3, target: sampler.Target = TARGET
) -> sampler.ChainState:
    schedule = sampler.Schedule(n, 1.0, np.empty(0, np.int64), settings=SETTINGS)
    rng = np.random.default_rng(seed)
    return sampler.advance("chang-fisher", target, state, rng, schedule)[0]


def test_sub_clusters_find_groups_that_lie_apart(rng: np.random.Generator) -> None:
    sub_labels = chain.begin_sub_cluster_chain(PRIOR, DATA, rng)
    for _ in range(20):
        chain.redraw_sub_clusters(PRIOR, DATA, sub_labels, rng)
    groups = [set(sub_labels[first : first + 20]) for first in (0, 20, 40)]
    assert all(own.isdisjoint(other) for own in groups for other in groups if own is not other)
    assert set.union(*groups) <= set(range(chain.N_SUB_CLUSTERS))


def test_some_observations_of_many_have_sub_clusters(rng: np.random.Generator) -> None:
    for n_obs in (1, 7, 2048, 2049, 100_000):
        rows = chain.rows_with_sub_clusters(n_obs)
        assert len(rows) == n_obs if n_obs <= 2048 else 1000 < len(rows) <= 2048
        assert rows[-1] < n_obs
    many = target_of(component_of("Normal", 1), rng.standard_normal((5000, 1)), 1.0)
    sub_labels = chain.begin_sub_cluster_chain(many.prior, many.data, rng)
    used = np.isin(np.arange(5000), chain.rows_with_sub_clusters(5000))
    assert (sub_labels[~used] == chain.NO_SUB_CLUSTER).all()
    assert (sub_labels[used] >= 0).all()


def test_anchors_are_apart_and_uniform() -> None:
    rows, sub_labels = np.arange(4), np.array([0, 0, 3, 1], np.int8)
    stream, found = new_stream(np.uint64(1)), np.zeros((4, 4))
    for _ in range(4000):
        first, second = draw_anchors_apart(rows, sub_labels, stream)
        found[first, second] += 1
    apart = sub_labels[:, None] != sub_labels
    exact = 1000.0 * apart / apart.sum(axis=1, keepdims=True)
    assert not found[~apart].any()
    assert stats.chisquare(found[apart], exact[apart]).pvalue > LEVEL
    assert list(draw_anchors_apart(rows, np.zeros(4, np.int8), stream)) == [-1, -1]


def test_a_proposal_does_not_know_how_its_members_are_divided(rng: np.random.Generator) -> None:
    whole = np.repeat(np.array([0, 0, 1], np.int32), 20)
    divided = np.repeat(np.array([0, 2, 1], np.int32), 20)
    sub_labels = np.repeat(np.array([4, 2, 9], np.int8), 20)
    rows, anchors = np.arange(60), np.array([3, 30])
    ours, theirs = (
        fit_sub_clusters(PRIOR, DATA, labels, rows, sub_labels, anchors)
        for labels in (whole, divided)
    )
    np.testing.assert_array_equal(ours[1], theirs[1])
    means = component_of("Normal", 1).unpack(ours[1], PRIOR.shift)["mu"]
    np.testing.assert_allclose(np.ravel(means), [-6.0, 0.0], atol=0.5)


def test_without_a_second_sub_cluster_nothing_is_proposed() -> None:
    state = sampler.resume(TARGET, np.zeros(60, np.int32))
    given = TARGET, state.labels, state.stats, np.zeros(60, np.int8), np.uint64(1)
    assert not decide_by_sub_clusters(*given).accepted


def test_sub_clusters_persist_between_draws() -> None:
    state = advanced(sampler.resume(TARGET, np.zeros(60, np.int32)), 3)
    assert state.of_clusters[0, 1] == 0.0
    rng = np.random.default_rng(0)
    kept, to_keep = chain.kept_sub_clusters(PRIOR, DATA, *state[2:], rng)
    np.testing.assert_array_equal(kept, state.of_rows)
    assert to_keep[1] == 0.0
    assert rng.random() == np.random.default_rng(0).random()


def test_they_begin_anew_in_every_draw_once_the_model_has_changed() -> None:
    """Also where it is the same again: how long it stays may depend on the partition."""
    state = advanced(sampler.resume(TARGET, np.zeros(60, np.int32)), 3)
    other = target_of(component_of("Normal", 1), 1.1 * ROWS, 1.0)
    rng = np.random.default_rng(0)
    begun, to_keep = chain.kept_sub_clusters(*other[:2], *state[2:], rng)
    assert to_keep[1] == 1.0
    assert not np.array_equal(begun, state.of_rows)
    of_clusters = np.tile(to_keep, (2, 1))
    again, to_keep = chain.kept_sub_clusters(*other[:2], begun, of_clusters, rng)
    assert to_keep[1] == 1.0
    assert not np.array_equal(again, begun)


def test_numbers_of_clusters_do_not_matter() -> None:
    state = advanced(sampler.resume(TARGET, np.zeros(60, np.int32)), 30)
    assert len(state.stats) >= 3
    swap = np.roll(np.arange(len(state.stats)), 1)
    other = sampler.ChainState(
        swap[state.labels].astype(np.int32), state.stats[np.argsort(swap)], *state[2:]
    )
    ours, theirs = (advanced(start, 5) for start in (state, other))
    np.testing.assert_array_equal(canonical(ours.labels), canonical(theirs.labels))


def test_large_concentrations_have_no_sweep_by_slices() -> None:
    target = target_of(component_of("Normal", 1), dataset_of("Normal", "overlapping", 1), 1e7)
    state = advanced(sampler.resume(target, np.zeros(8, np.int32)), 2, target=target)
    assert len(state.stats) == 8


def test_it_is_exact_and_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    check_published("chang-fisher", "x", sampler.Target(*TARGET).law, {"repaired": True})
    assert len(recwarn) == 0


@pytest.mark.parametrize("name", ["super_clusters", "sub_cluster_burn_in"])
def test_options_of_the_published_form_are_refused(name: str) -> None:
    given = {"kernel": "chang-fisher", "repaired": True, name: True}
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=ROWS[:, 0])
        message = f"{name} has no meaning with repaired=True; leave one of them out"
        with pytest.raises(ValueError, match=message):
            dps.DPSplitMerge(model.free_RVs, **given)
