"""Weights of a finite mixture as sticks, for both priors; docs/method.md, eq. (13.1).

A Dirichlet distribution is equivalent to independent beta sticks.  NUTS samples log odds of sticks
better than log ratios of weights, because the widely varying log weights of empty clusters do not
affect the sticks of occupied ones.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dpsplit.finite.started import starting_at

KINDS = ("dirichlet", "stick")


def beta_of_sticks(kind: str, alpha: Any, n_components: int) -> tuple[Any, Any]:
    """Return the parameters a and b of the beta distributions of the sticks.

    Parameters
    ----------
    kind : str
        ``"dirichlet"`` for Dirichlet(alpha / K, ...), ``"stick"`` for the truncated stick-breaking
        weights of the Dirichlet process, where the last weight is the remainder.
    alpha : float or symbolic scalar
    n_components : int
        Number of weights K.

    Returns
    -------
    a, b : tensor of shape (K - 1,), or number
    """
    if kind == "stick":
        return 1.0, alpha
    share = alpha / n_components
    return share, share * (n_components - 1.0 - np.arange(n_components - 1))


def initial_log_odds(kind: str, alpha: float, sizes: np.ndarray) -> np.ndarray:
    """Return the log odds of the posterior means of the sticks given sizes of clusters.

    Parameters
    ----------
    kind : {"dirichlet", "stick"}
    alpha : float
    sizes : ndarray of int, shape (K,)

    Returns
    -------
    ndarray of float64, shape (K - 1,)
    """
    a, b = beta_of_sticks(kind, alpha, len(sizes))
    later = sizes[::-1].cumsum()[::-1][1:]
    return np.log(a + sizes[:-1]) - np.log(b + later)


def declare_log_weights(name: str, kind: str, alpha: Any, start: np.ndarray) -> Any:
    """Declare the log odds of the sticks in the model of the context.

    Parameters
    ----------
    name : str
        Name of the mixture.
    kind : {"dirichlet", "stick"}
    alpha : float or symbolic scalar
    start : ndarray of float64, shape (K - 1,)
        Initial log odds.

    Returns
    -------
    symbolic vector (K,)
        Log weights.
    """
    if len(start) == 0:
        return pt.zeros(1)
    a, b = (pt.broadcast_to(of, start.shape) for of in beta_of_sticks(kind, alpha, len(start) + 1))
    # Not pm.Beta, because the gradient is lost if a stick rounds to 1.
    log_odds = pm.CustomDist(
        f"{name}_log_odds",
        a,
        b,
        dist=_draw_log_odds,
        logp=_log_odds_logp,
        signature="(),()->()",
        support_point=starting_at(start),
    )
    zero = np.zeros(1)
    log_taken = pt.concatenate([-pt.softplus(-log_odds), zero])
    log_left = pt.concatenate([zero, -pt.cumsum(pt.softplus(log_odds))])
    return log_taken + log_left


def _log_odds_logp(value: Any, a: Any, b: Any) -> Any:
    """Return the log density of the log odds of a beta variable."""
    log_norm = pt.gammaln(a + b) - pt.gammaln(a) - pt.gammaln(b)
    return log_norm - a * pt.softplus(-value) - b * pt.softplus(value)


def _draw_log_odds(a: Any, b: Any, size: Any) -> Any:
    return _draw_log_gamma(a, size) - _draw_log_gamma(b, size)


def _draw_log_gamma(shape: Any, size: Any) -> Any:
    """Draw log gammas by G(a) = G(a + 1) U^(1/a), as gammas of small shape underflow."""
    above = pm.Gamma.dist(shape + 1.0, 1.0, size=size)
    return pt.log(above) - pm.Exponential.dist(shape, size=size)
