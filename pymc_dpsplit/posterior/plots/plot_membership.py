"""Figure: the soft membership of the observations, as stacked bars."""

from typing import Any

import numpy as np

from pymc_dpsplit.posterior.description.cluster_description import ClusterDescription
from pymc_dpsplit.posterior.plots.axes import axes_or_new
from pymc_dpsplit.posterior.plots.cluster_groups import MOST_COLOURED
from pymc_dpsplit.posterior.plots.description_axes import cluster_styles, refuse_no_description


def plot_membership(description: ClusterDescription, *, ax: Any = None) -> Any:
    """Plot the soft membership of each observation as a bar of the colours of the clusters.

    Observations are ordered by the cluster of which their membership is largest, and within it by
    this membership.  Clusters after the ten largest are grey, and share an entry of the legend.

    Parameters
    ----------
    description : ClusterDescription
        As from `describe_clusters`.
    ax : matplotlib Axes, optional
        Axes to draw in; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `description` is something else.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 0.2, 9.0])
    ...     idata = pm.sample(
    ...         draws=50, tune=50, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> found = dps.describe_clusters(idata, [0, 0, 0, 1], model=model, random_seed=1)
    >>> dps.plot_membership(found).get_ylabel()
    'membership probability'
    """
    shown = refuse_no_description(description)
    membership = shown.membership.to_numpy()
    by_size = np.argsort(-shown.size.to_numpy(), kind="stable")
    place = np.argsort(by_size)[membership.argmax(1)]
    order = np.lexsort((-membership.max(1), place))
    tops = np.cumsum(membership[order][:, by_size], axis=1)
    edges = np.arange(len(membership) + 1)
    styles, small = cluster_styles(shown), shown.size.to_numpy()[by_size[MOST_COLOURED:]]
    below = np.zeros(len(membership))
    ax = axes_or_new(ax)
    for rank, r in enumerate(by_size):
        color, label = styles[r]
        if rank == MOST_COLOURED:
            label = f"{len(small)} smaller: {small.sum()}"
        elif rank > MOST_COLOURED:
            label = f"_{label}"
        ax.stairs(tops[:, rank], edges, baseline=below, fill=True, color=color, label=label)
        below = tops[:, rank]
    dim = shown.membership.dims[0]
    ax.set(
        xlim=(0, len(membership)), ylim=(0, 1), ylabel="membership probability",
        xlabel=f"{dim}, ordered by cluster",
    )  # fmt: skip
    ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax
