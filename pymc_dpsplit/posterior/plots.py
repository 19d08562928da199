"""Figures of the posterior that every mixture has: clusters counted, and co-clustering."""

from typing import Any

import arviz_base as azb
import numpy as np
import xarray as xr
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from pymc_dpsplit.posterior.trace import choose_mixture, group_of


def axes_or_new(ax: Any) -> Any:
    """Return `ax`, or the Axes of a new figure if it is None.

    Parameters
    ----------
    ax : matplotlib Axes or None
        As given by the user.

    Returns
    -------
    matplotlib Axes
    """
    if ax is not None:
        return ax
    # Imported here, for it takes longer than the rest of the package.
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]
