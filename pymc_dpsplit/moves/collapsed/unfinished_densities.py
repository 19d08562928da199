"""Choice of a cluster where densities of unlikely clusters are upper bounds.

A family may leave the density of a far cluster unfinished and write an upper bound, see
`fill_log_predictives`.  A position is drawn by these masses; if its own may be a bound, the density
is finished, and the position accepted with the ratio of the two, or another one drawn.  This is
rejection sampling: whatever the bounds are, each position is drawn by its mass (method, section 4).
"""

import math

from pymc_dpsplit.components.base import log_predictive
from pymc_dpsplit.kernels.cluster_choice import choose_position
from pymc_dpsplit.kernels.jit import jitted, jitted_inlined_uncounted
from pymc_dpsplit.kernels.views import row_of

# Difference of log masses from which on a cluster is unlikely.  The more densities are finished
# before the choice, the fewer after it.
_UNLIKELY = 8.0
# Rounding of a limit, generously; and, relative to it, that of a log density.
_ROUNDING, _RELATIVE_ROUNDING = 1e-3, 1e-12


@jitted_inlined_uncounted
def limits_of_densities(log_new, log_own, log_most):
    """Log densities below which a cluster is unlikely, see `fill_log_predictives`.

    Parameters
    ----------
    log_new : float
        Log mass of a new cluster.
    log_own, log_most : float
        Log prior mass of the own cluster, and the largest that any has.

    Returns
    -------
    least, drop : float
    """
    return log_new - log_most - _UNLIKELY, log_most - log_own + _UNLIKELY


@jitted_inlined_uncounted
def limit_of_bounds(log_density, own, least, drop):
    """Log density from which on all densities of other clusters are finished.

    Parameters
    ----------
    log_density : ndarray of float64
        Written by `fill_log_predictives` without loss of precision.
    own : int
        Position of the own cluster, -1 if the observation is alone.
    least, drop : float
        Result of `limits_of_densities`.

    Returns
    -------
    float
    """
    limit = least if own < 0 else max(least, log_density[own] - drop)
    return limit + _ROUNDING


@jitted
def finish_choice(
    prior, data, i, positions, log_prior, own, log_prior_own, log_new, log_alone, limit, p, rng
):
    """Accept position p, drawn by masses of which some are bounds, or draw another one.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    i : int
        The observation.
    positions : Positions
        With the log densities; those of positions that are drawn are finished.
    log_prior : ndarray of float64, shape (capacity,)
        Log prior masses of the positions.
    own : int
        Position of the observation.
    log_prior_own, log_new, log_alone : float
        Log prior mass of position `own`, log mass of a new cluster, and log prior predictive
        density of the observation.
    limit : float
        A density of another cluster than the own one may be a bound only if it is below.
    p : int
        The position drawn.
    rng : numpy.random.Generator

    Returns
    -------
    int
    """
    clusters, log_density, n = positions.clusters, positions.log_density, positions.counts[0]
    while p < n and p != own and log_density[p] < limit:
        bound = log_density[p]
        log_density[p] = log_predictive(prior, data, i, row_of(clusters.caches, p))
        excess = bound - log_density[p]
        # One that was finished needs no uniform, so that others than bounds change no draw.
        if excess <= _RELATIVE_ROUNDING * (1.0 + abs(bound)):
            break
        if math.log1p(-rng.random()) <= -excess:
            break
        u, weights = rng.random(), positions.weights
        p = choose_position(
            log_density, log_prior, own, log_prior_own, n, log_new, log_alone, u, weights
        )
    return p
