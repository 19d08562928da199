"""Parts of the sampler of rows in groups, and what its tests must catch."""

import numpy as np
import pytest
from scipy.special import gammaln

from pymc_dpsplit.hierarchical import processors, scan, slices, split_merge, tables
from pymc_dpsplit.hierarchical.concentrations import factor_of_alpha_given_weights
from pymc_dpsplit.hierarchical.iteration import advance_groups
from pymc_dpsplit.hierarchical.split_merge import Division, log_split_ratio
from pymc_dpsplit.hierarchical.state import (
    GroupedState,
    GroupedTarget,
    count_groups,
    resume_groups,
    start_groups,
)
from pymc_dpsplit.hierarchical.summaries import log_joint, summary_of
from pymc_dpsplit.hierarchical.tables import redraw_weights
from pymc_dpsplit.kernels.jit import COMPILES
from tests.support.corpora import p_value_of
from tests.support.families import component_of, target_of, twin_of
from tests.support.grouped_rows import CASES, run_grouped, truth_of_rows
from tests.support.statistics import LEVEL

GROUPS = np.array([0, 2, 2, 0, 3, 2, 0, 3, 0])
ROWS = np.linspace(-2.0, 2.5, 9)[:, None] ** 3 / 5.0


def target_with(alpha: float, gamma: float) -> GroupedTarget:
    of_rows = target_of(component_of("Normal", 1), ROWS, gamma)
    return GroupedTarget(of_rows, GROUPS, np.bincount(GROUPS, minlength=5), alpha)


def log_posterior(labels, weights, log_rest, alpha, gamma) -> float:
    """Log of eq. (15.4) times the marginal densities of clusters, by its definition."""
    twin, total = twin_of("Normal", 1), (gamma - 1.0) * log_rest
    for k, weight in enumerate(weights):
        total += np.log(gamma / weight) + twin.log_marginal(ROWS[labels == k])
        for j in range(5):
            n = np.sum((labels == k) & (j == GROUPS))
            total += gammaln(alpha * weight + n) - gammaln(alpha * weight)
    return float(total)


def test_ratio_of_a_split_is_that_of_the_posterior():
    alpha, gamma, log_rest = 1.3, 0.6, np.log(0.3)
    target = target_with(alpha, gamma)
    whole = np.array([0, 1, 1, 0, 0, 1, 1, 1, 0], np.int32)
    side = np.array([0, 1, 1, 1, 0], np.int8)  # of the members of cluster 1
    parted = whole.copy()
    parted[np.flatnonzero(whole == 1)[side == 1]] = 2
    share = 0.35
    before = log_posterior(whole, [0.5, 0.2], log_rest, alpha, gamma)
    weights = [0.5, 0.2 * share, 0.2 * (1.0 - share)]
    after = log_posterior(parted, weights, log_rest, alpha, gamma)
    stats = resume_groups(target, parted).stats
    counts = count_groups(target, parted, 3)[:, 1:].T
    division = Division(side, np.ascontiguousarray(counts), stats[1:], 0.0)
    union, log_shares = stats[1] + stats[2], (np.log(share), np.log1p(-share))
    found = log_split_ratio(target, division, union, 0.2 * alpha, log_shares)
    # The density of the weights is transformed to that of the share: the Jacobian is the weight.
    assert np.isclose(found, after - before + np.log(0.2))


def drawn(alpha: float, gamma: float, seed: int, n_draws: int = 4):
    target, rng = target_with(alpha, gamma), np.random.default_rng(seed)
    state = start_groups(target, 4, rng)
    for _ in range(n_draws):
        state, n_tables, counts = advance_groups(target, state, rng, 1, 2)
        assert counts[0] + counts[2] == 2
        state = redraw_weights(target, state, n_tables, rng)
    return target, state, n_tables


def test_state_agrees_with_its_labels():
    target, state, n_tables = drawn(1.2, 3.0, 1)
    n_clusters = len(state.weights)
    assert set(state.labels) == set(range(n_clusters))
    assert np.allclose(state.stats, resume_groups(target, state.labels).stats)
    counts = count_groups(target, state.labels, n_clusters)
    assert np.array_equal(counts.sum(axis=1), target.sizes)
    assert np.all(n_tables >= (counts > 0).sum(axis=0))
    assert np.all(n_tables <= counts.sum(axis=0))
    assert np.isclose(state.weights.sum() + np.exp(state.log_rest), 1.0)


def test_seeds_reproduce_draws():
    (_, one, _), (_, two, _), (_, other, _) = (drawn(1.2, 3.0, seed, 6) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one.weights, other.weights)


