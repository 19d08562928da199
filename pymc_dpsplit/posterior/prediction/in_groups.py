"""Draws of a hierarchical mixture as mixtures of the groups of new rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model
from scipy.special import logsumexp

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables
from pymc_dpsplit.posterior.prediction.row_masses import Group, masses_of
from pymc_dpsplit.posterior.trace.draws import MixtureDraw
from pymc_dpsplit.posterior.trace.groups import group_of
from pymc_dpsplit.posterior.trace.hierarchical import draw_of_group
from pymc_dpsplit.posterior.trace.labels import sample_labels
from pymc_dpsplit.posterior.trace.rows_in_groups import refuse_other_groups_of_rows
from pymc_dpsplit.variables.shared_labels import numbered_groups

# Position of new groups among those of the model.
_NEW = -1


class LabelsInGroups:
    """Labels that a trace records of rows in groups, and the groups of new rows.

    Parameters
    ----------
    idata : DataTree
    mixture : HierarchicalVariables
    model : pymc.Model
    groups : array-like of int or str, shape (M,), optional
        Group of each new row; None if all are new.
    n_new : int
        Number of new rows M.

    Attributes
    ----------
    position : ndarray of int64, shape (M,)
        Position of the group of each new row among those that have new rows.

    Raises
    ------
    ValueError
        If the groups do not fit the new rows, or the trace has no labels, or other groups.
    """

    def __init__(
        self,
        idata: xr.DataTree,
        mixture: HierarchicalVariables,
        model: Model,
        groups: Any,
        n_new: int,
    ) -> None:
        if groups is not None:
            refuse_other_groups_of_rows(idata, mixture.name, mixture.groups)
        self._group_of_row = mixture.groups.group_of_row
        of_new = _positions(groups, n_new, mixture)
        self._groups, self.position = np.unique(of_new, return_inverse=True)
        self._labels: np.ndarray | None = None
        if (self._groups != _NEW).any():
            labels = sample_labels(idata, model=model, var_name=mixture.name)
            self._labels = labels.to_numpy()
        self._read = idata, model, mixture.name
        # The step records it with each draw, also where it is an expression.
        self._alphas: Any = group_of(idata, "sample_stats")[f"{mixture.name}_alpha"]

    def labels_at(self, place: tuple[int, ...]) -> np.ndarray:
        """Return the labels (N,) of a draw."""
        if self._labels is None:
            idata, model, name = self._read
            self._labels = sample_labels(idata, model=model, var_name=name).to_numpy()
        return self._labels[place].astype(np.int64)

    def log_weights_at(self, draw: MixtureDraw, place: tuple[int, ...]) -> np.ndarray:
        """Return the logarithms of the weights expected in each group that has new rows.

        Parameters
        ----------
        draw : MixtureDraw
            With the global weights.
        place : tuple of int
            Its chain and draw.

        Returns
        -------
        ndarray of float64, shape (A + 1, G)
            The last row is that of the remainder; `position` has the column of each new row.
        """
        weights = np.empty((len(draw.weights) + 1, len(self._groups)))
        for g, group in enumerate(self._groups):
            of_group = draw
            if group != _NEW:
                labels = self.labels_at(place)[self._group_of_row == group]
                of_group = draw_of_group(draw, labels, float(self._alphas[place]))
            weights[:, g] = [*of_group.weights, of_group.remainder]
        with np.errstate(divide="ignore"):
            return np.log(weights)

    def masses(
        self,
        draw: MixtureDraw,
        place: tuple[int, ...],
        component: ComponentFamily,
        patterns: Sequence[Group],
        centre: np.ndarray,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the masses of the atoms and of the remainder at new rows, each in its group.

        Parameters
        ----------
        draw, place
            As in `log_weights_at`.
        component, patterns, centre
            As in `masses_of`.

        Yields
        ------
        where : ndarray of int64, shape (m,)
        log_masses : ndarray of float64, shape (A + 1, m)
        """
        log_weights = self.log_weights_at(draw, place)
        for where, log_mass in masses_of(unweighted(draw), component, patterns, centre):
            yield where, log_mass + log_weights[:, self.position[where]]


