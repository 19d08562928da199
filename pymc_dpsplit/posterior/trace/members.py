"""Labels of a draw that are indices of its atoms."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.trace.atoms import Atoms
from pymc_dpsplit.posterior.trace.completed_draws import (
    Completion,
    labels_determine,
    with_recorded_labels,
)
from pymc_dpsplit.posterior.trace.draws import MixtureDraw
from pymc_dpsplit.posterior.trace.groups import group_of
from pymc_dpsplit.posterior.trace.hierarchical import hierarchical_in
from pymc_dpsplit.posterior.trace.labels import mixture_in, redraw
from pymc_dpsplit.posterior.trace.recorded import counts_of, labels_of
from pymc_dpsplit.posterior.trace.rows_in_groups import rows_in_groups
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.conditioning import Conditioning


def mixture_of_either_kind(model: Model, var_name: str | None) -> MixtureVariables:
    """Return a mixture of a model by name; of an `HDPMixture` that of its global measure.

    Parameters
    ----------
    model : pymc.Model
    var_name : str, optional
        Name of the mixture; required if the model has several.

    Returns
    -------
    MixtureVariables

    Raises
    ------
    ValueError
        If the model lacks the mixture, or has several and none is named.
    """
    grouped = hierarchical_in(model, var_name)
    return mixture_in(model, var_name) if grouped is None else grouped.as_mixture


def recorded_labels(
    idata: xr.DataTree, mixture: MixtureVariables, model: Model | None = None
) -> np.ndarray | None:
    """Return the labels of the draws if they are indices of recorded clusters, otherwise None.

    They are if they are variables of the model, or of rows in groups.

    Parameters
    ----------
    idata : DataTree
    mixture : MixtureVariables
    model : pymc.Model, optional
        Required if the mixture may be that of an `HDPMixture`.

    Returns
    -------
    ndarray of int, shape (chain, draw, N), or None
        Labels are indices of the atoms that the trace records.

    Raises
    ------
    ValueError
        If the trace lacks them, or if they exceed the number of clusters.
    """
    if model is not None and hierarchical_in(model, mixture.name) is not None:
        return rows_in_groups(idata, mixture.name).labels.astype(np.int64)
    if not mixture.is_labelled:
        return None
    posterior, name = group_of(idata, "posterior"), mixture.name
    if f"{name}_labels" not in posterior:
        raise ValueError(
            f"the posterior group holds no {name}_labels; give the trace of this model, sampled "
            "without var_names=."
        )
    labels = labels_of(posterior, name)
    if (labels.max([labels.dims[2]]) >= counts_of(posterior, name)).any():
        raise ValueError(
            f"{name}_labels exceeds {name}_n_clusters in some draws of idata; give the trace as "
            "pm.sample returned it."
        )
    return labels.to_numpy()


class Members:
    """Draws of a mixture with labels that are indices of their atoms.

    Labels are those of the trace if they are such indices.  If it keeps others, the measure is
    drawn anew given these, otherwise the labels are drawn given the measure.  All three are exact.

    Parameters
    ----------
    idata : DataTree
    recorded : Dataset
        From `recorded_posterior`.
    mixture : MixtureVariables
    model : pymc.Model, optional
        Required if the mixture may be that of an `HDPMixture`.
    chosen : ndarray of int, optional
        Draws of each chain that are read; by default all.

    Attributes
    ----------
    indices : ndarray of int, shape (chain, draw, N), or None
        From `recorded_labels`.
    partitions : DataArray of int, shape (chain, draw, N), or None
        Labels given which the measure is drawn anew.
    """

    def __init__(
        self,
        idata: xr.DataTree,
        recorded: xr.Dataset,
        mixture: MixtureVariables,
        model: Model | None = None,
        chosen: np.ndarray | None = None,
    ) -> None:
        draws: Any = slice(None) if chosen is None else chosen
        self._mixture = mixture
        self.partitions: xr.DataArray | None = None
        self._completion: Completion | None = None
        self.indices = recorded_labels(idata, mixture, model)
        if self.indices is not None:
            self.indices = self.indices[:, draws]
            return
        labelled = with_recorded_labels(recorded, idata, mixture)
        if labelled is not None:
            labelled = labelled.isel(draw=draws)
            self.partitions = labels_of(labelled, mixture.name)
            # Every draw has more than 0 clusters, and is completed.
            self._completion = Completion(labelled, mixture, 0)

    def at(
        self, place: tuple[int, ...], draw: MixtureDraw, rng: np.random.Generator
    ) -> tuple[MixtureDraw, np.ndarray]:
        """Return a draw with its labels.

        Redrawn labels may refer to atoms that the trace does not record.  These are added, without
        subtracting their mass from the remainder.

        Parameters
        ----------
        place : tuple of int
            Indices of chain and draw, among those that are read.
        draw : MixtureDraw
        rng : numpy.random.Generator

        Returns
        -------
        draw : MixtureDraw
            With A atoms; those that were added are the last.
        labels : ndarray of int, shape (N,)
            Indices of the atoms.
        """
        if self.indices is not None:
            return draw, self.indices[place]
        if self._completion is None or self._completion.labels is None:
            return self._redrawn(draw, rng)
        known = Conditioning(draw.law, draw.values, draw.rows)
        measure = self._completion.completed(
            place, Atoms(draw.weights, draw.remainder, draw.parameters), known
        )
        return draw._replace(**measure._asdict()), self._completion.labels[place]

    def _redrawn(
        self, draw: MixtureDraw, rng: np.random.Generator
    ) -> tuple[MixtureDraw, np.ndarray]:
        """Draw the labels given the measure."""
        mixture = self._mixture
        remedy = f"declare {mixture.name} with a smaller one"
        if labels_determine(mixture):
            remedy = 'sample with dpsplit={"keep_labels": True}'
        redrawn = redraw(draw, mixture, rng, remedy)
        used = np.unique(redrawn.labels)
        beyond = used[used >= len(draw.weights)]
        draw = _with_atoms(
            draw,
            np.exp(redrawn.log_weights[beyond]),
            mixture.items.unpack(redrawn.params[beyond], draw.values, redrawn.shift),
        )
        number = np.arange(len(redrawn.log_weights))
        number[beyond] = len(draw.weights) - len(beyond) + np.arange(len(beyond))
        return draw, number[redrawn.labels]


def _with_atoms(
    draw: MixtureDraw, weights: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> MixtureDraw:
    """Add atoms without subtracting their mass from the remainder, see `RunningAverage.add`."""
    joined = {name: np.concatenate([of, parameters[name]]) for name, of in draw.parameters.items()}
    return draw._replace(weights=np.concatenate([draw.weights, weights]), parameters=joined)
