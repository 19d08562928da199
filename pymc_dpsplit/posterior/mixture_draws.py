"""Densities and labels of draws of a mixture, Dirichlet-process or finite, by the same kernels."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.data.blocks import column_means
from pymc_dpsplit.moves.density import log_density_alone
from pymc_dpsplit.moves.redraw import redraw_labels
from pymc_dpsplit.variables.log_density import kept_weights, log_mixture_density


def log_densities(
    posterior: xr.Dataset, name: str, component: Component, rows: np.ndarray
) -> np.ndarray:
    """Log density of rows under the mixture of every draw, docs/method.md, eq. (15).

    Parameters
    ----------
    posterior : Dataset
        With the variables of `DPMixture` or `finite_mixture`.
    name : str
        Name of the mixture.
    component : Component
        With numerical hyperparameters.
    rows : ndarray of float64, shape (N, D)
        Complete.

    Returns
    -------
    ndarray of float64, shape (chains, draws, N)
    """
    values = component.check(component.hyperparameters, rows.shape[1])
    out = [
        log_mixture_density(component, rows, weights, remainder, parameters, values)
        for weights, remainder, parameters in _measures(posterior, name, component)
    ]
    return np.reshape(out, (posterior.sizes["chain"], posterior.sizes["draw"], len(rows)))


def numbers_occupied(
    posterior: xr.Dataset,
    name: str,
    component: Component,
    rows: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Number of components of a finite mixture that have a member, with labels drawn for each draw.

    Parameters
    ----------
    posterior : Dataset
        With the variables of `finite_mixture`.
    name, component, rows
        As for `log_densities`.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (chains, draws)
    """
    shift, data = column_means(rows), component.arranged(rows)
    values = component.check(component.hyperparameters, rows.shape[1])
    prior = component.prior(values, shift)
    alone = log_density_alone(component, prior, data, rows, values)
    labels = np.empty(len(rows), np.int32)
    numbers = []
    for weights, _, parameters in _measures(posterior, name, component):
        params = component.pack(parameters, shift)
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        # Nothing remains to be broken, so that the concentration is not used.
        redraw_labels(prior, data, alone, log_weights, -np.inf, params, 1.0, rng, labels)
        numbers.append(len(np.unique(labels)))
    return np.reshape(numbers, (posterior.sizes["chain"], posterior.sizes["draw"]))


def _measures(
    posterior: xr.Dataset, name: str, component: Component
) -> Iterator[tuple[np.ndarray, float, dict[str, np.ndarray]]]:
    """Weights, the mass outside them, and parameters of every draw, chain by chain."""

    def flat(variable: str) -> Any:
        values = posterior[f"{name}_{variable}"].transpose("chain", "draw", ...).to_numpy()
        return values.reshape(-1, *values.shape[2:])

    every = flat("weights")
    columns = {key: flat(key) for key in component.parameters}
    is_infinite = f"{name}_new_weight" in posterior
    numbers = flat("n_clusters") if is_infinite else np.full(len(every), every.shape[1])
    left = flat("new_weight") if is_infinite else np.zeros(len(every))
    for s, row in enumerate(every):
        weights, remainder = kept_weights(numbers[s], left[s], row)
        yield weights, remainder, {key: of[s, : len(weights)] for key, of in columns.items()}