def _positions(groups: Any, n_new: int, mixture: HierarchicalVariables) -> np.ndarray:
    """Return the position in the model of the group of each new row."""
    if groups is None:
        return np.full(n_new, _NEW)
    try:
        numbers, names = numbered_groups(groups, n_new)
    except ValueError as error:
        raise ValueError(str(error).replace("observed", "new")) from None
    known = {str(of): at for at, of in enumerate(mixture.groups.names)}
    return np.array([known.get(str(of), _NEW) for of in names])[numbers]


def densities_in_groups(
    draw: MixtureDraw,
    labels: np.ndarray,
    alpha: float,
    mixture: HierarchicalVariables,
    patterns: Sequence[Group],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield log densities of rows in their groups given the others of a draw, eq. (16.10).

    Parameters
    ----------
    draw : MixtureDraw
        With the global weights.
    labels : ndarray of int64, shape (N,)
    alpha : float
    mixture : HierarchicalVariables
    patterns : sequence of tuple
        For each pattern of missing entries the features present, the indices of its rows, and all
        rows (N, D).

    Yields
    ------
    where : ndarray of int64, shape (m,)
    log_density : ndarray of float64, shape (m,)
    """
    groups, sizes = mixture.groups.group_of_row, np.bincount(labels, minlength=len(draw.weights))
    alone, centre = sizes[labels] == 1, column_centres(draw.rows)
    unseen = alpha * (draw.remainder + np.where(alone, draw.weights[labels], 0.0))
    counts = counts_in_groups(groups, labels, len(sizes))
    masses, n_others = counts + alpha * draw.weights, counts.sum(axis=1) - 1 + alpha
    for where, log_mass in masses_of(unweighted(draw), mixture.component, patterns, centre):
        k, j = labels[where], groups[where]
        own = masses[j].T
        own[k, np.arange(len(where))] = np.where(
            alone[where], 0.0, others_of(counts[j, k]) + alpha * draw.weights[k]
        )
        with np.errstate(divide="ignore"):
            log_mass[:-1] += np.log(own)
            log_mass[-1] += np.log(unseen[where])
        yield where, logsumexp(log_mass, axis=0) - np.log(n_others[j])


def unweighted(draw: MixtureDraw) -> MixtureDraw:
    """Return a draw in which all clusters and the remainder have weight one."""
    return draw._replace(weights=np.ones(len(draw.weights)), remainder=1.0)


def counts_in_groups(group_of_row: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Count the rows of each group in each cluster, float64 of shape (J, K)."""
    counts = np.zeros((int(group_of_row.max()) + 1, n_clusters))
    np.add.at(counts, (group_of_row, labels), 1.0)
    return counts


def left_out_shares(
    draw: MixtureDraw, labels: np.ndarray, alpha: float, group_of_row: np.ndarray
) -> np.ndarray:
    """Return the masses of all clusters for each row in its group given the others, eq. (16.10).

    Parameters
    ----------
    draw : MixtureDraw
        With the global weights.
    labels : ndarray of int64, shape (N,)
    alpha : float
    group_of_row : ndarray of int64, shape (N,)

    Returns
    -------
    ndarray of float64, shape (K + 1, N)
        The last row is that of a new cluster; columns sum to one.
    """
    n_clusters, rows = len(draw.weights), np.arange(len(labels))
    counts = counts_in_groups(group_of_row, labels, n_clusters)
    alone = counts.sum(axis=0)[labels] == 1
    shares = np.empty((n_clusters + 1, len(labels)))
    shares[:-1] = counts[group_of_row].T + alpha * draw.weights[:, None]
    shares[labels, rows] = np.where(alone, 0.0, others_of(shares[labels, rows]))
    shares[-1] = alpha * (draw.remainder + np.where(alone, draw.weights[labels], 0.0))
    return shares / (counts.sum(axis=1)[group_of_row] - 1.0 + alpha)


def others_of(counts: np.ndarray) -> np.ndarray:
    """Return the numbers of other rows of a group in clusters that hold this many of it."""
    return counts - 1
