"""Topics in a trace: the probabilities of words, and the likeliest words."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.components.arguments import check_integer, shown
from pymc_dpsplit.topic_model.record import TOPIC_PART
from pymc_dpsplit.topic_model.recorded_topics import RecordedTopics, recorded_topics


def topic_words(idata: xr.DataTree, *, var_name: str | None = None) -> xr.DataArray:
    """Return the probabilities of all words in the topics of a trace.

    Topics are large, so a trace holds them for every T-th draw only, a part of them in each draw up
    to the next one; T depends on their number and on the vocabulary, and is 1 where both are small.
    Of a trace from which draws were removed, topics are read where all T parts are left.

    Parameters
    ----------
    idata : DataTree
        Result of `pm.sample` for a model with `HDPTopics`.
    var_name : str, optional
        Name of the documents; by default those of the only topic model.

    Returns
    -------
    DataArray of float32, shape (chain, draw, topic, word)
        In each draw, topics by decreasing global weight; rows without a topic are 0.  Topic k of
        one draw need not be topic k of another.

    Raises
    ------
    ValueError
        If the trace has no topics, or no draw whose topics are whole: there are too few draws, or
        parts of each were removed.

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
    >>> dps.topic_words(idata).shape
    (2, 20, 8, 3)
    """
    return recorded_topics(idata, topic_model_name(idata, var_name)).words


def top_words(
    idata: xr.DataTree,
    *,
    var_name: str | None = None,
    n: int = 10,
    chain: int = 0,
    draw: int = -1,
) -> xr.Dataset:
    """Return the likeliest words of each topic in one draw.

    Parameters
    ----------
    idata : DataTree
    var_name : str, optional
        See `topic_words`.
    n : int
        Number of words; all, if there are fewer.
    chain, draw : int
        Position of the draw among those that hold topics; by default the last one of the first
        chain.

    Returns
    -------
    Dataset
        For each topic, by decreasing global weight: ``weight`` (topic), and by decreasing
        probability ``word`` and ``probability`` (topic, rank).

    Raises
    ------
    ValueError
        If the trace has no topics, or an argument is out of range.

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
    >>> dps.top_words(idata, n=2).sizes["rank"]
    2
    """
    check_integer("n", n, 1)
    topics = recorded_topics(idata, topic_model_name(idata, var_name))
    chosen, weights, _ = draw_of_topics(topics, chain, draw)
    occupied = int((weights > 0).sum())
    probabilities = chosen.to_numpy()[:occupied]
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :n]
    names: Any = chosen[chosen.dims[-1]].to_numpy()
    by_rank = ("topic", "rank")
    return xr.Dataset(
        {
            "weight": ("topic", weights.to_numpy()[:occupied]),
            "word": (by_rank, names[order]),
            "probability": (by_rank, np.take_along_axis(probabilities, order, axis=1)),
        },
        coords={"topic": np.arange(occupied), "rank": np.arange(order.shape[1])},
    )


def draw_of_topics(
    topics: RecordedTopics, chain: int, draw: int
) -> tuple[xr.DataArray, xr.DataArray, float]:
    """Return the topics, the global weights and alpha of one draw.

    Parameters
    ----------
    topics : RecordedTopics
    chain, draw : int
        Position among the draws that hold topics.

    Returns
    -------
    words : DataArray, shape (L, V)
    weights : DataArray, shape (L,)
    alpha : float

    Raises
    ------
    ValueError
        If a position is out of range.
    """
    for key, at in {"chain": chain, "draw": draw}.items():
        length = topics.words.sizes[key]
        if not -length <= at < length:
            raise ValueError(
                f"{key}={shown(at)} is out of range; give an integer from {-length} to "
                f"{length - 1}."
            )
    words, weights, alphas = (of[chain, draw] for of in topics)
    return words, weights, float(alphas)


def topic_model_name(idata: xr.DataTree, var_name: str | None) -> str:
    """Return the name of the topic model to read.

    Parameters
    ----------
    idata : DataTree
    var_name : str, optional
        None for the only one.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If there is no such model.
    """
    if not isinstance(idata, xr.DataTree):
        raise ValueError(
            f"idata={shown(idata)} is no trace; give one of HDPTopics, or call top_words() of what "
            "describe_clusters returns."
        )
    stats: Any = idata["sample_stats"] if "sample_stats" in idata.children else {}
    ending = f"_{TOPIC_PART}"
    names = [str(of).removesuffix(ending) for of in stats if str(of).endswith(ending)]
    if var_name is None and len(names) == 1:
        return names[0]
    if var_name not in names:
        given = "no var_name" if var_name is None else f"var_name={shown(var_name)}"
        known = ", ".join(names) or "none"
        raise ValueError(
            f"idata has the topic models {known}, and {given} was given; give a trace of HDPTopics "
            "and the name of one."
        )
    return str(var_name)