@pytest.mark.parametrize("concentrations", [(1e-3, 1e-3), (50.0, 30.0), (1.0, 1e-8), (1e-8, 5.0)])
def test_extreme_concentrations(concentrations):
    _, state, _ = drawn(*concentrations, 4)
    assert np.all(state.weights > 0.0)
    assert np.isfinite(state.log_rest)


def test_log_joint_follows_its_formula():
    target, state, _ = drawn(0.8, 3.0, 6)
    of_rest = 2.0 * state.log_rest + np.sum(np.log(3.0 / state.weights))
    expected = log_posterior(state.labels, state.weights, state.log_rest, 0.8, 3.0) - of_rest
    expected += np.sum(gammaln(0.8) - gammaln(0.8 + target.sizes))
    assert np.isclose(log_joint(target, state), expected)


@pytest.mark.parametrize("alphas", [(0.3, 2.0), (1e-200, 1e-3), (5.0, 1e13)])
def test_factor_of_alpha_is_that_of_the_log_joint(alphas):
    target, state, _ = drawn(1.2, 3.0, 5)
    factor = factor_of_alpha_given_weights(target, state)
    log_joints = [log_joint(target._replace(alpha=alpha), state) for alpha in alphas]
    found = factor(alphas[1]) - factor(alphas[0])
    np.testing.assert_allclose(found, log_joints[1] - log_joints[0], rtol=1e-9)


def test_summary_does_not_depend_on_numbers():
    target, state, _ = drawn(1.2, 3.0, 3)
    order = np.arange(len(state.weights))[::-1]
    turned = GroupedState(
        order[state.labels].astype(np.int32), state.stats[order], state.weights[order], 0.0
    )
    assert summary_of(target, state) == summary_of(target, turned)
    assert log_joint(target, state) == log_joint(target, turned)


def test_summary_of_groups_apart():
    target = target_with(1.0, 1.0)
    labels = np.unique(GROUPS, return_inverse=True)[1].astype(np.int32)
    summary = summary_of(target, resume_groups(target, labels))
    shares = np.bincount(labels) / 9
    assert np.isclose(summary.entropy, -np.sum(shares * np.log(shares)))
    assert summary.group_entropy == 0.0
    assert summary.shared == 0
    assert np.isclose(summary.largest_share, 4 / 9)


@pytest.mark.parametrize("concentrations", [(1.2, 3.0), (1e-3, 1e-3), (50.0, 30.0), (1e-8, 5.0)])
def test_state_after_a_sweep_by_slices_agrees_with_its_labels(concentrations):
    target, rng = target_with(*concentrations), np.random.default_rng(3)
    state = start_groups(target, 4, rng)
    for _ in range(4):
        state, n_tables, _ = advance_groups(target, state, rng, 2, 1, threads=1)
        assert set(state.labels) == set(range(len(state.weights)))
        assert np.allclose(state.stats, resume_groups(target, state.labels).stats)
        assert np.isclose(state.weights.sum() + np.exp(state.log_rest), 1.0)
        state = redraw_weights(target, state, n_tables, rng)


