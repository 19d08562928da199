"""Partitions of rows in groups, tables and global weights summed out, against enumeration."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from pymc_dpsplit.hierarchical import seatings
from pymc_dpsplit.hierarchical.seatings import Seatings, law_of_tables, seatings_of
from pymc_dpsplit.kernels.jit import COMPILES
from tests.reference.franchise import (
    all_tables,
    counts_of,
    log_law_of_tables,
    stirling,
)
from tests.reference.franchise import (
    seatings as all_seatings,
)
from tests.support.partitions import enumerate_partitions

COUNTS = [
    [[3, 1], [0, 4], [2, 2]],
    [[5, 0, 0], [0, 2, 1]],
    [[1, 1, 1, 1]],
    [[6], [0], [1]],
]
CONCENTRATIONS = [(1.0, 1.0), (0.05, 4.0), (30.0, 0.02), (7.0, 60.0)]


def by_enumeration(counts: np.ndarray, alpha: float, gamma: float) -> Seatings:
    """The same by the sum over all numbers of tables."""
    tables = list(all_tables(counts))
    logs = np.array([log_law_of_tables(of, counts, alpha, gamma) for of in tables])
    shares = np.exp(logs - logsumexp(logs))
    totals = np.array([of.sum() for of in tables])
    means = [of.sum(axis=0) / (gamma + of.sum()) for of in tables]
    rest = float(shares @ (gamma / (gamma + totals)))
    n_tables = np.bincount(totals, weights=shares)
    return Seatings(float(logsumexp(logs)), shares @ np.array(means), rest, n_tables)


def largest_difference(counts: np.ndarray, alpha: float, gamma: float) -> float:
    found, exact = seatings_of(counts, alpha, gamma), by_enumeration(counts, alpha, gamma)
    length = len(exact.n_tables)
    tables = np.pad(found.n_tables, (0, max(length - len(found.n_tables), 0)))
    return max(
        abs(found.log_probability - exact.log_probability),
        np.abs(found.weights - exact.weights).max(),
        abs(found.rest - exact.rest),
        np.abs(tables - exact.n_tables).max(),
    )


@pytest.mark.parametrize("given", CONCENTRATIONS)
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_sums_are_those_over_all_tables(counts, given):
    assert largest_difference(np.array(counts), *given) < 1e-12


@pytest.mark.control
@pytest.mark.skipif(COMPILES, reason="compiled kernels hold what they call")
def test_tables_opened_too_seldom_are_caught(monkeypatch):
    def opened_late(counts, strength):
        return law_of_tables(counts, 0.9 * strength)

    monkeypatch.setattr(seatings, "law_of_tables", opened_late)
    assert largest_difference(np.array(COUNTS[0]), 1.0, 1.0) > 1e-3


def test_probabilities_are_those_of_all_seatings_and_sum_to_one():
    groups = np.array([0, 1, 0, 1, 1])
    by_hand = all_seatings(groups, 0.8, 1.7)
    found = {
        tuple(labels): np.exp(seatings_of(counts_of(labels, groups), 0.8, 1.7).log_probability)
        for labels in enumerate_partitions(5).astype(int)
    }
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
    for labels, probability in by_hand.items():
        assert found[labels] == pytest.approx(probability, rel=1e-12)


def log_stirling(n: int, m: int) -> float:
    """Log of a Stirling number, which may be too large for a float."""
    number = stirling(n, m)
    shift = max(number.bit_length() - 60, 0)
    return float(np.log(number >> shift) + shift * np.log(2.0))


@pytest.mark.parametrize(("alpha", "gamma"), [(0.3, 2.0), (5.0, 0.5), (80.0, 3.0)])
def test_many_rows_of_two_clusters(alpha, gamma):
    """Two clusters, in one group each: 150 and 90 rows, of which the tables are few or many."""
    sizes = 150, 90
    for n in range(1, 151):
        stirling(n, n // 2 + 1)  # fills the cache without deep recursion
    first, second = (
        np.array([log_stirling(n, m) + m * np.log(alpha) + gammaln(m) for m in range(1, n + 1)])
        for n in sizes
    )
    total = np.add.outer(np.arange(1, 151), np.arange(1, 91))
    logs = np.add.outer(first, second) + gammaln(gamma) - gammaln(gamma + total)
    exact = logsumexp(logs) + 2 * np.log(gamma)
    exact += sum(gammaln(alpha) - gammaln(alpha + n) for n in sizes)
    found = seatings_of(np.diag(sizes), alpha, gamma)
    assert found.log_probability == pytest.approx(float(exact), abs=1e-9)
    shares = np.exp(logs - logsumexp(logs))
    mean = np.sum(shares * np.arange(1, 151)[:, None] / (gamma + total))
    assert found.weights[0] == pytest.approx(mean, abs=1e-10)


def test_one_process_if_there_is_one_cluster():
    """One cluster with all rows: the tables of one restaurant."""
    law = seatings_of(np.array([[4]]), 2.0, 1.0)
    # s(4, m) 2^m Gamma(m) / Gamma(1 + m) over m.
    terms = np.array([stirling(4, m) * 2.0**m / m for m in range(1, 5)])
    np.testing.assert_allclose(law.n_tables[1:], terms / terms.sum(), rtol=1e-12)
