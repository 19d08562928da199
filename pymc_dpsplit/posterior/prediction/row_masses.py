"""Masses of the atoms of a draw, and of its remainder, at rows with or without missing entries."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import logsumexp

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.data.blocks import blocks_of
from pymc_dpsplit.posterior.trace.draws import MixtureDraw
from pymc_dpsplit.variables.log_density import log_masses

Group = tuple[np.ndarray, np.ndarray, np.ndarray]


def masses_of(
    draw: MixtureDraw, component: ComponentFamily, groups: Sequence[Group], centre: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the masses of the atoms and of the remainder at blocks of rows.

    Parameters
    ----------
    draw : MixtureDraw
    component : ComponentFamily
    groups : sequence of tuple
        For each pattern of missing entries the features present, the indices of its rows, and all
        rows (M, D).
    centre : ndarray of float64, shape (D,)
        What kernels subtract from rows.

    Yields
    ------
    where : ndarray of int64, shape (m,)
    log_masses : ndarray of float64, shape (A + 1, m)
        Logarithms; the last row is that of the remainder.
    """
    values, parameters = draw.values, draw.parameters
    n_atoms = len(draw.weights)
    for present, where, rows in groups:
        if len(present) == 0:
            # A row without observed entries has density one under every atom.
            with np.errstate(divide="ignore"):
                weights = np.log([*draw.weights, draw.remainder])
            yield where, np.repeat(weights[:, None], len(where), axis=1)
            continue
        law, few = (draw.weights, draw.remainder, parameters, values), component
        if len(present) < rows.shape[1]:
            restricted = component.restrict_parameters(parameters, present)
            law = (*law[:2], restricted, component.restrict(values, present))
            few = component.of_features(present)
        # Covariates belong to all rows in their order.
        whole = [slice(None)] if component.has_covariates else None
        for block in whole or blocks_of((len(where), n_atoms + 1)):
            part = np.ascontiguousarray(rows[np.ix_(where[block], present)])
            yield where[block], log_masses(few, part, *law, centre[present])


def log_density_left_out(
    log_masses: np.ndarray,
    weights: np.ndarray,
    n_members: np.ndarray,
    unseen: float,
    labels: np.ndarray,
    multiplicities: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Return the log density of observations under what the others of a draw know, eq. (11.10).

    Parameters
    ----------
    log_masses : ndarray of float64, shape (A + 1, ..., m)
        Of the atoms, and of a remainder of weight one; overwritten.
    weights : ndarray of float64, shape (A,)
    n_members : ndarray of int64, shape (A,)
        Number of observations of each atom.
    unseen : float
        Weight of everything that is not an atom with observations.
    labels : ndarray of int64, shape (m,)
        Atoms of the observations.
    multiplicities : ndarray of int64, shape (m,), or 1
        How many observations of the process each stands for.

    Returns
    -------
    ndarray of float64, shape (..., m)
    """
    alone = n_members[labels] == 1
    log_masses[:-1][n_members == 0] = -np.inf
    log_masses[labels[alone], ..., np.flatnonzero(alone)] = -np.inf
    with np.errstate(divide="ignore"):
        log_unseen = np.log(unseen + np.where(alone, weights[labels], 0.0))
        log_masses[-1] += multiplicities * log_unseen
    found: np.ndarray = logsumexp(log_masses, axis=0)
    return found
