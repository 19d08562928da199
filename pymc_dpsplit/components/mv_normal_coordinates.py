"""Coordinates of a full-covariance cluster, in which a few clusters move together.

They are the mean, the logarithms of the diagonal of the whitening matrix W, and what W has below
it, row by row; docs/method.md, eq. (53).
"""

import math

import numpy as np

from pymc_dpsplit.components import base, coordinates
from pymc_dpsplit.components.mv_normal import MvNormalPrior
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.normal_wishart import set_density
from pymc_dpsplit.kernels.tiles import TILE, new_scratch


@base.implements(coordinates.n_coordinates, MvNormalPrior)
def _n_coordinates(prior):
    n_features = prior.mu0.shape[0]
    return n_features + n_features * (n_features + 1) // 2


@base.implements(coordinates.fill_coordinates, MvNormalPrior)
def _fill_coordinates(prior, params, point):
    d = prior.mu0.shape[0]
    at = 2 * d
    for a in range(d):
        row = 1 + d * (1 + a)
        y = params[1 + a]
        for b in range(a):
            y -= params[row + b] * point[b]
            point[at] = params[row + b]
            at += 1
        point[a] = y / params[row + a]
        point[d + a] = math.log(params[row + a])


@kernel
def _whitening(point, d):
    """The matrix W (D, D) with these coordinates."""
    whitening = np.zeros((d, d))
    at = 2 * d
    for a in range(d):
        for b in range(a):
            whitening[a, b] = point[at]
            at += 1
        whitening[a, a] = math.exp(point[d + a])
    return whitening


@base.implements(coordinates.set_parameters, MvNormalPrior)
def _set_parameters(prior, point, params):
    d = prior.mu0.shape[0]
    set_density(_whitening(point, d), point[:d], params)


@base.implements(coordinates.fill_scores, MvNormalPrior)
def _fill_scores(prior, tile, params, scores):
    """With y = W (x - mu): W'y by mu, -y_a (x - mu)_b by W_ab, plus 1 / W_aa on the diagonal."""
    d = prior.mu0.shape[0]
    point = np.empty(d + d * (d + 1) // 2)
    coordinates.fill_coordinates(prior, params, point)
    y = new_scratch(1)
    scores[: d * TILE] = 0.0
    at = 2 * d
    for a in range(d):
        row = 1 + d * (1 + a)
        y[:] = -params[1 + a]
        for b in range(a + 1):
            for t in range(TILE):
                y[t] += params[row + b] * tile[b * TILE + t]
        for b in range(a + 1):
            w, mean = params[row + b], point[b]
            for t in range(TILE):
                scores[b * TILE + t] += w * y[t]
            if b < a:
                for t in range(TILE):
                    scores[at * TILE + t] = -y[t] * (tile[b * TILE + t] - mean)
                at += 1
            else:
                for t in range(TILE):
                    gap = tile[b * TILE + t] - mean
                    scores[(d + a) * TILE + t] = 1.0 - w * y[t] * gap


@base.implements(coordinates.add_log_base, MvNormalPrior)
def _add_log_base(prior, point, gradient, curvature):
    d = prior.mu0.shape[0]
    whitening = _whitening(point, d)
    gap = point[:d] - prior.mu0
    log_base = 0.0
    at = 2 * d
    for a in range(d):
        y = 0.0
        for b in range(a + 1):
            y += whitening[a, b] * gap[b]
        power = prior.nu0 - (d - 1 - a) + 1.0
        log_base += power * point[d + a] - 0.5 * prior.kappa0 * y * y
        for b in range(a + 1):
            pull = 0.0
            for m in range(a + 1):
                pull += whitening[a, m] * (prior.psi0[m, b] if m >= b else prior.psi0[b, m])
            w = whitening[a, b]
            log_base -= 0.5 * pull * w
            gradient[b] -= prior.kappa0 * y * w
            curvature[b] += prior.kappa0 * w * w
            slope = -pull - prior.kappa0 * y * gap[b]
            if b < a:
                gradient[at] += slope
                curvature[at] += prior.psi0[b, b] + prior.kappa0 * gap[b] * gap[b]
                at += 1
            else:
                gradient[d + a] += power + slope * w
                curvature[d + a] += 2.0 * power
    return log_base
