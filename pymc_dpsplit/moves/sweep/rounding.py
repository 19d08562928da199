"""Atoms rounded to float32, and a bound on the errors of masses computed from them, eq. (2.9)."""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.optional import rounding_in_single
from pymc_dpsplit.kernels.jit import jitted, jitted_copied
from pymc_dpsplit.kernels.norms import largest_norm

# Relative error of a number rounded to float32.
_UNIT = 2.0**-24
# Largest bound relative to the total mass: beyond, too many labels would be drawn twice.
_MOST_SLACK = 2.0**-5
# Largest numbers in tiles, and of what multiplies them; the smallest of float32 times these is
# below its unit.
_MOST = 1e30


class RoundedAtoms(NamedTuple):
    """Parameters of the atoms of a sweep in float32.

    Attributes
    ----------
    params : ndarray of float32, shape (A, P)
        Their constants are less by the largest one, which leaves more digits.
    per_norm, constant : float
        See `rounding_in_single`.
    """

    params: np.ndarray
    per_norm: float
    constant: float


@jitted
def round_atoms(prior, params, factors):
    """Round parameters to float32, or return None if the family or rows in groups do not allow it.

    Parameters
    ----------
    prior : NamedTuple
    params : ndarray of float64, shape (A, P)
    factors : GroupFactors or None

    Returns
    -------
    RoundedAtoms or None
    """
    if factors is not None:
        return None
    return _rounded(rounding_in_single(prior, params), params)


@jitted
def _rounded(rounding, params):
    if rounding is None:
        return None
    atoms, highest = np.empty(params.shape, np.float32), -np.inf
    for k in range(params.shape[0]):
        highest = max(highest, params[k, 0])
    for k in range(params.shape[0]):
        atoms[k, 0] = params[k, 0] - highest
        for j in range(1, params.shape[1]):
            atoms[k, j] = params[k, j]
    return RoundedAtoms(atoms, *rounding)


@jitted_copied
def slack_of(per_norm, constant, tile, n_features, n_atoms):
    """Bound errors of the point that selects a label relative to the total mass, by eq. (2.9).

    Parameters
    ----------
    per_norm, constant : float
        See `RoundedAtoms`.
    tile : ndarray of float32, shape (>= D * TILE,)
    n_features, n_atoms : int

    Returns
    -------
    at_zero, slope : float
        See `choose_certainly`; `at_zero` is inf if the tile should not be tried.
    """
    norm, log_atoms = largest_norm(tile, n_features), math.log(n_atoms)
    error = _UNIT * (per_norm * norm + constant)
    slope = 0.25 * error + _UNIT * (n_features + 4.0)
    at_zero = 2.0 * error + 0.5 * error * error + _UNIT * (n_atoms + 3.0 * log_atoms + 4.0)
    at_zero = 4.0 * (at_zero + slope * log_atoms)
    if not (at_zero < _MOST_SLACK and norm < _MOST and per_norm < _MOST):
        at_zero = np.inf
    return at_zero, 4.0 * slope
