"""DP-means: rows assigned to the nearest of several centres, with centres added as needed."""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted


@jitted
def _squared_distance(data, i, centre):
    total = 0.0
    for d in range(data.shape[1]):
        gap = data[i, d] - centre[d]
        total += gap * gap
    return total


@jitted
def _assign_or_found(data, rows, centres, penalty, labels):
    """Label each row by its nearest centre, or make it a centre if all are too far.

    Returns the centres and the number of labels that changed.
    """
    n_centres, n_changed = centres.shape[0], 0
    for j in range(rows.shape[0]):
        i = rows[j]
        nearest = labels[i]
        least = _squared_distance(data, i, centres[nearest])
        for k in range(n_centres):
            distance = _squared_distance(data, i, centres[k])
            if distance < least:
                nearest, least = k, distance
        if least > penalty:
            if n_centres == centres.shape[0]:
                centres = np.concatenate((centres, np.empty_like(centres)))
            nearest = n_centres
            for d in range(data.shape[1]):
                centres[nearest, d] = data[i, d]
            n_centres += 1
        if nearest != labels[i]:
            n_changed += 1
            labels[i] = nearest
    return centres[:n_centres], n_changed


@jitted
def _centres_of(data, labels, n_centres):
    """Compute the means of the clusters with members and renumber these 0 .. K - 1."""
    sums = np.zeros((n_centres, data.shape[1]))
    sizes = np.zeros(n_centres)
    for i in range(labels.shape[0]):
        sizes[labels[i]] += 1.0
        for d in range(data.shape[1]):
            sums[labels[i], d] += data[i, d]
    position = np.empty(n_centres, np.int64)
    n_kept = 0
    for k in range(n_centres):
        position[k] = n_kept
        if sizes[k] > 0.0:
            for d in range(data.shape[1]):
                sums[n_kept, d] = sums[k, d] / sizes[k]
            n_kept += 1
    for i in range(labels.shape[0]):
        labels[i] = position[labels[i]]
    return sums[:n_kept].copy()


@jitted
def descend_by_centres(data, rows, centres, penalty, max_iterations, labels):
    """Alternate assignment and means until no label changes.

    Parameters
    ----------
    data : ndarray of float64 or float32, shape (N, D)
    rows : ndarray of int64, shape (N,)
        Order in which rows are assigned.
    centres : ndarray of float64, shape (1, D)
        Initial centre of all rows.
    penalty : float
        Cost of a cluster, in squared distance, eq. (12.7).
    max_iterations : int
    labels : ndarray of int64, shape (N,)
        Overwritten.

    Returns
    -------
    centres : ndarray of float64, shape (K, D)
    path : ndarray of float64, shape (T,)
        The objective after each iteration.
    has_settled : bool
        Whether the last iteration changed no label.
    """
    labels[:] = 0
    path = np.empty(max_iterations)
    for t in range(max_iterations):
        centres, n_changed = _assign_or_found(data, rows, centres, penalty, labels)
        centres = _centres_of(data, labels, centres.shape[0])
        path[t] = penalty * centres.shape[0]
        for i in range(labels.shape[0]):
            path[t] += _squared_distance(data, i, centres[labels[i]])
        if n_changed == 0:
            return centres, path[: t + 1], True
    return centres, path, False


@jitted
def farthest_first(data, n_rounds):
    """Squared distance of the farthest row from the mean and the rows selected before, eq. (12.8).

    In each round that row is selected; the distance of the last round is returned.

    Parameters
    ----------
    data : ndarray of float64 or float32, shape (N, D)
    n_rounds : int

    Returns
    -------
    float
    """
    n_obs, n_features = data.shape
    taken = np.zeros(n_features)
    for i in range(n_obs):
        for d in range(n_features):
            taken[d] += data[i, d] / n_obs
    nearest = np.full(n_obs, np.inf)
    for _ in range(n_rounds):
        for i in range(n_obs):
            nearest[i] = min(nearest[i], _squared_distance(data, i, taken))
        farthest = np.argmax(nearest)
        for d in range(n_features):
            taken[d] = data[farthest, d]
    return nearest.max()
