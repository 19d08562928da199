"""`point_partition`: the partition of least expected loss over the draws."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import check_integer, generator_of
from pymc_dpsplit.posterior.partitions.label_arrays import (
    PartitionDraws,
    labels_of_draws,
    partition_draws,
)
from pymc_dpsplit.posterior.partitions.partition_loss import Loss, distances, loss_of
from pymc_dpsplit.posterior.partitions.partition_search import (
    Search,
    allocate,
    place,
    rebuild,
    sweeten,
)
from pymc_dpsplit.posterior.partitions.resolve_labels import resolve_labels

# Largest number of labels read to find the draw of least expected loss, from which a search starts.
_LABELS_COMPARED = 400_000_000
_FEWEST_COMPARED = 10
# Largest number of draws in the first searches, and number of results refined with all draws.
_DRAWS_EXPLORED = 500
_REFINED = 4
# Largest number of bytes of the two tables of the search, and bytes of one cell of both.
_TABLES = 2**30
_CELL = 12


class PointPartition(NamedTuple):
    """A partition and its expected loss, as found by `point_partition`.

    Attributes
    ----------
    partition : DataArray of int, shape (obs,)
        Labels; clusters are numbered by decreasing size.
    loss : float
        Expected loss over the draws.
    """

    partition: xr.DataArray
    loss: float

    @property
    def labels(self) -> xr.DataArray:
        """Return the partition, under the same name as in other estimates."""
        return self.partition


def point_partition(
    idata: xr.DataTree | xr.DataArray | np.ndarray,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    loss: str = "vi",
    a: float = 1.0,
    n_restarts: int = 16,
    max_clusters: int | None = None,
    random_seed: Any = None,
) -> PointPartition:
    """Find the partition that minimises the expected loss over the draws.

    Parameters
    ----------
    idata : DataTree, or DataArray or ndarray of int, shape (..., obs)
        A trace from `pm.sample`, or labels of every draw, as from `sample_labels`.  The last
        dimension of labels is that of observations, and the others (chain, draw) are draws.  The
        numbering of clusters does not matter.
    model : pymc.Model, optional
        The sampled model, by default that of the context; required for a trace without labels.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    loss : {"vi", "binder"}
        Variation of information, in nats, or Binder's loss, the share of pairs of observations
        that are together in one partition and apart in the other: one minus the Rand index.
    a : float
        Cost, from 0 to 2, of separating two observations that belong together; ``2 - a`` is the
        cost of joining two that do not.  Values above 1 give fewer clusters, values below 1 more.
    n_restarts : int
        Number of searches in addition to the one from the best draw.  They start from random
        labels, and every fourth from a sequential allocation in random order.
    max_clusters : int, optional
        Largest number of clusters of the partition, by default N or as many as the memory limit
        below allows.
    random_seed : int or numpy.random.Generator, optional
        Random seed for the search and for labels that are redrawn.

    Returns
    -------
    PointPartition
        The `partition`, with the dimension and coordinate of observations of the labels, clusters
        numbered by decreasing size, and its expected `loss`.

    Raises
    ------
    ValueError
        If labels are empty or not integers, if the model is required, or if another argument is
        out of range.

    Notes
    -----
    The algorithm is a greedy search [1]_ with restarts: observations are allocated, then moved one
    at a time while this lowers the expected loss, and clusters are dissolved and rebuilt.  Restarts
    use at most 500 evenly spaced draws; the best four results are refined with all draws.  The
    tests compare the result with all partitions of up to seven observations; with more
    observations it may be a local minimum.  Memory: two copies of the labels, and 12 bytes for each
    pair of a cluster of a draw and a cluster of the partition, at most 1 GiB.  See eq.
    (10.1)-(10.3) of docs/method.md.

    References
    ----------
    .. [1] Dahl, D. B., Johnson, D. J. & Mueller, P. (2022). Search algorithms and loss functions
       for Bayesian clustering. JCGS 31.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> labels = np.array([[0, 0, 1, 1], [3, 3, 1, 1], [0, 0, 0, 1]])
    >>> found = dps.point_partition(labels, random_seed=1)
    >>> found.partition.values.tolist(), round(found.loss, 3)
    ([0, 0, 1, 1], 0.275)
    """
    check_integer("n_restarts", n_restarts, 0)
    check_integer("max_clusters", 1 if max_clusters is None else max_clusters, 1)
    rng = generator_of("random_seed", random_seed)
    named = resolve_labels(idata, model, var_name, rng)
    chosen = loss_of(loss, named.shape[-1], a)
    draws = partition_draws(named)
    most = _most_clusters(draws, max_clusters)
    starts = _starts(draws, chosen, most, n_restarts, rng)
    few = _spread(draws, _DRAWS_EXPLORED)
    found = _different(_searched(few, chosen, starts, most, rng))
    found.sort(key=lambda labels: distances(labels, draws, chosen).mean())
    found = _searched(draws, chosen, found[:_REFINED], most, rng)
    expected = [float(distances(labels, draws, chosen).mean()) for labels in found]
    best = int(np.argmin(expected))
    return PointPartition(_as_partition(found[best], named, loss, float(a)), expected[best])


def _most_clusters(draws: PartitionDraws, wanted: int | None) -> int:
    """Return the limit on clusters: that of the user, or the capacity of the tables."""
    n_obs = draws.labels.shape[1]
    if wanted is not None:
        return min(wanted, n_obs)
    room = _TABLES // (_CELL * int(draws.n_clusters.sum()))
    return min(n_obs, max(room, int(draws.n_clusters.max())))


def _spread(draws: PartitionDraws, n_wanted: int) -> PartitionDraws:
    """Return at most `n_wanted` evenly spaced draws."""
    n_draws = len(draws.labels)
    if n_draws <= n_wanted:
        return draws
    chosen = np.linspace(0, n_draws - 1, n_wanted).astype(int)
    return PartitionDraws(draws.labels[chosen], draws.n_clusters[chosen])


def _starts(
    draws: PartitionDraws, loss: Loss, most: int, n_restarts: int, rng: np.random.Generator
) -> list[np.ndarray | None]:
    """Return starting labels (N,) of searches; None for an allocation in random order.

    Sequential allocations resemble each other if the first few observations determine the result;
    random labels are more diverse.
    """
    n_obs = draws.labels.shape[1]
    largest = min(int(draws.n_clusters.max()), most)
    starts: list[np.ndarray | None] = [_best_draw(draws, loss, most)]
    for restart in range(n_restarts):
        labels = rng.integers(0, rng.integers(1, largest + 1), n_obs)
        starts.append(np.unique(labels, return_inverse=True)[1] if restart % 4 else None)
    return starts


def _best_draw(draws: PartitionDraws, loss: Loss, most: int) -> np.ndarray:
    """Return labels (N,) of the draw of least expected loss, among a subset if there are many."""
    n_draws, n_obs = draws.labels.shape
    is_allowed = draws.n_clusters <= most
    allowed = PartitionDraws(draws.labels[is_allowed], draws.n_clusters[is_allowed])
    candidates = _spread(allowed, max(_LABELS_COMPARED // (n_draws * n_obs), _FEWEST_COMPARED))
    # A single cluster satisfies every limit.
    labels = [np.zeros(n_obs, np.int64), *candidates.labels.astype(np.int64)]
    return min(labels, key=lambda labels: distances(labels, draws, loss).mean())


def _searched(
    draws: PartitionDraws,
    loss: Loss,
    starts: Sequence[np.ndarray | None],
    most: int,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Return labels (N,) of the local minimum that each search finds."""
    search = _new_search(draws, loss, most)
    ends = []
    for start in starts:
        search = _descended(_started(search, start, most, rng), most, rng)
        ends.append(search.labels.copy())
    return ends


