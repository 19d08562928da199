"""Approximate cost of moves in nanoseconds, for conjugate families."""

from typing import Any

from pymc_dpsplit.components.collapsed import table_height
from pymc_dpsplit.components.mixed_pair import MixedRows
from pymc_dpsplit.components.shared_labels.kernels import GroupedRows
from pymc_dpsplit.moves.family_moves import typical_size
from pymc_dpsplit.moves.split_merge.regrouping import MOST_CLUSTERS
from pymc_dpsplit.moves.target import Target

# For sparse rows: a multiplication and addition per entry and cluster, from a table; and a gamma
# variable per column and cluster.
_WORK_PER_ENTRY, _PER_COLUMN = 8.0, 30.0
# Drawing parameters takes a random variable per statistic, or with full covariance a factorisation.
_PER_STATISTIC = 30.0


def work_of(data: Any) -> float:
    """Cost of one observation and cluster, in multiplications under full covariance."""
    n_obs, n_features = data.shape
    if isinstance(data, GroupedRows):
        return work_of(data.rows) * len(data.members) / n_obs
    if isinstance(data, MixedRows):
        return work_of(data.first) + work_of(data.other)
    if is_sparse(data):
        return _WORK_PER_ENTRY * len(data.indices) / n_obs
    return n_features * (n_features + 1.0)


def is_sparse(data: Any) -> bool:
    """Whether rows, those of groups or of a part of a product, are stored as nonzero entries."""
    rows = data.rows if isinstance(data, GroupedRows) else data
    return isinstance(rows, MixedRows) or hasattr(rows, "indices")


def _column_cost(data: Any) -> float:
    """Nanoseconds of one pass over the columns of a cluster, counted for sparse rows only."""
    if isinstance(data, GroupedRows):
        return _column_cost(data.rows)
    if isinstance(data, MixedRows):
        return _column_cost(data.first) + _column_cost(data.other)
    return data.shape[1] * _PER_COLUMN if is_sparse(data) else 0.0


def sweep_cost(
    target: Target, n_clusters: int, n_statistics: int, n_sticks: float, n_evaluated: float
) -> float:
    """Cost of a sweep in nanoseconds, see `FamilyMoves`.

    Parameters
    ----------
    target : Target
    n_clusters : int
    n_statistics : int
        Number of statistics of a cluster.
    n_sticks : float
        Number of sticks broken.
    n_evaluated : float
        Number of atoms evaluated per observation.

    Returns
    -------
    float
    """
    work = work_of(target.data)
    per_row = 10.0 + 0.05 * work + n_evaluated * (0.7 + 0.012 * work)
    drawn = (n_clusters + n_sticks) * n_statistics * _PER_STATISTIC
    return 5e3 + 1e3 * n_sticks + target.data.shape[0] * per_row + drawn


def visit_cost(target: Target, n_clusters: int) -> float:
    """Cost of one observation in a collapsed scan, in nanoseconds."""
    work = work_of(target.data)
    if table_height(target.prior) > 0:
        # Vector code over clusters; a quarter of the observations moves, which is most of 120.
        # Of a far cluster, most of which are found out early, the first multiplications are done.
        return 120.0 + n_clusters * (2.0 + 0.035 * work)
    return (n_clusters + 1.0) * (80.0 + 2.0 * work)


def regrouping_cost(target: Target, n_clusters: int) -> float:
    """Cost of regrouping all clusters in nanoseconds, for conjugate families.

    Neighbourhoods, which follow, divide twice as many observations, and compare few pairs.
    """
    n_sides = 2.0 * min(n_clusters, MOST_CLUSTERS)
    # A marginal likelihood takes a factorisation, or a pass over the columns.
    marginal = 200.0 + _column_cost(target.data) + 0.2 * work_of(target.data) ** 1.5
    return (40.0 + work_of(target.data)) * target.data.shape[0] + n_sides**2 * marginal


def attempt_cost(target: Target, n_clusters: int) -> float:
    """Cost of a split/merge attempt in nanoseconds, see `FamilyMoves`."""
    # Two clusters are fitted seven times; half of the attempts evaluate the marginals of all pairs
    # with one cluster.
    columns = (14.0 + n_clusters) * _column_cost(target.data)
    return 1e4 + (40.0 + work_of(target.data)) * typical_size(target, n_clusters) + columns
