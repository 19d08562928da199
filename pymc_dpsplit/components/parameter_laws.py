"""Distributions of cluster parameters under the base measure, shared by several families.

A law knows the name of its parameter; parameter and hyperparameters have one element per column.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy

from pymc_dpsplit.components.component_family import Values

# Bounds that keep parameters from rounding to 0 or 1, where a logarithm would be infinite.
TINY = np.finfo(np.float64).tiny
BELOW_ONE = np.nextafter(1.0, 0.0)
# What is this near to one rounds to BELOW_ONE, or to one and is clipped.
_NEAR_ONE = 1.5 * (1.0 - BELOW_ONE)

# Roots of it and of its inverse are far from the ends of float64.
_LEAST_GAMMA = 1e-260


def draw_gamma(rng: np.random.Generator, a0: Any, shape: Any) -> np.ndarray:
    """Draw standard gamma variables, those that underflow at tiny `a0` as a tiny number."""
    drawn: np.ndarray = np.maximum(rng.standard_gamma(a0, shape), _LEAST_GAMMA)
    return drawn


class ParameterLaw(Protocol):
    """Interface of the distribution of a parameter under the base measure."""

    @property
    def parameter(self) -> str:
        """Return the name of the parameter."""

    def log_density(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density (K,) of the parameters of each cluster, as a graph.

        Parameters
        ----------
        graph_parameters : mapping
            Name to tensor (K, D).
        values : mapping
            Name to hyperparameter (D,).
        pt : module
            `pytensor.tensor`.

        Returns
        -------
        symbolic vector (K,)
        """

    def draw(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        """Draw parameters of clusters.

        Parameters
        ----------
        rng : numpy.random.Generator
        values : mapping
            Name to ndarray of float64, shape (D,).
        size : int
            Number of clusters.

        Returns
        -------
        dict
            Name to ndarray of float64, shape (size, D).
        """

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a finite, central value (D,) by name."""


class GammaLaw(NamedTuple):
    """Gamma(a0, b0) in each column, with shape a0 and rate b0; docs/method.md, eq. (7.9)."""

    parameter: str

    def log_density(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        x, a0, b0 = graph_parameters[self.parameter], values["a0"], values["b0"]
        terms = a0 * pt.log(b0) - pt.gammaln(a0) + log_power(x, a0, pt) - b0 * x
        return terms.sum(axis=1)

    def draw(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        a0, b0 = values["a0"], values["b0"]
        return {self.parameter: np.maximum(rng.standard_gamma(a0, (size, *a0.shape)) / b0, TINY)}

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {self.parameter: values["a0"] / values["b0"]}


class BetaLaw(NamedTuple):
    """Beta(a0, b0) in each column; docs/method.md, eq. (7.11)."""

    parameter: str

    def log_density(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        p, a0, b0 = graph_parameters[self.parameter], values["a0"], values["b0"]
        normaliser = pt.gammaln(a0 + b0) - pt.gammaln(a0) - pt.gammaln(b0)
        terms = normaliser + log_power(p, a0, pt) + log_power_of_rest(p, b0, pt)
        return terms.sum(axis=1)

    def draw(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        a0, b0 = values["a0"], values["b0"]
        return {self.parameter: inside(rng.beta(a0, b0, (size, *a0.shape)))}

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {self.parameter: inside(values["a0"] / (values["a0"] + values["b0"]))}


def log_power(x: Any, exponent: Any, pt: Any) -> Any:
    """Return the log of ``x ** (exponent - 1)``, or at `TINY` of its integral below, as a graph.

    A parameter at the bound stands for all that are nearer to 0.  Under a tiny exponent these have
    most of the mass, and the law of the clipped parameter has an atom there; docs/method.md, eq.
    (8.1).  Other factors of the density are constant so near to 0.

    Parameters
    ----------
    x, exponent : symbolic tensors
        That broadcast against each other; `x` is positive.
    pt : module
        `pytensor.tensor`.

    Returns
    -------
    symbolic tensor
    """
    atom = exponent * np.log(TINY) - pt.log(exponent)
    return pt.where(pt.le(x, TINY), atom, (exponent - 1.0) * pt.log(x))


def log_power_of_rest(p: Any, exponent: Any, pt: Any) -> Any:
    """Return `log_power` of one minus a probability, which the largest one stands for likewise."""
    atom = exponent * np.log(_NEAR_ONE) - pt.log(exponent)
    return pt.where(pt.ge(p, BELOW_ONE), atom, (exponent - 1.0) * pt.log1p(-p))


def probability_of(log_odds: np.ndarray) -> np.ndarray:
    """Return probabilities in the open interval (0, 1), rounded to nearest also near 1."""
    smaller = scipy.special.expit(-np.abs(log_odds))
    return inside(np.where(log_odds > 0.0, 1.0 - smaller, smaller))


def inside(p: np.ndarray) -> np.ndarray:
    """Clip probabilities to the open interval (0, 1)."""
    return np.clip(p, TINY, BELOW_ONE)
