"""Starting partitions of climbs."""

from collections.abc import Iterator

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition_law import most_clusters
from pymc_dpsplit.moves.start import draw_n_start


def starts_of(
    target: sampler.Target, n_starts: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield starting labels, each with an order of the observations.

    Parameters
    ----------
    target : Target
    n_starts : int
    rng : numpy.random.Generator

    Yields
    ------
    labels : ndarray of int, shape (N,)
        The first has one cluster.
    rows : ndarray of int64, shape (N,)
    """
    n_obs = target.data.shape[0]
    yield np.zeros(n_obs, np.int32), np.arange(n_obs)
    for number in range(1, n_starts):
        # At least two clusters, as the first restart already starts from one.
        n_clusters = max(2, draw_n_start(rng, n_obs))
        n_clusters = min(n_clusters, most_clusters(target.law, n_obs))
        if number % 3:
            labels = sampler.start(target, rng, n_clusters).labels
        else:
            # Random labels separate neighbours, which starts from centres never do.
            labels = np.unique(rng.integers(n_clusters, size=n_obs), return_inverse=True)[1]
        yield labels, rng.permutation(n_obs)
