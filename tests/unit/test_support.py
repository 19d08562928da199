"""Is the truth true, and do the tests of the suite have the level and the power they claim?"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.reference import families, shared
from tests.support import partitions, statistics
from tests.support.datasets import DATASETS
from tests.support.families import DISCRETE, HYPERPARAMETERS, dataset_of, twin_of
from tests.support.statistics import LEVEL

CONTINUOUS = [("Normal", 1), *((name, d) for name in ("DiagNormal", "MvNormal") for d in (1, 2, 3))]
SHARED = ("SphericalNormal", "MvNormalKnownCov", "Gamma", "Exponential")
FAMILIES = [
    *CONTINUOUS,
    ("NormalKnownSigma", 1),
    *((name, d) for name in (*SHARED, *DISCRETE) for d in (1, 2, 3)),
]
N = 5
PARTITIONS = partitions.enumerate_partitions(N)
N_CLUSTERS = partitions.n_clusters_of(N)
BELL = [1, 2, 5, 15, 52, 203, 877, 4140, 21147]


def reference(name: str, n_features: int) -> Any:
    return twin_of(name, n_features)


# --- families -----------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize(("name", "n_features"), FAMILIES)
def test_marginal_is_the_chain_of_predictives(name: str, n_features: int, dataset: str) -> None:
    family, rows = reference(name, n_features), dataset_of(name, dataset, n_features)
    chain = sum(family.log_predictive(rows[i], rows[:i]) for i in range(len(rows)))
    assert family.log_marginal(rows) == pytest.approx(chain, rel=1e-11)
    assert family.log_marginal(rows[::-1]) == pytest.approx(chain, rel=1e-11)
    assert family.log_marginal(rows[:0]) == 0.0


def posterior_family(family: Any, rows: np.ndarray) -> Any:
    """Return the family whose base measure is the posterior of `family`."""
    if isinstance(family, families.DiagNormal):
        each = [f.posterior(rows[:, j]) for j, f in enumerate(family.features)]
        return families.DiagNormal(*np.transpose(each))
    if isinstance(family, shared.Gamma):  # the exponential law, too, has one of its shape
        return shared.Gamma(*family.posterior(rows))
    return type(family)(*family.posterior(rows))


@pytest.mark.parametrize(("name", "n_features"), FAMILIES)
def test_densities_obey_bayes(name: str, n_features: int, rng: np.random.Generator) -> None:
    family, rows = reference(name, n_features), dataset_of(name, "overlapping", n_features)
    draws = family.draw_parameters(rng, rows[:0], 5)
    for i in range(5):
        params = {key: value[i] for key, value in draws.items()}
        joint = family.log_prior(params) + family.log_density(rows, params).sum()
        posterior = posterior_family(family, rows).log_prior(params)
        assert joint - family.log_marginal(rows) == pytest.approx(posterior, rel=1e-10)


def test_one_feature_is_the_same_in_every_family() -> None:
    rows = DATASETS["outlier"](1)
    mu0, kappa0, a0, b0 = HYPERPARAMETERS["Normal"](1).values()
    expected = families.Normal(mu0, kappa0, a0, b0).log_marginal(rows)
    diagonal = families.DiagNormal(mu0, kappa0, a0, b0)
    multivariate = families.MvNormal(mu0, kappa0, 2 * a0, 2 * b0)
    assert diagonal.log_marginal(rows) == pytest.approx(expected, rel=1e-12)
    assert multivariate.log_marginal(rows) == pytest.approx(expected, rel=1e-12)


def test_scalar_hyperparameters_serve_every_feature() -> None:
    rows = DATASETS["outlier"](2)
    diagonal = families.DiagNormal(0.2, 0.3, 2.0, 0.6, n_features=2)
    feature = families.Normal(0.2, 0.3, 2.0, 0.6)
    expected = feature.log_marginal(rows[:, 0]) + feature.log_marginal(rows[:, 1])
    assert diagonal.log_marginal(rows) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="zip"):
        families.DiagNormal(0.2, 0.3, 2.0, 0.6).log_marginal(rows)


def row_p_values(family: Any, rows: np.ndarray, truth: Any, rng: np.random.Generator) -> np.ndarray:
    """P-value of one drawn row per drawn parameter, feature by feature, against a Student law."""
    draws = family.draw_parameters(rng, rows, 4000)
    drawn = np.concatenate(
        [
            family.draw_rows(rng, {key: value[i] for key, value in draws.items()}, 1)
            for i in range(4000)
        ]
    )
    p_values = []
    for j in range(rows.shape[1]):
        if isinstance(truth, families.MvNormal):
            mu, kappa, nu, psi = truth.posterior(rows)
            df = nu - len(mu) + 1
            loc, variance = mu[j], psi[j, j] * (kappa + 1) / (kappa * df)
        else:
            feature = truth if isinstance(truth, families.Normal) else truth.features[j]
            loc, kappa, a, b = feature.posterior(rows[:, j])
            df, variance = 2 * a, b * (kappa + 1) / (a * kappa)
        law = stats.t(df, loc, np.sqrt(variance))
        p_values.append(stats.kstest(drawn[:, j], law.cdf).pvalue)
    return np.array(p_values)


@pytest.mark.parametrize(("name", "n_features"), CONTINUOUS)
def test_draws_have_the_predictive_law(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    family, rows = reference(name, n_features), DATASETS["separated"](n_features)
    assert statistics.combine(row_p_values(family, rows, family, rng)) > LEVEL


def discrete_p_value(
    family: Any, rows: np.ndarray, seen: np.ndarray, n_cells: int, rng: np.random.Generator
) -> float:
    """P-value of entries, each of its own parameters given `rows`, against the law given `seen`.

    Of a single column; entries from `n_cells` on make one more cell.
    """
    draws = family.draw_parameters(rng, rows, 4000)
    each = ({key: value[i] for key, value in draws.items()} for i in range(4000))
    drawn = np.concatenate([family.draw_rows(rng, params, 1)[:, 0] for params in each])
    law = np.exp([family.log_predictive(np.array([float(x)]), seen) for x in range(n_cells)])
    counts = np.bincount(np.minimum(drawn, n_cells).astype(int), minlength=n_cells + 1)
    rest = 1.0 - law.sum()
    if rest > 1e-9:
        law = np.append(law, rest)
    assert not counts[len(law) :].any()
    return float(stats.chisquare(counts[: len(law)], 4000 * law / law.sum()).pvalue)


@pytest.mark.parametrize(
    ("name", "n_cells"), [("Poisson", 6), ("Bernoulli", 2), ("Categorical", 3)]
)
def test_discrete_draws_have_the_predictive_law(
    name: str, n_cells: int, rng: np.random.Generator
) -> None:
    family, rows = reference(name, 1), dataset_of(name, "separated", 1)
    assert discrete_p_value(family, rows, rows, n_cells, rng) > LEVEL
    # The control: the law given some of the rows is another one.
    assert discrete_p_value(family, rows, rows[:2], n_cells, rng) < LEVEL


@pytest.mark.control
def test_draws_of_another_prior_are_caught(rng: np.random.Generator) -> None:
    none = np.empty((0, 1))
    hyperparameters = HYPERPARAMETERS["Normal"](1)
    family = families.Normal(**hyperparameters)
    wrong = families.Normal(**{**hyperparameters, "a0": 3.0})
    assert statistics.combine(row_p_values(wrong, none, family, rng)) < LEVEL


def test_covariances_have_their_law(rng: np.random.Generator) -> None:
    family, rows = reference("MvNormal", 3), DATASETS["outlier"](3)
    _, _, nu, psi = family.posterior(rows)
    cov = family.draw_parameters(rng, rows, 4000)["cov"]
    w = np.array([1.0, -2.0, 0.5])
    # A projection of an inverse Wishart matrix is inverse Wishart, with D - 1 = 2 fewer degrees.
    ratio = (w @ psi @ w) / np.einsum("i,sij,j->s", w, cov, w)
    assert stats.kstest(ratio, stats.chi2(nu - 2).cdf).pvalue > LEVEL
    assert stats.kstest(ratio, stats.chi2(nu - 1).cdf).pvalue < LEVEL


# --- partitions ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 10))
def test_partitions_are_all_and_indexed(n: int) -> None:
    every = partitions.enumerate_partitions(n)
    assert every.shape == (BELL[n - 1], n)
    assert np.array_equal(partitions.canonical(every), every)
    assert np.array_equal(partitions.partition_index(every), np.arange(len(every)))


def test_index_ignores_the_names_of_labels(rng: np.random.Generator) -> None:
    every = partitions.enumerate_partitions(6)
    names = rng.permuted(np.tile(np.arange(-3, 40, 7), (len(every), 1)), axis=1)
    renamed = np.take_along_axis(names, every.astype(np.int64), axis=1)
    assert np.array_equal(partitions.canonical(renamed), every)
    stacked = renamed.reshape(7, 29, 6)
    assert np.array_equal(partitions.partition_index(stacked).ravel(), np.arange(203))


@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0])
def test_posterior_is_the_chain_of_urn_and_predictives(alpha: float) -> None:
    family, rows = reference("MvNormal", 2), DATASETS["overlapping"](2)[:N]
    log_joint = []
    for labels in PARTITIONS:
        total = 0.0
        for i, label in enumerate(labels):
            members = rows[:i][labels[:i] == label]
            total += np.log((len(members) or alpha) / (alpha + i))
            total += family.log_predictive(rows[i], members)
        log_joint.append(total)
    expected = np.exp(log_joint - np.logaddexp.reduce(log_joint))
    np.testing.assert_allclose(partitions.exact_posterior(family, rows, alpha), expected, rtol=1e-9)


class Flat:
    """A family that learns nothing."""

    def log_marginal(self, rows: np.ndarray) -> float:
        return 0.0


@pytest.mark.parametrize("alpha", [1e-6, 0.7, 1e3])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_flat_posterior_is_the_urn(alpha: float, n: int) -> None:
    posterior = partitions.exact_posterior(Flat(), np.zeros((n, 1)), alpha)
    law = partitions.n_clusters_law(posterior, n)
    np.testing.assert_allclose(law, partitions.crp_n_clusters(alpha, n), rtol=1e-9)
    together = partitions.coclustering(posterior, n)
    np.testing.assert_allclose(together, np.where(np.eye(n), 1.0, 1.0 / (1.0 + alpha)), rtol=1e-9)


def test_urn_has_stirling_numbers() -> None:
    weights = np.array([0, 120, 274, 225, 85, 15, 1]) * 0.6 ** np.arange(7)
    np.testing.assert_allclose(
        partitions.crp_n_clusters(0.6, 6), weights / weights.sum(), rtol=1e-13
    )
    law = partitions.crp_n_clusters(0.01, 2000)
    assert law.sum() == pytest.approx(1.0, rel=1e-12)
    mean = np.sum(0.01 / (0.01 + np.arange(2000)))
    assert law @ np.arange(2001) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize(("name", "n_features"), FAMILIES)
def test_data_leave_the_partition_open(name: str, n_features: int, dataset: str) -> None:
    rows = dataset_of(name, dataset, n_features)
    assert rows.shape == (len(rows), n_features)
    assert 6 <= len(rows) <= 8
    family = reference(name, n_features)
    assert partitions.exact_posterior(family, rows, 1.0).max() < 0.7
    assert partitions.exact_posterior(family, rows, 0.1).max() < 0.95


# --- correlated draws ---------------------------------------------------------------------


def exact(alpha: float) -> np.ndarray:
    """Posterior of the partition of five points."""
    return partitions.exact_posterior(reference("Normal", 1), DATASETS["overlapping"](1)[:N], alpha)


def gibbs_matrix(probabilities: np.ndarray) -> np.ndarray:
    """Transition matrix of a sweep of collapsed Gibbs, made lazy to be more correlated."""
    matrix = np.eye(len(PARTITIONS))
    for i in range(N):
        rest = partitions.partition_index(np.delete(PARTITIONS, i, axis=1))
        update = (rest[:, None] == rest) * probabilities
        matrix = matrix @ (update / update.sum(axis=1, keepdims=True))
    return 0.5 * (np.eye(len(matrix)) + matrix)


def simulate(alpha: float, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Chains (chains, S) of partitions, started from their law."""
    probabilities = exact(alpha)
    steps = gibbs_matrix(probabilities).cumsum(axis=1)[:, :-1]
    draws = np.empty(shape, np.int64)
    draws[:, 0] = rng.choice(len(PARTITIONS), p=probabilities, size=shape[0])
    for t in range(1, shape[1]):
        draws[:, t] = np.sum(steps[draws[:, t - 1]] < rng.random((shape[0], 1)), axis=1)
    return draws


