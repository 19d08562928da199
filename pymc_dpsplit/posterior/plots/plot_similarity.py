"""Figure: the posterior co-clustering of observations, as a heat map."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from pymc_dpsplit.components.arguments import generator_of
from pymc_dpsplit.posterior.partitions.check_partition import check_partition
from pymc_dpsplit.posterior.partitions.label_arrays import as_labels
from pymc_dpsplit.posterior.partitions.resolve_labels import refuse_no_array
from pymc_dpsplit.posterior.partitions.similarity import similarity_matrix
from pymc_dpsplit.posterior.plots.axes import axes_or_new


def plot_similarity(
    idata: xr.DataTree | xr.DataArray | np.ndarray,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    rows: Sequence[int] | np.ndarray | None = None,
    partition: Any = None,
    random_seed: Any = None,
    ax: Any = None,
) -> Any:
    """Plot a similarity matrix, ordered so that observations that share clusters are adjacent.

    Parameters
    ----------
    idata : DataTree, or DataArray or ndarray of shape (obs, obs) or (..., obs)
        A trace from `pm.sample`, a matrix from `similarity_matrix`, or labels from `sample_labels`.
    model : pymc.Model, optional
        The sampled model, by default that of the context; required for a trace without labels.
    var_name : str, optional
        Name of the mixture; required if the trace contains several.
    rows : sequence of int, optional
        Indices of the observations of a trace to compare, see `similarity_matrix`.
    partition : PointPartition, DataArray or array_like of int, shape (obs,), optional
        Observations are ordered by its clusters, the largest first, between which are lines.
    random_seed : int or numpy.random.Generator, optional
        Random seed for labels that are redrawn.
    ax : matplotlib Axes, optional
        Axes to draw in; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `idata` is neither a trace nor an array.
    ValueError
        If the matrix is not a symmetric matrix of probabilities, if the model is required, or if
        the partition is of other observations.

    Notes
    -----
    Rows and columns are in the order of the leaves of a hierarchical clustering (average
    linkage) with distance 1 - similarity; with a partition, within its clusters.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc_dpsplit as dps
    >>> similarity = dps.similarity_matrix(np.array([[0, 1, 0, 1]]))
    >>> dps.plot_similarity(similarity).images[0].get_array().data
    array([[1., 1., 0., 0.],
           [1., 1., 0., 0.],
           [0., 0., 1., 1.],
           [0., 0., 1., 1.]])
    """
    rng = generator_of("random_seed", random_seed)
    is_trace = isinstance(idata, xr.DataTree | xr.Dataset)
    if not is_trace:
        refuse_no_array(idata)
    if is_trace or _are_labels(idata):
        idata = similarity_matrix(idata, model=model, var_name=var_name, rows=rows, random_seed=rng)
    elif rows is not None:
        raise ValueError("rows is given with a matrix; leave it out, or give the trace.")
    matrix = _checked(idata)
    order = _leaf_order(matrix)
    dim = str(idata.dims[0]) if isinstance(idata, xr.DataArray) else "obs"
    by, edges = "similarity", np.empty(0)
    if partition is not None:
        if rows is not None:
            raise ValueError("partition is given with rows; leave one of them out.")
        coord = idata.coords.get(dim) if isinstance(idata, xr.DataArray) else None
        clusters = check_partition(partition, dim, len(matrix), coord).to_numpy()
        order, edges = _by_cluster(order, clusters)
        by = "cluster"
    ax = axes_or_new(ax)
    image = ax.imshow(
        matrix[np.ix_(order, order)], vmin=0, vmax=1, cmap="Blues", interpolation="none"
    )
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label("probability of a shared cluster")
    for edge in edges:
        ax.axhline(edge, color="C1", linewidth=0.6)
        ax.axvline(edge, color="C1", linewidth=0.6)
    ax.set(xlabel=f"{dim}, ordered by {by}", ylabel=f"{dim}, ordered by {by}")
    return ax


def _are_labels(idata: Any) -> bool:
    """Whether an array holds labels of draws, and no matrix."""
    shape = np.shape(idata)
    is_whole = np.asarray(idata).dtype.kind in "iu" if shape else False
    return is_whole and (len(shape) > 2 or (len(shape) == 2 and shape[0] != shape[1]))


def _by_cluster(order: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an order by clusters, the largest first, and the edges between these."""
    sizes = np.bincount(clusters)
    ranks = np.argsort(np.argsort(-sizes, kind="stable"))
    ordered = order[np.argsort(ranks[clusters[order]], kind="stable")]
    return ordered, np.cumsum(np.sort(sizes)[::-1])[:-1] - 0.5


def _checked(similarity: Any) -> np.ndarray:
    try:
        matrix = as_labels(similarity, "idata").astype(float)
    except (TypeError, ValueError):
        raise ValueError(
            f"idata is a {type(similarity).__name__} that is no matrix of numbers; give the trace, "
            "or the result of similarity_matrix."
        ) from None
    is_square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and matrix.size > 0
    is_fit = is_square and matrix.min() >= 0 and matrix.max() <= 1
    if not is_fit or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"a similarity of shape {matrix.shape} is not a symmetric matrix of probabilities; "
            "give the result of similarity_matrix."
        )
    return matrix


def _leaf_order(matrix: np.ndarray) -> np.ndarray:
    """Return an order in which observations that share clusters are adjacent."""
    if len(matrix) == 1:
        return np.array([0])
    return leaves_list(linkage(squareform(1 - matrix, checks=False), method="average"))
