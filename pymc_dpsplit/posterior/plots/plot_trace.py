"""Figure: traces of the quantities that do not depend on the numbering of clusters."""

from typing import Any

import arviz_plots
import xarray as xr
from arviz_base import rcParams
from pymc.model import Model

from pymc_dpsplit.posterior.diagnostics.invariants import invariant_quantities
from pymc_dpsplit.posterior.diagnostics.probes import probe_densities
from pymc_dpsplit.posterior.trace.groups import choose_mixture, group_of, mixture_names


def plot_trace(
    idata: xr.DataTree,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    **options: Any,
) -> Any:
    """Plot the draws of each chain against their number, for label-invariant quantities.

    `arviz.plot_trace` of a trace has one panel for each parameter of each numbered cluster, most of
    which are empty in some draws and refer to different clusters in others.  This figure has panels
    for the quantities that `diagnose` judges: scalars such as alpha, the entry that mixes worst of
    each array without clusters, and of the mixture the number of clusters, the weight of new
    clusters, the entropy of the partition, the log joint density and, where the model or the trace
    gives it, the log predictive density at five rows.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    model : pymc.Model, optional
        The sampled model, by default that of the context; for the log predictive density.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    **options : object
        Passed on to `arviz_plots.plot_trace`, for instance ``var_names="alpha"`` or
        ``backend="plotly"``.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        If the trace lacks a group or a variable.

    Notes
    -----
    Where numbers of chains or draws are repeated, as after `xarray.concat` of two traces, they are
    those of their places.

    Examples
    --------
    >>> import arviz as az
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> counts, weights = np.array([[2, 2, 3], [2, 3, 4]]), np.full((2, 3, 4), 0.2)
    >>> drawn = {"x_n_clusters": counts, "x_weights": weights, "x_new_weight": 0.1 * counts}
    >>> stats = {"x_entropy": np.log(counts), "x_log_joint": -1.0 * counts}
    >>> idata = az.from_dict({"posterior": drawn, "sample_stats": stats})
    >>> list(dps.plot_trace(idata).viz["plot"].data_vars)
    ['x_n_clusters', 'x_new_weight', 'x_entropy', 'x_log_joint']
    """
    name = choose_mixture(idata, var_name)
    model = Model.get_context(error_if_none=False) if model is None else model
    posterior, stats = group_of(idata, "posterior"), group_of(idata, "sample_stats")
    shown = invariant_quantities(posterior, stats, name, mixture_names(idata))
    probes = probe_densities(idata, name, model)
    shown = shown if probes is None else shown.merge(probes)
    shown = _numbered(shown)
    backend = options.get("backend") or rcParams["plot.backend"]
    if backend == "matplotlib" and options.get("plot_collection") is None:
        # Else titles and labels of neighbouring panels overlap.
        given = options.get("figure_kwargs", {})
        options = {**options, "figure_kwargs": {"layout": "constrained", **given}}
    plots: Any = arviz_plots  # it has no type annotations
    return plots.plot_trace(xr.DataTree.from_dict({"posterior": shown}), **options)


def _numbered(shown: xr.Dataset) -> xr.Dataset:
    """Number chains and draws by their places where numbers are repeated."""
    repeated = [dim for dim in ("chain", "draw") if not shown.get_index(dim).is_unique]
    return shown.assign_coords({dim: range(shown.sizes[dim]) for dim in repeated})
