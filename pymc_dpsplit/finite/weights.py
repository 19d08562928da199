"""Weights of a finite mixture as sticks, whatever their prior; docs/method.md, eq. (120).

A Dirichlet law is a law of independent beta sticks, and NUTS moves log odds of sticks better
than log ratios of weights: empty clusters, whose log weights wander far, leave the sticks of
occupied ones alone.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

KINDS = ("dirichlet", "stick")


def beta_of_sticks(kind: str, alpha: Any, n_components: int) -> tuple[Any, Any]:
    """Parameters a and b, each (K - 1,) or a number, of the beta laws of the sticks.

    Parameters
    ----------
    kind : str
        ``"dirichlet"`` for Dirichlet(alpha / K, ...), ``"stick"`` for the stick-breaking weights of
        the Dirichlet process, the last of which is all that is left.
    alpha : float or symbolic scalar
    n_components : int
        Number of weights K.
    """
    if kind == "stick":
        return 1.0, alpha
    share = alpha / n_components
    return share, share * (n_components - 1.0 - np.arange(n_components - 1))


def initial_log_odds(kind: str, alpha: float, sizes: np.ndarray) -> np.ndarray:
    """Log odds (K - 1,) of the posterior means of the sticks given the sizes (K,) of clusters."""
    a, b = beta_of_sticks(kind, alpha, len(sizes))
    later = sizes[::-1].cumsum()[::-1][1:]
    return np.log(a + sizes[:-1]) - np.log(b + later)


def declare_log_weights(name: str, kind: str, alpha: Any, start: np.ndarray) -> Any:
    """Declare the log odds of the sticks in the model of the context; return log weights (K,)."""
    if len(start) == 0:
        return pt.zeros(1)
    a, b = (pt.broadcast_to(of, start.shape) for of in beta_of_sticks(kind, alpha, len(start) + 1))
    # Not pm.Beta, whose gradient is lost where a stick rounds to 1.
    log_odds = pm.CustomDist(
        f"{name}_log_odds",
        a,
        b,
        dist=_draw_log_odds,
        logp=_log_odds_logp,
        signature="(),()->()",
        initval=start,
    )
    zero = np.zeros(1)
    log_taken = pt.concatenate([-pt.softplus(-log_odds), zero])
    log_left = pt.concatenate([zero, -pt.cumsum(pt.softplus(log_odds))])
    return log_taken + log_left


def _log_odds_logp(value: Any, a: Any, b: Any) -> Any:
    """Log density of the log odds of a beta variable."""
    log_norm = pt.gammaln(a + b) - pt.gammaln(a) - pt.gammaln(b)
    return log_norm - a * pt.softplus(-value) - b * pt.softplus(value)


def _draw_log_odds(a: Any, b: Any, size: Any) -> Any:
    return _draw_log_gamma(a, size) - _draw_log_gamma(b, size)


def _draw_log_gamma(shape: Any, size: Any) -> Any:
    """Draw by G(a) = G(a + 1) U^(1/a), as a gamma of small shape underflows."""
    above = pm.Gamma.dist(shape + 1.0, 1.0, size=size)
    return pt.log(above) - pm.Exponential.dist(shape, size=size)
