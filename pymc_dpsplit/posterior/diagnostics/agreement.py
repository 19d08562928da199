"""Agreement of the partitions of different chains; docs/method.md, eq. (11.9).

At most 50 draws per chain and 1000 rows are compared, evenly spaced; fewer draws are used if they
have very many clusters.
"""

import math
from typing import NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.trace.draws import draws_of, has_dropped
from pymc_dpsplit.posterior.trace.groups import find_labels, group_of
from pymc_dpsplit.posterior.trace.labels import redraw
from pymc_dpsplit.variables import find_mixtures

_MOST_DRAWS, _MOST_ROWS = 50, 1000
# Fewer draws of a chain do not show how much it varies.
_FEWEST_DRAWS = 10
# Largest total number of clusters of the draws; counting all pairs takes about a second.
_MOST_CLUSTERS = 8000


class Agreement(NamedTuple):
    """Distances between partitions of different chains and within chains.

    Attributes
    ----------
    r_hat : float
        R-hat of the co-clustering of all pairs of rows, eq. (11.9); 1 if chains agree.
    between, within : float
        Mean variation of information, in nats, between draws of different chains and of one chain.
    chain : int or str
        The chain that is furthest from the others.
    """

    r_hat: float
    between: float
    within: float
    chain: int | str


def chain_agreement(idata: xr.DataTree, name: str, model: Model | None) -> Agreement | None:
    """Compare distances between partitions of different chains with those within chains.

    Parameters
    ----------
    idata : DataTree
    name : str
        Name of the mixture.
    model : pymc.Model, optional
        The sampled model; required unless the trace contains labels.

    Returns
    -------
    Agreement or None
        None with a single chain, with fewer than ten draws, or if labels are not available.
    """
    posterior = group_of(idata, "posterior")
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    if shape[0] < 2 or shape[1] < _FEWEST_DRAWS:
        return None
    mean = float(posterior[f"{name}_n_clusters"].mean())
    affordable = max(_FEWEST_DRAWS, int(_MOST_CLUSTERS / (shape[0] * max(1.0, mean))))
    n_draws = min(_MOST_DRAWS, affordable, shape[1])
    draws = np.linspace(0, shape[1] - 1, n_draws).round().astype(int)
    kept = find_labels(idata, name)
    labels = None if kept is None else kept.isel(draw=draws).to_numpy()
    if labels is None:
        labels = _redrawn(idata, name, model, draws)
    if labels is None or labels.shape[-1] < 2:
        return None
    n_rows = labels.shape[-1]
    rows = np.linspace(0, n_rows - 1, min(_MOST_ROWS, n_rows)).round().astype(int)
    return agreement_of(labels[..., rows], posterior["chain"].to_numpy())


def _redrawn(
    idata: xr.DataTree, name: str, model: Model | None, draws: np.ndarray
) -> np.ndarray | None:
    """Draw labels (chain, draw, N) of some draws; None if a draw has unrecorded clusters."""
    mixture = None if model is None else find_mixtures(model).get(name)
    if model is None or mixture is None:
        return None
    posterior = group_of(idata, "posterior")
    if has_dropped(posterior, name):
        return None
    n_chains = posterior.sizes["chain"]
    places = [(chain, int(draw)) for chain in range(n_chains) for draw in draws]
    # A fixed seed, so that the verdict on a trace is reproducible.
    rng = np.random.default_rng(0)
    drawn = draws_of(posterior, mixture, model, places)
    labels = [redraw(draw, mixture, rng).labels for draw in drawn]
    return np.reshape(labels, (n_chains, len(draws), -1))


def agreement_of(labels: np.ndarray, chains: np.ndarray) -> Agreement:
    """Compare partitions between and within chains.

    Parameters
    ----------
    labels : ndarray of int, shape (C, S, N)
        At least two chains with at least two draws each.
    chains : ndarray, shape (C,)
        Names of the chains.

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
        chain=chains.tolist()[int(np.argmax(apart))],
    )


def _distance_of_means(squares: np.ndarray, is_own: np.ndarray) -> float:
    """Return the squared distance between the means of draws and of the others, up to a factor."""
    own, rest = squares[is_own][:, is_own].mean(), squares[~is_own][:, ~is_own].mean()
    return float(2 * squares[is_own][:, ~is_own].mean() - own - rest)


def _distances(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Binder distances and variations of information between draws, both (S, S)."""
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
