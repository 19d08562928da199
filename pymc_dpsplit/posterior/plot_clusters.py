"""Figure: the data, coloured by a partition."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.axes import axes_or_new
from pymc_dpsplit.posterior.cluster_groups import ClusterGroup, cluster_groups
from pymc_dpsplit.posterior.features import Feature, feature_names, feature_positions
from pymc_dpsplit.posterior.labels_given import labels_given
from pymc_dpsplit.posterior.plotted_values import mean_values
from pymc_dpsplit.posterior.point_partition import point_partition
from pymc_dpsplit.posterior.trace import choose_mixture

_DRAWS_AVERAGED = 200
_FEATURES_SHOWN, _MOST_FEATURES = 4, 8
_PANEL = 2.2  # inches
_BINS = 30
_MANY = 2_000  # points from which on they are drawn smaller
# Columns of few whole numbers, such as zeros and ones, are scattered about their values.
_FEW_VALUES, _JITTER = 20, 0.25


def plot_clusters(
    idata: xr.DataTree,
    var_name: str | None = None,
    *,
    partition: Any = None,
    like: Any = None,
    model: Model | None = None,
    features: Feature | Sequence[Feature] | None = None,
    random_seed: Any = None,
    ax: Any = None,
) -> Any:
    """Plot the data, coloured by the cluster of a partition that each observation is in.

    One feature is a histogram of stacked bars over a rug, two are a scatter plot, and more are
    panels: a scatter plot of every pair below the histograms of all.  The ten largest clusters
    have colours of their own; the legend gives their sizes.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
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
        The model sampled, by default the one of the context; needed if no partition is given and
        the trace holds no labels, and for data with a mean of other variables.
    features : int, str or sequence of one to eight of them, optional
        Features to show, as positions or as labels of the coordinate; by default the first four.
    random_seed : int or numpy.random.Generator, optional
        For labels that are redrawn, and for `point_partition`.
    ax : matplotlib Axes, optional
        Where to draw one or two features; by default a new figure.

    Returns
    -------
    matplotlib Axes, or ndarray of them, shape (n, n), for n > 2 features
        Those above the diagonal are not visible.

    Raises
    ------
    ValueError
        If the values are not in the trace, the model is needed, or an argument is out of range.

    Notes
    -----
    For a latent mixture the values are posterior means of the latent variable; for data with a
    mean of other variables, the data less the posterior mean of that mean.  Observations with a
    missing entry are left out of panels that would show it.  Features with few values, all whole
    numbers, are jittered in scatter plots.

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

    Another partition in the colours and numbers of the first, as for the bounds of
    `credible_ball`:

    >>> ax = dps.plot_clusters(idata, partition=[0, 1, 1], like=[0, 0, 1])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['cluster 1: 2', 'cluster 0: 1']
    """
    name = choose_mixture(idata, var_name)
    model = Model.get_context(error_if_none=False) if model is None else model
    shown = mean_values(idata, name, model, _DRAWS_AVERAGED)
    keep = feature_positions(features, shown.values, _FEATURES_SHOWN, _MOST_FEATURES)
    if keep is not None and len(keep) > 2 and ax is not None:
        raise ValueError(
            f"ax is given for {len(keep)} features, which take several panels; leave it out, or "
            "give features=, one or two of them."
        )
    dim = str(shown.values.dims[0])
    if partition is None:
        rng = np.random.default_rng(random_seed)
        labels = labels_given(idata, name, model, rng)
        partition = point_partition(labels, random_seed=rng)
    coord = shown.values.coords.get(dim)
    groups = cluster_groups(partition, like, dim, len(shown.values), coord)
    values = shown.values.to_numpy().reshape(len(shown.values), -1)[:, keep or (0,)].astype(float)
    names = [name] if keep is None else [feature_names(shown.values)[i] for i in keep]
    names = [of + shown.suffix for of in names]
    if len(names) > 2:
        return _draw_panels(values, names, groups)
    ax = axes_or_new(ax)
    if len(names) == 1:
        _draw_histogram(ax, values[:, 0], groups)
        ax.set(xlabel=names[0], ylabel="observations")
    else:
        _draw_scatter(ax, _jittered(values), groups)
        ax.set(xlabel=names[0], ylabel=names[1])
    ax.legend(fontsize="small")
    return ax


def _draw_histogram(ax: Any, values: np.ndarray, groups: list[ClusterGroup]) -> None:
    parts = [values[group.members] for group in groups]
    parts = [part[np.isfinite(part)] for part in parts]
    colors, labels = [group.color for group in groups], [group.label for group in groups]
    ax.hist(parts, bins=_edges(values), stacked=True, color=colors, label=labels)
    for part, color in zip(parts, colors, strict=True):
        # On the scale of the axes, so that the rug has one height whatever the counts.
        rug = np.full(len(part), -0.02)
        ax.plot(part, rug, "|", color=color, transform=ax.get_xaxis_transform(), clip_on=False)


def _edges(values: np.ndarray) -> np.ndarray:
    """Edges of bins; for few whole numbers one bin each."""
    known = values[np.isfinite(values)]
    if _has_few_values(values):
        return np.arange(known.min(), known.max() + 2) - 0.5
    return np.histogram_bin_edges(known, bins=_BINS)


def _draw_scatter(ax: Any, points: np.ndarray, groups: list[ClusterGroup]) -> None:
    size = 5 if len(points) < _MANY else 2
    for group in groups:
        shown = points[group.members].T
        ax.plot(*shown, ".", color=group.color, markersize=size, label=group.label)


def _draw_panels(values: np.ndarray, names: list[str], groups: list[ClusterGroup]) -> np.ndarray:
    # Imported when needed: it takes longer than the rest of the package.
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
        ax.set_xlabel(names[j] if i == n - 1 else "")
        ax.set_ylabel("observations" if i == j == 0 else names[i] if j == 0 else "")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", fontsize="small")
    return axes


def _jittered(values: np.ndarray) -> np.ndarray:
    """Scatter the columns of few whole numbers, in the same way each time."""
    noise = np.random.default_rng(0).uniform(-_JITTER, _JITTER, values.shape)
    return values + np.where([_has_few_values(column) for column in values.T], noise, 0.0)


def _has_few_values(values: np.ndarray) -> bool:
    known = np.unique(values[np.isfinite(values)])
    return len(known) <= _FEW_VALUES and bool((known == np.rint(known)).all())
