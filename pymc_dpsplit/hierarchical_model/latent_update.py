"""Latent rows of a hierarchical mixture in a draw: read from the point, and moved with labels."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from pymc.model import Model

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.hierarchical.iteration import advance_groups
from pymc_dpsplit.hierarchical.latent_rows import exchange_rows
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, resume_groups
from pymc_dpsplit.hierarchical.tables import redraw_weights
from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables
from pymc_dpsplit.moves.likely_rows import LikelyRows
from pymc_dpsplit.variables import row_likelihood


class Advanced(NamedTuple):
    """State of a chain after its iterations, before its weights are redrawn.

    Attributes
    ----------
    target : GroupedTarget
    state : GroupedState
    tables : ndarray of int64, shape (K,)
    acceptance_counts : ndarray of int64, shape (4,)
    n_exchanged : int
        Rows that moved together with their labels.
    """

    target: GroupedTarget
    state: GroupedState
    tables: np.ndarray
    acceptance_counts: np.ndarray
    n_exchanged: int = 0


class LatentUpdate:
    """Reads latent rows from points, and moves them together with their labels.

    Parameters
    ----------
    mixture : HierarchicalVariables
        A latent one.
    model : pymc.Model
    point : mapping
        Any point of the model.
    exchanges : int
        Joint updates of labels and rows in a draw; there are none if parameters are in the state.
    """

    def __init__(
        self,
        mixture: HierarchicalVariables,
        model: Model,
        point: Mapping[str, np.ndarray],
        exchanges: int,
    ) -> None:
        self._component: ComponentFamily = mixture.component
        self._name = str(model.rvs_to_values[mixture.rv].name)
        self._n_features = mixture.op.n_features
        is_open = bool(exchanges) and not isinstance(mixture.component, NonconjugateFamily)
        self._likelihood = row_likelihood(mixture.as_mixture, model, point) if is_open else None
        self._exchanges = exchanges
        # Rows that pm.observe has given values.
        self._values = None if mixture.rv in model.free_RVs else mixture.rows

    def rows_at(self, point: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the rows (N, D) at a point."""
        if self._values is not None:
            return np.asarray(self._values, np.float64)
        return np.asarray(point[self._name], np.float64).reshape(-1, self._n_features)

    def exchanged(
        self,
        advanced: Advanced,
        values: Mapping[str, np.ndarray],
        shift: np.ndarray,
        point: dict[str, np.ndarray],
        n_attempts: int,
        threads: int | None,
        n_processors: int,
        rng: np.random.Generator,
    ) -> tuple[Advanced, dict[str, np.ndarray]]:
        """Move labels and rows together, each time followed by an iteration.

        Parameters
        ----------
        advanced : Advanced
            Its labels may be modified.
        values : mapping
            Hyperparameters.
        shift : ndarray of float64, shape (D,)
            That of the prior of the target.
        point : dict
            Not modified.
        n_attempts, threads, n_processors
            See `advance_groups`.
        rng : numpy.random.Generator

        Returns
        -------
        advanced : Advanced
        point : dict
            With the rows after the moves.
        """
        if self._likelihood is None:
            return advanced, point
        self._likelihood.hold(point)
        rows, log_likelihood = self.rows_at(point), self._likelihood.evaluate
        present = LikelyRows(rows, log_likelihood(rows))
        target, state, tables, counts, total = advanced
        for _ in range(self._exchanges):
            state = redraw_weights(target, state, tables, rng)
            target, state, present, n_accepted = exchange_rows(
                self._component, values, shift, target, state, present, log_likelihood, rng
            )
            state, tables, more = advance_groups(
                target, state, rng, 1, n_attempts, threads, n_processors
            )
            counts, total = counts + more, total + n_accepted
        point = {**point, self._name: present.rows.reshape(point[self._name].shape)}
        return Advanced(target, state, tables, counts, total), point


def started_from(labels: np.ndarray, target: GroupedTarget) -> GroupedState:
    """Return a state with the labels that an initial point has, without empty clusters."""
    return resume_groups(target, np.unique(labels, return_inverse=True)[1].astype(np.int32))
