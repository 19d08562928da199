"""Every formula of the law of the partition against laws written from their definitions."""

import math
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special, stats

from pymc_dpsplit import sampler
from pymc_dpsplit.moves import franchise
from pymc_dpsplit.moves.collapsed.conditional_modes import merge_gains
from pymc_dpsplit.moves.forward import draw_labels, draw_new_weight, draw_partition
from pymc_dpsplit.moves.measure import break_remainder, draw_measure
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.partition_law import (
    MOST_BROKEN,
    MOST_STICKS,
    PartitionLaw,
    dirichlet_process,
    draw_seats,
    draw_stick,
    finite_mixture,
    is_possible,
    joining_mass,
    log_cluster_factor,
    log_measure_density,
    log_number_factor,
    log_opening_mass,
    log_probability,
    log_split_factor,
    most_clusters,
    opening_mass,
    refuse_heavy_tail,
    remainder_law,
)
from pymc_dpsplit.moves.sweep.redraw import redraw_labels
from pymc_dpsplit.variables.law import checked_law, law_terms
from pymc_dpsplit.variables.rising import log_rising
from tests.reference import many_digits
from tests.reference.many_digits import log_partition
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.flat import FlatPrior
from tests.support.partition_laws import LAWS, posterior_under, prior_under
from tests.support.partitions import canonical, enumerate_partitions, partition_index
from tests.support.statistics import LEVEL, partition_test

N = 6
PARTITIONS = [labels.astype(np.int64) for labels in enumerate_partitions(N)]
WITH_DISCOUNT = [name for name, (law, _) in LAWS.items() if law.discount != 0.0]


def sizes_of(labels: np.ndarray) -> np.ndarray:
    return np.bincount(labels).astype(float)


def without_discount(law: PartitionLaw) -> PartitionLaw:
    """The mistake of every control: a discount that is left out."""
    return dirichlet_process(max(law.strength, 0.1))


def flat(law: PartitionLaw) -> sampler.Target:
    return sampler.Target(FlatPrior(0.0), np.zeros((N, 1)), law)


# --- probabilities of partitions ----------------------------------------------------------


def log_probabilities(law: PartitionLaw) -> np.ndarray:
    return np.array([log_probability(law, sizes_of(labels)) for labels in PARTITIONS])


@pytest.mark.parametrize("name", LAWS)
def test_probabilities_are_those_of_the_definition(name: str) -> None:
    law, log_prior = LAWS[name]
    expected = prior_under(log_prior, N)
    np.testing.assert_allclose(np.exp(log_probabilities(law)), expected, rtol=1e-12)
    assert expected.sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.control
@pytest.mark.parametrize("name", WITH_DISCOUNT)
def test_probabilities_need_the_discount(name: str) -> None:
    law, log_prior = LAWS[name]
    found = np.exp(log_probabilities(without_discount(law)))
    assert np.abs(found - prior_under(log_prior, N)).max() > 0.01


@pytest.mark.parametrize("name", LAWS)
def test_split_factor_is_the_ratio_of_probabilities(name: str) -> None:
    law, log_prior = LAWS[name]
    n_splits = 0
    for labels in PARTITIONS:
        n_clusters = labels.max() + 1
        whole = log_prior(labels)
        members = np.flatnonzero(labels == labels[-1])
        if whole == -np.inf or len(members) < 2:
            continue
        for n_moved in range(1, len(members)):
            divided = labels.copy()
            divided[members[:n_moved]] = n_clusters
            found = log_split_factor(law, n_clusters, float(len(members) - n_moved), float(n_moved))
            split = log_prior(canonical(divided))
            assert found == pytest.approx(split - whole, rel=1e-10, abs=1e-10)
            n_splits += 1
    assert n_splits > 20


