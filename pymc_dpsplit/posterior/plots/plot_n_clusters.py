"""Figures: posterior and prior distribution of the number of occupied clusters."""

from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.plots.axes import axes_or_new
from pymc_dpsplit.posterior.plots.n_clusters_prior import n_clusters_prior
from pymc_dpsplit.posterior.trace.groups import choose_mixture, group_of
from pymc_dpsplit.posterior.trace.recorded import counts_of, refuse_many
from pymc_dpsplit.prior.n_clusters import prior_n_clusters

# Share of the mass of a prior that is shown.
_SHOWN = 0.99


def plot_n_clusters(
    idata: xr.DataTree,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    prior: bool | xr.DataArray = False,
    ax: Any = None,
) -> Any:
    """Plot the posterior probability of each number of occupied clusters.

    Bars show all chains together and dots show single chains: dots far from the top of their bar
    indicate that chains disagree.  On request a line shows the prior.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    model : pymc.Model, optional
        The sampled model, by default that of the context.  The prior is computed from it, averaged
        over the prior of alpha.  It is required with ``prior=True`` unless `idata` has a group
        ``prior``.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    prior : bool or DataArray
        Whether to show the prior; or the prior itself, from `prior_n_clusters`.
    ax : matplotlib Axes, optional
        Axes to draw in; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the trace lacks a group or a variable, or if the prior is not available or `pm.set_data`
        has replaced what it depends on.

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
    drawn = counts_of(group_of(idata, "posterior"), name)
    refuse_many(drawn)
    law = prior if isinstance(prior, xr.DataArray) else None
    if law is None and not isinstance(prior, bool | np.bool_):
        raise ValueError(
            f"prior is a {type(prior).__name__}; give True, or what prior_n_clusters(alpha, n) "
            "returns."
        )
    if law is None and prior:
        model = Model.get_context(error_if_none=False) if model is None else model
        law = n_clusters_prior(idata, name, model)
    counts = np.arange(int(drawn.min()), int(drawn.max()) + 1)
    shares = np.stack([(drawn.values == count).mean(1) for count in counts])
    ax = axes_or_new(ax)
    ax.bar(counts, shares.mean(1), width=0.8, color="C0", alpha=0.5, label="all chains")
    for i, chain in enumerate(drawn["chain"].values):
        # Chains are side by side within the bar, so that equal dots do not overlap.
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


def plot_prior_n_clusters(alpha: Any = None, n: Any = None, *, ax: Any = None, **law: Any) -> Any:
    """Plot the prior probability of each number of clusters among n observations.

    Parameters
    ----------
    alpha : number, array-like, frozen distribution or GammaPrior
        The concentration or its prior, as for `prior_n_clusters`.
    n : int
        Number of observations.
    ax : matplotlib Axes, optional
        Axes to draw in; by default those of a new figure.
    **law
        ``discount``, or ``gamma`` and ``n_components``, as for `prior_n_clusters`.

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
    prior = prior_n_clusters(alpha, n, **law)
    ax = axes_or_new(ax)
    _draw_law(prior, ax, 1, label="prior")
    mean = float((prior * prior["n_clusters"]).sum())
    ax.axvline(mean, color="k", linestyle=":", label=f"mean {mean:.3g}")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel=f"number of clusters among {n}", ylabel="prior probability")
    ax.legend()
    return ax


def _draw_law(law: xr.DataArray, ax: Any, at_least: int, label: str) -> None:
    """Draw a distribution from one cluster to a high quantile, and at least to `at_least`."""
    n_shown = max(at_least, 1 + int(np.searchsorted(law.values.cumsum(), _SHOWN)))
    shown = law[:n_shown]
    ax.plot(shown["n_clusters"].values, shown.values, ".-", color="C1", label=label)
    ax.set_ylim(bottom=0)
