"""Topics that a trace holds whole, with the weights and concentrations of the same draws."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pymc_dpsplit.topic_model.record import TOPIC_DRAW, TOPIC_PART, WORD_TOTALS, TopicRecord

_REMEDY = "give the trace as pm.sample returned it"
# By how much the probabilities of a topic may miss one: they are recorded as float32.
_ROUNDING = 1e-3


class RecordedTopics(NamedTuple):
    """Topics of the draws whose record is whole, and what else a trace has of these draws.

    Attributes
    ----------
    words : DataArray of float32, shape (chain, draw, topic, word)
        Probabilities of words.
    weights : DataArray of float64, shape (chain, draw, topic)
        Global weights.
    alphas : DataArray of float64, shape (chain, draw)
    """

    words: xr.DataArray
    weights: xr.DataArray
    alphas: xr.DataArray


def recorded_topics(idata: xr.DataTree, name: str) -> RecordedTopics:
    """Put together the topics of the draws of which a trace has all parts.

    Parameters
    ----------
    idata : DataTree
        Whole, or with draws removed.
    name : str
        Name of the topic model.

    Returns
    -------
    RecordedTopics

    Raises
    ------
    ValueError
        If no record is whole, or the parts of the trace do not fit each other.
    """
    totals: Any = idata["constant_data"][f"{name}_{WORD_TOTALS}"]
    weights: Any = _drawn(idata, "posterior")[f"{name}_weights"]
    weights = weights.transpose("chain", "draw", f"{name}_topic")
    stats = _drawn(idata, "sample_stats")
    parts = stats[f"{name}_{TOPIC_PART}"].transpose("chain", "draw", ...)
    _refuse_other_draws(weights, parts)
    record = TopicRecord(weights.sizes[f"{name}_topic"], totals.size)
    places = record.whole_records(_numbers(stats, parts, name, record))
    if not len(places):
        raise ValueError(_none_whole(parts.sizes["draw"], name, record))
    topics = record.joined(parts.to_numpy()[:, places])
    at = {"draw": places[:, 0]}
    weights = weights.isel(at)
    alphas = stats[f"{name}_alpha"].transpose("chain", "draw").isel(at)
    _refuse_mixed(topics, weights.to_numpy(), name)
    word = str(totals.dims[0])
    coords = {
        "chain": parts["chain"],
        "draw": parts["draw"].isel(at),
        f"{name}_topic": weights[f"{name}_topic"],
        **({word: totals[word]} if word in totals.coords else {}),
    }
    dims = ("chain", "draw", f"{name}_topic", word)
    words = xr.DataArray(topics, coords, dims, name=f"{name}_topic_words")
    return RecordedTopics(words, weights, alphas)


def _drawn(idata: xr.DataTree, group: str) -> xr.Dataset:
    """Return a group of draws, with the dimensions of a chain or a draw that was selected."""
    drawn = idata[group].to_dataset()
    for dim in ("chain", "draw"):
        if dim not in drawn.dims and dim in drawn.coords and drawn.coords[dim].ndim == 0:
            drawn = drawn.expand_dims(dim)
        if dim not in drawn.dims:
            raise ValueError(f"the group {group} of idata has no dimension {dim}; {_REMEDY}.")
    return drawn


def _numbers(stats: Any, parts: xr.DataArray, name: str, record: TopicRecord) -> np.ndarray:
    """Return the number (C, S) of each draw among those kept."""
    key = f"{name}_{TOPIC_DRAW}"
    if key in stats:
        numbers: np.ndarray = stats[key].transpose("chain", "draw").to_numpy()
    else:
        # Traces of earlier versions: PyMC numbers the draws that it keeps from 0.
        shape = parts.sizes["chain"], parts.sizes["draw"]
        numbers = np.broadcast_to(parts["draw"].to_numpy(), shape)
    if numbers.dtype.kind not in "iu" and record.n_parts > 1:
        raise ValueError(
            f"the draws of idata have no whole numbers, which tell where the topics of {name} "
            f"begin; {_REMEDY}."
        )
    return numbers if record.n_parts > 1 else np.zeros(numbers.shape, np.int64)


def _none_whole(n_draws: int, name: str, record: TopicRecord) -> str:
    n_parts = record.n_parts
    if n_draws < n_parts:
        return (
            f"idata has {n_draws} draws, but the topics of {name} take {n_parts} draws; sample "
            "more."
        )
    return (
        f"idata holds the topics of {name} of no draw whole, as they are spread over {n_parts} "
        f"draws in a row; remove draws at the start or in blocks of {n_parts}, or {_REMEDY}."
    )


def _refuse_other_draws(weights: xr.DataArray, parts: xr.DataArray) -> None:
    """Refuse weights of other draws than those of the topics."""
    for dim in ("chain", "draw"):
        if not np.array_equal(weights[dim].to_numpy(), parts[dim].to_numpy()):
            raise ValueError(
                f"the group sample_stats of idata has other values of {dim} than posterior; select "
                "the same in both, as idata.sel does of the whole trace."
            )


def _refuse_mixed(topics: np.ndarray, weights: np.ndarray, name: str) -> None:
    """Refuse topics with parts of different draws, whose probabilities do not sum to one."""
    sums = topics.sum(axis=-1, dtype=np.float64)
    if not (np.abs(sums - (weights > 0)) <= _ROUNDING).all():
        raise ValueError(
            f"the topics of {name} in idata do not sum to one, as if their parts were of different "
            f"draws; {_REMEDY}."
        )
