"""Optional operations for data of which one label stands for several observations of the process.

By default every observation of the chain is one observation of the Dirichlet process.  The rows of
a known label are one observation of the chain, as they move together, but several of the process:
each of them has a factor of the weight of its cluster; docs/method.md, eq. (7.51)-(7.55).
"""

from pymc_dpsplit.components.dispatch import optional_operation


@optional_operation
def multiplicity(prior, data, i):
    """Return the number of observations of the process that observation i of the chain stands for.

    The default is 1.  It is what observation i adds to the first of the sufficient statistics.
    """
    return 1.0


@optional_operation
def observation_at(prior, data, place):
    """Return the observation of the chain that stands for observation `place` of the process.

    The default is `place` itself.
    """
    return place


@optional_operation
def note_log_weight(prior, params, log_weight):
    """Write the log weight of a cluster where `fill_log_density` finds it.

    An observation with multiplicity m has m factors of the weight.  Kernels add one of them, or
    in a sweep its ratio to the slice, to the first element of `params`; `fill_log_density` adds
    the other m - 1.  The default does nothing.

    Parameters
    ----------
    prior : NamedTuple
    params : ndarray of float64, shape (P,)
        Changed.
    log_weight : float
    """