def partition_p_value(draws: np.ndarray) -> float:
    return statistics.partition_test(draws, exact(1.0))


def count_p_value(draws: np.ndarray) -> float:
    law = partitions.n_clusters_law(exact(1.0), N)
    return statistics.count_test(N_CLUSTERS[draws], law)


def mean_p_value(draws: np.ndarray) -> float:
    exact_means = exact(1.0) @ np.column_stack([N_CLUSTERS, N_CLUSTERS**2])
    values = np.stack([N_CLUSTERS[draws], N_CLUSTERS[draws] ** 2], axis=-1)
    return statistics.mean_test(values, exact_means)


def coclustering_p_value(draws: np.ndarray) -> float:
    return statistics.coclustering_test(PARTITIONS[draws], partitions.coclustering(exact(1.0), N))


CHAIN_TESTS: dict[str, Callable[[np.ndarray], float]] = {
    "partition": partition_p_value,
    "count": count_p_value,
    "mean": mean_p_value,
    "coclustering": coclustering_p_value,
}


def too_many(p_values: list[float], level: float) -> bool:
    """Are rejections at `level` more than a test of that level makes?"""
    return np.sum(np.array(p_values) < level) > stats.binom.isf(LEVEL, len(p_values), level)


@pytest.fixture(scope="module")
def null_chains() -> np.ndarray:
    """Chains (replicates, chains, S) of the right law; the same for all tests."""
    draws = simulate(1.0, (200 * 8, 800), np.random.default_rng(7))
    return draws.reshape(200, 8, 800)


