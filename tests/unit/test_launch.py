"""Where a launch starts: from anchors, from two seeds, or from the entries of a column."""

import numpy as np
import pytest
import scipy.sparse

import pymc_dpsplit as dps
from benchmarks.subject import make_sparse_target
from pymc_dpsplit.components.optional import entry_of
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.split_merge.division import divide_members, no_anchors
from pymc_dpsplit.moves.split_merge.launch import _divide_by_column
from tests.support.families import EXAMPLES, component_of, dataset_of, target_of

# Three rows share an entry of the first column, and two one of the second.
ROWS = np.array([[0.0, 1.0], [0.0, 2.5], [0.0, 7.0], [1.0, 1.0], [4.0, -2.0], [9.0, 3.0]])
NOBODY = -1


def near_sets(anchors: tuple[int, int]) -> set[frozenset[int]]:
    """Sets of rows as near to one row in a column as another one: naive twin."""
    first, second = anchors
    sets = set()
    for column in ROWS.T:
        for centre in column if first == NOBODY else column[[first]]:
            distance = np.abs(column - centre)
            for width in distance:
                if second == NOBODY or distance[second] > width:
                    sets.add(frozenset(np.flatnonzero(distance <= width).tolist()))
    return sets


def start_sets(anchors: tuple[int, int], n_starts: int) -> set[frozenset[int]]:
    """The same, by the kernel: the set whose statistics side 0 has."""
    target = target_of(component_of("MvNormal", 2), ROWS, 1.0)
    members, held = np.arange(len(ROWS)), np.array(anchors)
    found = set()
    for key in range(n_starts):
        stream = new_stream(np.uint64(key))
        pair = _divide_by_column(target.prior, target.data, members, held, stream)
        if pair[0, 0] > 0.0:
            found.add(side_with(target, pair))
    return found


def side_with(target, pair: np.ndarray) -> frozenset[int]:
    """The rows of side 0, of all subsets of as many rows that have these statistics."""
    for code in range(1, 2 ** len(ROWS)):
        labels = np.array([1 - (code >> i & 1) for i in range(len(ROWS))], np.int32)
        if np.allclose(gather_stats(target.prior, target.data, labels, 2), pair):
            return frozenset(np.flatnonzero(labels == 0).tolist())
    raise AssertionError("no rows have these statistics")


@pytest.mark.parametrize("anchors", [(NOBODY, NOBODY), (0, 3), (4, 5)])
def test_a_start_by_column_matches_the_twin(anchors: tuple[int, int]) -> None:
    assert start_sets(anchors, 500) == near_sets(anchors)
    assert frozenset({0, 1, 2}) in near_sets((NOBODY, NOBODY)) & near_sets((0, 3))


@pytest.mark.parametrize("family", EXAMPLES)
def test_an_entry_is_that_of_the_row_or_unknown(family: str) -> None:
    n_features = max(EXAMPLES[family].n_features)
    rows = dataset_of(family, "separated", n_features)
    target = target_of(component_of(family, n_features), rows, 1.0)
    n_obs, n_columns = target.data.shape
    entries = np.array([
        [entry_of(target.prior, target.data, i, j) for j in range(n_columns)]
        for i in range(n_obs)
    ])  # fmt: skip
    known = ~np.isnan(entries)
    np.testing.assert_array_equal(entries[known], np.asarray(rows, float)[known])
    # Words are no numbers that are near to others or far from them.
    assert known.all() or "Multinomial" in family


def test_rows_without_entries_are_divided_from_seeds() -> None:
    rows = scipy.sparse.random(30, 8, 0.3, format="csr", random_state=1)
    rows.data = np.ceil(20.0 * rows.data)
    target = make_sparse_target(rows, dps.Multinomial(1.0))
    sizes = []
    for key in range(20):
        stream = new_stream(np.uint64(key))
        _, side, pair, _ = divide_members(target, np.arange(30), stream, no_anchors())
        assert pair[:, 0].sum() == len(side) == 30
        sizes.append(side.sum())
    assert len(set(sizes)) > 3


def test_rows_that_share_a_value_are_divided_off(rng: np.random.Generator) -> None:
    """Half of the rows have zeros in one of two columns and differ in nothing else."""
    rows = rng.standard_normal((40, 2))
    rows[:20, 1] = 0.0
    target = target_of(dps.MvNormal(np.zeros(2), 0.1, 4.0, 0.001 * np.eye(2)), rows, 1.0)
    n_found = 0
    for key in range(300):
        stream = new_stream(np.uint64(key))
        members, side, _, _ = divide_members(target, np.arange(40), stream, no_anchors())
        share = side[members < 20].mean() - side[members >= 20].mean()
        n_found += abs(share) > 0.9
    assert n_found > 5
