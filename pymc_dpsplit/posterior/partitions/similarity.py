"""`similarity_matrix`: posterior probabilities that two observations share a cluster."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.partitions.resolve_labels import resolve_labels

# Two tiles of SIDE x SIDE bytes fit in the second-level cache of a core.
_SIDE = 256
# Counts of one pass fit in a byte.
_DRAWS_PER_PASS = 255
# With more rows the result takes more than 3 GiB, which is rarely intended.
_MOST_ROWS = 20_000


def similarity_matrix(
    idata: xr.DataTree | xr.DataArray | np.ndarray,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    rows: Sequence[int] | np.ndarray | None = None,
    random_seed: Any = None,
) -> xr.DataArray:
    """Compute the posterior probability that two observations share a cluster.

    Parameters
    ----------
    idata : DataTree, or DataArray or ndarray of int, shape (..., obs)
        A trace from `pm.sample`, or labels of every draw, as from `sample_labels`.  The last
        dimension of labels is that of observations, and the others (chain, draw) are draws.  The
        numbering of clusters does not matter.
    model : pymc.Model, optional
        The sampled model, by default that of the context; required for a trace without labels.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    rows : sequence of int, optional
        Indices of the observations to compare, by default all.  Required for more than 20,000
        observations.
    random_seed : int or numpy.random.Generator, optional
        Random seed for labels that are redrawn.

    Returns
    -------
    DataArray of float64, dims (obs, obs_bis)
        Symmetric with unit diagonal.  Dimensions are named after that of observations in the
        labels, and have its coordinate.

    Raises
    ------
    ValueError
        If labels are empty or not integers, if the model is required, or if `rows` are out of
        range or required.

    Notes
    -----
    The cost is one comparison per draw and pair of observations, 0.1 ns each on one core.  In
    addition to the result, it needs memory for one copy of the labels: 20,000 observations take
    3.3 GiB in total.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> dps.similarity_matrix(np.array([[0, 0, 1], [5, 2, 2]])).values
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    named = resolve_labels(idata, model, var_name, random_seed)
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
    """Return labels (S, N) in the narrowest type, which is the fastest to compare."""
    lowest = labels.min()
    spread = int(labels.max()) - int(lowest)
    return np.ascontiguousarray((labels - lowest).astype(np.min_scalar_type(spread), copy=False))


def _share_together(labels: np.ndarray) -> np.ndarray:
    """Return the share (N, N) of draws in which two columns of `labels` (S, N) are equal."""
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
    """Count draws in which a column of `tall` (S, A) equals one of `wide` (S, B), (A, B)."""
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
