"""Figure: the most relevant words of each cluster, with their probabilities."""

from typing import Any

import numpy as np

from pymc_dpsplit.posterior.description.cluster_description import ClusterDescription
from pymc_dpsplit.posterior.plots.description_axes import cluster_styles, refuse_no_description

_MOST_PANELS = 12
_ACROSS = 4  # panels
_WIDTH, _WORD_HEIGHT = 2.6, 0.2  # inches


def plot_top_words(
    description: ClusterDescription,
    *,
    n: int = 10,
    relevance: float = 0.6,
    parameter: str | None = None,
) -> Any:
    """Plot the probabilities of the most relevant words of each cluster, with intervals.

    Parameters
    ----------
    description : ClusterDescription
        As from `describe_clusters`, of a mixture of `Multinomial`.
    n : int
        Number of words; all, if there are fewer.
    relevance : float
        Weight of the probability of a word beside its ratio to the average, see
        ``ClusterDescription.top_words``.
    parameter : str, optional
        Name of the probabilities, by default the only parameter whose entries sum to one.

    Returns
    -------
    ndarray of matplotlib Axes
        One for each of the twelve largest clusters, by size.

    Raises
    ------
    ValueError
        If `description` is something else, has no such probabilities, or an argument is out of
        range.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> counts = [[9, 1, 0], [8, 2, 0], [0, 1, 9]]
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Multinomial(1.0), observed=counts)
    ...     idata = pm.sample(
    ...         draws=50, tune=50, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> found = dps.describe_clusters(idata, [0, 0, 1], model=model, random_seed=1)
    >>> len(dps.plot_top_words(found, n=2))
    2
    """
    shown = refuse_no_description(description)
    words, drawn = shown.words_and_places(n, relevance, parameter)
    drawn = drawn.transpose("chain", "draw", shown.cluster_dim, "rank")
    values = drawn.to_numpy().reshape(-1, *drawn.shape[2:])
    tail = (1 - shown.ci_prob) / 2
    ends = np.quantile(values, [tail, 1 - tail], axis=0)
    mean = values.mean(0)
    largest = np.argsort(-shown.size.to_numpy(), kind="stable")[:_MOST_PANELS]
    n = len(words)
    axes = _panels(len(largest), n)
    styles = cluster_styles(shown)
    for ax, r in zip(axes, largest, strict=True):
        color, title = styles[r]
        reach = np.abs(ends[:, r] - mean[r])
        ax.barh(np.arange(n), mean[r], xerr=reach, color=color, error_kw={"elinewidth": 1})
        ax.set_yticks(np.arange(n), words.to_numpy()[:, r], fontsize="small")
        ax.invert_yaxis()
        ax.set_title(title, fontsize="small")
    of = f"probability, mean and {100 * shown.ci_prob:.0f} % interval"
    axes[0].figure.supxlabel(of, fontsize="small")
    return axes


def _panels(n_panels: int, n: int) -> np.ndarray:
    # Imported here because it takes longer than the rest of the package.
    import matplotlib.pyplot as plt

    across = min(n_panels, _ACROSS)
    up = -(-n_panels // across)
    size = _WIDTH * across, (_WORD_HEIGHT * n + 0.9) * up
    axes = plt.subplots(up, across, figsize=size, layout="constrained", squeeze=False)[1].ravel()
    for ax in axes[n_panels:]:
        ax.set_visible(False)
    return axes[:n_panels]
