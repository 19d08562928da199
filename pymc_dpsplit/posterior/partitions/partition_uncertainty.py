"""`partition_uncertainty`: the contribution of each observation to the expected loss."""

from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.partitions.check_partition import check_partition
from pymc_dpsplit.posterior.partitions.label_arrays import partition_draws
from pymc_dpsplit.posterior.partitions.partition_loss import contributions, loss_of
from pymc_dpsplit.posterior.partitions.resolve_labels import resolve_labels


def partition_uncertainty(
    idata: xr.DataTree | xr.DataArray | np.ndarray,
    partition: Any,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    loss: str = "binder",
    random_seed: Any = None,
) -> xr.DataArray:
    """Compute the contribution of each observation to the expected loss of a partition.

    Parameters
    ----------
    idata : DataTree, or DataArray or ndarray of int, shape (..., obs)
        A trace from `pm.sample`, or labels of every draw, as from `sample_labels`.  The last
        dimension of labels is that of observations, and the others (chain, draw) are draws.  The
        numbering of clusters does not matter.
    partition : PointPartition, DataArray or array_like of int, shape (obs,)
        As from `point_partition`, `find_map` or `dp_means`.
    model : pymc.Model, optional
        The sampled model, by default that of the context; required for a trace without labels.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    loss : {"binder", "vi"}
        ``"binder"``: the share of the other observations that are in the cluster of this one in a
        draw but not in the partition, or the reverse; between 0 and 1.  ``"vi"``: the
        contribution of the observation to the two conditional entropies of the clusters of the
        draw and the partition given each other, in nats.
    random_seed : int or numpy.random.Generator, optional
        Random seed for labels that are redrawn.

    Returns
    -------
    DataArray of float64, shape (obs,)
        Average over draws; 0 for observations whose cluster is the same in all draws and the
        partition.  The mean over observations is the expected loss of the partition.

    Raises
    ------
    ValueError
        If labels are empty or not integers, if `partition` does not match them, if the model is
        required, or if the loss is unknown.

    Notes
    -----
    The cost is two passes over the labels and memory for a copy of them; no N x N matrix is
    needed.  See eq. (10.4) of docs/method.md.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> labels = np.array([[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]])
    >>> dps.partition_uncertainty(labels, [0, 0, 1, 1, 1]).values
    array([0.125, 0.125, 0.5  , 0.125, 0.125])
    """
    named = resolve_labels(idata, model, var_name, random_seed)
    dim, n_obs = str(named.dims[-1]), named.shape[-1]
    chosen = loss_of(loss, n_obs)
    own = check_partition(partition, dim, n_obs, named.coords.get(dim))
    found = contributions(own.to_numpy(), partition_draws(named), chosen)
    return own.copy(data=found).rename("uncertainty").assign_attrs(loss=loss)
