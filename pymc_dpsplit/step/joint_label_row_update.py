"""Joint updates of labels and of rows that are latent or incomplete.

Updating rows given labels and labels given rows in turn mixes slowly: a row leaves its cluster
only after it has diffused to the next one.  Given the random measure the pairs (label, row) are
independent.  So a new pair is proposed from the measure and accepted for each row separately,
docs/method.md, eq. (8.4) and (8.5).  Does not depend on PyMC.
"""

from collections.abc import Mapping

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.moves.forward import draw_labelled_rows, draw_labels, with_new_clusters
from pymc_dpsplit.moves.likely_rows import LikelyRows, LogLikelihood, accept_rows
from pymc_dpsplit.moves.partition_law import remainder_law
from pymc_dpsplit.moves.patterns import Incomplete, log_density_of_present


def update_latent_rows(
    component: ComponentFamily,
    values: Mapping[str, np.ndarray],
    target: sampler.Target,
    shift: np.ndarray,
    state: sampler.ChainState,
    present: LikelyRows,
    log_likelihood: LogLikelihood,
    rng: np.random.Generator,
) -> tuple[sampler.Target, sampler.ChainState, LikelyRows, int]:
    """Propose a new label and row for every observation, and accept each separately.

    Parameters
    ----------
    component : ComponentFamily
    values : mapping
        Hyperparameters.
    target : Target
        Its data are the rows.
    shift : ndarray of float64, shape (D,)
        That of its prior.
    state : ChainState
        Not modified.
    present : LikelyRows
        Not modified.
    log_likelihood : callable
        From rows, shape (N, D), to the log likelihood of each, shape (N,).
    rng : numpy.random.Generator

    Returns
    -------
    target : Target
    state : ChainState
    present : LikelyRows
    n_accepted : int
    """
    component = with_values(component, values)
    measure = sampler.measure(target, state, rng)
    parameters = component.unpack(measure.params, shift)
    rest = remainder_law(target.law, len(measure.weights))
    n_obs, shape = len(present.rows), present.rows.shape
    labels = draw_labels(rng, n_obs, rest, measure.weights)
    drawn = draw_labelled_rows(rng, component, labels, parameters, values).reshape(shape)
    chosen, accepted = accept_rows(present, LikelyRows(drawn, log_likelihood(drawn)), rng)
    merged = np.where(accepted, labels, measure.rank[state.labels])
    target = target._replace(data=component.arranged(chosen.rows))
    state = sampler.resume(target, np.unique(merged, return_inverse=True)[1])
    return target, state, chosen, int(accepted.sum())


def update_incomplete_rows(
    component: ComponentFamily,
    values: Mapping[str, np.ndarray],
    target: sampler.Target,
    shift: np.ndarray,
    state: sampler.ChainState,
    rows: np.ndarray,
    incomplete: Incomplete,
    rng: np.random.Generator,
) -> tuple[sampler.Target, sampler.ChainState, int]:
    """Propose a new label for every incomplete row, then impute the row given its label.

    Parameters
    ----------
    component : ComponentFamily
    values : mapping
        Hyperparameters.
    target : Target
        Its data are the rows.
    shift : ndarray of float64, shape (D,)
        That of its prior.
    state : ChainState
        Not modified.
    rows : ndarray of float64, shape (N, D)
        Not modified.
    incomplete : Incomplete
    rng : numpy.random.Generator

    Returns
    -------
    target : Target
    state : ChainState
    n_accepted : int
    """
    where, is_missing = incomplete
    component = with_values(component, values)
    measure = sampler.measure(target, state, rng)
    rest = remainder_law(target.law, len(measure.weights))
    proposed = draw_labels(rng, len(where), rest, measure.weights)
    kept = component.unpack(measure.params, shift)
    parameters = with_new_clusters(rng, component, kept, values, proposed)
    labels = measure.rank[state.labels]
    present = component, rows[where], is_missing, parameters, values
    log_ratio = log_density_of_present(*present, proposed)
    log_ratio -= log_density_of_present(*present, labels[where])
    accepted = -rng.standard_exponential(len(where)) < log_ratio
    labels[where] = np.where(accepted, proposed, labels[where])
    completed = component.draw_missing(rng, rows[where], is_missing, parameters, labels[where])
    data = np.array(rows)
    data[where] = completed
    target = target._replace(data=component.arranged(data))
    if isinstance(component, NonconjugateFamily):
        fresh = {name: of[len(measure.params) :] for name, of in parameters.items()}
        atoms = np.concatenate([measure.params, component.pack(fresh, shift)])
        state = sampler.resume_with_atoms(target, labels, atoms)
    else:
        state = sampler.resume(target, np.unique(labels, return_inverse=True)[1])
    return target, state, int(accepted.sum())


def impute(
    component: ComponentFamily,
    rows: np.ndarray,
    before: np.ndarray,
    incomplete: Incomplete,
    parameters: Mapping[str, np.ndarray],
    labels: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the missing entries of the data given the other entries of their rows, eq. (7.41).

    Parameters
    ----------
    component : ComponentFamily
    rows : ndarray of float64, shape (N, D)
        Completed by the previous entries, less the mean.
    before : ndarray of float64, shape (M,)
        Previous values of the missing entries, row by row.
    incomplete : Incomplete
    parameters : mapping
        Cluster parameters, each of shape (K, ...).
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


def with_entries(
    rows: np.ndarray, incomplete: Incomplete, before: np.ndarray, after: np.ndarray
) -> np.ndarray:
    """Replace the missing entries in completed rows.

    Parameters
    ----------
    rows : ndarray of float64, shape (N, D)
        Completed by the entries `before`, less the mean; not modified.
    incomplete : Incomplete
    before, after : ndarray of float64, shape (M,)
        Missing entries, row by row, mean included.

    Returns
    -------
    ndarray of float64, shape (N, D)
        Less the same mean.
    """
    where, is_missing = incomplete
    completed = np.array(rows)
    block = completed[where]
    block[is_missing] = after - (before - block[is_missing])
    completed[where] = block
    return completed
