"""Hierarchical mixtures in a model, and the weights of their groups in a draw."""

import numpy as np
from pymc.model import Model

from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables, find_hierarchical
from pymc_dpsplit.posterior.trace.draws import MixtureDraw
from pymc_dpsplit.variables import MixtureVariables, find_mixtures


def hierarchical_in(model: Model, var_name: str | None) -> HierarchicalVariables | None:
    """Return a hierarchical mixture of a model by name.

    Parameters
    ----------
    model : pymc.Model
    var_name : str, optional
        By default that of the only mixture.

    Returns
    -------
    HierarchicalVariables or None
        None if the name is that of no hierarchical mixture.
    """
    found = find_hierarchical(model)
    if var_name is None and len(found) == 1 and not find_mixtures(model):
        return next(iter(found.values()))
    return None if var_name is None else found.get(var_name)


def declared_mixture(model: Model, name: str) -> MixtureVariables | None:
    """Return a mixture of a model by name, of a hierarchical one that of a new group.

    Parameters
    ----------
    model : pymc.Model
    name : str

    Returns
    -------
    MixtureVariables or None
        None if the name is that of no mixture.
    """
    grouped = hierarchical_in(model, name)
    return find_mixtures(model).get(name) if grouped is None else grouped.as_mixture


def draw_of_group(draw: MixtureDraw, labels: np.ndarray, alpha: float) -> MixtureDraw:
    """Return a draw with the weights that are expected in a group, eq. (16.7).

    Parameters
    ----------
    draw : MixtureDraw
        With the global weights.
    labels : ndarray of int, shape (n,)
        Those of the rows of the group; without rows it is a new one.
    alpha : float

    Returns
    -------
    MixtureDraw
    """
    counts = np.bincount(labels, minlength=len(draw.weights))
    weights = (counts + alpha * draw.weights) / (len(labels) + alpha)
    return draw._replace(weights=weights, remainder=alpha * draw.remainder / (len(labels) + alpha))
