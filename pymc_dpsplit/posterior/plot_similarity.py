"""Figure: the posterior co-clustering of observations, as a heat map."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from pymc_dpsplit.posterior.axes import axes_or_new


def plot_similarity(similarity: xr.DataArray | np.ndarray, *, ax: Any = None) -> Any:
    """Plot a similarity matrix, with observations that share clusters next to each other.

    Parameters
    ----------
    similarity : DataArray or ndarray of float, shape (obs, obs)
        From `similarity_matrix`.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `similarity` is not a square, symmetric matrix of probabilities.

    Notes
    -----
    Rows and columns are in the order of the leaves of a hierarchical clustering (average
    linkage) with the distance 1 - similarity.

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
    matrix = _checked(similarity)
    order = _leaf_order(matrix)
    dim = str(similarity.dims[0]) if isinstance(similarity, xr.DataArray) else "obs"
    ax = axes_or_new(ax)
    image = ax.imshow(
        matrix[np.ix_(order, order)], vmin=0, vmax=1, cmap="Blues", interpolation="none"
    )
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label("probability of a shared cluster")
    ax.set(xlabel=f"{dim}, ordered by similarity", ylabel=f"{dim}, ordered by similarity")
    return ax


def _checked(similarity: Any) -> np.ndarray:
    if isinstance(similarity, xr.DataTree | xr.Dataset):
        raise ValueError(
            f"similarity is a {type(similarity).__name__}; give "
            "similarity_matrix(sample_labels(idata, model))."
        )
    matrix = np.asarray(similarity, dtype=float)
    is_square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and matrix.size > 0
    is_fit = is_square and matrix.min() >= 0 and matrix.max() <= 1
    if not is_fit or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"similarity of shape {matrix.shape} is not a symmetric matrix of probabilities; "
            "give the result of similarity_matrix."
        )
    return matrix


def _leaf_order(matrix: np.ndarray) -> np.ndarray:
    """Order in which observations that share clusters are next to each other."""
    if len(matrix) == 1:
        return np.array([0])
    return leaves_list(linkage(squareform(1 - matrix, checks=False), method="average"))
