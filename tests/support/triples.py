"""Rows of clusters in triples that are far apart, so that most densities are left unfinished."""

import numpy as np


def triples_apart(rng: np.random.Generator, n_features: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Rows of eight triples of clusters, far apart; those of one overlap, also between blocks."""
    labels = np.arange(240) % 24
    centres = np.tile(15.0 * rng.standard_normal((8, n_features)), (3, 1))
    centres += 0.2 * rng.standard_normal(centres.shape)
    return centres[labels] + rng.standard_normal((240, n_features)), labels.astype(np.int32)
