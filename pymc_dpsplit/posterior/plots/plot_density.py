"""Figure: the posterior density of a mixture, and the values that it models."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.density.density import density, values_of
from pymc_dpsplit.posterior.plots.axes import axes_or_new
from pymc_dpsplit.posterior.plots.value_ticks import mark_whole_numbers
from pymc_dpsplit.posterior.trace.categories import names_of_codes
from pymc_dpsplit.posterior.trace.features import Feature, feature_names, feature_positions
from pymc_dpsplit.posterior.trace.groups import choose_mixture, find_shared
from pymc_dpsplit.posterior.trace.rows_in_groups import rows_in_groups
from pymc_dpsplit.posterior.trace.values import plotted_values

_ENCLOSED = (0.95, 0.8, 0.5, 0.2)  # share of the mass inside each contour
_MOST_SCATTERED = 5_000
_LEAST_BINS, _MOST_BINS = 10, 100
_BARS: dict[str, Any] = {"facecolor": (0.5, 0.5, 0.5, 0.3), "edgecolor": "0.4", "lw": 0.5}
# Height of the figure, relative to its bars and its line; the band may go beyond.
_MOST_HEIGHT = 2.0
_ROOM_FOR_LEGEND = 1.3


def plot_density(
    idata: xr.DataTree,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    features: Feature | Sequence[Feature] | None = None,
    group: Any = None,
    num_samples: int = 200,
    ci_prob: float | None = None,
    ax: Any = None,
) -> Any:
    """Plot the posterior density of a mixture, and the values that it models.

    One feature is plotted as the posterior mean and a pointwise credible band over a histogram (as
    probabilities with intervals, if it has whole numbers, and with the names of categories if it
    has these), two as contours of the posterior mean that enclose given shares of its mass, over a
    scatter plot.  The values are the data.  For a latent mixture they are draws of the latent
    variable, and for data whose mean depends on other variables the data less that mean, in several
    draws.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`.
    model : pymc.Model, optional
        The sampled model, by default that of the context.  It is required for data whose mean
        depends on other variables, as the trace lacks it, and for families that are not Gaussian.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    features : int, str or sequence of one or two of them, optional
        Features whose marginal density is plotted, as indices or labels of the coordinate; by
        default the first two that have a density, or the first if one of these has whole numbers.
    group : int or str, optional
        For an `HDPMixture`: name of the group whose density and rows are plotted; by default the
        density of a row of a new group, over the rows of all.
    num_samples : int
        Largest number of draws to use, evenly spaced over all chains.
    ci_prob : float, optional
        Probability of the equal-tailed band; by default that of ArviZ,
        ``rcParams["stats.ci_prob"]``.
    ax : matplotlib Axes, optional
        Axes to draw in; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the mixture has no such density, if the trace lacks the values, if the model is
        required or `pm.set_data` has replaced what is read of it, or if an argument is out of
        range.

    Notes
    -----
    The figure shows the result of `density`, whose notes say what the density of a draw is.  Its
    axis ends at twice the height of the histogram or the posterior mean, so that a band that is
    much higher, as that of narrow clusters of a latent mixture, does not flatten them.

    Examples
    --------
    >>> import arviz as az
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> drawn = {"x_n_clusters": np.full((1, 2), 1), "x_weights": np.full((1, 2, 1), 0.9)}
    >>> drawn |= {"x_mu": np.zeros((1, 2, 1)), "x_sigma": np.ones((1, 2, 1))}
    >>> observed = {"x": np.array([-1.0, 0.3, 0.8])}
    >>> idata = az.from_dict({"posterior": drawn, "observed_data": observed})
    >>> dps.plot_density(idata).get_xlabel()
    'x'
    """
    name = choose_mixture(idata, var_name)
    if not find_shared(idata, name).are_rows_alike:
        raise ValueError(
            f"{name} has groups of unequal numbers of rows, of which a histogram would show the "
            "large ones, and the density that of a row of any group; use density for the table."
        )
    model = Model.get_context(error_if_none=False) if model is None else model
    found = density(
        idata, model=model, var_name=name, features=features, group=group,
        num_samples=num_samples, ci_prob=ci_prob,
    )  # fmt: skip
    shown = plotted_values(idata, name, model, num_samples)
    if group is not None:
        rows = rows_in_groups(idata, name).rows_of(group)
        if not rows.any():
            raise ValueError(f"group={group!r} has no rows; use density for the table.")
        # Latent rows are those of several draws, one draw after the other.
        every = np.tile(rows, len(shown.values) // len(rows))
        shown = replace(shown, values=shown.values[every], kind=f"rows of {group}")
    labels = [found[dim].attrs["feature"] for dim in found["density"].dims[:-1]]
    keep = feature_positions(features, shown.values, default=2, most=2)
    if features is None and keep is not None:
        keep = tuple(feature_names(shown.values).index(label) for label in labels)
    values = values_of(shown, keep)
    labels = [label + shown.suffix for label in labels]
    if len(labels) == 2 and found.attrs["is_discrete"]:
        if features is None and keep is not None:
            return plot_density(
                idata, model=model, var_name=name, features=keep[0], group=group,
                num_samples=num_samples, ci_prob=ci_prob, ax=ax,
            )  # fmt: skip
        raise ValueError(
            f"features {labels} include one of whole numbers, which has no contours; give one "
            "feature, or use density for the table."
        )
    ax = axes_or_new(ax)
    if len(labels) == 1:
        draw = _draw_counts if found.attrs["is_discrete"] else _draw_line
        draw(ax, values[:, 0], found, shown.kind)
        ax.set(xlabel=labels[0], ylabel="probability" if draw is _draw_counts else "density")
        codes = names_of_codes(name, model).get(0 if keep is None else keep[0])
        if codes is not None:
            mark_whole_numbers(ax.xaxis, found["grid"].to_numpy(), codes)
    else:
        _draw_plane(ax, values, found, shown.kind)
        ax.set(xlabel=labels[0], ylabel=labels[1])
    return ax


def _draw_line(ax: Any, values: np.ndarray, found: xr.Dataset, kind: str) -> None:
    grid = found["grid"].to_numpy()
    mean, _, low, high = found["density"].to_numpy().T
    band = f"{100 * found.attrs['ci_prob']:.0f} % band"
    # Above the band, which may cover every bar of a latent mixture, and transparent.
    heights, _, _ = ax.hist(values, bins=_n_bins(values), density=True, label=kind, **_BARS)
    ax.fill_between(grid, low, high, color="C0", alpha=0.3, lw=0, label=band, zorder=0.5)
    ax.plot(grid, mean, color="C0", label="posterior mean")
    top = _MOST_HEIGHT * max(heights.max(), mean.max())
    if top < ax.get_ylim()[1]:
        ax.set_ylim(top=top, auto=True)  # what is added later, or to an axis shared, is not cut off
    ax.legend()


def _draw_counts(ax: Any, values: np.ndarray, found: xr.Dataset, kind: str) -> None:
    """Draw probabilities of whole numbers over the shares of the values."""
    grid = found["grid"].to_numpy()
    mean, _, low, high = found["density"].to_numpy().T
    band = f"{100 * found.attrs['ci_prob']:.0f} % band"
    edges = np.append(grid - 0.5, grid[-1] + 0.5)
    shares, _, _ = ax.hist(values, bins=edges, density=True, color="0.85", label=kind)
    ax.vlines(grid, low, high, color="C0", alpha=0.5, label=band)
    ax.plot(grid, mean, ".", color="C0", label="posterior mean")
    ax.xaxis.get_major_locator().set_params(integer=True)
    # Few bars fill the figure, so that the legend would cover one.
    ax.set_ylim(top=_ROOM_FOR_LEGEND * max(shares.max(), high.max()), auto=True)
    ax.legend()


def _draw_plane(ax: Any, values: np.ndarray, found: xr.Dataset, kind: str) -> None:
    across, up = (found[dim].to_numpy() for dim in ("grid", "grid_bis"))
    mean = found["density"].sel(statistic="mean").to_numpy().T
    areas = np.gradient(up)[:, None] * np.gradient(across)
    levels = dict(zip(_levels(mean.ravel(), areas.ravel()), _ENCLOSED, strict=True))
    few = np.linspace(0, len(values) - 1, min(len(values), _MOST_SCATTERED)).astype(int)
    (data,) = ax.plot(*values[few].T, ".", color="0.6", markersize=4, label=kind)
    lines = ax.contour(across, up, mean, levels=sorted(levels), cmap="Blues", vmin=-mean.max())
    shares = [f"{100 * levels[level]:.0f} % within" for level in lines.levels]
    handles = [data, *lines.legend_elements()[0]]
    ax.legend(handles, [kind, *shares], loc="best", fontsize="small")


def _n_bins(values: np.ndarray) -> int:
    """Return twice the number of bins of Freedman and Diaconis, which suits one mode; bounded."""
    low, high = np.quantile(values, [0.25, 0.75])
    spread = np.ptp(values)
    wanted = spread * len(values) ** (1 / 3) / (high - low) if high > low else 1.0
    return int(np.clip(np.ceil(wanted), _LEAST_BINS, _MOST_BINS))


def _levels(density: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """Return the densities whose superlevel sets enclose the shares `_ENCLOSED` of the mass."""
    order = np.argsort(density)[::-1]
    mass = np.cumsum(density[order] * areas[order])
    return density[order[np.searchsorted(mass, np.multiply(_ENCLOSED, mass[-1]))]]
