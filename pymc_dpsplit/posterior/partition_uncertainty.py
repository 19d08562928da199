"""How uncertain the place of each observation in a partition is."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.given_partition import given_partition
from pymc_dpsplit.posterior.label_arrays import labels_of_draws, partition_draws
from pymc_dpsplit.posterior.partition_loss import contributions, loss_of


def partition_uncertainty(
    labels: xr.DataArray | np.ndarray, partition: Any, *, loss: str = "binder"
) -> xr.DataArray:
    """Contribution of each observation to the expected loss of a partition.

    Parameters
    ----------
    labels : DataArray or ndarray of int, shape (..., obs)
        Labels of every draw, as from `sample_labels`.
    partition : PointPartition, DataArray or array_like of int, shape (obs,)
        As from `point_partition`, `find_map` or `dp_means`.
    loss : {"binder", "vi"}
        ``"binder"``: the share of the other observations about which a draw and the partition
        differ, that is, whether they are in the cluster of this one; between 0 and 1.
        ``"vi"``: the nats by which knowing its cluster in the one leaves its cluster in the other
        open, both ways.

    Returns
    -------
    DataArray of float64, shape (obs,)
        0 for observations about which all draws agree with the partition.  The mean over
        observations is the expected loss of the partition.

    Raises
    ------
    ValueError
        If `labels` are not integers or empty, `partition` does not suit them, or there is no such
        loss.

    Notes
    -----
    Two passes over the labels, beside which it needs memory for a copy of them; nothing of size
    N x N.  Equation (103) of docs/method.md.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> labels = np.array([[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]])
    >>> dps.partition_uncertainty(labels, [0, 0, 1, 1, 1]).values
    array([0.125, 0.125, 0.5  , 0.125, 0.125])
    """
    named = labels_of_draws(labels)
    dim, n_obs = str(named.dims[-1]), named.shape[-1]
    chosen = loss_of(loss, n_obs)
    own = given_partition(partition, dim, n_obs, named.coords.get(dim))
    found = contributions(own.to_numpy(), partition_draws(named), chosen)
    return own.copy(data=found).rename("uncertainty").assign_attrs(loss=loss)
