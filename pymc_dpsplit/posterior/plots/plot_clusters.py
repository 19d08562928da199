"""Figure: the data, coloured by a partition."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import as_floats, generator_of
from pymc_dpsplit.posterior.partitions.check_partition import labels_of_rows
from pymc_dpsplit.posterior.partitions.point_partition import point_partition
from pymc_dpsplit.posterior.partitions.resolve_labels import resolve_labels
from pymc_dpsplit.posterior.plots.axes import axes_or_new
from pymc_dpsplit.posterior.plots.cluster_groups import ClusterGroup, cluster_groups
from pymc_dpsplit.posterior.plots.value_ticks import has_few_values, mark_whole_numbers
from pymc_dpsplit.posterior.trace.categories import names_of_codes
from pymc_dpsplit.posterior.trace.features import Feature, feature_names, feature_positions
from pymc_dpsplit.posterior.trace.groups import choose_mixture, find_shared
from pymc_dpsplit.posterior.trace.values import mean_values

_DRAWS_AVERAGED = 200
_FEATURES_SHOWN, _MOST_FEATURES = 4, 8
_PANEL = 2.2  # inches
_BINS = 30
# Height of the rug below the axis and its distance from it, and of tick labels from ticks: points.
_RUG, _RUG_PAD = 5.0, 6.0
_MANY = 2_000  # number of points above which they are drawn smaller
_JITTER = 0.25  # of columns with few distinct whole numbers, such as zeros and ones


def plot_clusters(
    idata: xr.DataTree,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    partition: Any = None,
    like: Any = None,
    over: Any = None,
    features: Feature | Sequence[Feature] | None = None,
    random_seed: Any = None,
    ax: Any = None,
) -> Any:
    """Plot the data, coloured by the clusters of a partition.

    One feature is plotted as a stacked histogram over a rug, two as a scatter plot, and more as
    panels, with histograms on the diagonal and scatter plots of all pairs below it.  Each of the
    ten largest clusters has its own colour; the legend shows sizes.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    model : pymc.Model, optional
        The sampled model, by default that of the context.  It is required if no partition is given
        and the trace has no labels, and for data whose mean depends on other variables; it names
        the categories of columns of strings, of which the trace holds codes.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    partition : PointPartition, DataArray or array_like of int, shape (obs,), optional
        By default the result of `point_partition` with the default loss; `find_map` and
        `dp_means` give other estimates.  With ``groups=`` it may be one of the groups.
    like : PointPartition, DataArray or array_like of int, shape (obs,), optional
        Partition that determines colours and numbers, so that figures of several partitions can
        be compared.  Each cluster takes those of the cluster of `like` with which it shares most
        observations; unmatched clusters take further ones.  By default they are assigned by size.
    over : array-like, shape (obs,), optional
        A covariate, plotted on the horizontal axis of a scatter plot of one feature.  The name of a
        series or DataArray becomes the label of the axis.
    features : int, str or sequence of one to eight of them, optional
        Features to show, as indices or labels of the coordinate; by default the first four.
    random_seed : int or numpy.random.Generator, optional
        Random seed for labels that are redrawn, and for `point_partition`.
    ax : matplotlib Axes, optional
        Axes to draw one or two features in; by default those of a new figure.

    Returns
    -------
    matplotlib Axes, or ndarray of them, shape (n, n), for n > 2 features
        Axes above the diagonal are invisible.

    Raises
    ------
    ValueError
        If the trace lacks the values, if the model is required, or if an argument is out of range.

    Notes
    -----
    For a latent mixture the plotted values are posterior means of the latent variable.  For data
    whose mean depends on other variables they are the data less the posterior mean of that mean.
    A panel omits observations with a missing entry in its features.  Features with few distinct
    values, all whole numbers, are jittered in scatter plots.

    Examples
    --------
    >>> import arviz as az
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> drawn = {"x_n_clusters": np.full((1, 2), 1), "x_weights": np.full((1, 2, 1), 0.9)}
    >>> observed = {"x": np.array([[-1.0, 0.3], [0.8, 0.1], [5.0, 4.0]])}
    >>> idata = az.from_dict({"posterior": drawn, "observed_data": observed})
    >>> ax = dps.plot_clusters(idata, partition=[0, 0, 1])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['cluster 0: 2', 'cluster 1: 1']

    Plot another partition in the colours and numbers of the first, for instance a bound of
    `credible_ball`:

    >>> ax = dps.plot_clusters(idata, partition=[0, 1, 1], like=[0, 0, 1])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['cluster 1: 2', 'cluster 0: 1']
    """
    rng = generator_of("random_seed", random_seed)
    name = choose_mixture(idata, var_name)
    model = Model.get_context(error_if_none=False) if model is None else model
    shown = mean_values(idata, name, model, _DRAWS_AVERAGED)
    keep = feature_positions(features, shown.values, _FEATURES_SHOWN, _MOST_FEATURES)
    if keep is not None and len(keep) > 2 and ax is not None:
        raise ValueError(
            f"ax is given for {len(keep)} features, which take several panels; leave it out, or "
            "give features=, one or two of them."
        )
    x = None if over is None else _checked_over(over, len(shown.values), keep)
    dim = str(shown.values.dims[0])
    if partition is None:
        labels = resolve_labels(idata, model, name, rng)
        partition = point_partition(labels, random_seed=rng)
    group_of_row = find_shared(idata, name).group_of_row
    names_of_groups = None if model is None else model.coords.get(f"{name}_group")
    partition, like = (
        labels_of_rows(of, group_of_row, f"{name}_group", names_of_groups, argument)
        for argument, of in (("partition", partition), ("like", like))
    )
    coord = shown.values.coords.get(dim)
    groups = cluster_groups(partition, like, dim, len(shown.values), coord)
    values = shown.values.to_numpy().reshape(len(shown.values), -1)[:, keep or (0,)].astype(float)
    names = [name] if keep is None else [feature_names(shown.values)[i] for i in keep]
    names = [of + shown.suffix for of in names]
    of_codes = names_of_codes(name, model)
    codes = [of_codes.get(i) for i in keep or (0,)]
    if len(names) > 2:
        return _draw_panels(values, names, groups, codes)
    ax = axes_or_new(ax)
    if x is not None:
        _draw_scatter(ax, _jittered(np.column_stack([x, values[:, 0]])), groups)
        ax.set(xlabel=_name_of(over), ylabel=names[0])
        mark_whole_numbers(ax.yaxis, values[:, 0], codes[0])
    elif len(names) == 1:
        _draw_histogram(ax, values[:, 0], groups)
        ax.set(xlabel=names[0], ylabel="observations")
        mark_whole_numbers(ax.xaxis, values[:, 0], codes[0])
    else:
        _draw_scatter(ax, _jittered(values), groups)
        ax.set(xlabel=names[0], ylabel=names[1])
        mark_whole_numbers(ax.xaxis, values[:, 0], codes[0])
        mark_whole_numbers(ax.yaxis, values[:, 1], codes[1])
    ax.legend(fontsize="small")
    return ax


def _checked_over(over: Any, n_obs: int, keep: tuple[int, ...] | None) -> np.ndarray:
    """Return the covariate, or refuse it with one sentence."""
    if keep is not None and len(keep) != 1:
        raise ValueError(
            f"over is given for {len(keep)} features, but is plotted with one; give features=, one "
            "of them."
        )
    x = as_floats("over", over)
    if x.size != n_obs:
        raise ValueError(
            f"over has shape {x.shape}, but there are {n_obs} observations; give one number for "
            "each."
        )
    return x.reshape(-1)


def _name_of(over: Any) -> str:
    """Return the name of a series, or of the only column of a frame."""
    (name,) = list(getattr(over, "columns", [])) or [getattr(over, "name", None)]
    return "covariate" if name is None else str(name)


def _draw_histogram(ax: Any, values: np.ndarray, groups: list[ClusterGroup]) -> None:
    parts = [values[group.members] for group in groups]
    parts = [part[np.isfinite(part)] for part in parts]
    colors, labels = [group.color for group in groups], [group.label for group in groups]
    ax.hist(parts, bins=_edges(values), stacked=True, color=colors, label=labels)
    if has_few_values(values):
        return  # a rug would repeat the bars, and hide the ticks
    # Imported here because it takes longer than the rest of the package.
    from matplotlib.transforms import offset_copy

    below = offset_copy(ax.get_xaxis_transform(), ax.figure, y=-_RUG, units="points")
    ax.tick_params(axis="x", pad=_RUG_PAD)
    for part, color in zip(parts, colors, strict=True):
        style = {"markersize": _RUG, "transform": below, "clip_on": False}
        ax.plot(part, np.zeros(len(part)), "|", color=color, **style)


def _edges(values: np.ndarray) -> np.ndarray:
    """Return edges of bins, with one bin per value for few distinct whole numbers."""
    known = values[np.isfinite(values)]
    if has_few_values(values):
        return np.arange(known.min(), known.max() + 2) - 0.5
    return np.histogram_bin_edges(known, bins=_BINS)


def _draw_scatter(ax: Any, points: np.ndarray, groups: list[ClusterGroup]) -> None:
    size = 5 if len(points) < _MANY else 2
    for group in groups:
        shown = points[group.members].T
        ax.plot(*shown, ".", color=group.color, markersize=size, label=group.label)


def _draw_panels(
    values: np.ndarray,
    names: list[str],
    groups: list[ClusterGroup],
    codes: list[Sequence[str] | None],
) -> np.ndarray:
    # Imported here because it takes longer than the rest of the package.
    import matplotlib.pyplot as plt

    n = len(names)
    figure, axes = plt.subplots(n, n, figsize=(_PANEL * n, _PANEL * n), layout="constrained")
    points = _jittered(values)
    for i, j in np.ndindex(n, n):
        ax = axes[i, j]
        if j > i:
            ax.set_visible(False)
        elif i == j:
            _draw_histogram(ax, values[:, i], groups)
        else:
            _draw_scatter(ax, points[:, [j, i]], groups)
        mark_whole_numbers(ax.xaxis, values[:, j], codes[j])
        if j < i:
            mark_whole_numbers(ax.yaxis, values[:, i], codes[i])
        ax.set_xlabel(names[j] if i == n - 1 else "")
        ax.set_ylabel("observations" if i == j == 0 else names[i] if j == 0 else "")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", fontsize="small")
    return axes


def _jittered(values: np.ndarray) -> np.ndarray:
    """Jitter the columns with few distinct whole numbers, with a fixed seed."""
    noise = np.random.default_rng(0).uniform(-_JITTER, _JITTER, values.shape)
    return values + np.where([has_few_values(column) for column in values.T], noise, 0.0)
