"""Figure: the posterior of the number of occupied clusters."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.axes import axes_or_new
from pymc_dpsplit.posterior.trace import choose_mixture, group_of


def plot_n_clusters(idata: xr.DataTree, var_name: str | None = None, *, ax: Any = None) -> Any:
    """Plot the posterior probability of each number of occupied clusters.

    Bars show all chains together, dots each chain: where dots scatter about a bar, chains
    disagree.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    var_name : str, optional
        Name of the mixture; needed if the trace holds several.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import arviz as az
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> drawn = {"x_n_clusters": np.array([[2, 2, 3], [2, 3, 4]])}
    >>> idata = az.from_dict({"posterior": drawn | {"x_weights": np.full((2, 3, 4), 0.2)}})
    >>> [round(6 * float(bar.get_height())) for bar in dps.plot_n_clusters(idata).patches]
    [3, 2, 1]
    """
    name = choose_mixture(idata, var_name)
    drawn = group_of(idata, "posterior")[f"{name}_n_clusters"].transpose("chain", "draw")
    counts = np.arange(int(drawn.min()), int(drawn.max()) + 1)
    shares = np.stack([(drawn.values == count).mean(1) for count in counts])
    ax = axes_or_new(ax)
    ax.bar(counts, shares.mean(1), width=0.8, color="C0", alpha=0.5, label="all chains")
    for i, chain in enumerate(drawn["chain"].values):
        # Side by side within the bar, so that equal shares do not hide one another.
        offset = 0.4 * ((i + 0.5) / shares.shape[1] - 0.5)
        label = "each chain" if i == 0 else f"_chain {chain}"
        ax.plot(counts + offset, shares[:, i], "o", color="k", markersize=3, label=label)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel=f"number of clusters ({name})", ylabel="posterior probability")
    ax.legend()
    return ax
