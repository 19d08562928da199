"""Figure: the posterior density of a mixture, and the values that it models."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import arviz_base as azb
import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import check_integer
from pymc_dpsplit.posterior.plots.axes import axes_or_new
from pymc_dpsplit.posterior.plots.features import Feature, feature_names, feature_positions
from pymc_dpsplit.posterior.trace.draws import recorded_posterior
from pymc_dpsplit.posterior.trace.gaussian_density import (
    density_at,
    gaussian_draws,
    is_gaussian,
    refuse_shapes,
)
from pymc_dpsplit.posterior.trace.groups import choose_mixture, group_of
from pymc_dpsplit.posterior.trace.log_density import log_density_by_model
from pymc_dpsplit.posterior.trace.places import spread_places
from pymc_dpsplit.posterior.trace.values import plotted_values
from pymc_dpsplit.variables import find_mixtures

Density = Callable[[np.ndarray], np.ndarray]

_LINE_POINTS = 500
_PLANE_POINTS = 100  # along each axis
_ENCLOSED = (0.95, 0.8, 0.5, 0.2)  # share of the mass inside each contour
_MOST_SCATTERED = 5_000
_LEAST_BINS, _MOST_BINS = 10, 100


def plot_density(
    idata: xr.DataTree,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    features: Feature | Sequence[Feature] | None = None,
    num_samples: int = 200,
    ci_prob: float | None = None,
    ax: Any = None,
) -> Any:
    """Plot the posterior density of a mixture, and the values that it models.

    One feature is plotted as the posterior mean and a pointwise credible band over a histogram, two
    as contours of the posterior mean that enclose given shares of its mass, over a scatter plot.
    The values are the data.  For a latent mixture they are draws of the latent variable, and for
    data whose mean depends on other variables the data less that mean, in several draws.

    Parameters
    ----------
    idata : DataTree
        As returned by `pm.sample`, of a mixture of Gaussians or of a continuous family of scalars.
    model : pymc.Model, optional
        The sampled model, by default that of the context.  It is required for data whose mean
        depends on other variables, as the trace lacks it, and for families that are not Gaussian.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    features : int, str or sequence of one or two of them, optional
        Features whose marginal density is plotted, as indices or labels of the coordinate; by
        default the first two.
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
        required, or if an argument is out of range.

    Notes
    -----
    For Gaussian families the density of a draw is that of its occupied clusters, with weights
    scaled to sum to 1.  The remainder, of weight ``{name}_new_weight`` (about alpha / (alpha + N)),
    is omitted, because its density depends on the prior, which is not in the trace.  For other
    families the remainder is included.

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
    check_integer("num_samples", num_samples, 1)
    ci_prob = azb.rcParams["stats.ci_prob"] if ci_prob is None else ci_prob
    if not 0 < ci_prob < 1:
        raise ValueError(f"ci_prob={ci_prob} must lie between 0 and 1.")
    model = Model.get_context(error_if_none=False) if model is None else model
    shown = plotted_values(idata, name, model, num_samples)
    keep = feature_positions(features, shown.values, default=2, most=2)
    if is_gaussian(idata, name):
        refuse_shapes(group_of(idata, "posterior"), name, shown.values.shape[1:])
        density: Density = partial(density_at, draws=gaussian_draws(idata, name, keep, num_samples))
    else:
        density = _density_by_model(idata, name, model, num_samples)
    values = shown.values.to_numpy().reshape(len(shown.values), -1)[:, keep or (0,)].astype(float)
    values = values[np.isfinite(values).all(1)]
    labels = [label + shown.suffix for label in _labels(shown.values, name, keep)]
    ax = axes_or_new(ax)
    if len(labels) == 1:
        _draw_line(ax, values[:, 0], density, ci_prob, shown.kind)
        ax.set(xlabel=labels[0], ylabel="density")
    else:
        _draw_plane(ax, values, density, shown.kind)
        ax.set(xlabel=labels[0], ylabel=labels[1])
    return ax


def _density_by_model(
    idata: xr.DataTree, name: str, model: Model | None, num_samples: int
) -> Density:
    """Return the density of a non-Gaussian family as a function of points (G, 1)."""
    mixture = None if model is None else find_mixtures(model).get(name)
    if model is None or mixture is None:
        raise ValueError(
            f"mixture {name} is not of Gaussians, so that its trace does not tell its density; "
            "give model=, with which idata was sampled."
        )
    component = mixture.component
    if component.is_discrete or component.has_covariates or mixture.n_features > 1:
        raise ValueError(
            f"mixture {name} of {type(component).__name__} has no density of a single number, "
            "which is what can be plotted of families other than the Gaussians; use "
            "az.plot_ppc_dist on posterior predictive draws."
        )
    posterior = recorded_posterior(idata, mixture)
    places = spread_places(posterior, num_samples)
    log_density = partial(log_density_by_model, posterior, mixture, model, places=places)
    return lambda points: np.exp(log_density(rows=points))


def _labels(observed: xr.DataArray, name: str, keep: tuple[int, ...] | None) -> list[str]:
    """Return the labels of the axes."""
    return [name] if keep is None else [feature_names(observed)[i] for i in keep]


def _draw_line(ax: Any, values: np.ndarray, density_at: Density, ci_prob: float, kind: str) -> None:
    grid = _grid(values, _LINE_POINTS)
    density = density_at(grid[:, None])
    tail = (1 - ci_prob) / 2
    low, high = np.quantile(density, [tail, 1 - tail], axis=0)
    ax.hist(values, bins=_n_bins(values), density=True, color="0.85", label=kind)
    ax.fill_between(
        grid, low, high, color="C0", alpha=0.3, lw=0, label=f"{100 * ci_prob:.0f} % band"
    )
    ax.plot(grid, density.mean(0), color="C0", label="posterior mean")
    ax.legend()


def _draw_plane(ax: Any, values: np.ndarray, density_at: Density, kind: str) -> None:
    across, up = (_grid(column, _PLANE_POINTS) for column in values.T)
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    mean = density_at(points).mean(0)
    levels = dict(zip(_levels(mean), _ENCLOSED, strict=True))
    few = np.linspace(0, len(values) - 1, min(len(values), _MOST_SCATTERED)).astype(int)
    (data,) = ax.plot(*values[few].T, ".", color="0.6", markersize=4, label=kind)
    lines = ax.contour(
        across, up, mean.reshape(len(up), -1), levels=sorted(levels), cmap="Blues", vmin=-mean.max()
    )
    shares = [f"{100 * levels[level]:.0f} % within" for level in lines.levels]
    handles = [data, *lines.legend_elements()[0]]
    ax.legend(handles, [kind, *shares], loc="best", fontsize="small")


def _grid(values: np.ndarray, size: int) -> np.ndarray:
    """Return evenly spaced points over the range of `values`, with a margin."""
    low, high = values.min(), values.max()
    margin = 0.15 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, size)


def _n_bins(values: np.ndarray) -> int:
    """Return twice the number of bins of Freedman and Diaconis, which suits one mode; bounded."""
    low, high = np.quantile(values, [0.25, 0.75])
    spread = np.ptp(values)
    wanted = spread * len(values) ** (1 / 3) / (high - low) if high > low else 1.0
    return int(np.clip(np.ceil(wanted), _LEAST_BINS, _MOST_BINS))


def _levels(density: np.ndarray) -> np.ndarray:
    """Return the densities whose superlevel sets enclose the shares `_ENCLOSED` of the mass."""
    ordered = np.sort(density)[::-1]
    mass = np.cumsum(ordered) / ordered.sum()
    return ordered[np.searchsorted(mass, _ENCLOSED)]