@pytest.mark.parametrize("name", LAWS)
def test_masses_of_the_urn_are_ratios_of_probabilities(name: str) -> None:
    law, log_prior = LAWS[name]
    for labels in PARTITIONS:
        if log_prior(labels) == -np.inf:
            continue
        n_clusters, before = labels[:-1].max() + 1, sizes_of(labels[:-1])
        log_ratio = log_prior(labels) - log_prior(labels[:-1])
        if labels[-1] == n_clusters:
            mass = opening_mass(law, n_clusters)
            assert log_opening_mass(law, n_clusters) == pytest.approx(math.log(mass))
        else:
            mass = joining_mass(law, before[labels[-1]])
        assert math.log(mass / (law.strength + N - 1)) == pytest.approx(log_ratio, abs=1e-12)


def test_a_full_mixture_opens_nothing() -> None:
    for gamma in (0.1, 0.3, 0.7, 1.0 / 3.0, 7.7):
        for n_components in (1, 2, 3, 10, 1000):
            law = finite_mixture(gamma, n_components)
            assert opening_mass(law, n_components) == 0.0
            assert log_opening_mass(law, n_components) == -math.inf
            assert opening_mass(law, n_components - 1) == pytest.approx(gamma)
            assert most_clusters(law, 10**6) == n_components
    assert most_clusters(finite_mixture(0.5, 9), 5) == 5
    assert most_clusters(PartitionLaw(0.3, 0.5), 7) == 7


def test_discount_zero_is_the_arithmetic_of_a_dirichlet_process() -> None:
    """To the last bit, so that draws do not change."""
    rng = np.random.default_rng(2)
    for alpha in rng.gamma(1.0, 3.0, 200):
        law, n = dirichlet_process(alpha), float(rng.integers(1, 1000))
        k = int(rng.integers(1, 50))
        assert log_opening_mass(law, k) == math.log(alpha)
        assert joining_mass(law, n) == n
        assert log_cluster_factor(law, n) == math.lgamma(n)
        expected = math.log(alpha) + math.lgamma(n) + math.lgamma(3.0) - math.lgamma(n + 3.0)
        assert log_split_factor(law, k, n, 3.0) == expected
        expected = math.lgamma(alpha) - math.lgamma(alpha + n) + k * math.log(alpha)
        assert log_number_factor(law, k, n) == pytest.approx(expected, rel=1e-13, abs=1e-11)


STRENGTHS = (1e-300, 1e-9, 0.3, 7.0, 1e5, 1e9, 1e13, 1e16, 1e17, 1e30, 1e200, 1e305)
SIZES = ([1.0], [1.0] * 4, [3.0, 1.0], [40.0, 59.0, 1.0], [1.0] * 100, [5e4, 7.0])


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{len(sizes)} of {sum(sizes):g}")
@pytest.mark.parametrize("discount", [0.0, 0.05, 0.9, -1e-9, -2.0, -1e12])
def test_large_and_small_strengths_lose_no_digits(discount: float, sizes: list[float]) -> None:
    """A likelihood that grows with alpha where digits are lost makes the chain run away."""
    counts = np.array(sizes)
    for strength in STRENGTHS:
        if discount < 0.0:
            strength = -discount * (len(counts) + math.floor(min(strength, 1e9)))
        law = PartitionLaw(discount, strength)
        expected = log_partition(discount, strength, counts)
        # Logarithms of this size are added and subtracted.
        scale = counts.sum() * max(1.0, abs(math.log(strength)), math.log1p(abs(discount)))
        assert log_probability(law, counts) == pytest.approx(expected, rel=1e-13, abs=1e-14 * scale)


@pytest.mark.control
def test_differences_of_log_gammas_lose_digits() -> None:
    """The likelihood of four clusters of one row, which is 1 in the limit, by log gammas."""
    found = [math.lgamma(a) - math.lgamma(a + 4.0) + 4.0 * math.log(a) for a in (1e15, 1e17)]
    assert found[1] > 100.0
    assert abs(found[0]) > 1.0


