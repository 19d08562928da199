"""Moves of the rows of a latent mixture together with their labels.  Knows no PyMC.

A step that moves the rows given the labels and one that moves the labels given the rows take
turns slowly: a row leaves its cluster only after it has wandered to the next one.  Where the
likelihood has a factor for each row, the pairs (label, row) are independent given the random
measure, and a new pair drawn from the measure is accepted with the ratio of the likelihoods,
docs/method.md, eq. (37).
"""

from collections.abc import Callable, Mapping

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.components.base import Component
from pymc_dpsplit.moves.forward import draw_labelled_rows, draw_labels

LogLikelihood = Callable[[np.ndarray], np.ndarray]


def exchange(
    component: Component,
    values: Mapping[str, np.ndarray],
    target: sampler.Target,
    state: sampler.ChainState,
    rows: np.ndarray,
    log_likelihood: LogLikelihood,
    rng: np.random.Generator,
) -> tuple[sampler.Target, sampler.ChainState, np.ndarray]:
    """Propose a new label and row for every observation, and accept each on its own.

    Parameters
    ----------
    component : Component
    values : mapping
        Hyperparameters.
    target : Target
        Its data are the rows, relative to a shift.
    state : ChainState
        Left untouched.
    rows : ndarray of float64, shape (N, D)
        Left untouched.
    log_likelihood : callable
        From rows (N, D) to the log likelihood (N,) of each.
    rng : numpy.random.Generator

    Returns
    -------
    target : Target
    state : ChainState
    rows : ndarray of float64, shape (N, D)
    """
    shift = rows[0] - target.data[0]
    measure = sampler.measure(target, state, rng)
    parameters = component.unpack(measure.params, shift)
    labels = draw_labels(rng, len(rows), target.alpha, measure.weights)
    drawn = draw_labelled_rows(rng, component, labels, parameters, values).reshape(rows.shape)
    log_ratio = log_likelihood(drawn) - log_likelihood(rows)
    # Not a number is less than nothing: such a row is refused.
    accepted = -rng.standard_exponential(len(rows)) < log_ratio
    merged = np.where(accepted, labels, measure.rank[state.labels])
    rows = np.where(accepted[:, None], drawn, rows)
    target = target._replace(data=np.ascontiguousarray(rows - shift))
    return target, sampler.resume(target, np.unique(merged, return_inverse=True)[1]), rows
