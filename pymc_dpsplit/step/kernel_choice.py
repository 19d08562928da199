"""Choice of the kernel of a mixture: what an iteration of its chain is made of.

It depends on the data and the family alone, so it is the same in all chains and all draws, and the
kernels that it leaves out need not be compiled.
"""

from pymc_dpsplit.moves.cost import is_sparse, visit_cost
from pymc_dpsplit.sampler import Target, moves_of

AUTO = "auto"
SLICES, COLLAPSED = "exact", "collapsed-split-merge"

# Most nanoseconds of a whole collapsed sweep, about as long as a sweep by slices takes before its
# first row: stick-breaking, pruning and strips do not pay off for fewer rows.  On overlapping
# clusters in the plane both kernels give as many effective draws per second with 500 rows.
_MOST_OF_SWEEP = 7e4
# From so many features on chains of few rows end in partitions tens of nats apart without the
# greedy moves of early tuning, which belong to the kernel of slices.
_SLICES_FROM_FEATURES = 5
# Number of clusters for which the sweep is costed; that of the chain is not known beforehand.
_TYPICAL_CLUSTERS = 10


def choose_kernel(target: Target) -> str:
    """Choose the kernel for the observations and the family of a target.

    Parameters
    ----------
    target : Target
        Its law plays no part.

    Returns
    -------
    str
        `COLLAPSED` if the family is conjugate, there are fewer than five features and a collapsed
        sweep over all observations takes at most 0.07 ms, else `SLICES`.
    """
    has_many = target.data.shape[1] >= _SLICES_FROM_FEATURES
    if has_many or not moves_of(target.prior).is_conjugate or is_sparse(target.data):
        return SLICES
    sweep = target.data.shape[0] * visit_cost(target, _TYPICAL_CLUSTERS)
    return COLLAPSED if sweep <= _MOST_OF_SWEEP else SLICES
