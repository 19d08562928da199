"""Labels of any kind say which observations are together, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import pymc_dpsplit as dps
from pymc_dpsplit.moves.cluster_order import cluster_order, first_members
from pymc_dpsplit.posterior.partitions.label_arrays import (
    PartitionDraws,
    labels_of_draws,
    partition_draws,
)
from pymc_dpsplit.posterior.partitions.partition_loss import contributions, distances, loss_of
from tests.reference import partition_losses as naive
from tests.support.partitions import LARGEST, canonical, enumerate_partitions, partition_index

INTEGERS = st.one_of(
    arrays.integer_dtypes(endianness="="), arrays.unsigned_integer_dtypes(endianness="=")
)


@st.composite
def label_arrays(draw: st.DrawFn, most: int = 12) -> np.ndarray:
    """Labels (draws, observations) of any integer type: few values, or any."""
    dtype, shape = draw(INTEGERS), draw(arrays.array_shapes(min_dims=2, max_dims=2, max_side=most))
    of = draw(st.sampled_from([{"min_value": 0, "max_value": 3}, {}]))
    return draw(arrays.arrays(dtype, shape, elements=of or None))


def numbered(labels: np.ndarray) -> PartitionDraws:
    return partition_draws(labels_of_draws(labels))


@given(label_arrays())
def test_clusters_are_numbered_by_first_appearance(labels: np.ndarray) -> None:
    found = numbered(labels)
    np.testing.assert_array_equal(found.labels, canonical(labels))
    np.testing.assert_array_equal(found.n_clusters, [len(np.unique(row)) for row in labels])
    again = numbered(found.labels)
    np.testing.assert_array_equal(again.labels, found.labels)


@given(label_arrays(LARGEST))
def test_partitions_have_the_rank_of_their_row(labels: np.ndarray) -> None:
    rows = enumerate_partitions(labels.shape[1])[partition_index(labels)]
    np.testing.assert_array_equal(rows, canonical(labels))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    """A partition (N,), draws (S, N) and the weight of a loss."""
    labels = draw(label_arrays())
    partition = draw(arrays.arrays(np.int64, labels.shape[1], elements=st.integers(0, 4)))
    return canonical(partition), labels, draw(st.floats(0.0, 2.0))


@given(pairs(), st.sampled_from(sorted(naive.LOSSES)))
def test_losses_are_those_of_the_books(
    given_pair: tuple[np.ndarray, np.ndarray, float], name: str
) -> None:
    partition, labels, weight = given_pair
    loss, draws = loss_of(name, len(partition), weight), numbered(labels)
    found = distances(partition, draws, loss)
    expected = [naive.LOSSES[name](row, partition, weight) for row in labels]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(
        contributions(partition, draws, loss).mean(), np.mean(expected), atol=1e-12
    )


@given(pairs(), st.sampled_from(sorted(naive.LOSSES)))
def test_losses_of_equal_weights_are_distances(
    given_pair: tuple[np.ndarray, np.ndarray, float], name: str
) -> None:
    partition, labels, _ = given_pair
    draws = numbered(labels)
    loss = loss_of(name, labels.shape[1])
    between = np.array([distances(row.astype(np.int64), draws, loss) for row in draws.labels])
    assert (between >= 0.0).all()
    assert (np.diag(between) == 0.0).all()
    np.testing.assert_allclose(between, between.T, atol=1e-12)
    to_one = distances(partition, draws, loss)
    assert (to_one[:, None] + to_one >= between - 1e-12).all()


@given(label_arrays(), st.randoms(use_true_random=False))
def test_similarity_does_not_depend_on_numbers(labels: np.ndarray, random) -> None:
    found = dps.similarity_matrix(labels).to_numpy()
    together = (labels[:, :, None] == labels[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(found, together, atol=1e-12)
    renumbered = canonical(labels)
    for row in renumbered:
        numbers = list(range(100, 100 + labels.shape[1]))
        random.shuffle(numbers)
        row[:] = np.array(numbers)[row]
    np.testing.assert_array_equal(dps.similarity_matrix(renumbered).to_numpy(), found)


@given(
    arrays.arrays(np.int64, st.integers(1, 12), elements=st.integers(0, 5)),
    st.randoms(use_true_random=False),
)
def test_order_of_clusters_moves_with_their_numbers(labels: np.ndarray, random) -> None:
    labels = canonical(labels)
    n_clusters = int(labels.max()) + 1
    sizes = np.bincount(labels).astype(float)
    # Sums of whole numbers: clusters of equal rows are twins, and told by their first members.
    stats = np.column_stack([sizes, sizes * 2.0])
    number = list(range(n_clusters))
    random.shuffle(number)
    others = np.empty_like(stats)
    others[number] = stats
    renamed = np.array(number)[labels].astype(np.int32)
    ours = first_members(labels.astype(np.int32), n_clusters)
    theirs = first_members(renamed, n_clusters)
    np.testing.assert_array_equal(
        ours[cluster_order(labels.astype(np.int32), stats)], theirs[cluster_order(renamed, others)]
    )


@pytest.mark.control
def test_a_loss_of_the_other_side_is_caught() -> None:
    """The weight counts for observations kept apart, not for those put together."""
    partition, labels = np.array([0, 0, 1]), np.array([[0, 0, 0]])
    found = distances(partition, numbered(labels), loss_of("vi", 3, 0.5))
    assert abs(found[0] - naive.vi(labels[0], partition, 1.5)) > 0.1
