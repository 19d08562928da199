"""The interface of a component family: its parts, and the operations that kernels call.

Each family is one file.  The file contains

* a subclass of `ComponentFamily`, which users construct: it holds the hyperparameters, checks
  them, converts them to numbers for the kernels, and gives log densities as graphs;
* a prior: a `NamedTuple` of numbers and arrays that holds the hyperparameters for the kernels;
* one implementation, decorated by ``@implements(operation, Prior)``, of each kernel operation
  below, see `components.dispatch`; an `optional_operation` has a default.

Generic kernels (the moves) call the operations; the type of the prior selects the implementation.
A new family needs no change in other files, because the package imports every module of this
folder.

Conventions.  `data` (N, D) holds the observations as `ComponentFamily.arranged` returned them: by
default an unchanged array of float64 or float32.  An operation subtracts `prior.shift` from each
entry it reads and continues in float64; families of counts or codes have shift zero, so that whole
numbers stay exact.  `stats` is a flat float64 vector of additive sufficient statistics whose first
element is the number of observations; the statistics of a union of two clusters are the sum of
theirs.  `params` is a flat float64 vector with the parameters of one cluster in the form that the
density uses; its first element is a constant term of the log density, to which kernels add the log
weight of the cluster.  `cache` is a flat float64 vector from which the predictive density of one
observation given a cluster is computed.
"""

from pymc_dpsplit.components.dispatch import implements as implements
from pymc_dpsplit.components.dispatch import operation, optional_operation
from pymc_dpsplit.kernels.views import row_of


@operation
def stats_size(prior):
    """Return the length S of a vector of sufficient statistics."""


@operation
def params_size(prior):
    """Return the length P of a vector of parameters."""


@operation
def tile_size(prior):
    """Return the number of features of the tile that `load_tile` fills."""


@operation
def predictive_size(prior):
    """Return the length C of the predictive cache of one cluster."""


@operation
def load_tile(prior, data, rows, tile):
    """Copy a block of observations into a tile.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    rows : ndarray of int64, shape (TILE,)
        Indices of the observations.
    tile : ndarray of float64, shape (tile_size * TILE,)
        Overwritten; zero before its first use.
    """


@operation
def fill_log_density(prior, tile, params, out, scratch):
    """Compute the log densities of the observations of a tile under one atom.

    Parameters
    ----------
    prior : NamedTuple
    tile : ndarray of float64, shape (tile_size * TILE,)
        As `load_tile` fills it.
    params : ndarray of float64, shape (P,)
    out : ndarray of float64, shape (TILE,)
        Overwritten with the log densities.
    scratch : ndarray of float64, shape (4 * TILE,)
        Workspace.
    """


@operation
def add_row(prior, data, i, stats):
    """Add one observation to the sufficient statistics of a cluster.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    i : int
        Index of the observation.
    stats : ndarray of float64, shape (S,)
        Updated.
    """


@optional_operation
def add_groups(prior, data, members, bounds, stats):
    """Add groups of observations to the sufficient statistics of their clusters.

    The default calls `add_row` for each observation.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    members : ndarray of int64
        Indices of the observations, sorted by cluster.
    bounds : ndarray of int64, shape (K + 1,)
        Cluster k receives members[bounds[k] : bounds[k + 1]].
    stats : ndarray of float64, shape (K, S)
        Updated.
    """
    for k in range(stats.shape[0]):
        for j in range(bounds[k], bounds[k + 1]):
            add_row(prior, data, members[j], row_of(stats, k))


@optional_operation
def add_labelled(prior, data, labels, start, stop, stats):
    """Add a range of observations to the statistics of their clusters, or return False.

    It is for statistics so few that observations need not be sorted by cluster, as `add_groups`
    requires.  The default adds nothing and returns False.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    labels : ndarray of int32, shape (N,)
    start, stop : int
        The observations start .. stop - 1.
    stats : ndarray of float64, shape (K, S)
        Updated.

    Returns
    -------
    bool
        Whether the observations were added.
    """
    return False


