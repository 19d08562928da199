"""The Chinese restaurant franchise, by its definition: laws over all states of a few tokens.

Nothing here is shared with the package: seatings are enumerated one customer after the other.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from tests.support.partitions import enumerate_partitions


@cache
def stirling(n: int, m: int) -> int:
    """Unsigned Stirling number of the first kind."""
    if n == 0 or m == 0:
        return int(n == m)
    return (n - 1) * stirling(n - 1, m) + stirling(n - 1, m - 1)


def log_law_of_tables(tables: np.ndarray, counts: np.ndarray, alpha: float, gamma: float) -> float:
    """Log of eq. (15.2): tables and counts (J, K)."""
    out = 0.0
    for n in counts.sum(axis=1):
        out += gammaln(alpha) - gammaln(alpha + n)
    total, n_topics = int(tables.sum()), counts.shape[1]
    out += n_topics * np.log(gamma) + gammaln(gamma) - gammaln(gamma + total)
    out += gammaln(tables.sum(axis=0)).sum() + total * np.log(alpha)
    for n, m in zip(counts.ravel(), tables.ravel(), strict=True):
        out += np.log(stirling(int(n), int(m)))
    return float(out)


def all_tables(counts: np.ndarray) -> Iterator[np.ndarray]:
    """Every number of tables (J, K) that counts (J, K) allow."""
    ranges = [range(1, n + 1) if n else range(1) for n in counts.ravel()]
    for choice in product(*ranges):
        yield np.array(choice).reshape(counts.shape)


def counts_of(labels: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Counts (J, K) of a partition in canonical form."""
    counts = np.zeros((documents.max() + 1, labels.max() + 1), int)
    np.add.at(counts, (documents, labels), 1)
    return counts


def seatings(documents: Sequence[int], alpha: float, gamma: float) -> dict[tuple[int, ...], float]:
    """Prior probability of every labelling in canonical form, by brute force over all seatings."""
    states: dict[tuple, float] = {((), ()): 1.0}
    for j in documents:
        after: dict[tuple, float] = {}
        for (labels, seats), probability in states.items():
            for (label, more), chance in _next_seats(seats, j, alpha, gamma):
                key = (*labels, label), more
                after[key] = after.get(key, 0.0) + probability * chance
        states = after
    out: dict[tuple[int, ...], float] = {}
    for (labels, _), probability in states.items():
        out[labels] = out.get(labels, 0.0) + probability
    return out


def _next_seats(
    seats: tuple, document: int, alpha: float, gamma: float
) -> Iterator[tuple[tuple, float]]:
    """Ways to seat one customer; `seats` are tables (document, dish, size)."""
    n = sum(size for j, _, size in seats if j == document)
    n_dishes = len({dish for _, dish, _ in seats})
    for t, (j, dish, size) in enumerate(seats):
        if j == document:
            more = (*seats[:t], (j, dish, size + 1), *seats[t + 1 :])
            yield (dish, more), size / (alpha + n)
    opening = alpha / (alpha + n) / (gamma + len(seats))
    for dish in range(n_dishes):
        served = sum(of == dish for _, of, _ in seats)
        yield (dish, (*seats, (document, dish, 1))), opening * served
    yield (n_dishes, (*seats, (document, n_dishes, 1))), opening * gamma


