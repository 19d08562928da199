"""Figure: how uncertain the place of each observation is, cluster by cluster."""

from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.axes import axes_or_new
from pymc_dpsplit.posterior.cluster_groups import cluster_groups
from pymc_dpsplit.posterior.labels_given import labels_given
from pymc_dpsplit.posterior.partition_uncertainty import partition_uncertainty
from pymc_dpsplit.posterior.point_partition import point_partition

_MEANINGS = {
    "binder": "share of the others placed differently",
    "vi": "part in the variation of information, nats",
}


def plot_partition_uncertainty(
    idata: xr.DataTree | xr.DataArray | np.ndarray,
    var_name: str | None = None,
    *,
    partition: Any = None,
    like: Any = None,
    model: Model | None = None,
    loss: str = "binder",
    random_seed: Any = None,
    ax: Any = None,
) -> Any:
    """Plot the uncertainty of each observation, ordered by cluster and, within, by uncertainty.

    A dotted line shows the mean, which is the expected loss of the partition.

    Parameters
    ----------
    idata : DataTree, or DataArray or ndarray of int, shape (..., obs)
        As returned by `pm.sample`, or what `sample_labels` returned.
    var_name : str, optional
        Name of the mixture; needed if the trace holds several.
    partition : PointPartition, DataArray or array_like of int, shape (obs,), optional
        By default that of `point_partition` with the default loss; `find_map` and `dp_means`
        give others.
    like : PointPartition, DataArray or array_like of int, shape (obs,), optional
        Partition whose clusters keep their colours and numbers: each is shown as the one of
        `like` with which it shares most; clusters beyond those of `like` are numbered further.
        With it, figures of several partitions can be compared; by default colours go by size.
    model : pymc.Model, optional
        The model sampled, by default the one of the context; needed if the trace holds no labels.
    loss : {"binder", "vi"}
        What is plotted, see `partition_uncertainty`.
    random_seed : int or numpy.random.Generator, optional
        For labels that are redrawn, and for `point_partition`.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the trace holds no such mixture, the model is needed, or an argument is out of range.

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
    rng = np.random.default_rng(random_seed)
    labels = labels_given(idata, var_name, model, rng)
    dim, n_obs = str(labels.dims[-1]), labels.shape[-1]
    found = point_partition(labels, random_seed=rng) if partition is None else partition
    groups = cluster_groups(found, like, dim, n_obs, labels.coords.get(dim))
    uncertainty = partition_uncertainty(labels, found, loss=loss).to_numpy()
    ax = axes_or_new(ax)
    start = 0
    for group in groups:
        # Stable, so that small clusters, which share a group, stay together where they tie.
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
