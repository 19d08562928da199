"""Figures: the number of occupied clusters, posterior and prior."""

from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.axes import axes_or_new
from pymc_dpsplit.posterior.n_clusters_prior import n_clusters_prior
from pymc_dpsplit.posterior.trace import choose_mixture, group_of
from pymc_dpsplit.prior.n_clusters import prior_n_clusters

# Of a prior so much of the mass is shown.
_SHOWN = 0.99


def plot_n_clusters(
    idata: xr.DataTree,
    var_name: str | None = None,
    *,
    prior: bool | xr.DataArray = False,
    model: Model | None = None,
    ax: Any = None,
) -> Any:
    """Plot the posterior probability of each number of occupied clusters.

    Bars show all chains together, dots each chain: where dots scatter about a bar, chains
    disagree.  A line shows the prior, if it is asked for.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    var_name : str, optional
        Name of the mixture; needed if the trace holds several.
    prior : bool or DataArray
        Whether to show the prior too; or the prior itself, from `prior_n_clusters`.
    model : pymc.Model, optional
        The model sampled, of which the prior is computed, averaged over that of alpha; needed
        with ``prior=True`` unless `idata` has a group ``prior``.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the trace lacks a group or a variable, or the prior cannot be told.

    Examples
    --------
    >>> import arviz as az
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> drawn = {"x_n_clusters": np.array([[2, 2, 3], [2, 3, 4]])}
    >>> idata = az.from_dict({"posterior": drawn | {"x_weights": np.full((2, 3, 4), 0.2)}})
    >>> ax = dps.plot_n_clusters(idata, prior=dps.prior_n_clusters(1.0, 300))
    >>> [round(6 * float(bar.get_height())) for bar in ax.patches]
    [3, 2, 1]
    """
    name = choose_mixture(idata, var_name)
    drawn = group_of(idata, "posterior")[f"{name}_n_clusters"].transpose("chain", "draw")
    law = prior if isinstance(prior, xr.DataArray) else None
    if law is None and not isinstance(prior, bool | np.bool_):
        raise ValueError(
            f"prior is a {type(prior).__name__}; give True, or what prior_n_clusters(alpha, n) "
            "returns."
        )
    if law is None and prior:
        law = n_clusters_prior(idata, name, model)
    counts = np.arange(int(drawn.min()), int(drawn.max()) + 1)
    shares = np.stack([(drawn.values == count).mean(1) for count in counts])
    ax = axes_or_new(ax)
    ax.bar(counts, shares.mean(1), width=0.8, color="C0", alpha=0.5, label="all chains")
    for i, chain in enumerate(drawn["chain"].values):
        # Side by side within the bar, so that equal shares do not hide one another.
        offset = 0.4 * ((i + 0.5) / shares.shape[1] - 0.5)
        label = "each chain" if i == 0 else f"_chain {chain}"
        ax.plot(counts + offset, shares[:, i], "o", color="k", markersize=3, label=label)
    if law is not None:
        _draw_law(law, ax, int(counts[-1]), label="prior")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(
        xlabel=f"number of clusters ({name})",
        ylabel="probability" if law is not None else "posterior probability",
    )
    ax.legend()
    return ax


def plot_prior_n_clusters(alpha: Any, n: int, *, ax: Any = None) -> Any:
    """Plot the prior probability of each number of clusters among n observations.

    Parameters
    ----------
    alpha : number, array-like, frozen distribution or GammaPrior
        The concentration, or a prior on it; as for `prior_n_clusters`.
    n : int
        Number of observations.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        As `prior_n_clusters`.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> ax = dps.plot_prior_n_clusters(dps.elicit_alpha(n=300, expected=5, upper=20), 300)
    >>> ax.get_xlabel()
    'number of clusters among 300'
    """
    law = prior_n_clusters(alpha, n)
    ax = axes_or_new(ax)
    _draw_law(law, ax, 1, label="prior")
    mean = float((law * law["n_clusters"]).sum())
    ax.axvline(mean, color="k", linestyle=":", label=f"mean {mean:.3g}")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel=f"number of clusters among {n}", ylabel="prior probability")
    ax.legend()
    return ax


def _draw_law(law: xr.DataArray, ax: Any, at_least: int, label: str) -> None:
    """Draw a law from one cluster to where most of its mass is, and at least so far."""
    n_shown = max(at_least, 1 + int(np.searchsorted(law.values.cumsum(), _SHOWN)))
    shown = law[:n_shown]
    ax.plot(shown["n_clusters"].values, shown.values, ".-", color="C1", label=label)
    ax.set_ylim(bottom=0)
