"""Rows of which some are equal, under a base measure that lets clusters shrink onto them.

A cluster of m equal rows, with a location and a scale s of its own, has a likelihood that grows
like ``s^(1 - m)`` as s goes to 0, when the location is integrated out.  Against a base density that
behaves like ``s^q`` there its integral is infinite from ``m = q + 2`` rows on.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant

# Location and scale of distributions whose density at the location grows like 1 / scale.
_SCALES: dict[str, tuple[str, str]] = {
    "pm.Normal": ("mu", "sigma"),
    "pm.StudentT": ("mu", "sigma"),
    "pm.SkewNormal": ("mu", "sigma"),
    "pm.LogNormal": ("mu", "sigma"),
    "pm.Laplace": ("mu", "b"),
    "pm.Cauchy": ("alpha", "beta"),
    "pm.Logistic": ("mu", "s"),
    "pm.Gumbel": ("mu", "beta"),
}
_POSITIVE_AT_ZERO = ("halfnormal", "halfcauchy", "halfstudentt", "exponential")
# Equal rows beyond the first of each kind; one pair alone may be chance.
_LEAST_TIES = 2


def fault_of_ties(label: str, own: Mapping[str, Any], rows: np.ndarray) -> str | None:
    """Say what makes the posterior of some rows improper, if ties among them do.

    Parameters
    ----------
    label : str
        Name of the distribution of a row, such as ``"pm.Normal"``.
    own : mapping
        Name of each argument that a cluster has for itself to its distribution.
    rows : ndarray of float64 or float32, shape (N, D)

    Returns
    -------
    str or None
        One sentence that names the argument, the fault and the remedy.  None also where the base
        measure is of another kind than those known here.
    """
    location, scale = _SCALES.get(label, ("", ""))
    if rows.shape[1] != 1 or location not in own or scale not in own:
        return None
    order = _order_at_zero(own[scale])
    if order is None:
        return None
    values, counts = np.unique(rows, return_counts=True)
    most = int(counts.max())
    if most < order + 2 or len(rows) - len(values) < _LEAST_TIES:
        return None
    return (
        f"observed has ties (up to {most} rows are {values[counts.argmax()]:g}), and clusters of "
        f"equal rows can shrink to a point under the base measure of {scale}, so that the "
        f"posterior is improper; give {scale}=pm.LogNormal.dist(...) or pm.InverseGamma.dist(...), "
        "which keep it from zero, or add to observed what rounding took from it."
    )


def _order_at_zero(scale: Any) -> float | None:
    """Power of s like which a base density behaves at s = 0; None if it is not known."""
    name = getattr(scale.owner.op, "name", None)
    parameters = scale.owner.op.dist_params(scale.owner)
    if scale.type.ndim:
        return None
    if name in _POSITIVE_AT_ZERO:
        return 0.0
    if not isinstance(parameters[0], Constant):
        return None
    first = float(parameters[0].data)
    if name == "uniform":
        return 0.0 if first == 0.0 else None
    return first - 1.0 if name == "gamma" else None
