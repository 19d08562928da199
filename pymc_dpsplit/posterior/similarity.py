"""Posterior co-clustering: how often two observations share a cluster."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.label_arrays import labels_of_draws

# Two tiles of SIDE x SIDE bytes stay in the second-level cache of a core.
_SIDE = 256
# A byte counts up to 255 draws.
_DRAWS_PER_PASS = 255
# Beyond this many rows the result (3 GiB) is more often a mistake than a wish.
_MOST_ROWS = 20_000


def similarity_matrix(
    labels: xr.DataArray | np.ndarray, *, rows: Sequence[int] | np.ndarray | None = None
) -> xr.DataArray:
    """Posterior probability that two observations share a cluster.

    Parameters
    ----------
    labels : DataArray or ndarray of int, shape (..., obs)
        Labels of every draw, as from `sample_labels`.  The last dimension runs over
        observations, the others (chain, draw) over draws.  How clusters are numbered does
        not matter.
    rows : sequence of int, optional
        Positions of the observations to compare, by default all.  Needed for more than
        20,000 observations.

    Returns
    -------
    DataArray of float64, dims (obs, obs_bis)
        Symmetric with unit diagonal; dimensions are named after the last one of `labels`
        and keep its coordinate.

    Raises
    ------
    ValueError
        If `labels` are not integers or empty, or `rows` are out of range or should be given.

    Notes
    -----
    Costs one comparison per draw and pair of observations, 0.1 ns each on one core, and beside
    the result only memory for one more copy of the labels: 20,000 observations take 3.3 GiB in
    all.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> dps.similarity_matrix(np.array([[0, 0, 1], [5, 2, 2]])).values
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    named = labels_of_draws(labels)
    if rows is None and named.shape[-1] > _MOST_ROWS:
        raise ValueError(
            f"labels hold {named.shape[-1]} observations, for which the matrix is too large; "
            f"give rows=, the positions of some (at most {_MOST_ROWS} are practical)."
        )
    if rows is not None:
        named = named[..., _checked_rows(rows, named.shape[-1])]
    n_obs = named.shape[-1]
    return _as_square(_share_together(_compact(named.values.reshape(-1, n_obs))), named)


def _checked_rows(rows: Sequence[int] | np.ndarray, n_obs: int) -> np.ndarray:
    chosen = np.asarray(rows)
    is_valid = chosen.ndim == 1 and chosen.size > 0 and chosen.dtype.kind in "iu"
    if not is_valid or chosen.min() < -n_obs or chosen.max() >= n_obs:
        raise ValueError(f"rows must be a list of positions from 0 to {n_obs - 1}, not {rows!r}.")
    return chosen


def _compact(labels: np.ndarray) -> np.ndarray:
    """Labels (S, N) in the narrowest type, for which a comparison is fastest."""
    lowest = labels.min()
    spread = int(labels.max()) - int(lowest)
    return np.ascontiguousarray((labels - lowest).astype(np.min_scalar_type(spread), copy=False))


def _share_together(labels: np.ndarray) -> np.ndarray:
    """Share of the draws, (N, N), in which rows of `labels` (S, N) have equal labels."""
    n_draws, n_obs = labels.shape
    together = np.empty((n_obs, n_obs))
    for top in range(0, n_obs, _SIDE):
        for left in range(top, n_obs, _SIDE):
            tall, wide = labels[:, top : top + _SIDE], labels[:, left : left + _SIDE]
            share = _count_together(tall, wide) / n_draws
            together[top : top + _SIDE, left : left + _SIDE] = share
            together[left : left + _SIDE, top : top + _SIDE] = share.T
    return together


def _count_together(tall: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """Count draws in which a column of `tall` (S, A) equals one of `wide` (S, B): (A, B)."""
    shape = (tall.shape[1], wide.shape[1])
    total = np.zeros(shape, dtype=np.int64)
    few = np.empty(shape, dtype=np.uint8)
    equal = np.empty(shape, dtype=np.bool_)
    for start in range(0, len(tall), _DRAWS_PER_PASS):
        few[:] = 0
        for draw in range(start, min(start + _DRAWS_PER_PASS, len(tall))):
            np.equal(tall[draw, :, None], wide[draw], out=equal)
            np.add(few, equal.view(np.uint8), out=few)
        total += few
    return total


def _as_square(together: np.ndarray, labels: xr.DataArray) -> xr.DataArray:
    """Name the dimensions of `together` (N, N) after the last one of `labels`."""
    dim = str(labels.dims[-1])
    bis = f"{dim}_bis"
    coords = {}
    if dim in labels.coords:
        values = labels.coords[dim].values
        coords = {dim: values, bis: values}
    return xr.DataArray(together, dims=(dim, bis), coords=coords, name="similarity")
