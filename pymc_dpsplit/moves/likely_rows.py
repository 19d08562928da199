"""Latent rows with their likelihoods, and the choice between rows and proposals."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LogLikelihood = Callable[[np.ndarray], np.ndarray]


class LikelyRows(NamedTuple):
    """Rows of a latent mixture with their log likelihoods.

    Attributes
    ----------
    rows : ndarray of float64, shape (N, D)
    log_likelihood : ndarray of float64, shape (N,)
        Log density, given each row, of the rest of the model.
    """

    rows: np.ndarray
    log_likelihood: np.ndarray


def accept_rows(
    present: LikelyRows, proposed: LikelyRows, rng: np.random.Generator
) -> tuple[LikelyRows, np.ndarray]:
    """Accept each proposed row by its likelihood, eq. (8.4).

    Parameters
    ----------
    present, proposed : LikelyRows
        Not modified.
    rng : numpy.random.Generator

    Returns
    -------
    chosen : LikelyRows
    accepted : ndarray of bool, shape (N,)
    """
    # A NaN ratio compares false, so the row is rejected.
    log_ratio = proposed.log_likelihood - present.log_likelihood
    accepted = -rng.standard_exponential(len(log_ratio)) < log_ratio
    chosen = LikelyRows(
        np.where(accepted[:, None], proposed.rows, present.rows),
        np.where(accepted, proposed.log_likelihood, present.log_likelihood),
    )
    return chosen, accepted