def test_draws_do_not_depend_on_threads():
    n_rows, found = 8300, []
    rows = np.random.default_rng(1).poisson([[2.0], [20.0]], (2, n_rows // 2)).reshape(-1, 1)
    groups = np.arange(n_rows) % 3
    of_rows = target_of(component_of("Poisson", 1), rows.astype(float), 1.0)
    target = GroupedTarget(of_rows, groups, np.bincount(groups), 1.0)
    for threads in (1, 3):
        rng = np.random.default_rng(2)
        state = start_groups(target, 2, rng)
        found.append(advance_groups(target, state, rng, 1, 0, threads)[0])
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_labels_go_to_the_other_side_in_the_order_of_weights():
    """The order of clusters by number depends on the labels, see eq. (2.8)."""
    target, state, _ = drawn(1.2, 3.0, 5)
    rng = np.random.default_rng(1)
    measure = slices.GroupedMeasure(*slices.draw_grouped_measure(target, *state, rng))
    reach = slices.reach_of_groups(target, measure)
    assert np.all(np.diff(measure.weights[reach.order]) > 0.0)
    assert np.all(np.diff(reach.slice_bounds[reach.order]) >= 0.0)


def largest_error_of_masses(monkeypatch) -> float:
    """Of the log prior masses that scans of a chain end with, by group and cluster."""
    kept = []

    def place(*given):
        kept.append((_place_shares(*given), given[1]))
        return kept[-1][0]

    monkeypatch.setattr(scan, "_place_shares", place)
    errors = []
    for target in [drawn(1.2, 3.0, seed, 10)[0] for seed in range(3)]:
        for shares, positions in kept:
            is_open = positions.clusters.sizes > 0.0
            masses = shares.counts[:, is_open] + target.alpha * shares.weights[is_open]
            errors.append(np.abs(np.exp(shares.log_masses[:, is_open]) - masses).max())
            is_gap = ~is_open[: positions.counts[0]]
            assert np.all(np.isneginf(shares.log_masses[:, : len(is_gap)][:, is_gap]))
        kept.clear()
    return max(errors)


@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the functions that they call")
def test_masses_of_a_scan_are_brought_up_to_date(monkeypatch):
    assert largest_error_of_masses(monkeypatch) < 1e-12


@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the functions that they call")
@pytest.mark.control
def test_masses_of_before_a_row_moved_are_seen(monkeypatch):
    monkeypatch.setattr(scan, "_move_in_group", _no_new_masses)
    assert largest_error_of_masses(monkeypatch) > 0.5


# --- moves that are wrong on purpose ------------------------------------------------------


def _one_table_for_each(stream, n, strength):
    return 1


def _as_many_tables_as_rows(stream, n, strength):
    return n


def _mean_weights(rng, n_tables, gamma):
    total = n_tables.sum() + gamma
    return n_tables / total, float(np.log(gamma / total))


def _no_constant(shapes, log_shares):
    return (shapes[0] - 1.0) * log_shares[0] + (shapes[1] - 1.0) * log_shares[1]


def _without_jacobian(target, division, union, strength, log_shares):
    return log_split_ratio(target, division, union, strength, log_shares) + sum(log_shares)


_place_shares = scan._place_shares
_log_probability_of_sides = split_merge._log_probability_of_sides


def _certain_if_merged(target, half, allocation, counts, pair, least, stream):
    if allocation.a != allocation.b:
        return 0.0
    return _log_probability_of_sides(target, half, allocation, counts, pair, least, stream)


def _gamma_alone(log_gamma, bound):
    return log_gamma


def _no_weights_of_groups(log_gamma, bound):
    return -np.log(bound)


def _no_sticks(rng, law, log_rest, log_floor):
    return np.empty(0), log_rest


def _whole_rest(rng, log_rest, gamma, n_processors):
    return np.full(n_processors, log_rest)


def _no_new_masses(target, shares, group, origin, goal):
    shares.counts[group, origin] -= 1
    shares.counts[group, goal] += 1


SPLIT, SCAN, SLICES, PROCESSORS = "attempts", "scan", "slices", "processors"
BROKEN = {
    "one table for each group and cluster": (SCAN, tables, "draw_n_tables", _one_table_for_each),
    "as many tables as rows": (SCAN, tables, "draw_n_tables", _as_many_tables_as_rows),
    "weights at their mean": (SCAN, tables, "draw_global_weights", _mean_weights),
    "density of the share without its constant": (
        SPLIT,
        split_merge,
        "log_density_of_share",
        _no_constant,
    ),
    "no factor of the division": (SPLIT, split_merge, "log_split_ratio", _without_jacobian),
    "merges without the probability of the division": (
        SPLIT,
        split_merge,
        "_log_probability_of_sides",
        _certain_if_merged,
    ),
    "slices without their density": (SLICES, slices, "log_factor_of", _gamma_alone),
    "no weights of groups": (SLICES, slices, "log_factor_of", _no_weights_of_groups),
    "slices without new clusters": (SLICES, slices, "break_global_remainder", _no_sticks),
    "the whole remainder for each processor": (
        PROCESSORS,
        processors,
        "divide_rest",
        _whole_rest,
    ),
}
ALWAYS = {"weights at their mean"}  # called from Python
FAMILY, LENGTH = "Poisson", 200


def p_value(move: str) -> float:
    # Clusters of small weight show what slices do, and a large gamma what processors do.
    case = CASES["42" if move in (SLICES, PROCESSORS) else "33"]
    return p_value_of(run_grouped(FAMILY, case, move, (8, LENGTH), 7), truth_of_rows(FAMILY, case))


@pytest.mark.parametrize("move", [SCAN, SPLIT, SLICES, PROCESSORS])
def test_correct_move_passes(move):
    assert p_value(move) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("name", BROKEN)
def test_broken_move_is_caught(name, monkeypatch):
    if COMPILES and name not in ALWAYS:
        pytest.skip("compiled kernels hold the functions that they call")
    move, *patch = BROKEN[name]
    monkeypatch.setattr(*patch)
    assert p_value(move) < LEVEL
