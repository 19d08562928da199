"""Log density of rows in the draws of a trace, for any family, by the model."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.trace.draws import draws_of
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.log_density import log_mixture_density


def log_density_by_model(
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    rows: np.ndarray,
    places: Sequence[tuple[int, ...]],
) -> np.ndarray:
    """Compute the log density of rows under the random measure, including the remainder.

    Parameters
    ----------
    posterior : Dataset
    mixture : MixtureVariables
        Mixture of a family without covariates.
    model : pymc.Model
    rows : ndarray of float64, shape (n, D)
    places : sequence of tuple of int
        Chain and draw of each of S draws.

    Returns
    -------
    ndarray of float64, shape (S, n)
    """
    found = np.empty((len(places), len(rows)))
    draws = draws_of(posterior, mixture, model, places)
    for out, draw in zip(found, draws, strict=True):
        law = draw.weights, draw.remainder, draw.parameters, draw.values
        out[:] = log_mixture_density(mixture.component, rows, *law)
    return found
