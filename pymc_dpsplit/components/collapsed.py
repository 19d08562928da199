"""Optional operations of the collapsed moves: one observation under all clusters at once.

A collapsed move keeps a cache of each cluster, see `components.base`.  From these operations it
has what it needs of an observation that may stay where it is: the caches are not changed.

A family may also keep a table with some numbers per cluster, see `kernels.cluster_table`, from
which `fill_log_predictives` computes in vector code.  It implements `table_height` and `tabulate`
too.  If its normaliser has a part that depends on the size of a cluster alone, it may implement
`log_norm_of_size`, `add_to_cluster` and `remove_from_cluster`, so that the part is computed once
per size and not at every move.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    log_predictive,
    predictive_add,
    predictive_remove,
    predictive_size,
)
from pymc_dpsplit.components.dispatch import optional_operation
from pymc_dpsplit.kernels.cluster_table import WIDE
from pymc_dpsplit.kernels.jit import jitted, jitted_inlined_uncounted
from pymc_dpsplit.kernels.lines import on_lines, zeros_on_lines
from pymc_dpsplit.kernels.rows import copy_row
from pymc_dpsplit.kernels.views import row_of

# Sizes whose numbers are kept.  To begin a scan of a short list must not cost a pass over as many
# sizes as there are observations.
_MOST_KEPT = 4096


class Clusters(NamedTuple):
    """Clusters by position.

    Attributes
    ----------
    sizes : ndarray of float64, shape (capacity,)
        Numbers of observations; 0 where there is no cluster.
    caches : ndarray of float64, shape (capacity, C)
    table : ndarray of float64, shape (capacity * table_height,)
    spare : ndarray of float64, shape (C,)
        Workspace for a cache.
    scratch : ndarray of float64, shape (WIDE * (table_height + 1),)
        Workspace.
    norms : ndarray of float64
        `log_norm_of_size` by size; NaN where it is not known yet.
    """

    sizes: np.ndarray
    caches: np.ndarray
    table: np.ndarray
    spare: np.ndarray
    scratch: np.ndarray
    norms: np.ndarray


@jitted
def new_numbers_of_sizes(largest):
    """Room for a number of each size from 0 to `largest`, all NaN, or of the smallest of these.

    Parameters
    ----------
    largest : float

    Returns
    -------
    ndarray of float64
    """
    return np.full(int(min(largest, _MOST_KEPT - 1.0)) + 1, np.nan)


@optional_operation
def table_height(prior):
    """Return the number of numbers that the table has of each cluster, by default 0."""
    return 0


@jitted
def new_clusters(prior, capacity, norms):
    """Allocate room for clusters; there is none yet.

    Parameters
    ----------
    prior : NamedTuple
    capacity : int
        A multiple of `WIDE`.
    norms : ndarray of float64
        From `new_numbers_of_sizes`, or those of clusters of the same prior.

    Returns
    -------
    Clusters
    """
    size, height = predictive_size(prior), table_height(prior)
    return Clusters(
        np.zeros(capacity),
        np.zeros((capacity, size)),
        zeros_on_lines(capacity * height),
        np.empty(size),
        on_lines(WIDE * (height + 1)),
        norms,
    )


@optional_operation
def tabulate(prior, clusters, p):
    """Write the numbers of a cluster, from its cache, into the table; the default does nothing.

    Parameters
    ----------
    prior : NamedTuple
    clusters : Clusters
    p : int
        Position of the cluster.
    """


@optional_operation
def log_norm_of_size(prior, n):
    """Return the part of the log normaliser of the predictive that depends on n alone.

    The default is 0.

    Parameters
    ----------
    prior : NamedTuple
    n : float

    Returns
    -------
    float
    """
    return 0.0


@jitted_inlined_uncounted
def kept_norm_of_size(prior, clusters, n):
    """As `log_norm_of_size`, computed when it is first needed.

    Parameters
    ----------
    prior : NamedTuple
    clusters : Clusters
    n : float
        A whole number.

    Returns
    -------
    float
    """
    norms, at = clusters.norms, int(n)
    if at >= norms.shape[0]:
        return log_norm_of_size(prior, n)
    if math.isnan(norms[at]):
        norms[at] = log_norm_of_size(prior, n)
    return norms[at]


@optional_operation
def add_to_cluster(prior, data, i, clusters, p):
    """Update the cache of a cluster that an observation joins.

    The default calls `predictive_add`.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    i : int
        Index of the observation.
    clusters : Clusters
    p : int
        Position of the cluster.
    """
    predictive_add(prior, data, i, row_of(clusters.caches, p))


@optional_operation
def remove_from_cluster(prior, data, i, clusters, p):
    """Update the cache of a cluster that an observation leaves, and that has others.

    The default calls `predictive_remove`.  Parameters are those of `add_to_cluster`.

    Returns
    -------
    bool
        False if the cache must be computed anew.
    """
    return predictive_remove(prior, data, i, row_of(clusters.caches, p))


@optional_operation
def log_predictive_without(prior, data, i, cache, spare):
    """Return the log predictive density of an observation given the others of its cluster.

    The default copies the cache and removes the observation from the copy.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    i : int
        Index of the observation.
    cache : ndarray of float64, shape (C,)
        Cache of its cluster, which has other observations too; not changed.
    spare : ndarray of float64, shape (C,)
        Workspace.

    Returns
    -------
    float
        NaN if too much precision is lost.
    """
    copy_row(cache, spare)
    if predictive_remove(prior, data, i, spare):
        return log_predictive(prior, data, i, spare)
    return math.nan


@optional_operation
def fill_log_predictives(prior, data, i, clusters, n, own, least, drop, out):
    """Write the log predictive densities of an observation under all clusters.

    That of its own cluster is given the others.  The default calls `log_predictive` for each
    cluster.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    i : int
        Index of the observation.
    clusters : Clusters
    n, own : int
        Number of positions, and the position of the cluster from which the observation is left
        out; -1 if there is none.
    least, drop : float
        A log density that is less than `least`, or by more than `drop` less than that of the own
        cluster, is unlikely to matter: an upper bound of which that holds may be written for it.
    out : ndarray of float64, shape (>= n,)
        Overwritten up to the block that contains position n - 1.  It is finite, also where there
        is no cluster.

    Returns
    -------
    bool
        False if too much precision is lost in out[own], which is undefined then.
    """
    keeps_digits = True
    for p in range(n):
        out[p] = 0.0
        cache = row_of(clusters.caches, p)
        if p == own:
            out[p] = log_predictive_without(prior, data, i, cache, clusters.spare)
            keeps_digits = not math.isnan(out[p])
        elif clusters.sizes[p] > 0.0:
            out[p] = log_predictive(prior, data, i, cache)
    return keeps_digits
