"""Predictive density of new rows, and their likeliest clusters, given one partition."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.base import stats_size
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.shared_labels.kernels import SharedLabelsPrior
from pymc_dpsplit.moves.collapsed.conditional_modes import log_predictives
from pymc_dpsplit.moves.partition_law import (
    PartitionLaw,
    joining_mass,
    opening_mass,
    total_mass,
)

MIXTURE, CLUSTER = "mixture", "cluster"


def check_how(how: str) -> None:
    """Raise ValueError unless `how` is a way to predict."""
    if how not in (MIXTURE, CLUSTER):
        raise ValueError(f"how={how!r} is no way to predict; give '{MIXTURE}' or '{CLUSTER}'.")


class PartitionPredictive(NamedTuple):
    """What the prediction of new rows needs of a partition.

    Attributes
    ----------
    name : str
        Of the mixture, for messages.
    component : ComponentFamily
    n_features : int
    prior : NamedTuple
        Of rows.
    sizes : ndarray of float64, shape (K,)
        Number of observations of each cluster.
    stats : ndarray of float64, shape (K, S)
        Statistics of the rows of each cluster.
    law : PartitionLaw
    """

    name: str
    component: ComponentFamily
    n_features: int
    prior: Any
    sizes: np.ndarray
    stats: np.ndarray
    law: PartitionLaw

    def log_masses(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log weights, and the log densities of checked rows in each cluster.

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (M, D)

        Returns
        -------
        log_weights : ndarray of float64, shape (K + 1,)
            The last one is that of a new cluster, -inf if none can be added.
        log_densities : ndarray of float64, shape (K + 1, M)
        """
        data = self.component.arranged(rows)
        masses = np.append(
            joining_mass(self.law, self.sizes), opening_mass(self.law, len(self.sizes))
        )
        with np.errstate(divide="ignore"):
            log_weights = np.log(masses) - np.log(total_mass(self.law, self.sizes.sum()))
        return log_weights, log_predictives(self.prior, data, self.stats)

    def log_density_of(self, rows: np.ndarray, how: str) -> np.ndarray:
        """Return the log predictive density of each row, eq. (12.4) or (12.5).

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (M, D)
        how : {"mixture", "cluster"}

        Returns
        -------
        ndarray of float64, shape (M,)
        """
        check_how(how)
        log_weights, log_densities = self.log_masses(rows)
        masses = log_weights[:, None] + log_densities
        if how == MIXTURE:
            return np.asarray(logsumexp(masses, axis=0))
        best = masses.argmax(axis=0)
        return np.take_along_axis(log_densities, best[None], axis=0)[0]

    def checked(self, new: Any) -> np.ndarray:
        """Return new rows in the form that kernels read.

        Parameters
        ----------
        new : array-like or frame, shape (M,) or (M, D)

        Returns
        -------
        ndarray of float64 or float32, shape (M, D)

        Raises
        ------
        ValueError
            With one sentence that names the fault and the remedy.
        """
        if self.component.has_covariates or self.component.holds_covariates:
            raise ValueError(
                f"{self.name} has covariates, given which a partition does not predict; use "
                "pm.sample, and predict."
            )
        try:
            rows = rows_of(self.component.read_table(new)[1], self.component.row_ndim)
            if rows.shape[1] == self.n_features:
                self.component.validate_rows(rows)
        except ValueError as error:
            # The checks are those of `observed`, whose name is in their messages.
            raise ValueError(str(error).replace("observed", "new")) from None
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"new has {rows.shape[1]} columns, but rows of {self.name} have "
                f"{self.n_features}; give the features of the data."
            )
        return rows


def predictive_of_rows(
    name: str,
    component: ComponentFamily,
    n_features: int,
    prior: Any,
    stats: np.ndarray,
    law: PartitionLaw,
) -> PartitionPredictive:
    """Return the predictive of a new row that shares its label with no other by declaration.

    Parameters
    ----------
    name, component, n_features
        See `PartitionPredictive`.
    prior : NamedTuple
        Of items, which may be groups of rows.
    stats : ndarray of float64, shape (K, S)
        Of the items of each cluster.
    law : PartitionLaw

    Returns
    -------
    PartitionPredictive
    """
    sizes = stats[:, 0].copy()
    if isinstance(prior, SharedLabelsPrior):
        # Statistics of the rows follow the number of items.
        prior, stats = prior.rows, stats[:, 1 : 1 + stats_size(prior.rows)]
    stats = np.ascontiguousarray(stats)
    return PartitionPredictive(name, component, n_features, prior, sizes, stats, law)
