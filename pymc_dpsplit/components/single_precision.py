"""Families whose densities a sweep may compute in float32, and by how much these may be wrong.

All are normal, with log densities of a constant less half of |y|^2.  Numbers are rounded to float32
before anything is computed; docs/method.md, eq. (2.9).
"""

import math

import numpy as np

from pymc_dpsplit.components.base import implements
from pymc_dpsplit.components.diag_normal import DiagNormalPrior
from pymc_dpsplit.components.mv_normal.family import MvNormalPrior
from pymc_dpsplit.components.normal_known_sigma import NormalKnownSigmaPrior
from pymc_dpsplit.components.optional import rounding_in_single
from pymc_dpsplit.components.spherical_normal import SphericalNormalPrior
from pymc_dpsplit.kernels.jit import jitted

# Roundings of (x - mu) p: of x, mu and p, of the difference and of the product.
_OF_INDEPENDENT = 5.0
# Largest centre, well below the largest number of float32.
_MOST = 1e30


@implements(rounding_in_single, MvNormalPrior)
def _of_full_covariance(prior, params):
    """Bound errors of W x - c, each entry a sum of D + 1 products with W and x rounded."""
    d, scale, offset = prior.mu0.shape[0], 0.0, 0.0
    of_column = np.empty(d)
    for k in range(params.shape[0]):
        of_column[:] = 0.0
        centre = 0.0
        for i in range(d):
            centre += params[k, 1 + i] * params[k, 1 + i]
            row = 1 + d * (1 + i)
            # Sums that do not wait for each other.
            for j in range(i + 1):
                of_column[j] += params[k, row + j] * params[k, row + j]
        scale, offset = _larger(scale, of_column.sum()), _larger(offset, centre)
    return (d + 4.0) * math.sqrt(scale), (d + 4.0) * math.sqrt(offset)


@implements(rounding_in_single, DiagNormalPrior)
def _of_diagonal_covariance(prior, params):
    return _of_independent(params, prior.mu0.shape[0])


@implements(rounding_in_single, SphericalNormalPrior)
def _of_spheres(prior, params):
    return _of_independent(params, prior.mu0.shape[0])


@implements(rounding_in_single, NormalKnownSigmaPrior)
def _of_known_sigma(prior, params):
    return _of_independent(params, 1)


@jitted
def _of_independent(params, n_features):
    """Bound errors of (x - mu) p, where `params` has mu and p after the constant."""
    scale, offset = 0.0, 0.0
    for k in range(params.shape[0]):
        squares = 0.0
        for d in range(n_features):
            mu, p = params[k, 1 + d], params[k, 1 + n_features + d]
            scale = _larger(scale, p if abs(mu) < _MOST else np.inf)
            squares += (mu * p) ** 2
        offset = _larger(offset, squares)
    return _OF_INDEPENDENT * scale, _OF_INDEPENDENT * math.sqrt(offset)


@jitted
def _larger(a, b):
    """Return the larger number; b if one is NaN."""
    return a if a > b else b
