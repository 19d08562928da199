"""Log density of rows in draws of a trace, for any family: it takes the model."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.posterior.measures import measures_of
from pymc_dpsplit.posterior.readings import readings_of
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.log_density import log_mixture_density


def log_density_by_model(
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    rows: np.ndarray,
    places: Sequence[tuple[int, ...]],
) -> np.ndarray:
    """Log density of rows under the whole measure, that is with everything not yet seen.

    Parameters
    ----------
    posterior : Dataset
    mixture : MixtureVariables
        Of a family whose rows have no covariates.
    model : pymc.Model
    rows : ndarray of float64, shape (n, D)
    places : sequence of tuple of int
        Chain and draw of each of S draws.

    Returns
    -------
    ndarray of float64, shape (S, n)
    """
    found = np.empty((len(places), len(rows)))
    measures = measures_of(posterior, mixture, places)
    readings = readings_of(posterior, mixture, model, places)
    for out, measure, (_, reading) in zip(found, measures, readings, strict=True):
        out[:] = log_mixture_density(mixture.component, rows, *measure, reading.values)
    return found
