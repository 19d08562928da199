"""Log density of rows in the draws of a trace, for any family, by the model."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from pymc.model import Model
from scipy.special import logsumexp

from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.posterior.trace.draws import MixtureDraw, draws_of
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.log_density import log_masses, log_mixture_density


def log_density_by_model(
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    rows: np.ndarray,
    places: Sequence[tuple[int, ...]],
    features: tuple[int, ...] | None = None,
) -> np.ndarray:
    """Compute the log density of rows under the random measure, including the remainder.

    Parameters
    ----------
    posterior : Dataset
    mixture : MixtureVariables
        Mixture of a family without covariates.
    model : pymc.Model
    rows : ndarray of float64, shape (n, D) or (n, D')
    places : sequence of tuple of int
        Chain and draw of each of S draws.
    features : tuple of int, optional
        The D' features, ascending, whose marginal density is computed; by default all.

    Returns
    -------
    ndarray of float64, shape (S, n)
    """
    found = np.empty((len(places), len(rows)))
    draws = draws_of(posterior, mixture, model, places)
    for out, draw in zip(found, draws, strict=True):
        if features is None or len(features) == mixture.n_features:
            law = draw.weights, draw.remainder, draw.parameters, draw.values
            out[:] = log_mixture_density(mixture.component, rows, *law)
        else:
            out[:] = _log_margin(mixture, draw, rows, np.array(features))
    return found


def _log_margin(
    mixture: MixtureVariables, draw: MixtureDraw, rows: np.ndarray, features: np.ndarray
) -> np.ndarray:
    """Return the log density (n,) of some features, rows (n, D')."""
    component = mixture.component
    parameters = component.restrict_parameters(draw.parameters, features)
    values = component.restrict(draw.values, features)
    law = draw.weights, draw.remainder, parameters, values
    # As in `predict`: a grid may reach far beyond the data.
    centre = column_centres(draw.rows)[features]
    few = component.of_features(features)
    return logsumexp(log_masses(few, np.ascontiguousarray(rows), *law, centre), axis=0)
