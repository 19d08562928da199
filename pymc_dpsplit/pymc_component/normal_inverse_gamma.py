"""Recognition of a normal-inverse-gamma base measure in the arguments of a normal distribution.

It is written as nested distributions, mu ~ N(mu0, sigma^2 / kappa0) given sigma^2 or its inverse.
The form of the PyTensor expression does not matter, because it is evaluated at a few points.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from pymc.pytensorf import rvs_in_graph

from pymc_dpsplit.components.normal import Normal
from pymc_dpsplit.pymc_component.declaration import is_unnamed

# Values of the inner variable at which expressions are compared.
_TRIED = (0.3, 1.0, 4.7)


def normal_inverse_gamma(arguments: Mapping[str, Any]) -> Normal | None:
    """Find the hyperparameters of a `Normal` in the arguments of ``pm.Normal``.

    Parameters
    ----------
    arguments : mapping
        ``mu``, and ``tau`` or ``sigma``; with ``v`` an unnamed ``pm.Gamma.dist(a0, b0)`` or
        ``pm.InverseGamma.dist(a0, b0)``, the variance is proportional to ``1 / v`` or ``v``,
        as is that of ``mu``, an unnamed ``pm.Normal.dist(mu0, ...)``.

    Returns
    -------
    Normal or None
        None if the arguments do not have this form.
    """
    given = set(arguments)
    if given not in ({"mu", "tau"}, {"mu", "sigma"}) or not is_unnamed(arguments["mu"]):
        return None
    mu, inner = arguments["mu"], _only_source(arguments[(given - {"mu"}).pop()])
    if inner is None or mu.owner.op.name != "normal" or mu.type.ndim or inner.type.ndim:
        return None
    centre, spread = mu.owner.op.dist_params(mu.owner)
    own = arguments.get("tau")
    own = arguments["sigma"] ** 2 if own is None else 1.0 / own
    if rvs_in_graph(centre) or set(_sources(spread)) != {inner}:
        return None
    variances = np.array([[of.eval({inner: v}) for v in _TRIED] for of in (own, spread**2)])
    scale = variances[0] * _TRIED if inner.owner.op.name == "gamma" else variances[0] / _TRIED
    ratio = variances[0] / variances[1]
    if not (np.allclose(scale, scale[0], rtol=1e-5) and np.allclose(ratio, ratio[0], rtol=1e-5)):
        return None
    shape, rate = (float(of.eval()) for of in inner.owner.op.dist_params(inner.owner))
    rate = 1.0 / rate if inner.owner.op.name == "gamma" else rate
    return Normal(float(centre.eval()), float(ratio[0]), shape, rate * float(scale[0]))


def _sources(expression: Any) -> list[Any]:
    return list(rvs_in_graph(expression))


def _only_source(expression: Any) -> Any | None:
    """Return the only variable behind an expression, if its prior is gamma or inverse gamma."""
    if not hasattr(expression, "owner"):
        return None
    found = _sources(expression)
    is_one = len(found) == 1 and is_unnamed(found[0]) and not found[0].type.ndim
    is_gamma = is_one and found[0].owner.op.name in ("gamma", "invgamma")
    has_numbers = is_gamma and not any(
        rvs_in_graph(of) for of in found[0].owner.op.dist_params(found[0].owner)
    )
    return found[0] if has_numbers else None
