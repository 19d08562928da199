"""Shape of a latent mixture, from `shape` or from the dimensions of the model."""

from typing import Any

import numpy as np
from pymc.model import Model

from pymc_dpsplit.components.arguments import is_integer, shown
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.variables.observed import lengths_of

# Labels are numbered in int32.
MOST_OBSERVATIONS = np.iinfo(np.int32).max


def latent_shape(
    component: ComponentFamily, shape: Any, dims: Any, model: Model
) -> tuple[int, int]:
    """Return the number of rows N and of features D of a latent variable.

    Parameters
    ----------
    component : ComponentFamily
    shape, dims
        As in `DPMixture`.
    model : pymc.Model

    Returns
    -------
    n_obs, n_features : int

    Raises
    ------
    ValueError
        If neither argument gives a shape that suits the family.
    """
    wanted = "(N, D)" if component.row_ndim else "(N,)"
    if shape is None and dims is None:
        raise ValueError(
            "observed is missing; pass observed=, or dims= or shape= to say how many values a "
            "latent mixture has."
        )
    if shape is None:
        known = model.dim_lengths
        unknown = [dim for dim in dims if not isinstance(dim, str) or dim not in known]
        if unknown:
            raise ValueError(
                f"dims={shown(dims)} of a latent mixture names {shown(unknown[0])}, which is not a "
                f"dimension of the model; add it to its coords, or pass shape={wanted}."
            )
        lengths = [int(model.dim_lengths[dim].eval()) for dim in dims]
    else:
        lengths = lengths_of(shape)
    are_lengths = all(is_integer(n) and 0 < n <= MOST_OBSERVATIONS for n in lengths)
    if len(lengths) != 1 + component.row_ndim or not are_lengths:
        given = shown(tuple(lengths)) if shape is None else shown(shape)
        raise ValueError(
            f"shape={given} does not suit a latent mixture of {type(component).__name__}; give "
            f"{wanted}, of positive integers."
        )
    return int(lengths[0]), int(lengths[1]) if component.row_ndim else 1
