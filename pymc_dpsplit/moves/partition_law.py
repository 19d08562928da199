"""Prior law of the partition, and every formula that depends on it.

Laws of Gibbs type (Gnedin & Pitman 2006), eq. (14.1), have two parameters.  The probability of a
partition of N observations into clusters of sizes n_1, .., n_K is

    V(N, K) prod_k Gamma(n_k - sigma) / Gamma(1 - sigma),
    V(N, K) = prod_{i < K} (tau + i sigma) / ((tau + 1) .. (tau + N - 1)),

with discount sigma and strength tau:

======================================  =========  ==========  ===============================
law                                     discount   strength    where
======================================  =========  ==========  ===============================
Dirichlet process                       0          alpha       alpha > 0
Pitman-Yor process                      d          alpha       0 <= d < 1, alpha > -d
Dirichlet(gamma) on M components        -gamma     gamma * M   gamma > 0, so that K <= M
======================================  =========  ==========  ===============================

A finite mixture with unknown M has the last law given M.  Moves use the law only through the
functions of this module.  With discount 0 every function gives the results for a Dirichlet process
exactly, to the last bit, as the terms subtracted are zero.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import log_gamma_ratio

# A finite mixture is full below this mass, relative to the strength; what is left is rounding.
FULL_BELOW = 1e-12
# Maximum number of sticks that a sweep keeps under a law with a discount, and that it breaks; those
# lighter than every slice are not kept.  The weight of the remainder falls like a power of their
# number; from a discount of 0.4 on, millions may be needed.
MOST_STICKS, MOST_BROKEN = 100_000, 10_000_000
# Floor of the slices under a positive discount, in observations: 1 up to N = 40^2, sqrt(N) / 40
# from there on, at most 8; see docs/decisions/0052-slices-under-a-discount.md.
_ROOT_AT_ONE, _MOST_AT_FLOOR = 40.0, 8.0
# Typical number of sticks of a sweep up to which it breaks them, whatever the number of
# observations, and from which it does not.
_FEW_STICKS, _MANY_STICKS = 100, 5_000
# Given the weights, the number has a tail like that of a Pareto distribution with index
# (1 - sigma) / sigma.  Sticks are broken if it exceeds MOST_STICKS about once in so many sweeps.
# A cluster of one observation may be light, so that over the weights the index is
# (1 - sigma)^2 / sigma; MOST_BROKEN is exceeded less than about once in 1e8 sweeps.
_LOG_SWEEPS = math.log(1e9)
# exp of it is finite.
_MOST_EXPONENT = 600.0


class PartitionLaw(NamedTuple):
    """Law of a random partition of Gibbs type.

    Attributes
    ----------
    discount : float
        Less than 1; negative for a finite number of components.
    strength : float
        Greater than minus the discount.
    """

    discount: float
    strength: float


def dirichlet_process(alpha: float) -> PartitionLaw:
    """Return the law of the partition of a Dirichlet process with concentration `alpha`."""
    return PartitionLaw(0.0, float(alpha))


def finite_mixture(gamma: float, n_components: int) -> PartitionLaw:
    """Return the law of the partition under symmetric Dirichlet(`gamma`) weights.

    Parameters
    ----------
    gamma : float
        Parameter of the Dirichlet distribution, per component.
    n_components : int
        Number of components, occupied or not.

    Returns
    -------
    PartitionLaw
    """
    return PartitionLaw(-float(gamma), float(gamma) * n_components)


def is_possible(law: PartitionLaw) -> bool:
    """Return whether numbers are within the ranges of the table above, and finite."""
    discount, strength = law
    if not (math.isfinite(discount) and math.isfinite(strength)):
        return False
    return discount < 1.0 and strength > min(0.0, -discount)


@jitted
def opening_mass(law, n_clusters):
    """Prior mass of a new cluster beside `n_clusters`: tau + K sigma, or 0 if none can be added.

    It is also the parameter of the remainder in the Dirichlet distribution of the weights given the
    partition, and the strength of the law within the remainder.
    """
    mass = law.strength + n_clusters * law.discount
    return mass if mass > FULL_BELOW * abs(law.strength) else 0.0


@jitted
def log_opening_mass(law, n_clusters):
    """Logarithm of `opening_mass`, -inf if no cluster can be added."""
    mass = opening_mass(law, n_clusters)
    return math.log(mass) if mass > 0.0 else -math.inf


@jitted
def joining_mass(law, size):
    """Prior mass of joining a cluster with `size` other members: n - sigma.

    It is also the parameter of a cluster of this size in the Dirichlet distribution of the weights
    given the partition.
    """
    return size - law.discount


@jitted
def log_cluster_factor(law, size):
    """Log of the factor Gamma(n - sigma) / Gamma(1 - sigma) of a cluster of `size`."""
    if law.discount == 0.0:
        return math.lgamma(size)
    return log_gamma_ratio(1.0 - law.discount, size - 1.0)


@jitted
def log_joining_factor(law, size, n_joining):
    """Log of the prior mass with which `n_joining` observations together join a cluster of `size`.

    It is the rising factorial (n - sigma) .. (n - sigma + m - 1), eq. (7.54), which for one
    observation is `joining_mass`.
    """
    if n_joining == 1.0:
        return math.log(joining_mass(law, size))
    return log_cluster_factor(law, size + n_joining) - log_cluster_factor(law, size)


@jitted
def log_founding_factor(law, n_clusters, n_joining):
    """Log of the prior mass with which `n_joining` observations together open a cluster."""
    if n_joining == 1.0:
        return log_opening_mass(law, n_clusters)
    return log_opening_mass(law, n_clusters) + log_cluster_factor(law, n_joining)


@jitted
def log_split_factor(law, n_clusters, n_left, n_right):
    """Log prior ratio of a partition with a cluster split in two to that with it whole, eq. (14.2).

    Parameters
    ----------
    law : PartitionLaw
    n_clusters : int
        Number of clusters before the split.
    n_left, n_right : float
        Sizes of both parts.

    Returns
    -------
    float
    """
    return log_split_factor_given(law, log_opening_mass(law, n_clusters), n_left, n_right)


@jitted
def log_split_factor_given(law, log_opening, n_left, n_right):
    """Compute `log_split_factor` given the log of the mass with which the new cluster is opened."""
    return (
        log_opening
        + log_cluster_factor(law, n_left)
        + log_cluster_factor(law, n_right)
        - log_cluster_factor(law, n_left + n_right)
    )


@jitted
def log_number_factor(law, n_clusters, n_obs):
    """Log of V(N, K), the factor of the number of clusters but not of their sizes, eq. (8.6).

    All terms of the log probability of a partition that depend on the strength are in this factor.

    Parameters
    ----------
    law : PartitionLaw
    n_clusters, n_obs : int

    Returns
    -------
    float
    """
    strength = law.strength
    if law.discount == 0.0:
        return n_clusters * math.log(strength) - log_gamma_ratio(strength, float(n_obs))
    total = -log_gamma_ratio(strength + 1.0, n_obs - 1.0)
    for i in range(1, n_clusters):
        total += log_opening_mass(law, i)
    return total


@jitted
def log_probability(law, sizes):
    """Log probability of a partition with clusters of these sizes, its EPPF."""
    total = log_number_factor(law, sizes.shape[0], sizes.sum())
    for k in range(sizes.shape[0]):
        total += log_cluster_factor(law, sizes[k])
    return total


@jitted
def log_measure_density(law, log_weights, log_rest):
    """Log density of the number and weights of clusters and of the remainder, given their sizes.

    It is given as a function of the law, up to a constant.  With discount 0 it is
    K log(alpha) + (alpha - 1) log_rest, which `variables.measure` states as a graph.

    Parameters
    ----------
    law : PartitionLaw
    log_weights : ndarray of float64, shape (K,)
    log_rest : float
        Log weight of the remainder; -inf only if no cluster can be added, then it does not enter.

    Returns
    -------
    float
    """
    n_clusters, discount = log_weights.shape[0], law.discount
    rest = opening_mass(law, n_clusters)
    if discount == 0.0:
        return n_clusters * math.log(rest) + (rest - 1.0) * log_rest
    total = -n_clusters * math.lgamma(1.0 - discount)
    for i in range(1, n_clusters):
        total += log_opening_mass(law, i)
    for k in range(n_clusters):
        total -= discount * log_weights[k]
    if rest > 0.0:
        return total + (rest - 1.0) * log_rest + log_gamma_ratio(rest, 1.0 - n_clusters * discount)
    return total + math.lgamma(law.strength + 1.0)


@jitted
def draw_log_remainder(law, n_clusters, rng):
    """Draw the log of the gamma variable of the remainder, -inf if no cluster can be added.

    Divided by the sum of itself and the gamma variables of the clusters, which have shapes
    `joining_mass`, it is the weight of the remainder.  The sum has shape `total_mass`.

    Parameters
    ----------
    law : PartitionLaw
    n_clusters : int
    rng : numpy.random.Generator

    Returns
    -------
    float
    """
    mass = opening_mass(law, n_clusters)
    return draw_log_gamma(rng, mass) if mass > 0.0 else -math.inf


@jitted
def total_mass(law, n_obs):
    """Sum of the Dirichlet parameters of weights and remainder given the partition: N + tau."""
    return n_obs + law.strength


@jitted
def _log1p_exp(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@jitted
def draw_stick(law, n_atoms, rng):
    """Break a stick off the remainder beside `n_atoms` atoms, occupied atoms and sticks together.

    Its share v of the remainder is Beta(1 - sigma, tau + (n_atoms + 1) sigma), eq. (14.3), and 1
    if the second parameter is 0: the last component of a finite mixture.

    Parameters
    ----------
    law : PartitionLaw
    n_atoms : int
    rng : numpy.random.Generator

    Returns
    -------
    log_share, log_left : float
        Logarithms of v and 1 - v.
    """
    if law.discount == 0.0:
        # 1 - v is U^(1 / alpha) for v ~ Beta(1, alpha).
        log_left = -rng.standard_exponential() / law.strength
        return math.log(-math.expm1(log_left)), log_left
    rest = opening_mass(law, n_atoms + 1)
    if rest == 0.0:
        return 0.0, -math.inf
    difference = draw_log_gamma(rng, rest) - draw_log_gamma(rng, 1.0 - law.discount)
    return -_log1p_exp(difference), -_log1p_exp(-difference)


@jitted
def slice_floor(law, n_obs):
    """Floor c of the slices, the weight from which an atom is in reach of all observations.

    Any function of the law and of N alone is exact.  Under a discount many clusters have few
    observations, and with many observations the time to evaluate all of these clusters for all of
    them is what a sweep takes.

    Parameters
    ----------
    law : PartitionLaw
    n_obs : int

    Returns
    -------
    float
    """
    if law.discount > 0.0:
        return min(max(math.sqrt(n_obs) / _ROOT_AT_ONE, 1.0), _MOST_AT_FLOOR) / n_obs
    return 1.0 / n_obs


@jitted
def breaks_sticks(law, n_obs):
    """Whether a sweep with sticks costs less than one with the remainder integrated out.

    The sticks of a Dirichlet process, of which every observation may choose each, are a multiple
    of alpha, those of a finite mixture at most its components, and the clusters at most N.  A
    function of the law and of N alone, so that a sweep that is chosen by it leaves the posterior
    of the partition invariant.
    """
    if law.discount > 0.0:
        n_sticks = typical_sticks(law, n_obs)
        log_most = math.log(n_sticks) + law.discount / (1.0 - law.discount) * _LOG_SWEEPS
        is_few = n_sticks <= min(max(n_obs, _FEW_STICKS), _MANY_STICKS)
        return is_few and log_most <= math.log(MOST_STICKS)
    is_few = law.discount < 0.0 and -law.strength / law.discount <= n_obs
    return is_few or law.strength <= n_obs


@jitted
def typical_sticks(law, n_obs):
    """Approximate number of sticks of most sweeps under a positive discount, eq. (14.4).

    The remainder of the expected partition is tau + sigma E(K) in units of an observation, and the
    lowest slice about 1 / N^2, or higher where `slice_floor` is.
    """
    discount, strength = law.discount, law.strength
    rise = log_gamma_ratio(strength + discount, 1.0 - discount)
    rest = math.exp(rise + log_gamma_ratio(strength + n_obs, discount))
    return sticks_below(discount, rest, n_obs)


@jitted
def sticks_below(discount, rest, n_obs):
    """Approximate number of sticks of a remainder of mass `rest` beside `n_obs` observations.

    L sticks shrink it by a factor of about (1 + L sigma / rest)^(1 - 1 / sigma).
    """
    growth = discount / (1.0 - discount) * math.log1p(n_obs * rest)
    return rest / discount * math.expm1(min(growth, _MOST_EXPONENT))


@jitted
def refuse_heavy_tail(law, n_kept, n_broken):
    """Raise ValueError if a law with a discount needs more sticks than a sweep may have.

    No other kernel raises.  Continuing the sweep would fill the memory, and stopping it early would
    be wrong.

    Parameters
    ----------
    law : PartitionLaw
    n_kept : int
        Number of sticks kept so far.
    n_broken : int
        Number of sticks broken so far.
    """
    if law.discount > 0.0 and (n_kept >= MOST_STICKS or n_broken >= MOST_BROKEN):
        raise ValueError(
            "discount is so large that a sweep needs too many sticks, as the weight not yet seen "
            "falls slowly with their number; use kernel='collapsed', or a smaller discount"
        )


@jitted
def remainder_law(law, n_clusters):
    """Law of the partition of observations in the remainder beside `n_clusters` clusters."""
    return PartitionLaw(law.discount, opening_mass(law, n_clusters))


@jitted
def most_clusters(law, n_obs):
    """Largest number of clusters that `n_obs` observations can have under the law."""
    if law.discount >= 0.0:
        return n_obs
    return min(n_obs, round(-law.strength / law.discount))


@jitted
def draw_seats(law, n_obs, rng):
    """Draw the labels of a partition, one observation after the other.

    The urn of the law is used: given n observations in K clusters, the next one opens a cluster
    with probability (tau + K sigma) / (tau + n).  For a Dirichlet process `forward.draw_seating` is
    faster.

    Parameters
    ----------
    law : PartitionLaw
    n_obs : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (N,)
    """
    labels, masses = np.empty(n_obs, np.int64), np.empty(n_obs)
    n_clusters = 0
    for i in range(n_obs):
        # The first observation opens a cluster even if the strength is 0 or less.
        target = rng.random() * (law.strength + i)
        chosen = n_clusters
        if i > 0:
            target -= opening_mass(law, n_clusters)
            chosen = n_clusters if target < 0.0 else n_clusters - 1
            running = 0.0
            for k in range(n_clusters):
                running += masses[k]
                if 0.0 <= target < running:
                    chosen = k
                    break
        if chosen == n_clusters:
            masses[chosen] = joining_mass(law, 0.0)
            n_clusters += 1
        masses[chosen] += 1.0
        labels[i] = chosen
    return labels
