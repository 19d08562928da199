"""Whether chains hold the same partitions: distances between and within; docs/method.md, eq. (118).

At most 50 draws of a chain and 1000 rows are compared, evenly spread; fewer draws if they have
very many clusters.
"""

import math
from typing import NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.labels import redraw
from pymc_dpsplit.posterior.measures import measures_of
from pymc_dpsplit.posterior.readings import readings_of
from pymc_dpsplit.posterior.trace import group_of
from pymc_dpsplit.variables import find_mixtures

_MOST_DRAWS, _MOST_ROWS = 50, 1000
# Fewer draws of a chain say nothing of how it varies.
_FEWEST_DRAWS = 10
# Clusters of all draws compared: every pair of them is counted, in about a second.
_MOST_CLUSTERS = 8000


class Agreement(NamedTuple):
    """How far partitions of different chains are apart, and partitions of one chain.

    Attributes
    ----------
    r_hat : float
        Of the co-clustering of all pairs of rows, eq. (118); 1 if chains agree.
    between, within : float
        Mean variation of information, in nats, of two draws of different chains, of one.
    chain : int
        The chain that is furthest from the others.
    """

    r_hat: float
    between: float
    within: float
    chain: int


def chain_agreement(idata: xr.DataTree, name: str, model: Model | None) -> Agreement | None:
    """Compare partitions of different chains with those of one.

    Parameters
    ----------
    idata : DataTree
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The model sampled; needed unless the trace holds labels.

    Returns
    -------
    Agreement or None
        None with a single chain, with fewer than ten draws, or if labels are not to be had.
    """
    posterior = group_of(idata, "posterior")
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    if shape[0] < 2 or shape[1] < _FEWEST_DRAWS:
        return None
    mean = float(posterior[f"{name}_n_clusters"].mean())
    affordable = max(_FEWEST_DRAWS, int(_MOST_CLUSTERS / (shape[0] * max(1.0, mean))))
    n_draws = min(_MOST_DRAWS, affordable, shape[1])
    draws = np.linspace(0, shape[1] - 1, n_draws).round().astype(int)
    labels = _recorded(idata, name, draws)
    if labels is None:
        labels = _redrawn(posterior, name, model, draws)
    if labels is None or labels.shape[-1] < 2:
        return None
    n_rows = labels.shape[-1]
    rows = np.linspace(0, n_rows - 1, min(_MOST_ROWS, n_rows)).round().astype(int)
    return agreement_of(labels[..., rows], posterior["chain"].to_numpy())


def _recorded(idata: xr.DataTree, name: str, draws: np.ndarray) -> np.ndarray | None:
    for group in ("posterior", "sample_stats"):
        if group in idata.children and f"{name}_labels" in idata[group]:
            kept = idata[group][f"{name}_labels"].isel(draw=draws)
            return kept.transpose("chain", "draw", ...).to_numpy()
    return None


def _redrawn(
    posterior: xr.Dataset, name: str, model: Model | None, draws: np.ndarray
) -> np.ndarray | None:
    """Labels (chain, draw, N) of some draws; None if a draw has clusters without a row."""
    mixture = None if model is None else find_mixtures(model).get(name)
    if model is None or mixture is None:
        return None
    if (posterior[f"{name}_n_clusters"] > mixture.max_clusters).any():
        return None
    n_chains = posterior.sizes["chain"]
    places = [(chain, int(draw)) for chain in range(n_chains) for draw in draws]
    # A verdict on the same trace is the same every time.
    rng = np.random.default_rng(0)
    measures = measures_of(posterior, mixture, places)
    readings = readings_of(posterior, mixture, model, places)
    labels = [
        redraw(measure, mixture, reading, rng).labels
        for measure, (_, reading) in zip(measures, readings, strict=True)
    ]
    return np.reshape(labels, (n_chains, len(draws), -1))


def agreement_of(labels: np.ndarray, chains: np.ndarray) -> Agreement:
    """Compare partitions between chains and within.

    Parameters
    ----------
    labels : ndarray of int, shape (C, S, N)
        Two chains or more, two draws of each or more.
    chains : ndarray of int, shape (C,)
        Their names.

    Returns
    -------
    Agreement
    """
    n_chains, n_draws = labels.shape[:2]
    squares, information = _distances(labels.reshape(n_chains * n_draws, -1))
    own = np.repeat(np.arange(n_chains), n_draws)
    together = own[:, None] == own
    is_pair = together & ~np.eye(len(own), dtype=bool)
    within, between = squares[is_pair].mean(), squares[~together].mean()
    ratio = between / within if within > 0 else (math.inf if between > 0 else 1.0)
    apart = [_distance_of_means(squares, own == chain) for chain in range(n_chains)]
    return Agreement(
        r_hat=math.sqrt(ratio),
        between=float(information[~together].mean()),
        within=float(information[is_pair].mean()),
        chain=int(chains[int(np.argmax(apart))]),
    )


def _distance_of_means(squares: np.ndarray, is_own: np.ndarray) -> float:
    """Squared distance of the mean of some draws from that of the others, but for a factor."""
    own, rest = squares[is_own][:, is_own].mean(), squares[~is_own][:, ~is_own].mean()
    return float(2 * squares[is_own][:, ~is_own].mean() - own - rest)


def _distances(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of pairs of rows told apart by just one of two partitions, and information, (S, S)."""
    n_draws, n_rows = labels.shape
    compact = [np.unique(row, return_inverse=True)[1] for row in labels]
    sizes = [int(row.max()) + 1 for row in compact]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    # Counts of up to 1000 rows are exact in float32.
    member = np.zeros((sum(sizes), n_rows), np.float32)
    for start, row in zip(starts, compact, strict=True):
        member[start + row, np.arange(n_rows)] = 1.0
    squares, entropy = np.empty((n_draws, n_draws)), np.empty((n_draws, n_draws))
    for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        shared = (member[start : start + size] @ member.T).astype(np.float64)
        squares[i] = np.add.reduceat((shared**2).sum(0), starts)
        logs = shared * np.log(np.maximum(shared, 1.0))
        entropy[i] = np.add.reduceat(logs.sum(0), starts)
    return tuple(
        np.maximum(np.add.outer(np.diag(of), np.diag(of)) - 2 * of, 0.0) / scale
        for of, scale in ((squares, n_rows**2), (entropy, n_rows))
    )
