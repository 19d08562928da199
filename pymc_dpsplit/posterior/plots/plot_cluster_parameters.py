"""Figure: the parameters of the clusters of a description, with intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.description.cluster_description import (
    ClusterDescription,
    entries_of,
    symmetric,
)
from pymc_dpsplit.posterior.plots.description_axes import cluster_styles, refuse_no_description
from pymc_dpsplit.posterior.plots.value_ticks import shortened

_MOST_CLUSTERS = 20
_MOST_ENTRIES = 60
_HEIGHT, _LEAST_WIDTH, _ENTRY_WIDTH = 2.4, 6.5, 0.6  # inches
_TURNED_HEIGHT = 0.8  # of tick labels that are turned
_SPAN = 0.7  # share of the width of an entry that its clusters take
_FEW_LETTERS = 40  # of all tick labels together, which then fit without a turn


def plot_cluster_parameters(
    description: ClusterDescription,
    *,
    parameters: str | Sequence[str] | None = None,
    axes: Any = None,
) -> Any:
    """Plot the average parameters of each reference cluster, with their intervals.

    Each parameter has a panel, with the features side by side and one colour for each cluster.  Of
    matrices, such as covariances, the diagonal is shown.

    Parameters
    ----------
    description : ClusterDescription
        As from `describe_clusters`.
    parameters : str or sequence of str, optional
        Parameters to show, by default all.
    axes : matplotlib Axes or sequence of them, optional
        One for each parameter; by default those of a new figure.

    Returns
    -------
    ndarray of matplotlib Axes, one for each parameter

    Raises
    ------
    ValueError
        If `description` is something else, a parameter is unknown, there are more than 20 clusters
        or a parameter has more than 60 entries, or the number of axes differs.

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
    >>> [ax.get_ylabel() for ax in dps.plot_cluster_parameters(found)]
    ['mu', 'sigma']
    """
    shown = refuse_no_description(description)
    names = shown.chosen(parameters)
    if len(shown.size) > _MOST_CLUSTERS:
        raise ValueError(
            f"description has {len(shown.size)} clusters, too many to tell apart; describe a "
            f"partition of at most {_MOST_CLUSTERS}, as from point_partition(max_clusters=)."
        )
    summary = shown.to_dataset()
    entries = {name: _entries(summary[name]) for name in names}
    for name, (labels, _) in entries.items():
        if len(labels) > _MOST_ENTRIES:
            raise ValueError(
                f"{name} has {len(labels)} entries, too many for a figure; leave it out of "
                "parameters=, or show words by plot_top_words."
            )
    panels = _panels(axes, [labels for labels, _ in entries.values()])
    for ax, name in zip(panels, names, strict=True):
        _draw(ax, *entries[name], shown)
        ax.set_ylabel(f"{name}, diagonal" if symmetric(summary[name], 1, 1) else name)
    handles, labels = panels[0].get_legend_handles_labels()
    panels[0].legend(
        handles, labels, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0),
        title=f"mean, {100 * shown.ci_prob:.0f} % interval", title_fontsize="small",
    )  # fmt: skip
    return panels


def _entries(values: xr.DataArray) -> tuple[list[str], np.ndarray]:
    """Return names of the entries of a parameter, and their statistics (R, entries, 4)."""
    numbers = values.to_numpy()
    if symmetric(values, 1, 1):
        numbers = np.moveaxis(np.diagonal(numbers, axis1=1, axis2=2), -1, 1)
        dim = values.dims[1]
        labels = values.coords[dim].to_numpy() if dim in values.coords else range(numbers.shape[1])
        return [str(of) for of in labels], numbers
    named = entries_of(values, 1, 1)
    flat = numbers.reshape(len(numbers), -1, numbers.shape[-1])
    own = numbers.shape[1:-1]
    columns = [flat[:, np.ravel_multi_index(place, own) if own else 0] for _, place in named]
    return [name for name, _ in named], np.stack(columns, axis=1)


def _panels(axes: Any, entries: list[list[str]]) -> np.ndarray:
    n_panels, n_entries = len(entries), max(map(len, entries))
    if axes is None:
        # Imported here because it takes longer than the rest of the package.
        import matplotlib.pyplot as plt

        height = _HEIGHT * n_panels + _TURNED_HEIGHT * sum(map(_are_turned, entries))
        size = max(_LEAST_WIDTH, _ENTRY_WIDTH * n_entries + 2), height
        axes = plt.subplots(n_panels, figsize=size, layout="constrained", squeeze=False)[1]
    panels = np.array(axes, dtype=object).ravel()
    if len(panels) != n_panels:
        raise ValueError(
            f"axes has {len(panels)} axes for {n_panels} parameters; give one for each, or leave "
            "it out."
        )
    return panels


def _are_turned(labels: list[str]) -> bool:
    """Whether tick labels do not fit side by side."""
    return len(labels) > 1 and sum(len(shortened(of)) for of in labels) > _FEW_LETTERS


def _draw(ax: Any, labels: list[str], statistics: np.ndarray, shown: ClusterDescription) -> None:
    n_clusters = len(statistics)
    across = np.arange(len(labels))
    for r, (color, label) in enumerate(cluster_styles(shown)):
        mean, _, low, high = statistics[r].T
        place = across + _SPAN * ((r + 0.5) / n_clusters - 0.5)
        ax.vlines(place, low, high, color=color, linewidth=1.5)
        ax.plot(place, mean, "o", color=color, markersize=4, label=label)
    turn: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(across, map(shortened, labels), **(turn if _are_turned(labels) else {}))
    ax.set_xlim(-0.5, len(labels) - 0.5)
    for edge in across[1:] - 0.5:
        ax.axvline(edge, color="0.9", linewidth=0.8, zorder=0)
