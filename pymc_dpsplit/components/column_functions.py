"""Functions of one column, from which the kernels of families with independent columns are made.

Given the cluster, an entry x of column d has the density

    h(x) exp(slope T(x) + constant),

where `slope` and `constant` depend on the parameter of the cluster in that column.  The marginal
likelihood of n entries with sum t of T is Z(n, t) / Z(0, 0) prod h(x), docs/method.md, eq.
(7.37).  A family implements for its prior

* `log_measure`: log h;
* `log_partition`: log Z;
* `draw_natural`, `mean_natural`: slope and constant, at a posterior draw and at a point estimate;

and any other operation below whose default does not apply.  `column_kernels` generates the rest.
"""

from functools import partial

from pymc_dpsplit.components.dispatch import operation, optional_operation

# Functions of one entry are inlined, since passing a prior costs more than most of their bodies.
_of_an_entry = partial(operation, inline=True)
_optional_of_an_entry = partial(optional_operation, inline=True)


@_of_an_entry
def log_measure(prior, d, x):
    """Return log h(x), or `LOG_ZERO` if x is not in the support.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    x : float

    Returns
    -------
    float
    """


@operation
def log_partition(prior, d, n, t):
    """Return log Z of entries of one column, up to a term that depends on the prior alone.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    n : float
        Number of entries.
    t : float
        Sum of `statistic` over the entries.

    Returns
    -------
    float
    """


@operation
def draw_natural(prior, d, n, t, rng):
    """Draw the parameter of one column from its posterior.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    n, t : float
        Number of entries, and the sum of `statistic` over them.
    rng : numpy.random.Generator

    Returns
    -------
    slope, constant : float
    """


@operation
def mean_natural(prior, d, n, t):
    """Return slope and constant at a plug-in estimate, finite for every n and t.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    n, t : float
        Number of entries, and the sum of `statistic` over them.

    Returns
    -------
    slope, constant : float
    """


@_optional_of_an_entry
def statistic(prior, d, x):
    """Return T(x), by default x.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    x : float

    Returns
    -------
    float
    """
    return x


@_optional_of_an_entry
def measure_statistic(prior, d, x):
    """Return the statistic of an entry from which sums of log h are computed.

    It must not depend on hyperparameters that may be PyMC variables.  It is -log h(x) unless the
    family implements `sum_log_measures`.  The default is 0, for h = 1.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    x : float

    Returns
    -------
    float
    """
    return 0.0


@optional_operation
def sum_log_measures(prior, d, n, s):
    """Return the sum of log h over entries of one column, by default -s.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    n : float
        Number of entries.
    s : float
        Sum of `measure_statistic` over the entries.

    Returns
    -------
    float
    """
    return -s


@_optional_of_an_entry
def share_kept(prior, d, before, after):
    """Return the relative precision of t that is left after an entry was removed.

    The default is 1, as sums of whole numbers are exact.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    before, after : float
        Sum t before and after the removal.

    Returns
    -------
    float
    """
    return 1.0


@optional_operation
def prepare_predictive(prior, d, n, t):
    """Precompute the part of the log predictive of one column that does not depend on the entry.

    The defaults of this operation and `finish_predictive` give the ratio of marginals.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    n, t : float
        Number of entries, and the sum of `statistic` over them.

    Returns
    -------
    constant : float
        Term of the log predictive.
    prepared : float
        Passed to `finish_predictive`.
    """
    return -log_partition(prior, d, n, t), 0.0


@_optional_of_an_entry
def finish_predictive(prior, d, n, t, prepared, statistic_of_x):
    """Return the part of the log predictive that depends on the entry, without log h.

    Parameters
    ----------
    prior : NamedTuple
    d : int
    n, t : float
        Number of entries, and the sum of `statistic` over them.
    prepared : float
        From `prepare_predictive`.
    statistic_of_x : float
        `statistic` of the entry.

    Returns
    -------
    float
    """
    return log_partition(prior, d, n + 1.0, t + statistic_of_x)