@pytest.mark.parametrize("name", CHAIN_TESTS)
def test_chain_tests_have_their_level(name: str, null_chains: np.ndarray) -> None:
    p_values = [CHAIN_TESTS[name](draws) for draws in null_chains]
    assert not too_many(p_values, 0.05)
    assert not too_many(p_values, 0.01)
    assert min(p_values) > LEVEL / len(p_values)
    assert np.mean(np.array(p_values) < 0.2) > 0.03  # nor is it so careful as to see nothing


@pytest.mark.control
def test_independence_is_not_assumed(null_chains: np.ndarray) -> None:
    expected = partitions.n_clusters_law(exact(1.0), N)[1:] * null_chains[0].size
    naive = [
        stats.chisquare(np.bincount(N_CLUSTERS[draws].ravel() - 1, minlength=N), expected).pvalue
        for draws in null_chains
    ]
    assert too_many(naive, 0.05)


@pytest.mark.control
@pytest.mark.parametrize("shape", [(64, 400), (8, 4000)])
@pytest.mark.parametrize("name", CHAIN_TESTS)
def test_chain_tests_have_power(
    name: str, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    assert CHAIN_TESTS[name](simulate(1.25, shape, rng)) < LEVEL


@pytest.mark.control
def test_each_part_of_the_partition_test_has_power(rng: np.random.Generator) -> None:
    pieces = simulate(1.25, (64, 400), rng)
    frequencies = statistics.frequencies_of(pieces, len(PARTITIONS))
    assert statistics._chi_square_p_value(frequencies, exact(1.0), 400) < LEVEL
    assert statistics.combine(statistics._cell_p_values(frequencies, exact(1.0), 400)) < LEVEL
    assert statistics._total_variation_p_value(frequencies, exact(1.0), 400) < LEVEL


def sticky(law: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draws that repeat the one before them with probability 0.6."""
    fresh = rng.choice(len(law), p=law, size=shape)
    repeat = rng.random(shape) < 0.6
    source = np.maximum.accumulate(np.where(repeat, 0, np.arange(shape[-1])), axis=-1)
    return np.take_along_axis(fresh, source, axis=-1)


def test_rare_values_raise_no_alarm(rng: np.random.Generator) -> None:
    law = np.array([0.0, 0.0021, 0.9497, 0.0473, 0.0009])
    p_values = [statistics.count_test(draws, law) for draws in sticky(law, (400, 8, 1000), rng)]
    assert not too_many(p_values, 0.01)
    assert min(p_values) > LEVEL / len(p_values)


def test_impossible_value_is_caught(rng: np.random.Generator) -> None:
    draws = rng.integers(1, 3, size=(8, 500))
    law = np.array([0.0, 0.5, 0.5])
    assert statistics.partition_test(draws, law) > LEVEL
    draws[3, 100] = 0
    assert statistics.partition_test(draws, law) == 0.0


def test_stuck_chains_are_caught() -> None:
    draws = np.ones((16, 500), np.int64)
    assert statistics.count_test(draws, np.array([0.0, 0.9, 0.1])) < LEVEL
    assert statistics.mean_test(draws, 1.0) == 1.0
    assert statistics.mean_test(draws, 1.1) < LEVEL


def test_total_variation_is_noise_if_the_law_is_right(null_chains: np.ndarray) -> None:
    pairs = [
        (
            statistics.total_variation(draws, exact(1.0)),
            statistics.total_variation_noise(draws, exact(1.0)),
        )
        for draws in null_chains[:50]
    ]
    seen, noise = np.mean(pairs, axis=0)
    assert seen == pytest.approx(noise, rel=0.1)


def test_total_variation_exceeds_noise_if_it_is_wrong(rng: np.random.Generator) -> None:
    draws = simulate(1.5, (64, 400), rng)
    real = 0.5 * np.abs(exact(1.5) - exact(1.0)).sum()
    seen = statistics.total_variation(draws, exact(1.0))
    assert seen == pytest.approx(real, rel=0.25)
    assert seen > 2.0 * statistics.total_variation_noise(draws, exact(1.0))


def test_too_few_pieces_are_refused() -> None:
    with pytest.raises(ValueError, match="run more or longer chains"):
        statistics.mean_test(np.zeros((2, 300)), 0.0)


# --- independent replicates ---------------------------------------------------------------


def gaussian_pairs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Strongly dependent, equally distributed."""
    x = rng.normal(size=(1000, 2))
    return x, 0.9 * x + np.sqrt(1.0 - 0.81) * rng.normal(size=x.shape)


def count_pairs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts, most of which stay as they are."""
    x, fresh = rng.poisson(2.0, size=(2, 1000, 2))
    return x, np.where(rng.random(x.shape) < 0.1, fresh, x)


def heavy_pairs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Without a fourth moment."""
    x, fresh = rng.standard_t(3.0, size=(2, 1000, 2))
    return x, np.where(rng.random(x.shape) < 0.5, fresh, x)


PAIRS = {"gaussian": gaussian_pairs, "count": count_pairs, "heavy": heavy_pairs}


@pytest.mark.parametrize("name", PAIRS)
def test_two_sample_test_has_its_level(name: str, rng: np.random.Generator) -> None:
    p_values = [statistics.two_sample_test(*PAIRS[name](rng)) for _ in range(200)]
    assert not too_many(p_values, 0.05)
    assert min(p_values) > LEVEL / len(p_values)


def shifted(y: np.ndarray) -> np.ndarray:
    return y + 0.12


def widened(y: np.ndarray) -> np.ndarray:
    return 1.15 * y


def reshaped(y: np.ndarray) -> np.ndarray:
    """Mean and variance kept: values near zero pushed out, those far away pulled in."""
    pushed = np.sign(y) * np.abs(y) ** 0.6
    return pushed / pushed.std()


@pytest.mark.control
@pytest.mark.parametrize("change", [shifted, widened, reshaped])
def test_two_sample_test_sees_a_changed_law(
    change: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
) -> None:
    x, y = gaussian_pairs(rng)
    y[:, 1] = change(y[:, 1])
    assert statistics.two_sample_test(x, y) < LEVEL


@pytest.mark.control
def test_two_sample_test_sees_changed_counts(rng: np.random.Generator) -> None:
    x, y = count_pairs(rng)
    y[:, 0] += (y[:, 0] == 0) & (rng.random(1000) < 0.6)
    assert statistics.two_sample_test(x, y) < LEVEL


def test_two_sample_test_accepts_no_change(rng: np.random.Generator) -> None:
    x = rng.normal(size=(100, 2))
    assert statistics.two_sample_test(x, x) > LEVEL


@pytest.mark.parametrize("n_bins", [2, 10, 101])
def test_rank_test_has_its_level(n_bins: int, rng: np.random.Generator) -> None:
    p_values = [
        statistics.uniform_rank_test(rng.integers(n_bins, size=(150, 2)), n_bins)
        for _ in range(300)
    ]
    assert not too_many(p_values, 0.05)
    assert min(p_values) > LEVEL / len(p_values)


def wrong_ranks(rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Shifted, over-dispersed and under-dispersed posteriors; the last is wrong in one rank."""
    for a, b in [(1.6, 1.0), (1.8, 1.8), (0.6, 0.6)]:
        yield (100 * rng.beta(a, b, size=600)).astype(np.int64)
    ranks = rng.integers(100, size=600)
    ranks[:60] = 42
    yield ranks


@pytest.mark.control
def test_rank_test_sees_wrong_posteriors(rng: np.random.Generator) -> None:
    assert max(statistics.uniform_rank_test(ranks, 100) for ranks in wrong_ranks(rng)) < LEVEL


def test_ranks_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and n_bins - 1 = 9"):
        statistics.uniform_rank_test(np.array([0, 10]), 10)
