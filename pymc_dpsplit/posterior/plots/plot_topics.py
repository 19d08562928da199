"""Figure: the likeliest words of each topic, with their probabilities."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.plots.cluster_groups import COLOURS, GREY, MOST_COLOURED
from pymc_dpsplit.posterior.plots.word_panels import MOST_PANELS, draw_words, word_panels


def plot_topics(words: xr.Dataset) -> Any:
    """Plot the probabilities of the likeliest words of each topic of a draw.

    Parameters
    ----------
    words : Dataset
        As from `top_words`.

    Returns
    -------
    ndarray of matplotlib Axes
        One for each of the twelve topics of the largest weight.

    Raises
    ------
    ValueError
        If `words` is something else.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.HDPTopics("w", 1.0, 1.0, 0.1, observed=[[3, 1, 0], [0, 0, 4]])
    ...     idata = pm.sample(
    ...         draws=20, tune=20, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> words = dps.top_words(idata, n=2)
    >>> len(dps.plot_topics(words)) == words.sizes["topic"]
    True
    """
    if not (isinstance(words, xr.Dataset) and {"weight", "word", "probability"} <= set(words)):
        raise ValueError(f"words is a {type(words).__name__}; give what top_words(idata) returns.")
    shown = words.isel(topic=slice(MOST_PANELS))
    axes = word_panels(shown.sizes["topic"], shown.sizes["rank"])
    columns = [shown[key].to_numpy() for key in ("word", "probability", "weight")]
    for k, (ax, names, probabilities, weight) in enumerate(zip(axes, *columns, strict=True)):
        color = COLOURS[k] if k < MOST_COLOURED else GREY
        draw_words(ax, np.asarray(names), probabilities, color=color)
        ax.set_title(f"topic {k}: {100 * weight:.0f} %", fontsize="small")
    axes[0].figure.supxlabel("probability; titles have the global weight", fontsize="small")
    return axes
