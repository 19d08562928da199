"""Labels given the atoms of a measure whose remainder falls slowly; docs/method.md, section 5.

Under a discount sigma the remainder falls with the number of sticks L like L^(1 - 1 / sigma), so
that breaking it until it is negligible takes 10^5 sticks at a discount of 0.3, and more than fit in
memory from 0.4 on.  Here it is negligible for two observations at once only: that one of them
belongs to it has the probability (5.1), and that two share one of its atoms is left out.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import add_row, draw_parameters, log_marginal, stats_size
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import lengthened, with_more_rows
from pymc_dpsplit.moves.measure import break_remainder
from pymc_dpsplit.moves.partition_law import draw_stick, opening_mass
from pymc_dpsplit.moves.sweep.density import fill_log_mixture
from pymc_dpsplit.moves.sweep.redraw import (
    LOG_LEFT_OUT,
    choose_atoms,
    log_negligible,
    redraw_labels,
)

# The remainder is broken to half of its weight at a time.
_LOG_STEP = math.log(2.0)
# exp of it is finite.
_MOST_EXPONENT = 600.0


@jitted
def redraw_labels_of_conjugate(target, labels, rng, log_alone, log_weights, log_rest, params):
    """Draw labels given the occupied part of the measure of a family with a conjugate prior.

    The draws are those of `redraw_labels` unless the law has a positive discount.

    Parameters
    ----------
    target, labels, rng, log_alone, log_weights, log_rest, params
        See `redraw_labels`.

    Returns
    -------
    log_weights : ndarray of float64, shape (K + M,)
    params : ndarray of float64, shape (K + M, P)
    """
    prior, data, law = target.prior, target.data, target.law
    n_obs = labels.shape[0]
    if law.discount <= 0.0 or not _all_count_once(prior, data, n_obs):
        return redraw_labels(target, labels, rng, log_alone, log_weights, log_rest, params)
    log_density = np.empty(n_obs)
    fill_log_mixture(prior, data, log_alone, log_weights, params, -np.inf, log_density)
    log_floor = log_negligible(prior, data, log_alone, log_density)
    log_bound = log_bound_for_two(prior, data, log_density, LOG_LEFT_OUT)
    while log_rest >= max(log_floor, log_bound - 0.5 * log_shared(law, log_weights.shape[0])):
        # In steps, as two observations share an atom the less the more are known.
        log_weights, params, log_rest = break_remainder(
            target, rng, log_weights, log_rest, params, log_rest - _LOG_STEP
        )
    choose_atoms(prior, data, labels, draw_key(rng), log_weights, params)
    return open_atoms(target, labels, rng, log_alone, log_weights, log_rest, params)


@jitted
def _all_count_once(prior, data, n_obs):
    n_once = 0
    for i in range(n_obs):
        n_once += multiplicity(prior, data, i) == 1.0
    return n_once == n_obs


@jitted
def log_shared(law, n_atoms):
    """Log probability that two observations in the remainder beside some atoms share an atom."""
    return math.log1p(-law.discount) - math.log1p(opening_mass(law, n_atoms))


@jitted
def log_bound_for_two(prior, data, log_density, log_left_out):
    """Log of the largest remainder of which two observations hardly share an atom, eq. (5.2).

    By the inequality of Cauchy and Schwarz the joint marginal of two observations is at most the
    geometric mean of those of two copies of each.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    log_density : ndarray of float64, shape (N,)
        Log density of each observation under the known atoms.
    log_left_out : float
        Log of the largest probability that a label is wrong.

    Returns
    -------
    float
        The weight is this, less half of `log_shared`.
    """
    n_obs = log_density.shape[0]
    log_ratios = np.empty(n_obs)
    for i in range(n_obs):
        stats = np.zeros(stats_size(prior))
        add_row(prior, data, i, stats)
        add_row(prior, data, i, stats)
        log_ratios[i] = 0.5 * log_marginal(prior, stats) - log_density[i]
    largest = log_ratios.max()
    return 0.5 * (log_left_out - math.log(np.exp(log_ratios - largest).sum())) - largest


@jitted
def open_atoms(target, labels, rng, log_alone, log_weights, log_rest, params):
    """Move observations to atoms of their own in the remainder, with probability as in (5.1).

    Parameters
    ----------
    target : Target
    labels : ndarray of int, shape (N,)
        Updated.
    rng : numpy.random.Generator
    log_alone : ndarray of float64, shape (N,)
    log_weights : ndarray of float64, shape (A,)
    log_rest : float
    params : ndarray of float64, shape (A, P)

    Returns
    -------
    log_weights : ndarray of float64, shape (A + B,)
    params : ndarray of float64, shape (A + B, P)
    """
    prior, data, n_obs = target.prior, target.data, labels.shape[0]
    log_density = np.empty(n_obs)
    fill_log_mixture(prior, data, log_alone, log_weights, params, -np.inf, log_density)
    log_first = log_rest
    for i in range(n_obs):
        odds = math.exp(min(log_first + log_alone[i] - log_density[i], _MOST_EXPONENT))
        if rng.random() * (1.0 + odds) < odds:
            n_atoms = log_weights.shape[0]
            log_share, log_left = draw_stick(target.law, n_atoms, rng)
            log_weights = lengthened(log_weights, 1)
            log_weights[n_atoms] = log_rest + log_share
            log_rest += log_left
            params = with_more_rows(params, 1)
            stats = np.zeros(stats_size(prior))
            add_row(prior, data, i, stats)
            draw_parameters(prior, stats, rng, params[n_atoms])
            labels[i] = n_atoms
    return log_weights, params
