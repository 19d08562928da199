"""The contract of a component family: what a user declares, and what the kernels call.

A family is one file.  It holds

* a subclass of `Component`: the declaration a user writes (hyperparameters, their checks,
  numerical values for the kernels, and log densities as graphs);
* a prior: a `NamedTuple` of numbers and arrays, the hyperparameters as the kernels see them;
* one implementation, by ``@implements(operation, Prior)``, of each kernel operation below.

Generic kernels (the moves) call the operations; numba picks the implementation by the type of
the prior.  Adding a family edits no other file: the package imports every module of
this folder.

Conventions.  `data` (N, D) are the observations as they were given, float64 or float32; an
operation subtracts `prior.shift` from what it reads and goes on in float64; whole numbers are
read as they are, and rounding does not touch them.  `stats` is a flat
float64 vector of additive sufficient statistics whose first element is the number of
observations; adding two of them merges two clusters.  `params` is a flat float64 vector, the
parameters of one cluster in the form the density needs; its first element is a constant term of
the log density, so that weights are added there.  `cache` is a flat float64 vector, what the
one-observation predictive of a cluster needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numba.core import types
from numba.extending import overload

from pymc_dpsplit.components.features import take_features
from pymc_dpsplit.kernels.jit import FASTMATH
from pymc_dpsplit.kernels.views import row_of

Values = Mapping[str, Any]

_OPTIONS: Any = {"fastmath": FASTMATH, "nogil": True}


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
    is_discrete : bool
        Whether observations are whole numbers, which no other step moves.
    parameters : dict
        Name of each cluster parameter to its number of dimensions of length D.
    natural_ndims : dict
        The same for the natural parameters, see `natural`.
    """

    row_ndim: ClassVar[int]
    is_discrete: ClassVar[bool] = False
    parameters: ClassVar[dict[str, int]]
    natural_ndims: ClassVar[dict[str, int]]

    def __init__(self, hyperparameters: dict[str, Any]) -> None:
        self.hyperparameters = hyperparameters

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.hyperparameters.items())
        return f"{type(self).__name__}({inside})"

    @classmethod
    @abstractmethod
    def from_data(cls, observed: Any) -> "Component":
        """Weakly informative hyperparameters that suit the scale of `observed`."""

    def suited_to(self, rows: np.ndarray) -> "Component":
        """Refuse rows outside the support of the family, by default none; return what suits them.

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D)
            NaN where missing.

        Returns
        -------
        Component
            `self`, or a copy that has read off the rows what was not declared.

        Raises
        ------
        ValueError
            With one sentence that names the value, its column and what to give instead.
        """
        return self

    def own_dims(self, name: str) -> dict[str, int]:
        """Return the dimensions that a (hyper)parameter has after those of length D.

        By default none.  In the order of axes: the name, which in a trace follows that of the
        mixture, to the length.
        """
        return {}

    def shape_of(self, name: str, ndim: int, n_features: int) -> tuple[int, ...]:
        """Shape of a parameter of one cluster, or of a hyperparameter, of so many features."""
        return (*[n_features] * ndim, *self.own_dims(name).values())

    @abstractmethod
    def hyperparameter_ndims(self) -> dict[str, int]:
        """Return the number of dimensions of length D of every hyperparameter."""

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
            Name to ndarray of float64, of the shape `shape_of(name, ...)`.

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
            What kernels subtract from each observation they read, for the sake of rounding.
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
    def natural(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return cluster parameters in the form that densities as graphs need.

        Only the step of the mixture moves cluster parameters, so nobody needs a gradient with
        respect to them, and linear algebra over clusters is done here, in NumPy: PyTensor
        takes some ten seconds to compile it.

        Parameters
        ----------
        parameters : mapping
            Name to ndarray of float64 (K, ...), for each of `parameters`.

        Returns
        -------
        dict
            Name to ndarray of float64 (K, ...), for each of `natural_ndims`.
        """

    @abstractmethod
    def log_base(self, natural: Values, values: Values, pt: Any) -> Any:
        """Log density of the base measure at each cluster, as a graph.

        It is the density of the named parameters, those of `parameters`.

        Parameters
        ----------
        natural : mapping
            Name to symbolic or numerical tensor (K, ...), see `natural`.
        values : mapping
            Name to symbolic or numerical hyperparameter.
        pt : module
            `pytensor.tensor`, passed in so that families import no PyTensor.

        Returns
        -------
        symbolic vector (K,)
        """

    @abstractmethod
    def log_density(self, rows: Any, natural: Values, pt: Any) -> Any:
        """Log density of each observation under its own cluster, as a graph.

        Parameters
        ----------
        rows : symbolic or numerical tensor, shape (N,) or (N, D)
            Has a gradient.
        natural : mapping
            Name to tensor (N, ...), see `natural`: those of the cluster of each row.
        pt : module
            `pytensor.tensor`.

        Returns
        -------
        symbolic vector (N,)
        """

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the hyperparameters of the law of some features alone, docs/method.md, eq. (31).

        By default they are those of these features.

        Parameters
        ----------
        values : mapping
            What `check` returned.
        features : ndarray of int, shape (D',)
            Different features, at least one; [0] where observations are scalars.

        Returns
        -------
        dict
            Copies, as `check` returns them for D' features.
        """
        return take_features(values, self.hyperparameter_ndims(), features)

    def restrict_parameters(
        self, parameters: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the cluster parameters (K, ...) of some features alone, see `restrict`."""
        return take_features(parameters, self.parameters, features, n_before=1)

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

    @abstractmethod
    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        """Draw missing entries given the rest of their rows and the parameters of their clusters.

        Parameters
        ----------
        rng : numpy.random.Generator
        rows : ndarray of float64, shape (n, D)
            D = 1 where observations are scalars.  What stands in missing entries is not used.
        is_missing : ndarray of bool, shape (n, D)
        parameters : mapping
            Name to ndarray of float64 (K, ...), for each of `parameters`.
        labels : ndarray of int, shape (n,)
            Cluster of each row.

        Returns
        -------
        ndarray of float64, shape (n, D)
            A copy of `rows` with every missing entry drawn.
        """


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


def add_groups(prior, data, members, bounds, stats):
    """Add the observations members[bounds[k] : bounds[k + 1]] to `stats[k]`, for each k.

    A family need not implement it: by default the observations are added one by one.
    """
    return _undefined(prior, data, members, bounds, stats)


def find_bounds(prior, params, n_clusters):
    """Find bounds of log densities that cost less than these; by default None: there are none.

    Returns bounds (K, any), row z for observations of cluster z of the first K = `n_clusters`
    of A atoms, and what `fill_excess` is likely to find for these clusters, (K, K).
    """
    return _undefined(prior, params, n_clusters)


def fill_excess(prior, tile, bounds, reference, excess):
    """Write what no log density of a tile under an atom exceeds `reference` (TILE,) by.

    `bounds` is a row of what `find_bounds` returned.  The length of `excess`, a multiple of four,
    is the number of atoms; numbers beyond A mean nothing.
    """
    return _undefined(prior, tile, bounds, reference, excess)


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


implemented: set[tuple[Callable[..., Any], type]] = set()


def implements(
    operation: Callable[..., Any], prior_class: type, inline: bool = False
) -> Callable[..., Any]:
    """Register the decorated function as `operation` for priors of type `prior_class`.

    Parameters
    ----------
    operation : callable
        One of the operations above.
    prior_class : type
        The NamedTuple class of the family's prior.
    inline : bool
        Whether the code is copied to where it is called, see `kernels.jit.inlined_kernel`.

    Returns
    -------
    callable
        A decorator that returns its function unchanged.
    """

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        implemented.add((operation, prior_class))

        def choose(prior: Any, *_: Any) -> Callable[..., Any] | None:
            is_ours = isinstance(prior, types.BaseNamedTuple)
            return implementation if is_ours and prior.instance_class is prior_class else None

        options: Any = {**_OPTIONS, "forceinline": inline}
        # Not strict: one chooser serves operations with different argument names.
        overload(operation, jit_options=options, strict=False)(choose)
        return implementation

    return register


@overload(add_groups, jit_options=_OPTIONS, strict=False)
def _choose_default(prior: Any, data: Any, members: Any, bounds: Any, stats: Any) -> Any:
    """Choose the loop over `add_row` for families without an `add_groups` of their own."""
    if (add_groups, prior.instance_class) in implemented:
        return None

    def add_one_by_one(prior, data, members, bounds, stats):
        for k in range(stats.shape[0]):
            for j in range(bounds[k], bounds[k + 1]):
                add_row(prior, data, members[j], row_of(stats, k))

    return add_one_by_one


@overload(find_bounds, jit_options=_OPTIONS, strict=False)
def _choose_no_bounds(prior: Any, params: Any, n_clusters: Any) -> Any:
    """Choose None for families without bounds."""
    if (find_bounds, prior.instance_class) in implemented:
        return None
    return lambda prior, params, n_clusters: None