def test_rising_factorials_of_large_numbers(rng: np.random.Generator) -> None:
    """Of arrays and of graphs, and the gradient, which is finite where either form is chosen."""
    x, n = pt.dscalar("x"), pt.dscalar("n")
    graph = log_rising(x, n)
    evaluate = pytensor.function([x, n], [graph, pt.grad(graph, x)], mode="FAST_COMPILE")
    for start in (1e-9, 0.7, 20.0, 9.9e5, 1.1e6, 1e9, 1e15, 1e17, 1e40, 1e300):
        for number in (0.0, 1.0, 2.0, 300.0, 1e6):
            expected = many_digits.log_rising(start, number)
            scale = max(1.0, number) * max(1.0, abs(math.log(start)))
            given = np.array([start]), np.array([number])
            value, slope = evaluate(start, number)
            for found in (float(franchise.log_rising(*given)[0]), float(value)):
                assert found == pytest.approx(expected, rel=1e-13, abs=2e-9 + 1e-13 * scale)
            assert np.isfinite(slope)
    value, _ = evaluate(1e8, -5e7)
    assert float(value) == pytest.approx(many_digits.log_rising(1e8, -5e7), rel=1e-13)


# --- the measure --------------------------------------------------------------------------


def scaled(law: PartitionLaw, scale: float) -> PartitionLaw:
    """A law of the same kind with other parameters."""
    if law.discount < 0.0:
        return finite_mixture(-law.discount * scale, round(-law.strength / law.discount))
    return PartitionLaw(law.discount * scale, law.strength * scale)


def log_joint_of_measure(law: PartitionLaw, sizes: np.ndarray, log_shares: np.ndarray) -> float:
    """Log of the probability of the partition times the Dirichlet density of its shares."""
    masses = np.append(sizes - law.discount, opening_mass(law, len(sizes)))[: len(log_shares)]
    log_beta = special.gammaln(masses).sum() - special.gammaln(masses.sum())
    return float(log_probability(law, sizes) + ((masses - 1.0) * log_shares).sum() - log_beta)


@pytest.mark.parametrize("sizes", [[4.0, 1.0], [2.0, 2.0], [1.0]], ids=str)
@pytest.mark.parametrize("name", LAWS)
def test_measure_density_is_partition_times_weights(name: str, sizes: list[float]) -> None:
    """As a function of the law, up to a constant that sizes and weights alone decide."""
    counts, constants, broken = np.array(sizes), [], []
    for scale in (0.6, 1.0, 1.7):
        law = scaled(LAWS[name][0], scale)
        has_rest = opening_mass(law, len(counts)) > 0.0
        shares = np.append(counts, 1.5) if has_rest else counts
        log_shares = np.log(shares / shares.sum())
        joint = log_joint_of_measure(law, counts, log_shares)
        log_w, log_rest = log_shares[: len(counts)], log_shares[-1] if has_rest else -math.inf
        constants.append(joint - log_measure_density(law, log_w, log_rest))
        wrong = without_discount(law)
        broken.append(joint - log_measure_density(wrong, log_w, log_shares[-1]))
    expected = ((counts - 1.0) * log_w).sum()
    np.testing.assert_allclose(constants, expected, rtol=1e-10, atol=1e-12)
    if LAWS[name][0].discount != 0.0:  # control
        assert np.ptp(broken) > 0.01


def beta_p_value(drawn: np.ndarray, a: float, b: float) -> float:
    return float(stats.kstest(drawn, stats.beta(a, b).cdf).pvalue)


