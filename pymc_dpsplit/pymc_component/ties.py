"""Detection of ties among rows that make the posterior improper.

The likelihood of a cluster of m equal rows with its own location and scale s, with the location
integrated out, grows like ``s^(1 - m)`` as s goes to 0.  If the base density of s behaves like
``s^q``, the integral over s is infinite for ``m >= q + 2``.
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
# Smallest number of ties, rows equal to an earlier row; a single pair may be chance.
_LEAST_TIES = 2


def fault_of_ties(label: str, own: Mapping[str, Any], rows: np.ndarray) -> str | None:
    """Return a warning if ties among rows make the posterior improper.

    Parameters
    ----------
    label : str
        Name of the distribution of a row, such as ``"pm.Normal"``.
    own : mapping
        Name of each cluster parameter to its distribution.
    rows : ndarray of float64 or float32, shape (N, D)

    Returns
    -------
    str or None
        One sentence that names the argument, the fault and the remedy.  None if there are
        no such ties or the base measure is not recognised.
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
    """Return the power q of a base density that behaves like s^q at 0; None if unknown."""
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
