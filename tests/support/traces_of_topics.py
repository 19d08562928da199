"""Traces of topic models with given topics, without sampling."""

from typing import Any

import numpy as np
import xarray as xr


def trace_of(topics: Any, weights: Any, words: Any = None) -> xr.DataTree:
    """A trace of one chain, with the same topics (K, V) in both draws."""
    phi = np.asarray(topics, np.float32)
    n_topics, n_words = phi.shape
    parts = np.broadcast_to(phi.ravel(), (1, 2, phi.size))
    coords = {"chain": [0], "draw": [0, 1]}
    posterior = xr.Dataset(
        {"w_weights": (("chain", "draw", "w_topic"), np.broadcast_to(weights, (1, 2, n_topics)))},
        {**coords, "w_topic": range(n_topics)},
    )
    stats = xr.Dataset(
        {
            "w_topic_part": (("chain", "draw", "part"), parts),
            "w_alpha": (("chain", "draw"), np.full((1, 2), 0.01)),
        },
        coords,
    )
    constants = xr.Dataset(
        {"w_word_totals": (("word",), np.ones(n_words))}, {} if words is None else {"word": words}
    )
    groups = {"posterior": posterior, "sample_stats": stats, "constant_data": constants}
    return xr.DataTree.from_dict(groups)