def measures(law: PartitionLaw, sizes: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Weights and remainder (n, K + 1) given clusters of these sizes."""
    drawn = np.empty((n, len(sizes) + 1))
    for s in range(n):
        log_weights, log_rest, _ = draw_measure(flat(law), sizes[:, None], rng)
        drawn[s] = np.exp([*log_weights, log_rest])
    return drawn


@pytest.mark.parametrize("name", LAWS)
def test_weights_are_dirichlet(name: str, rng: np.random.Generator) -> None:
    law, sizes = LAWS[name][0], np.array([4.0, 2.0])
    drawn = measures(law, sizes, 4000, rng)
    np.testing.assert_allclose(drawn.sum(1), 1.0, rtol=1e-12)
    masses = np.append(sizes - law.discount, law.strength + 2 * law.discount)
    total = 6.0 + law.strength
    for k in range(3):
        if abs(masses[k]) < 1e-12:
            assert not drawn[:, k].any()
        else:
            assert beta_p_value(drawn[:, k], masses[k], total - masses[k]) > LEVEL
    if law.discount != 0.0:  # control
        assert beta_p_value(drawn[:, 0], 4.0, total - 4.0) < LEVEL


@pytest.mark.parametrize("name", LAWS)
def test_sticks_are_beta(name: str, rng: np.random.Generator) -> None:
    law = LAWS[name][0]
    for n_atoms in (1, 2, 5):
        if law.discount < 0.0 and opening_mass(law, n_atoms) <= 0.0:
            continue
        pairs = np.array([draw_stick(law, n_atoms, rng) for _ in range(3000)])
        np.testing.assert_allclose(np.exp(pairs).sum(1), 1.0, rtol=1e-12)
        shares, left = np.exp(pairs[:, 0]), law.strength + (n_atoms + 1) * law.discount
        if abs(left) < 1e-12:
            assert (shares == 1.0).all()
            continue
        assert beta_p_value(shares, 1.0 - law.discount, left) > LEVEL
        if law.discount != 0.0:  # controls: without the discount, and numbered from zero
            assert beta_p_value(shares, 1.0, left) < LEVEL
            if n_atoms == 1 and opening_mass(law, 1) < 5.0 * left and law.strength >= 0.0:
                assert beta_p_value(shares, 1.0 - law.discount, left - law.discount) < LEVEL


def test_sticks_of_a_finite_mixture_end_at_its_components(rng: np.random.Generator) -> None:
    law = finite_mixture(0.4, 5)
    for _ in range(200):
        weights, rest, params = draw_measure(flat(law), np.array([[3.0], [2.0]]), rng)
        weights, params, _ = break_remainder(flat(law), rng, weights, rest, params, -1e300)
        assert len(weights) == len(params) == 5
        assert np.exp(weights).sum() == pytest.approx(1.0, rel=1e-12)


def test_a_tail_too_heavy_to_break_is_refused(rng: np.random.Generator) -> None:
    refuse_heavy_tail(PartitionLaw(0.9, 1.0), MOST_STICKS - 1, MOST_BROKEN - 1)
    for law in (dirichlet_process(1.0), finite_mixture(1.0, 10 * MOST_BROKEN)):
        refuse_heavy_tail(law, 10 * MOST_STICKS, 2 * MOST_BROKEN)
    for too_many in ((MOST_STICKS, MOST_STICKS), (0, MOST_BROKEN)):
        with pytest.raises(ValueError, match="discount is so large that a sweep needs too many"):
            refuse_heavy_tail(PartitionLaw(0.9, 1.0), *too_many)
    assert MOST_STICKS == 100_000


def test_a_very_low_slice_stops_no_sweep(rng: np.random.Generator) -> None:
    """As a light cluster of one observation has it about once in some millions of sweeps."""
    law, clusters = PartitionLaw(0.3, 0.5), np.ones((6, 1))
    weights, rest, params = draw_measure(flat(law), clusters, rng)
    known = weights, rest, params, np.log(1e-11)
    kept, _, left = break_remainder(flat(law), rng, *known, np.log(1e-11))
    assert left < np.log(1e-11)
    assert np.all(kept[6:] >= np.log(1e-11))
    with pytest.raises(ValueError, match="discount is so large"):
        break_remainder(flat(law), rng, *known)


# --- forward draws ------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAWS)
def test_forward_partitions_have_their_law(name: str, rng: np.random.Generator) -> None:
    law, log_prior = LAWS[name]
    exact = prior_under(log_prior, 5)
    for draw in (draw_partition, lambda rng, law, n: draw_seats(law, n, rng)):
        index = partition_index(np.array([draw(rng, law, 5) for _ in range(6000)]))
        assert partition_test(index.reshape(60, -1), exact) > LEVEL
    if law.discount != 0.0:  # control
        wrong = np.array([draw_partition(rng, without_discount(law), 5) for _ in range(6000)])
        assert partition_test(partition_index(wrong).reshape(60, -1), exact) < LEVEL


@pytest.mark.parametrize("name", LAWS)
def test_forward_weight_of_the_unseen_is_beta(name: str, rng: np.random.Generator) -> None:
    law = LAWS[name][0]
    for n_clusters in (1, 2):
        drawn = np.array([draw_new_weight(rng, law, 6, n_clusters) for _ in range(4000)])
        mass = opening_mass(law, n_clusters)
        if mass == 0.0:
            assert not drawn.any()
        else:
            assert beta_p_value(drawn, mass, 6.0 - n_clusters * law.discount) > LEVEL


@pytest.mark.parametrize("name", LAWS)
def test_rows_to_come_follow_the_urn(name: str, rng: np.random.Generator) -> None:
    """Four rows of 2 clusters, weights of them, two rows more: a partition of six rows."""
    law, log_prior = LAWS[name]
    seen = np.array([0, 0, 0, 1])
    found = []
    for _ in range(6000):
        log_weights, _, _ = draw_measure(flat(law), np.array([[3.0], [1.0]]), rng)
        more = draw_labels(rng, 2, remainder_law(law, 2), np.exp(log_weights))
        found.append([*seen, *more])
    cells = np.array([[0, 0, 0, 1, a, b] for a in range(3) for b in range(4)])
    indices = np.unique(partition_index(cells))
    exact = np.zeros(len(enumerate_partitions(6)))
    exact[indices] = np.exp([log_prior(enumerate_partitions(6)[i]) for i in indices])
    exact[exact > 0] /= exact.sum()
    drawn = partition_index(np.array(found)).reshape(60, -1)
    assert partition_test(drawn, exact) > LEVEL


# --- with data ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAWS)
def test_log_joint_and_gains_are_those_of_the_enumerated_posterior(name: str) -> None:
    law, log_prior = LAWS[name]
    rows = dataset_of("Normal", "overlapping", 1)[:N]
    target = target_of(component_of("Normal", 1), rows, 1.0)._replace(law=law)
    exact = posterior_under(log_prior, twin_of("Normal", 1), rows)
    heights = np.full(len(exact), -np.inf)
    for i, labels in enumerate(PARTITIONS):
        if exact[i] > 0.0:
            heights[i] = log_joint(target, sampler.resume(target, labels).stats)
    heights -= special.logsumexp(heights)
    np.testing.assert_allclose(np.exp(heights), exact, rtol=1e-9)
    for i in np.flatnonzero(exact):
        gains = merge_gains(target, sampler.resume(target, PARTITIONS[i]).stats)
        for a in range(len(gains)):
            for b in range(a):
                merged = np.where(PARTITIONS[i] == a, b, PARTITIONS[i])
                gained = heights[partition_index(merged)] - heights[i]
                assert gains[a, b] == pytest.approx(gained, abs=1e-8)


@pytest.mark.parametrize("name", LAWS)
def test_starts_have_no_more_clusters_than_the_law(name: str, rng: np.random.Generator) -> None:
    law = LAWS[name][0]
    rows = dataset_of("Normal", "separated", 1)
    target = target_of(component_of("Normal", 1), rows, 1.0)._replace(law=law)
    for n_start in (None, 1, 5):
        state = sampler.start(target, rng, n_start)
        assert len(state.stats) <= most_clusters(law, len(rows))


# --- terms in the graph of a model --------------------------------------------------------


def graph_of(is_discount_fixed: bool, discount: float) -> Any:
    """Sum of the terms of a measure and its gradient, functions of strength and discount."""
    strength, share = pt.dscalar("strength"), pt.dscalar("discount")
    given: Any = pt.constant(discount, dtype="float64") if is_discount_fixed else share
    n_clusters, log_rest = pt.lscalar("n_clusters"), pt.dscalar("log_rest")
    log_weights = pt.dscalar("log_weights")
    total = sum(law_terms(given, strength, n_clusters, pt.exp(log_rest), log_weights))
    inputs = [strength, share, n_clusters, log_rest, log_weights]
    outputs = [total, *pt.grad(total, [strength, share], disconnected_inputs="ignore")]
    return pytensor.function(inputs, outputs, mode="FAST_COMPILE", on_unused_input="ignore")


@pytest.mark.parametrize("is_discount_fixed", [True, False])
@pytest.mark.parametrize("name", LAWS)
def test_terms_are_the_density_of_the_measure(
    name: str, is_discount_fixed: bool, rng: np.random.Generator
) -> None:
    law, _ = LAWS[name]
    evaluate = graph_of(is_discount_fixed, law.discount)
    # Full where the number of components is finite.
    for n_clusters in range(1, int(min(4, most_clusters(law, N))) + 1):
        rest = opening_mass(law, n_clusters)
        weights = rng.dirichlet([1.0 - law.discount] * n_clusters + [rest] * (rest > 0.0))
        log_weights = np.log(weights[:n_clusters])
        log_rest = np.log(weights[n_clusters]) if rest > 0.0 else -np.inf
        found = []
        for factor in (1.0, 1.02):
            # Another law of the same kind: full where the first is.
            other = PartitionLaw(law.discount * factor, law.strength * factor)
            if is_discount_fixed:
                varies = law.discount >= 0.0  # gamma of a finite mixture is then a number
                other = law._replace(strength=law.strength * (factor if varies else 1.0))
            values = evaluate(
                other.strength, other.discount, n_clusters, log_rest, log_weights.sum()
            )
            assert np.isfinite(values).all()
            found.append(float(values[0]) - log_measure_density(other, log_weights, log_rest))
        # Factors without a variable are left out where the discount is a number.
        assert found[0] == pytest.approx(found[1], abs=1e-9)


@pytest.mark.control
def test_terms_of_a_dirichlet_process_are_not_those_of_the_law() -> None:
    law, log_weights = LAWS["Pitman-Yor"][0], np.log([0.5, 0.3])
    evaluate = graph_of(False, 0.0)
    gaps = []
    for strength in (0.5, 0.9):
        values = evaluate(strength, law.discount, 2, np.log(0.2), log_weights.sum())
        other = dirichlet_process(strength)
        gaps.append(float(values[0]) - log_measure_density(other, log_weights, np.log(0.2)))
    assert abs(gaps[0] - gaps[1]) > 0.01


@pytest.mark.parametrize(
    ("law", "is_finite", "fault"),
    [
        (PartitionLaw(0.0, -1.0), False, "alpha is -1 at a point"),
        (PartitionLaw(0.2, -0.3), False, "alpha is -0.3 and discount 0.2"),
        (PartitionLaw(1.0, 0.3), False, "discount 1 at a point"),
        (PartitionLaw(0.5, -1.5), True, "gamma is -0.5 at a point"),
        (PartitionLaw(0.0, 0.0), True, "gamma is -?0 at a point"),
        (PartitionLaw(0.1, np.inf), False, "alpha is inf"),
    ],
)
def test_impossible_law_is_refused(law: PartitionLaw, is_finite: bool, fault: str) -> None:
    assert not (is_possible(law) and is_finite == (law.discount < 0.0))
    with pytest.raises(ValueError, match=fault):
        checked_law(*law, is_finite)


@pytest.mark.parametrize("name", LAWS)
def test_possible_law_is_accepted(name: str) -> None:
    law, _ = LAWS[name]
    assert checked_law(*law, law.discount < 0.0) == law


@pytest.mark.parametrize("n_components", [2, 3])
def test_labels_redrawn_refer_to_components_that_there_are(
    n_components: int, rng: np.random.Generator
) -> None:
    law, rows = finite_mixture(1.0, n_components), dataset_of("Normal", "overlapping", 1)[:N]
    target = target_of(component_of("Normal", 1), rows, 1.0)._replace(law=law)
    stats = sampler.resume(target, np.array([0, 0, 0, 1, 1, 1])).stats
    log_weights, _, params = draw_measure(target, stats, rng)
    labels = np.empty(N, np.int32)
    # Rows that would follow the base measure, however small a remainder a trace records.
    alone = np.full(N, 1e4)
    tiny = np.log(np.finfo(float).tiny)
    _, atoms = redraw_labels(target, labels, rng, alone, log_weights, tiny, params)
    assert len(atoms) == n_components
    assert labels.max() < n_components
