"""Target of a chain as one record, the first argument of every move."""

from typing import Any, NamedTuple

from pymc_dpsplit.moves.partition_law import PartitionLaw


class Target(NamedTuple):
    """Target of a chain: prior, observations and law of the partition.

    Attributes
    ----------
    prior : NamedTuple
        Prior of the base measure, in the form that kernels of the family read.
    data : ndarray of float64, shape (N, D)
        Observations, or another form of them that kernels of the family read, see
        `ComponentFamily.arranged`.
    law : PartitionLaw
    """

    prior: Any
    data: Any
    law: PartitionLaw
