"""What the figures of cluster descriptions share: their argument, colours and names of clusters."""

from typing import Any

import numpy as np

from pymc_dpsplit.posterior.description.cluster_description import ClusterDescription
from pymc_dpsplit.posterior.plots.cluster_groups import COLOURS, GREY, MOST_COLOURED


def refuse_no_description(description: Any) -> ClusterDescription:
    """Return `description`, or raise a ValueError if it is something else."""
    if not isinstance(description, ClusterDescription):
        raise ValueError(
            f"description is a {type(description).__name__}; give what "
            "describe_clusters(idata, partition, model=model) returns."
        )
    return description


def cluster_styles(description: ClusterDescription) -> list[tuple[str, str]]:
    """Return the colour and the text for a legend of each cluster.

    Parameters
    ----------
    description : ClusterDescription

    Returns
    -------
    list of (str, str)
        In the order of the clusters.  The ten largest have the colours that `plot_clusters` gives
        them, the others are grey.
    """
    size = description.size.to_numpy()
    rank = np.argsort(np.argsort(-size, kind="stable"))
    names = description.size[description.cluster_dim].to_numpy()
    return [
        (COLOURS[k] if k < MOST_COLOURED else GREY, f"cluster {name}: {n}")
        for k, name, n in zip(rank, names, size, strict=True)
    ]
