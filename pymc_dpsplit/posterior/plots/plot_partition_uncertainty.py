"""Figure: the uncertainty of the cluster of each observation, by cluster."""

from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import generator_of
from pymc_dpsplit.posterior.partitions.partition_uncertainty import partition_uncertainty
from pymc_dpsplit.posterior.partitions.point_partition import point_partition
from pymc_dpsplit.posterior.partitions.resolve_labels import resolve_labels
from pymc_dpsplit.posterior.plots.axes import axes_or_new
from pymc_dpsplit.posterior.plots.cluster_groups import cluster_groups

_MEANINGS = {
    "binder": "share of the others placed differently",
    "vi": "part in the variation of information, nats",
}


def plot_partition_uncertainty(
    idata: xr.DataTree | xr.DataArray | np.ndarray,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    partition: Any = None,
    like: Any = None,
    loss: str = "binder",
    random_seed: Any = None,
    ax: Any = None,
) -> Any:
    """Plot the uncertainty of each observation, sorted by cluster and by uncertainty within it.

    A dotted line shows the mean, which is the expected loss of the partition.

    Parameters
    ----------
    idata : DataTree, or DataArray or ndarray of int, shape (..., obs)
        A trace from `pm.sample`, or labels from `sample_labels`.
    model : pymc.Model, optional
        The sampled model, by default that of the context; required for a trace without labels.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    partition : PointPartition, DataArray or array_like of int, shape (obs,), optional
        By default the result of `point_partition` with the default loss; `find_map` and
        `dp_means` give other estimates.
    like : PointPartition, DataArray or array_like of int, shape (obs,), optional
        Partition that determines colours and numbers, so that figures of several partitions can
        be compared.  Each cluster takes those of the cluster of `like` with which it shares most
        observations; unmatched clusters take further ones.  By default they are assigned by size.
    loss : {"binder", "vi"}
        Measure of uncertainty, see `partition_uncertainty`.
    random_seed : int or numpy.random.Generator, optional
        Random seed for labels that are redrawn, and for `point_partition`.
    ax : matplotlib Axes, optional
        Axes to draw in; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the trace lacks the mixture, if the model is required, or if an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> labels = np.array([[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]])
    >>> ax = dps.plot_partition_uncertainty(labels, partition=[0, 0, 1, 1, 1])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['cluster 1: 3', 'cluster 0: 2', 'mean: 0.2']
    >>> ax.patches[0].get_data().values
    array([0.5  , 0.125, 0.125])
    """
    rng = generator_of("random_seed", random_seed)
    labels = resolve_labels(idata, model, var_name, rng)
    dim, n_obs = str(labels.dims[-1]), labels.shape[-1]
    found = point_partition(labels, random_seed=rng) if partition is None else partition
    groups = cluster_groups(found, like, dim, n_obs, labels.coords.get(dim))
    uncertainty = partition_uncertainty(labels, found, loss=loss).to_numpy()
    ax = axes_or_new(ax)
    start = 0
    for group in groups:
        # A stable sort keeps the members of small clusters, which share a group, together in ties.
        heights = np.sort(uncertainty[group.members])[::-1]
        edges = np.arange(start, start + len(heights) + 1)
        ax.stairs(heights, edges, fill=True, color=group.color, label=group.label)
        start += len(heights)
    mean = uncertainty.mean()
    ax.axhline(mean, color="k", linewidth=0.8, linestyle=":", label=f"mean: {mean:.2g}")
    ax.set(xlim=(0, start), xlabel=f"{dim}, ordered by cluster", ylabel=_MEANINGS[loss])
    ax.set_ylim(bottom=0)
    ax.legend(fontsize="small")
    return ax