@optional_operation
def find_bounds(prior, params, n_clusters):
    """Compute cheap upper bounds on the log densities, or None if the family has none.

    The default returns None.

    Parameters
    ----------
    prior : NamedTuple
    params : ndarray of float64, shape (A, P)
        All atoms, the occupied ones first.
    n_clusters : int
        Number of occupied atoms K.

    Returns
    -------
    bounds : ndarray of float64, shape (K, any)
        Row z holds the bounds, for all atoms, that apply to observations of cluster z.
    forecast : ndarray of float64, shape (K, K)
        Likely result of `fill_excess` for observations of cluster z under atom k.
    """


@operation
def fill_excess(prior, tile, bounds, reference, excess):
    """Write, per atom, an upper bound on `log_density - reference` over the tile.

    Parameters
    ----------
    prior : NamedTuple
    tile : ndarray of float64, shape (tile_size * TILE,)
    bounds : ndarray of float64
        A row of the bounds that `find_bounds` returned.
    reference : ndarray of float64, shape (TILE,)
        Log densities of the observations under their present cluster.
    excess : ndarray of float64
        Overwritten; one element per atom, the length rounded up to a multiple of four.  Elements
        past the last atom are undefined.
    """


@operation
def log_marginal(prior, stats):
    """Return the log marginal likelihood of the observations summarised by `stats`."""


@operation
def draw_parameters(prior, stats, rng, params):
    """Draw the parameters of a cluster from their posterior given its sufficient statistics.

    Parameters
    ----------
    prior : NamedTuple
    stats : ndarray of float64, shape (S,)
        All zero for an empty cluster, whose parameters are drawn from the base measure.
    rng : numpy.random.Generator
    params : ndarray of float64, shape (P,)
        Overwritten.
    """


@optional_operation
def overrelax_parameters(prior, stats, rng, params):
    """Update the parameters of a cluster by an over-relaxed step, eq. (2.6).

    The step leaves the posterior given `stats` invariant.  The default is an independent draw.

    Parameters
    ----------
    prior : NamedTuple
    stats : ndarray of float64, shape (S,)
    rng : numpy.random.Generator
    params : ndarray of float64, shape (P,)
        On entry the present parameters, of which the first element, the constant, is not read;
        updated.
    """
    draw_parameters(prior, stats, rng, params)


@operation
def mean_parameters(prior, stats, params):
    """Write a plug-in estimate of the parameters of a cluster, finite for all statistics.

    Parameters
    ----------
    prior : NamedTuple
    stats : ndarray of float64, shape (S,)
    params : ndarray of float64, shape (P,)
        Overwritten.
    """


@operation
def fill_predictive(prior, stats, cache):
    """Compute the predictive cache of a cluster from its sufficient statistics.

    Parameters
    ----------
    prior : NamedTuple
    stats : ndarray of float64, shape (S,)
    cache : ndarray of float64, shape (C,)
        Overwritten.
    """


@operation
def predictive_add(prior, data, i, cache):
    """Add one observation to the predictive cache of a cluster.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    i : int
        Index of the observation.
    cache : ndarray of float64, shape (C,)
        Updated.
    """


@operation
def predictive_remove(prior, data, i, cache):
    """Remove one observation from the predictive cache of a cluster.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    i : int
        Index of the observation.
    cache : ndarray of float64, shape (C,)
        Updated.

    Returns
    -------
    bool
        False if the cache lost too much precision; the caller then calls `fill_predictive`.
    """


@operation
def log_predictive(prior, data, i, cache):
    """Return the log predictive density of one observation given the cluster of a cache.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    i : int
        Index of the observation.
    cache : ndarray of float64, shape (C,)

    Returns
    -------
    float
    """


@optional_operation
def fill_log_predictive_of_rows(prior, data, rows, cache, out):
    """Write the log predictive densities of observations, by default of one after another.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D), or as `ComponentFamily.arranged` returns it
    rows : ndarray of int64, shape (M,)
        Indices of the observations.
    cache : ndarray of float64, shape (C,)
    out : ndarray of float64, shape (M,)
        Overwritten; no number depends on the other observations.
    """
    for j in range(rows.shape[0]):
        out[j] = log_predictive(prior, data, rows[j], cache)
