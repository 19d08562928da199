"""Moves of rows that are not observed, or not wholly, together with their labels.

A step that moves the rows given the labels and one that moves the labels given the rows take
turns slowly: a row leaves its cluster only after it has wandered to the next one.  Given the
random measure the pairs (label, row) are independent, so that a new pair drawn from it is accepted
or not for each row on its own, docs/method.md, eq. (37) and (39).  Knows no PyMC.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.components.given import given
from pymc_dpsplit.moves.forward import draw_labelled_rows, draw_labels, with_new_clusters
from pymc_dpsplit.moves.patterns import Incomplete, log_density_of_present

LogLikelihood = Callable[[np.ndarray], np.ndarray]


class LikelyRows(NamedTuple):
    """Rows of a latent mixture.

    Attributes
    ----------
    rows : ndarray of float64, shape (N, D)
    log_likelihood : ndarray of float64, shape (N,)
        Of each row, by what the model says of it beside the mixture.
    """

    rows: np.ndarray
    log_likelihood: np.ndarray


def exchange(
    component: Component,
    values: Mapping[str, np.ndarray],
    target: sampler.Target,
    state: sampler.ChainState,
    present: LikelyRows,
    log_likelihood: LogLikelihood,
    rng: np.random.Generator,
) -> tuple[sampler.Target, sampler.ChainState, LikelyRows, int]:
    """Propose a new label and row for every observation, and accept each on its own.

    Parameters
    ----------
    component : Component
    values : mapping
        Hyperparameters.
    target : Target
        Its data are the rows.
    state : ChainState
        Left untouched.
    present : LikelyRows
        Left untouched.
    log_likelihood : callable
        From rows (N, D) to the log likelihood (N,) of each.
    rng : numpy.random.Generator

    Returns
    -------
    target : Target
    state : ChainState
    present : LikelyRows
    n_accepted : int
    """
    component = given(component, values)
    measure = sampler.measure(target, state, rng)
    parameters = component.unpack(measure.params, target.prior.shift)
    n_obs, shape = len(present.rows), present.rows.shape
    labels = draw_labels(rng, n_obs, target.alpha, measure.weights)
    drawn = draw_labelled_rows(rng, component, labels, parameters, values).reshape(shape)
    proposed = LikelyRows(drawn, log_likelihood(drawn))
    # Not a number is less than nothing: such a row is refused.
    log_ratio = proposed.log_likelihood - present.log_likelihood
    accepted = -rng.standard_exponential(n_obs) < log_ratio
    merged = np.where(accepted, labels, measure.rank[state.labels])
    chosen = LikelyRows(
        np.where(accepted[:, None], proposed.rows, present.rows),
        np.where(accepted, proposed.log_likelihood, present.log_likelihood),
    )
    target = target._replace(data=component.arranged(chosen.rows))
    state = sampler.resume(target, np.unique(merged, return_inverse=True)[1])
    return target, state, chosen, int(accepted.sum())


def exchange_incomplete(
    component: Component,
    values: Mapping[str, np.ndarray],
    target: sampler.Target,
    state: sampler.ChainState,
    rows: np.ndarray,
    incomplete: Incomplete,
    rng: np.random.Generator,
) -> tuple[sampler.Target, sampler.ChainState, int]:
    """Propose a new label for every incomplete row, and complete it given the label it has then.

    Parameters
    ----------
    component : Component
    values : mapping
        Hyperparameters.
    target : Target
        Its data are the rows.
    state : ChainState
        Left untouched.
    rows : ndarray of float64, shape (N, D)
        Left untouched.
    incomplete : Incomplete
    rng : numpy.random.Generator

    Returns
    -------
    target : Target
    state : ChainState
    n_accepted : int
    """
    where, is_missing = incomplete
    component = given(component, values)
    measure = sampler.measure(target, state, rng)
    proposed = draw_labels(rng, len(where), target.alpha, measure.weights)
    parameters = with_new_clusters(
        rng, component, component.unpack(measure.params, target.prior.shift), values, proposed
    )
    labels = measure.rank[state.labels]
    present = component, rows[where], is_missing, parameters, values
    log_ratio = log_density_of_present(*present, proposed)
    log_ratio -= log_density_of_present(*present, labels[where])
    accepted = -rng.standard_exponential(len(where)) < log_ratio
    labels[where] = np.where(accepted, proposed, labels[where])
    completed = component.draw_missing(rng, rows[where], is_missing, parameters, labels[where])
    data = target.data.copy()
    data[where] = completed
    target = target._replace(data=component.arranged(data))
    state = sampler.resume(target, np.unique(labels, return_inverse=True)[1])
    return target, state, int(accepted.sum())


def impute(
    component: Component,
    rows: np.ndarray,
    before: np.ndarray,
    incomplete: Incomplete,
    parameters: Mapping[str, np.ndarray],
    labels: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the missing entries of the data given the rest of their rows, eq. (32).

    Parameters
    ----------
    component : Component
    rows : ndarray of float64, shape (N, D)
        Completed by the entries before, and less the mean.
    before : ndarray of float64, shape (M,)
        Missing entries as they were, row by row.
    incomplete : Incomplete
    parameters : mapping
        Name to ndarray (K, ...).
    labels : ndarray of int, shape (N,)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (M,)
    """
    where, is_missing = incomplete
    known = rows[where]
    mean = before - known[is_missing]
    drawn = component.draw_missing(rng, known, is_missing, parameters, labels[where])
    return drawn[is_missing] + mean
