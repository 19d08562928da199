"""`credible_ball`: the smallest ball of partitions that contains a given share of draws."""

import math
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.partitions.check_partition import (
    check_partition,
    labels_of_partition,
)
from pymc_dpsplit.posterior.partitions.label_arrays import (
    PartitionDraws,
    partition_draws,
)
from pymc_dpsplit.posterior.partitions.partition_loss import distances, loss_of
from pymc_dpsplit.posterior.partitions.resolve_labels import resolve_labels

_BOUNDS = ("vertical_upper", "vertical_lower", "horizontal")
# Distances that differ by less are equal up to rounding.
_ROUNDING = 1e-10


def credible_ball(
    idata: xr.DataTree | xr.DataArray | np.ndarray,
    partition: Any,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    ci_prob: float = 0.95,
    loss: str = "vi",
    random_seed: Any = None,
) -> xr.Dataset:
    """Compute the smallest ball around a partition that contains a share `ci_prob` of the draws.

    Parameters
    ----------
    idata : DataTree, or DataArray or ndarray of int, shape (..., obs)
        A trace from `pm.sample`, or labels of every draw, as from `sample_labels`.  The last
        dimension of labels is that of observations, and the others (chain, draw) are draws.  The
        numbering of clusters does not matter.
    partition : PointPartition, DataArray or array_like of int, shape (obs,)
        Centre of the ball, as from `point_partition`, `find_map` or `dp_means`.
    model : pymc.Model, optional
        The sampled model, by default that of the context; required for a trace without labels.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    ci_prob : float
        Probability of the ball, above 0 and at most 1.
    loss : {"vi", "binder"}
        Distance: variation of information in nats, or the share of pairs of observations that
        are together in one partition and apart in the other.
    random_seed : int or numpy.random.Generator, optional
        Random seed for labels that are redrawn.

    Returns
    -------
    Dataset
        ``radius`` of the ball and ``coverage``, the share of draws in it; ``distance`` of each
        draw from the centre; and for each ``bound`` its ``labels`` (bound, obs), numbered by
        appearance, its ``n_clusters`` and its distance ``bound_distance`` from the centre.  The
        bounds are draws in the ball: ``"vertical_upper"`` is the farthest draw with the fewest
        clusters, ``"vertical_lower"`` the farthest draw with the most clusters, ``"horizontal"``
        the farthest draw; ties are resolved in favour of the first draw.

    Raises
    ------
    ValueError
        If labels are empty or not integers, if `partition` does not match them, if the model is
        required, or if another argument is out of range.

    Notes
    -----
    The cost is one pass over the labels.  The ball is defined in [1]_ and in eq. (10.5) of
    docs/method.md.  To plot a bound in the colours of the centre, call `plot_clusters` with its
    labels as `partition` and the centre as `like`.

    References
    ----------
    .. [1] Wade, S. & Ghahramani, Z. (2018). Bayesian cluster analysis: point estimation and
       credible balls. Bayesian Analysis 13.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> labels = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 2]])
    >>> ball = dps.credible_ball(labels, [0, 0, 1, 1], ci_prob=0.7)
    >>> round(float(ball["radius"]), 3), float(ball["coverage"])
    (0.347, 0.75)
    >>> ball["labels"].sel(bound="vertical_lower").values.tolist()
    [0, 0, 1, 2]
    """
    _check_probability(ci_prob)
    if np.ndim(labels_of_partition(partition)) > 1:
        raise ValueError(
            "partition is several partitions, one for each draw; give the draws first and then "
            "one partition, as in credible_ball(labels, partition)."
        )
    named = resolve_labels(idata, model, var_name, random_seed)
    dim, n_obs = str(named.dims[-1]), named.shape[-1]
    centre = check_partition(partition, dim, n_obs, named.coords.get(dim))
    chosen = loss_of(loss, n_obs)
    draws = partition_draws(named)
    apart = distances(_by_appearance(centre), draws, chosen)
    radius = _radius(apart, float(ci_prob))
    bounds = _bounds(apart, draws, radius)
    return _as_dataset(named, draws, apart, radius, bounds)


def _check_probability(ci_prob: Any) -> None:
    is_number = isinstance(ci_prob, int | float | np.number) and not isinstance(ci_prob, bool)
    if not is_number or not 0 < ci_prob <= 1:
        raise ValueError(f"ci_prob={ci_prob!r} must be a number above 0 and at most 1.")


def _by_appearance(partition: xr.DataArray) -> np.ndarray:
    """Return labels (N,) numbered by appearance, like draws: equal partitions have distance 0."""
    return partition_draws(partition).labels[0].astype(np.int64)


def _radius(apart: np.ndarray, prob: float) -> float:
    """Return the smallest radius of a ball that contains a share `prob` of the draws."""
    # 0.7 * 10 may be rounded to a little more than 7, but requires 7 draws.
    n_needed = math.ceil(prob * len(apart) - _ROUNDING * len(apart))
    return float(np.sort(apart)[max(n_needed, 1) - 1])


def _bounds(apart: np.ndarray, draws: PartitionDraws, radius: float) -> list[int]:
    """Return the indices of the draws that are the bounds, in the order of `_BOUNDS`."""
    inside = np.flatnonzero(_is_within(apart, radius))
    n_clusters = draws.n_clusters[inside]
    sets = (
        inside[n_clusters == n_clusters.min()],
        inside[n_clusters == n_clusters.max()],
        inside,
    )
    return [int(draws_of[_is_farthest(apart[draws_of])][0]) for draws_of in sets]


def _is_within(apart: np.ndarray, radius: float) -> np.ndarray:
    return apart <= radius + _ROUNDING


def _is_farthest(apart: np.ndarray) -> np.ndarray:
    return apart >= apart.max() - _ROUNDING


def _as_dataset(
    labels: xr.DataArray,
    draws: PartitionDraws,
    apart: np.ndarray,
    radius: float,
    bounds: list[int],
) -> xr.Dataset:
    """Collect the results, with the dimensions of the labels."""
    *over, dim = labels.dims
    coords: dict[Any, Any] = {
        key: labels.coords[key] for key in labels.dims if key in labels.coords
    }
    numbered = draws.labels[bounds]
    return xr.Dataset(
        {
            "radius": radius,
            "coverage": float(_is_within(apart, radius).mean()),
            "distance": (over, apart.reshape(labels.shape[:-1])),
            "labels": (("bound", dim), numbered.astype(np.min_scalar_type(int(numbered.max())))),
            "n_clusters": ("bound", draws.n_clusters[bounds]),
            "bound_distance": ("bound", apart[bounds]),
        },
        coords={**coords, "bound": list(_BOUNDS)},
    )