def _different(partitions: list[np.ndarray]) -> list[np.ndarray]:
    """Return distinct partitions, irrespective of the numbering of clusters."""
    numbered = partition_draws(labels_of_draws(np.array(partitions))).labels
    return list(np.unique(numbered, axis=0).astype(np.int64))


def _new_search(draws: PartitionDraws, loss: Loss, most: int) -> Search:
    """Allocate the tables of a search."""
    n_columns = min(most, int(draws.n_clusters.max()) + 4)
    n_rows = int(draws.n_clusters.sum())
    return Search(
        draws=np.ascontiguousarray(draws.labels.T),
        first_row=np.cumsum(draws.n_clusters) - draws.n_clusters,
        step=np.append(np.diff(loss.size_term), 0.0),
        weight=loss.weight,
        labels=np.empty(draws.labels.shape[1], np.int64),
        sizes=np.empty(n_columns, np.int64),
        shared=np.empty((n_rows, n_columns), np.int32),
        gains=np.empty((n_rows, n_columns)),
        n_clusters=np.empty(1, np.int64),
    )


def _started(
    search: Search, start: np.ndarray | None, most: int, rng: np.random.Generator
) -> Search:
    """Restart in the same memory, from labels (N,) or an allocation in random order."""
    search.labels[:] = -1
    for table in (search.sizes, search.shared, search.gains, search.n_clusters):
        table[:] = 0
    if start is not None:
        return place(search, start)
    return allocate(search, rng.permutation(len(search.labels)), most)[0]


def _descended(search: Search, most: int, rng: np.random.Generator) -> Search:
    """Descend to a local minimum, where no observation moves and no cluster is rebuilt."""
    improves = True
    while improves:
        n_moved = 1
        while n_moved:
            search, n_moved = sweeten(search, rng.permutation(len(search.labels)), most)
        search, improves = _rebuilt(search, most, rng)
    return search


def _rebuilt(search: Search, most: int, rng: np.random.Generator) -> tuple[Search, bool]:
    """Rebuild clusters in random order until one improves; return whether one did."""
    anchors = np.unique(search.labels, return_index=True)[1]
    for anchor in rng.permutation(anchors):
        members = np.flatnonzero(search.labels == search.labels[anchor])
        search, change = rebuild(search, rng.permutation(members), most)
        if change < 0:
            return search, True
    return search, False


def _as_partition(
    labels: np.ndarray, draws: xr.DataArray, loss: str, weight: float
) -> xr.DataArray:
    """Number clusters by decreasing size, in the smallest integer type, and name the dimension."""
    _, first, dense, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.argsort(np.lexsort((first, -sizes)))
    dim = draws.dims[-1]
    coords = {dim: draws.coords[dim]} if dim in draws.coords else {}
    numbered = rank[dense].astype(np.min_scalar_type(len(sizes) - 1))
    return xr.DataArray(
        numbered, dims=(dim,), coords=coords, name="partition", attrs={"loss": loss, "a": weight}
    )
