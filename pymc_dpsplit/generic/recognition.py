"""Pairs of a distribution and a base measure of which parameters can be integrated out.

Such a component is one of the families of this package, whose kernels are faster and whose moves
integrate: it is used, and the log says so.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs

from pymc_dpsplit.components.bernoulli import Bernoulli
from pymc_dpsplit.components.categorical import Categorical
from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.components.exponential import Exponential
from pymc_dpsplit.components.normal_mean import NormalMean
from pymc_dpsplit.components.poisson import Poisson
from pymc_dpsplit.generic.declaration import is_unnamed
from pymc_dpsplit.generic.normal_inverse_gamma import normal_inverse_gamma
from pymc_dpsplit.generic.renamed import Renamed

# A child of PyMC's logger, so that the message stands among its own.
_log = logging.getLogger("pymc.dpsplit")


class Pair(NamedTuple):
    """A distribution whose parameter has a conjugate law.

    Attributes
    ----------
    argument : str
        The one that differs by cluster.
    base : str
        Name of the op of its law.
    shared : tuple of str
        Arguments that must be given beside it.
    family : callable
        From the parameters of the law, as the op has them, and the shared arguments, to a family.
    ndim : int
        Number of dimensions of the law.
    """

    argument: str
    base: str
    shared: tuple[str, ...]
    family: Callable[..., Component]
    ndim: int = 0


def _poisson(shape: Any, scale: Any) -> Component:
    return Renamed(Poisson(shape, 1.0 / scale), "rate", "mu", "pm.Poisson")


def _bernoulli(a: Any, b: Any) -> Component:
    return Renamed(Bernoulli(a, b), "p", "p", "pm.Bernoulli")


def _exponential(shape: Any, scale: Any) -> Component:
    return Renamed(Exponential(shape, 1.0 / scale), "rate", "lam", "pm.Exponential")


def _categorical(weights: Any) -> Component:
    # The number of categories is that of the weights, whatever the rows.
    family = Categorical([weights]).suited_to(np.zeros((1, 1)))
    return Renamed(family.with_hyperparameters({"beta": weights}), "p", "p", "pm.Categorical")


_PAIRS: dict[Any, Pair] = {
    pm.Normal: Pair("mu", "normal", ("sigma",), NormalMean),
    pm.Poisson: Pair("mu", "gamma", (), _poisson),
    pm.Exponential: Pair("lam", "gamma", (), _exponential),
    pm.Bernoulli: Pair("p", "beta", (), _bernoulli),
    pm.Categorical: Pair("p", "dirichlet", (), _categorical, ndim=1),
}


def conjugate_family(dist: Any, arguments: Mapping[str, Any]) -> Component | None:
    """Find the family of this package that a component is, if it is one.

    Parameters
    ----------
    dist : type or callable
    arguments : mapping

    Returns
    -------
    Component or None
        A family with the same law of rows and parameters, these under the names of PyMC.
    """
    found = normal_inverse_gamma(arguments) if dist is pm.Normal else None
    if found is not None:
        _log.info(
            "Component(pm.Normal, ...) is conjugate: %s, with the parameters mu and sigma, which "
            "can be integrated out.", found,
        )  # fmt: skip
        return found
    pair = _PAIRS.get(dist) if isinstance(dist, type) else None
    if pair is None or set(arguments) != {pair.argument, *pair.shared}:
        return None
    if any(is_unnamed(arguments[name]) for name in pair.shared):
        return None
    law = arguments[pair.argument]
    op: Any = getattr(getattr(law, "owner", None), "op", None)
    is_law = getattr(op, "name", None) == pair.base and law.name is None
    if not is_law or law.type.ndim != pair.ndim:
        return None
    parameters = [_value_of(of) for of in op.dist_params(law.owner)]
    if any(of is None for of in parameters):
        # Variables of a model, and data that may be exchanged, are left to the general way.
        return None
    family = pair.family(*parameters, *(arguments[name] for name in pair.shared))
    _log.info(
        "Component(pm.%s, %s=%s) is conjugate: %s, whose parameters can be integrated out.",
        dist.__name__, pair.argument, f"pm.{pair.base.capitalize()}.dist(...)", family,
    )  # fmt: skip
    return family


def _value_of(of: Variable) -> Any:
    """Value of an expression of numbers alone, None of others."""
    if not all(isinstance(root, Constant) for root in graph_inputs([of])):
        return None
    value = of.data if isinstance(of, Constant) else of.eval()
    return value.astype(float) if value.ndim else float(value)
