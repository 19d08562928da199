"""Recognition of conjugate pairs of a distribution and a base measure.

A conjugate `Component` is replaced by the equivalent family of this package, whose kernels are
faster and whose moves integrate the parameters out.  A message is logged.
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
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.exponential import Exponential
from pymc_dpsplit.components.normal_known_sigma import NormalKnownSigma
from pymc_dpsplit.components.poisson import Poisson
from pymc_dpsplit.pymc_component.declaration import is_unnamed
from pymc_dpsplit.pymc_component.normal_inverse_gamma import normal_inverse_gamma
from pymc_dpsplit.pymc_component.pymc_parametrised import PyMCParametrised

# A child of PyMC's logger, so that the message appears among those of PyMC.
_log = logging.getLogger("pymc.dpsplit")


class Pair(NamedTuple):
    """A distribution and a conjugate base measure of its parameter.

    Attributes
    ----------
    argument : str
        Argument that is the cluster parameter.
    base : str
        Name of the op of its base distribution.
    shared : tuple of str
        Other arguments, which are required.
    family : callable
        From the parameters of the base distribution, as in its op, and the shared arguments to a
        family.
    ndim : int
        Number of dimensions of the base distribution.
    """

    argument: str
    base: str
    shared: tuple[str, ...]
    family: Callable[..., ComponentFamily]
    ndim: int = 0


def _poisson(shape: Any, scale: Any) -> ComponentFamily:
    return PyMCParametrised(Poisson(shape, 1.0 / scale), "rate", "mu", "pm.Poisson")


def _bernoulli(a: Any, b: Any) -> ComponentFamily:
    return PyMCParametrised(Bernoulli(a, b), "p", "p", "pm.Bernoulli")


def _exponential(shape: Any, scale: Any) -> ComponentFamily:
    return PyMCParametrised(Exponential(shape, 1.0 / scale), "rate", "lam", "pm.Exponential")


def _categorical(weights: Any) -> ComponentFamily:
    # The number of categories is the number of weights, not inferred from the rows.
    family = Categorical([weights]).validate_rows(np.zeros((1, 1)))
    return PyMCParametrised(
        family.with_hyperparameters({"a0": weights}), "p", "p", "pm.Categorical"
    )


_PAIRS: dict[Any, Pair] = {
    pm.Normal: Pair("mu", "normal", ("sigma",), NormalKnownSigma),
    pm.Poisson: Pair("mu", "gamma", (), _poisson),
    pm.Exponential: Pair("lam", "gamma", (), _exponential),
    pm.Bernoulli: Pair("p", "beta", (), _bernoulli),
    pm.Categorical: Pair("p", "dirichlet", (), _categorical, ndim=1),
}


def conjugate_family(dist: Any, arguments: Mapping[str, Any]) -> ComponentFamily | None:
    """Return the family of this package that is equivalent to a component, if there is one.

    Parameters
    ----------
    dist : type or callable
        As for `Component`.
    arguments : mapping
        Arguments of the distribution by name.

    Returns
    -------
    ComponentFamily or None
        A family with the same distribution of rows and parameters, which have the names of PyMC.
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
        # Model variables and mutable data are not replaced: the general `Component` is used.
        return None
    family = pair.family(*parameters, *(arguments[name] for name in pair.shared))
    _log.info(
        "Component(pm.%s, %s=%s) is conjugate: %s, whose parameters can be integrated out.",
        dist.__name__, pair.argument, f"pm.{pair.base.capitalize()}.dist(...)", family,
    )  # fmt: skip
    return family


def _value_of(of: Variable) -> Any:
    """Return the value of an expression of constants, or None for others."""
    if not all(isinstance(root, Constant) for root in graph_inputs([of])):
        return None
    value = of.data if isinstance(of, Constant) else of.eval()
    return value.astype(float) if value.ndim else float(value)
