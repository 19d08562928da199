"""Operations by which a few clusters move together: coordinates without bounds, and derivatives.

They are optional.  A family that has them implements all of them, and `moves.newton` then moves
parameters and weights of clusters that overlap; for a family without, it does nothing.
"""

from typing import Any

from numba.extending import overload

from pymc_dpsplit.components import base
from pymc_dpsplit.kernels.jit import FASTMATH


def _undefined(*_: Any) -> Any:
    raise NotImplementedError("kernel operations run inside compiled kernels only")


def n_coordinates(prior):
    """Number P of coordinates of one cluster; by default None: the family has none."""
    return _undefined(prior)


def fill_coordinates(prior, params, point):
    """Write the coordinates of `params` into `point` (P,); its first element is not read."""
    return _undefined(prior, params, point)


def set_parameters(prior, point, params):
    """Write the parameters with the coordinates `point` (P,) into `params`."""
    return _undefined(prior, point, params)


def fill_scores(prior, tile, params, scores):
    """Write the derivatives of the log density of a tile into `scores` (P * TILE,).

    They are taken by the coordinates; derivative p of observation t is element p * TILE + t.
    """
    return _undefined(prior, tile, params, scores)


def add_log_base(prior, point, gradient, curvature):
    """Return the log density of the base measure at `point`, up to a constant.

    Its derivatives are added to `gradient` (P,), and something positive of the size of its
    second derivatives to `curvature` (P,).
    """
    return _undefined(prior, point, gradient, curvature)


@overload(n_coordinates, jit_options={"fastmath": FASTMATH, "nogil": True}, strict=False)
def _choose_none(prior: Any) -> Any:
    """Choose None for families without coordinates."""
    if base.implemented(n_coordinates, prior):
        return None
    return lambda prior: None
