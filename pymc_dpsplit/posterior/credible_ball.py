"""How far the posterior of the partition reaches around one partition."""

import math
from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.given_partition import given_partition
from pymc_dpsplit.posterior.label_arrays import PartitionDraws, labels_of_draws, partition_draws
from pymc_dpsplit.posterior.partition_loss import distances, loss_of

_BOUNDS = ("vertical_upper", "vertical_lower", "horizontal")
# Distances that differ by less are equal but for rounding.
_ROUNDING = 1e-10


def credible_ball(
    labels: xr.DataArray | np.ndarray, partition: Any, prob: float = 0.95, *, loss: str = "vi"
) -> xr.Dataset:
    """Credible ball of a partition: the smallest ball about it that holds `prob` of the draws.

    Parameters
    ----------
    labels : DataArray or ndarray of int, shape (..., obs)
        Labels of every draw, as from `sample_labels`.
    partition : PointPartition, DataArray or array_like of int, shape (obs,)
        Centre of the ball, as from `point_partition`, `find_map` or `dp_means`.
    prob : float
        Probability of the ball, above 0 and at most 1.
    loss : {"vi", "binder"}
        Distance: variation of information in nats, or the share of pairs of observations about
        which two partitions differ.

    Returns
    -------
    Dataset
        ``radius`` of the ball and ``coverage``, the share of draws within; ``distance`` of each
        draw from the centre; and for each ``bound`` its ``labels`` (bound, obs), numbered by
        appearance, its ``n_clusters`` and its distance ``bound_distance`` from the centre.  The
        bounds are draws in the ball: ``"vertical_upper"`` is the farthest of those with the fewest
        clusters, ``"vertical_lower"`` the farthest of those with the most, ``"horizontal"`` the
        farthest of all; of several equally far the first.

    Raises
    ------
    ValueError
        If `labels` are not integers or empty, `partition` does not suit them, or another argument
        is out of range.

    Notes
    -----
    Costs one pass over the labels.  After [1]_; equation (104) of docs/method.md.  To show a
    bound in the colours of the centre, give its labels as `partition` and the centre as `like` to
    `plot_clusters`.

    References
    ----------
    .. [1] Wade, S. & Ghahramani, Z. (2018). Bayesian cluster analysis: point estimation and
       credible balls. Bayesian Analysis 13.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> labels = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 1, 2]])
    >>> ball = dps.credible_ball(labels, [0, 0, 1, 1], prob=0.7)
    >>> round(float(ball["radius"]), 3), float(ball["coverage"])
    (0.347, 0.75)
    >>> ball["labels"].sel(bound="vertical_lower").values.tolist()
    [0, 0, 1, 2]
    """
    named = labels_of_draws(labels)
    dim, n_obs = str(named.dims[-1]), named.shape[-1]
    centre = given_partition(partition, dim, n_obs, named.coords.get(dim))
    chosen = loss_of(loss, n_obs)
    if isinstance(prob, bool) or not isinstance(prob, int | float | np.number) or not 0 < prob <= 1:
        raise ValueError(f"prob={prob!r} must be a number above 0 and at most 1.")
    draws = partition_draws(named)
    apart = distances(_by_appearance(centre), draws, chosen)
    radius = _radius(apart, float(prob))
    bounds = _bounds(apart, draws, radius)
    return _as_dataset(named, draws, apart, radius, bounds)


def _by_appearance(partition: xr.DataArray) -> np.ndarray:
    """Labels (N,) as those of draws are numbered, so that equal partitions are at distance 0."""
    return partition_draws(partition).labels[0].astype(np.int64)


def _radius(apart: np.ndarray, prob: float) -> float:
    """Smallest distance within which lie at least `prob` of the draws."""
    # A product like 0.7 * 10, a little above 7, asks for 7 draws.
    n_needed = math.ceil(prob * len(apart) - _ROUNDING * len(apart))
    return float(np.sort(apart)[max(n_needed, 1) - 1])


def _bounds(apart: np.ndarray, draws: PartitionDraws, radius: float) -> list[int]:
    """Positions of the draws that are the bounds, in the order of `_BOUNDS`."""
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
    """Name the dimensions as those of the labels."""
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
