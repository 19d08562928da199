"""The contract of a component family: what it is made of, and what the kernels call.

A family is one file.  It holds

* a subclass of `declaration.Component`: what a user writes (hyperparameters, their checks,
  numerical values for the kernels, and log densities as graphs);
* a prior: a `NamedTuple` of numbers and arrays, the hyperparameters as the kernels see them;
* one implementation, by ``@implements(operation, Prior)``, of each kernel operation below.

Generic kernels (the moves) call the operations; numba picks the implementation by the type of
the prior.  Adding a family edits no other file: the package imports every module of
this folder.

Conventions.  `data` (N, D) are the observations as `Component.arranged` returned them: by
default as they were given, float64 or float32.  An operation subtracts `prior.shift` from what it
reads and goes on in float64; whole numbers are read as they are, and rounding does not touch
them.  `stats` is a flat float64 vector of additive sufficient statistics whose first element is
the number of observations; adding two of them merges two clusters.  `params` is a flat float64
vector, the parameters of one cluster in the form the density needs; its first element is a
constant term of the log density, so that weights are added there.  `cache` is a flat float64
vector, what the one-observation predictive of a cluster needs.
"""

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.extending import overload

from pymc_dpsplit.kernels.jit import FASTMATH

_OPTIONS: Any = {"fastmath": FASTMATH, "nogil": True}


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


def overrelax_parameters(prior, stats, rng, params):
    """Move `params` by a step that leaves their posterior given `stats` as it is, eq. (152).

    On entry they are a draw given `stats`, of which the first element, the constant, is not read.
    A family need not implement it: by default parameters are drawn anew.
    """
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


_implemented: set[tuple[Callable[..., Any], type]] = set()


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
        _implemented.add((operation, prior_class))

        def choose(prior: Any, *_: Any) -> Callable[..., Any] | None:
            is_ours = isinstance(prior, types.BaseNamedTuple)
            return implementation if is_ours and prior.instance_class is prior_class else None

        options: Any = {**_OPTIONS, "forceinline": inline}
        # Not strict: one chooser serves operations with different argument names.
        overload(operation, jit_options=options, strict=False)(choose)
        return implementation

    return register


def implemented(operation: Callable[..., Any], prior: Any) -> bool:
    """Whether the family of a prior, given by its numba type, implements an operation."""
    return (operation, prior.instance_class) in _implemented