def seat_franchise(
    lengths: Sequence[int] | np.ndarray, alpha: float, gamma: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Seat groups of these sizes; return labels (N,) and tables (K,)."""
    labels: list[int] = []
    served: list[int] = []
    for length in lengths:
        sizes: list[float] = []
        dishes: list[int] = []
        for _ in range(length):
            masses = np.array([*sizes, alpha])
            t = int(rng.choice(len(masses), p=masses / masses.sum()))
            if t == len(sizes):
                masses = np.array([*served, gamma])
                dish = int(rng.choice(len(masses), p=masses / masses.sum()))
                if dish == len(served):
                    served.append(0)
                served[dish] += 1
                sizes.append(0.0)
                dishes.append(dish)
            sizes[t] += 1.0
            labels.append(dishes[t])
    return np.array(labels), np.array(served)


def log_marginal_of_words(counts: np.ndarray, eta: float) -> float:
    """Log probability of the words of one topic with counts (V,), in a given order."""
    n_words = len(counts)
    out = gammaln(n_words * eta) - gammaln(n_words * eta + counts.sum())
    return float(out + np.sum(gammaln(eta + counts) - gammaln(eta)))


class Truth(NamedTuple):
    """Posterior of a tiny corpus.

    Attributes
    ----------
    partitions : ndarray, shape (Bell(T),)
        Probability of each partition of the tokens.
    n_topics, n_tables : ndarray, shape (T + 1,)
        Law of the number of topics and of the number of tables.
    rest : tuple of float
        First two moments of the weight of the remainder.
    """

    partitions: np.ndarray
    n_topics: np.ndarray
    n_tables: np.ndarray
    rest: tuple[float, float]


def posterior(
    documents: np.ndarray, words: np.ndarray, n_words: int, alpha: float, gamma: float, eta: float
) -> Truth:
    """Enumerate the posterior of the topics of a few tokens."""
    return posterior_of_groups(
        documents, lambda labels: _log_likelihood(labels, words, n_words, eta), alpha, gamma
    )


def log_likelihood_by_blocks(twin: Any, rows: np.ndarray) -> Callable[[np.ndarray], float]:
    """Log likelihood of labels of rows (n, D); the marginal of each block is found once."""

    @cache
    def log_marginal(members: tuple[int, ...]) -> float:
        return float(twin.log_marginal(rows[list(members)]))

    def log_likelihood(labels: np.ndarray) -> float:
        blocks = (np.flatnonzero(labels == k) for k in range(labels.max() + 1))
        return sum(log_marginal(tuple(block.tolist())) for block in blocks)

    return log_likelihood


def states_of_groups(
    groups: np.ndarray,
    log_likelihood: Callable[[np.ndarray], float],
    alpha: float,
    gamma: float,
) -> Iterator[tuple[int, np.ndarray, float]]:
    """Every partition, by its index, with all its tables (K,), and the log of their joint law."""
    for i, labels in enumerate(enumerate_partitions(len(groups)).astype(int)):
        likelihood = log_likelihood(labels)
        counts = counts_of(labels, groups)
        for tables in all_tables(counts):
            log_law = log_law_of_tables(tables, counts, alpha, gamma)
            yield i, tables.sum(axis=0), float(log_law + likelihood)


def posterior_of_groups(
    groups: np.ndarray,
    log_likelihood: Callable[[np.ndarray], float],
    alpha: float,
    gamma: float,
) -> Truth:
    """Enumerate the posterior of the clusters of a few observations in groups."""
    n = len(groups)
    every = enumerate_partitions(n).astype(int)
    by_tables = np.zeros((len(every), n + 1))
    for i, tables, log_joint in states_of_groups(groups, log_likelihood, alpha, gamma):
        by_tables[i, tables.sum()] += np.exp(log_joint)
    by_tables /= by_tables.sum()
    m = np.arange(n + 1)
    n_tables = by_tables.sum(axis=0)
    partitions = by_tables.sum(axis=1)
    n_topics = np.bincount(every.max(axis=1) + 1, weights=partitions, minlength=n + 1)
    first = gamma / (gamma + m)
    second = first * (gamma + 1.0) / (gamma + m + 1.0)
    return Truth(partitions, n_topics, n_tables, (n_tables @ first, n_tables @ second))


class Averages(NamedTuple):
    """Posterior where alpha, gamma and eta have priors.

    Attributes
    ----------
    logarithms : ndarray, shape (3,)
        Means of log alpha, log gamma, log eta.
    n_topics, n_tables : ndarray, shape (T + 1,)
        As in `Truth`.
    """

    logarithms: np.ndarray
    n_topics: np.ndarray
    n_tables: np.ndarray


def posterior_with_priors(
    documents: np.ndarray, words: np.ndarray, n_words: int, priors: Sequence[Any]
) -> Averages:
    """Enumerate partitions, with the concentrations by quadrature over their priors."""
    return averages_of_groups(
        documents, lambda labels, eta: _log_likelihood(labels, words, n_words, eta), priors
    )


def averages_of_groups(
    groups: np.ndarray,
    log_likelihood: Callable[[np.ndarray, float], float],
    priors: Sequence[Any],
    is_tied: bool = False,
) -> Averages:
    """Enumerate partitions, with alpha, gamma and a hyperparameter by quadrature over their priors.

    If `is_tied`, gamma is alpha, and the prior of gamma does not matter.
    """
    n = len(groups)
    every = enumerate_partitions(n).astype(int)
    n_topics, m = every.max(axis=1) + 1, np.arange(n + 1)
    at_one = np.zeros((len(every), n + 1))  # prior law of partition and tables at alpha = gamma = 1
    for i, labels in enumerate(every):
        counts = counts_of(labels, groups)
        for tables in all_tables(counts):
            at_one[i, tables.sum()] += np.exp(log_law_of_tables(tables, counts, 1.0, 1.0))
    nodes, weights = np.polynomial.legendre.leggauss(30)
    alphas, gammas, etas = (prior.ppf((nodes + 1.0) / 2.0) for prior in priors)
    gammas = alphas if is_tied else gammas
    likelihood = np.array([[log_likelihood(z, e) for z in every] for e in etas])
    by_size = np.zeros((len(etas), n + 1, n + 1))  # eta, topics, tables
    for i, k in enumerate(n_topics):
        by_size[:, k] += np.exp(likelihood[:, i])[:, None] * at_one[i]
    lengths = np.bincount(groups)
    of_alpha = np.array([_log_alpha(a, m, lengths) - _log_alpha(1.0, m, lengths) for a in alphas])
    of_gamma = np.array([_log_gamma(g, m, n) - _log_gamma(1.0, m, n) for g in gammas])
    joint = np.einsum("am,gkm,ekm->agekm", np.exp(of_alpha), np.exp(of_gamma), by_size)
    of_both = np.diag(weights) if is_tied else np.outer(weights, weights)
    joint *= np.einsum("ag,e->age", of_both, weights)[..., None, None]
    joint /= joint.sum()
    logarithms = [
        joint.sum(axis=(1, 2, 3, 4)) @ np.log(alphas),
        joint.sum(axis=(0, 2, 3, 4)) @ np.log(gammas),
        joint.sum(axis=(0, 1, 3, 4)) @ np.log(etas),
    ]
    return Averages(
        np.array(logarithms), joint.sum(axis=(0, 1, 2, 4)), joint.sum(axis=(0, 1, 2, 3))
    )


def _log_likelihood(labels: np.ndarray, words: np.ndarray, n_words: int, eta: float) -> float:
    return sum(
        log_marginal_of_words(np.bincount(words[labels == k], minlength=n_words), eta)
        for k in range(labels.max() + 1)
    )


def _log_alpha(alpha: float, m: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """What (15.2) has of alpha, by the number of tables."""
    return m * np.log(alpha) + np.sum(gammaln(alpha) - gammaln(alpha + lengths))


def _log_gamma(gamma: float, m: np.ndarray, n: int) -> np.ndarray:
    """What (15.2) has of gamma, by the numbers of topics and tables."""
    topics = np.arange(n + 1)[:, None]
    return topics * np.log(gamma) + gammaln(gamma) - gammaln(gamma + m)
