"""The contract of a component family: what a user declares, and what the kernels call.

A family is one file.  It holds

* a subclass of `Component`: the declaration a user writes (hyperparameters, their checks,
  numerical values for the kernels, and the log density of the base measure as a graph);
* a prior: a `NamedTuple` of numbers and arrays, the hyperparameters as the kernels see them;
* one implementation, by ``@implements(operation, Prior)``, of each kernel operation below.

Generic kernels (the moves) call the operations; numba picks the implementation by the type of
the prior.  Adding a family edits no other file: the package imports every module of
this folder.

Conventions.  `stats` is a flat float64 vector of additive sufficient statistics whose first
element is the number of observations; adding two of them merges two clusters.  `params` is a
flat float64 vector, the parameters of one cluster in the form the density needs.  `cache` is a
flat float64 vector, what the one-observation predictive of a cluster needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numba.core import types
from numba.extending import overload

from pymc_dpsplit.kernels.jit import FASTMATH

Values = Mapping[str, Any]


class Component(ABC):
    """A component family with its hyperparameters, as declared by a user.

    Parameters
    ----------
    hyperparameters : dict
        Name to number, array or PyMC variable, in the order of the constructor.

    Attributes
    ----------
    row_ndim : int
        0 if one observation is a scalar, 1 if it is a vector of D features.
    parameters : dict
        Name of each cluster parameter to its number of dimensions, each of length D.
    """

    row_ndim: ClassVar[int]
    parameters: ClassVar[dict[str, int]]

    def __init__(self, hyperparameters: dict[str, Any]) -> None:
        self.hyperparameters = hyperparameters

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.hyperparameters.items())
        return f"{type(self).__name__}({inside})"

    @classmethod
    @abstractmethod
    def from_data(cls, observed: Any) -> "Component":
        """Weakly informative hyperparameters that suit the scale of `observed`."""

    @abstractmethod
    def hyperparameter_ndims(self) -> dict[str, int]:
        """Return the number of dimensions (of length D each) of every hyperparameter."""

    @abstractmethod
    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        """Check numerical hyperparameters and broadcast them to their shapes.

        Parameters
        ----------
        values : mapping
            Name to number or array.
        n_features : int
            Number of features D of an observation.

        Returns
        -------
        dict
            Name to ndarray of float64 with `hyperparameter_ndims()[name]` dimensions.

        Raises
        ------
        ValueError
            With one sentence that names the argument, the fault and the remedy.
        """

    @abstractmethod
    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> Any:
        """Return the prior as kernels see it.

        Parameters
        ----------
        values : mapping
            What `check` returned.
        shift : ndarray of float64, shape (D,)
            What was subtracted from the observations.
        """

    @abstractmethod
    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        """Turn rows of `params` (K, P) into named cluster parameters, each (K, ...)."""

    @abstractmethod
    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        """Turn named cluster parameters, each (K, ...), into rows of `params` (K, P)."""

    @abstractmethod
    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a finite, central parameter of the base measure, without a cluster axis."""

    @abstractmethod
    def log_base(self, parameters: Values, values: Values, pt: Any) -> Any:
        """Log density of the base measure at each cluster, as a graph.

        Parameters
        ----------
        parameters : mapping
            Name to symbolic cluster parameters with a leading cluster axis (K, ...).
        values : mapping
            Name to symbolic hyperparameter.
        pt : module
            `pytensor.tensor`, passed in so that families import no PyTensor.

        Returns
        -------
        symbolic vector (K,)
        """

    @abstractmethod
    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        """Draw `size` cluster parameters from the base measure, each (size, ...)."""

    @abstractmethod
    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        """Draw one observation for each of `labels` (n,) from its cluster: (n,) or (n, D)."""


def _undefined(*_: Any) -> Any:
    raise NotImplementedError("kernel operations run inside compiled kernels only")


def stats_size(prior):
    """Length of a vector of sufficient statistics."""
    return _undefined(prior)


def params_size(prior):
    """Length of a vector of parameters."""
    return _undefined(prior)


def tile_size(prior):
    """Number of features of the tile that `load_tile` fills."""
    return _undefined(prior)


def cache_size(prior):
    """Length of the cache of one cluster."""
    return _undefined(prior)


def load_tile(prior, data, rows, tile):
    """Copy the observations `rows` (TILE,) into `tile` (tile_size * TILE,), zero at first use."""
    return _undefined(prior, data, rows, tile)


def fill_log_density(prior, tile, params, out, scratch):
    """Write the log density of the observations of a tile under `params` into `out` (TILE,).

    `scratch` has shape (4 * TILE,).
    """
    return _undefined(prior, tile, params, out, scratch)


def add_row(prior, data, i, stats):
    """Add observation i to `stats`."""
    return _undefined(prior, data, i, stats)


def log_marginal(prior, stats):
    """Log marginal likelihood of the observations summarised by `stats`."""
    return _undefined(prior, stats)


def draw_parameters(prior, stats, rng, params):
    """Draw parameters from the posterior given `stats` (from the base measure if empty)."""
    return _undefined(prior, stats, rng, params)


def mean_parameters(prior, stats, params):
    """Write a plug-in estimate, finite for every `stats`, into `params`."""
    return _undefined(prior, stats, params)


def fill_cache(prior, stats, cache):
    """Compute the cache of a cluster afresh from its statistics."""
    return _undefined(prior, stats, cache)


def cache_add(prior, data, i, cache):
    """Add observation i to the cache of a cluster."""
    return _undefined(prior, data, i, cache)


def cache_remove(prior, data, i, cache):
    """Remove observation i; False if rounding spoilt the cache, which is then filled afresh."""
    return _undefined(prior, data, i, cache)


def log_predictive(prior, data, i, cache):
    """Log predictive density of observation i given the cluster behind `cache`."""
    return _undefined(prior, data, i, cache)


def implements(operation: Callable[..., Any], prior_class: type) -> Callable[..., Any]:
    """Register the decorated function as `operation` for priors of type `prior_class`.

    Parameters
    ----------
    operation : callable
        One of the operations above.
    prior_class : type
        The NamedTuple class of the family's prior.

    Returns
    -------
    callable
        A decorator that returns its function unchanged.
    """

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        def choose(prior: Any, *_: Any) -> Callable[..., Any] | None:
            is_ours = isinstance(prior, types.BaseNamedTuple)
            return implementation if is_ours and prior.instance_class is prior_class else None

        options: Any = {"fastmath": FASTMATH, "nogil": True}
        # Not strict: one chooser serves operations with different argument names.
        overload(operation, jit_options=options, strict=False)(choose)
        return implementation

    return register
