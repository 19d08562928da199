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


def initial_sticks(kind: str, alpha: float, sizes: np.ndarray) -> np.ndarray:
    """Posterior means (K - 1,) of the sticks given the sizes (K,) of clusters."""
    a, b = beta_of_sticks(kind, alpha, len(sizes))
    later = sizes[::-1].cumsum()[::-1][1:]
    return (a + sizes[:-1]) / (a + b + sizes[:-1] + later)


def declare_log_weights(name: str, kind: str, alpha: Any, start: np.ndarray) -> Any:
    """Declare the sticks in the model of the context; return the log weights (K,) as a graph."""
    if len(start) == 0:
        return pt.zeros(1)
    a, b = beta_of_sticks(kind, alpha, len(start) + 1)
    sticks = pm.Beta(f"{name}_sticks", a, b, initval=start, shape=start.shape)
    zero = np.zeros(1)
    log_taken = pt.concatenate([pt.log(sticks), zero])
    log_left = pt.concatenate([zero, pt.cumsum(pt.log1p(-sticks))])
    return log_taken + log_left
