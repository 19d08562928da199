"""Incomplete rows, grouped by their pattern of missing entries."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.components.independent_parts import IndependentParts
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily


class Incomplete(NamedTuple):
    """Rows with missing entries.

    Attributes
    ----------
    where : ndarray of int64, shape (n,)
        Indices of the rows, ascending.
    is_missing : ndarray of bool, shape (n, D)
    """

    where: np.ndarray
    is_missing: np.ndarray


def patterns_of(is_missing: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Group rows by their pattern of missing entries.

    Parameters
    ----------
    is_missing : ndarray of bool, shape (N, D)

    Yields
    ------
    features, rows : ndarrays of int64
        Indices of the features present and of the rows with this pattern; complete rows first.
    """
    incomplete = is_missing.any(1)
    if not incomplete.all():
        yield np.arange(is_missing.shape[1]), np.flatnonzero(~incomplete)
    holes = np.flatnonzero(incomplete)
    patterns, which = np.unique(is_missing[holes], axis=0, return_inverse=True)
    for j, pattern in enumerate(patterns):
        yield np.flatnonzero(~pattern), holes[which.reshape(-1) == j]


def log_density_of_present(
    component: ComponentFamily,
    rows: np.ndarray,
    is_missing: np.ndarray,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    labels: np.ndarray,
) -> np.ndarray:
    """Log density of the entries present in each row given its cluster; 0 if all are missing.

    Parameters
    ----------
    component : ComponentFamily
    rows : ndarray of float64, shape (n, D)
    is_missing : ndarray of bool, shape (n, D)
    parameters : mapping
        Cluster parameters, each of shape (K, ...).
    values : mapping
        Hyperparameters.
    labels : ndarray of int, shape (n,)

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    out = np.zeros(len(rows))
    if isinstance(component, IndependentParts) and isinstance(component, NonconjugateFamily):
        # A density compiled by PyTensor costs as much for a few rows as for many.
        for family, columns, own, of_part in component.pieces(rows.shape[1], parameters, values):
            known = rows[:, columns], is_missing[:, columns], own, of_part, labels
            out += log_density_of_present(family, *known)
        return out
    for features, chosen in patterns_of(is_missing):
        if len(features):
            graph_parameters = component.graph_parameters(
                component.restrict_parameters(parameters, features)
            )
            at = {name: value[labels[chosen]] for name, value in graph_parameters.items()}
            present = rows[np.ix_(chosen, features)]
            present = present if component.row_ndim else present[:, 0]
            few = component.of_features(features)
            few = with_values(few, component.restrict(values, features))
            out[chosen] = few.log_density(present, at, np)
    return out
