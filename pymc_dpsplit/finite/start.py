"""Initial groups of observations by k-means, with k-means++ starting points."""

import numpy as np

_N_ROUNDS = 20
_SEED = 1


def initial_groups(rows: np.ndarray, n_groups: int) -> np.ndarray:
    """Group observations by k-means, with the starting points of Arthur & Vassilvitskii (2007).

    Parameters
    ----------
    rows : ndarray of float64, shape (N, D)
    n_groups : int
        Number of groups K.

    Returns
    -------
    ndarray of bool, shape (K, N)
        Members of each group.  Groups are ordered by the mean of their first feature, empty groups
        last.  The result is deterministic.
    """
    scale = rows.std(0)
    scaled = (rows - rows.mean(0)) / np.where(scale > 0, scale, 1.0)
    centres = _spread_centres(scaled, n_groups)
    for _ in range(_N_ROUNDS):
        nearest = _squared_distances(scaled, centres).argmin(1)
        groups = nearest == np.arange(len(centres))[:, None]
        size = groups.sum(1)
        centres = centres[size > 0]
        groups = groups[size > 0]
        centres = groups @ scaled / groups.sum(1)[:, None]
    groups = groups[np.argsort(centres[:, 0], kind="stable")]
    return np.concatenate([groups, np.zeros((n_groups - len(groups), len(rows)), bool)])


def _spread_centres(scaled: np.ndarray, n_groups: int) -> np.ndarray:
    """Choose distinct rows with probability proportional to squared distance to chosen ones."""
    rng = np.random.default_rng(_SEED)
    centres = scaled[rng.integers(len(scaled), size=1)]
    while len(centres) < n_groups:
        distance = _squared_distances(scaled, centres).min(1)
        if not distance.any():
            break
        chosen = rng.choice(len(scaled), p=distance / distance.sum())
        centres = np.concatenate([centres, scaled[[chosen]]])
    return centres


def _squared_distances(scaled: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return ((scaled[:, None, :] - centres) ** 2).sum(2)
