"""The prior that `LinearRegression.from_data` chooses: as much information as a tenth of a row."""

from typing import Any

import numpy as np

from pymc_dpsplit.data.blocks import moments_of

# Prior precision in rows, and share of the residual variance that is left within clusters.
_ROWS, _WITHIN = 0.1, 0.1
# Share of the diagonal in the cross products, so that collinear covariates have a proper prior.
_SHRINKAGE = 0.1
# Least residual variance, as a share of that of the response.
_LEAST_SHARE = 1e-4


def prior_from(x: np.ndarray, y: np.ndarray, has_intercept: bool) -> dict[str, Any]:
    """Return hyperparameters for covariates and response.

    Parameters
    ----------
    x : ndarray of float64, shape (N, P)
    y : ndarray of float64, shape (N,)
    has_intercept : bool

    Returns
    -------
    dict
        ``mu0`` (C,), ``lambda0`` (C, C), ``a0`` and ``b0``.
    """
    (y_mean,), (y_variance,) = moments_of(y[:, None])
    x_mean = x.mean(0) if has_intercept else np.zeros(x.shape[1])
    y_mean = float(y_mean) if has_intercept else 0.0
    centred = x - x_mean
    scale = np.sqrt((centred**2).mean(0))
    scale = np.where(scale > 1e-12 * np.abs(x).max(0, initial=0.0), scale, 1.0)
    slopes = np.linalg.lstsq(centred / scale, y - y_mean, rcond=1e-10)[0] / scale
    residual = float(np.mean((y - y_mean - centred @ slopes) ** 2))
    cross = centred.T @ centred / len(y)
    cross = (1.0 - _SHRINKAGE) * cross + _SHRINKAGE * np.diag(scale**2)
    np.fill_diagonal(cross, scale**2)
    mu0, lambda0 = slopes, _ROWS * cross
    if has_intercept:
        mu0 = np.append(y_mean - x_mean @ slopes, slopes)
        # From the intercept at the means of the covariates to that at 0.
        move = np.eye(len(mu0))
        move[0, 1:] = x_mean
        centred_lambda0 = np.zeros_like(move)
        centred_lambda0[0, 0] = _ROWS
        centred_lambda0[1:, 1:] = lambda0
        lambda0 = move.T @ centred_lambda0 @ move
    variance = max(residual, _LEAST_SHARE * float(y_variance))
    return {"mu0": mu0, "lambda0": lambda0, "a0": 2.0, "b0": _WITHIN * variance}
