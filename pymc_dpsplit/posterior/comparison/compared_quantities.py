"""Log densities and numbers of occupied components of infinite and finite mixtures."""

import numpy as np
import xarray as xr

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.sweep.density import log_density_alone
from pymc_dpsplit.moves.sweep.redraw import redraw_labels
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.posterior.trace.atoms import atoms_of
from pymc_dpsplit.posterior.trace.places import all_places
from pymc_dpsplit.variables.log_density import log_mixture_density


def log_densities(
    posterior: xr.Dataset, name: str, component: ComponentFamily, rows: np.ndarray
) -> np.ndarray:
    """Compute the log density of rows under the mixture of every draw, docs/method.md, eq. (5.1).

    Parameters
    ----------
    posterior : Dataset
        With the variables of `DPMixture` or `finite_mixture`.
    name : str
        Name of the mixture.
    component : ComponentFamily
        With numerical hyperparameters.
    rows : ndarray of float64, shape (N, D)
        Without missing entries.

    Returns
    -------
    ndarray of float64, shape (chains, draws, N)
    """
    values = component.check(component.hyperparameters, rows.shape[1])
    drawn = atoms_of(posterior, name, component.parameters, all_places(posterior))
    out = [
        log_mixture_density(component, rows, weights, remainder, parameters, values)
        for weights, remainder, parameters in drawn
    ]
    return np.reshape(out, (posterior.sizes["chain"], posterior.sizes["draw"], len(rows)))


def numbers_occupied(
    posterior: xr.Dataset,
    name: str,
    component: ComponentFamily,
    rows: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Count the occupied components of a finite mixture, with labels drawn for each draw.

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
    shift, data = column_centres(rows), component.arranged(rows)
    values = component.check(component.hyperparameters, rows.shape[1])
    prior = component.prior(values, shift)
    alone = log_density_alone(component, prior, data, rows, values)
    labels = np.empty(len(rows), np.int32)
    numbers = []
    drawn = atoms_of(posterior, name, component.parameters, all_places(posterior))
    for weights, _, parameters in drawn:
        params = component.pack(parameters, shift)
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        # Finite mixtures have no remainder, so the law of the partition is not used.
        target = Target(prior, data, dirichlet_process(1.0))
        redraw_labels(target, labels, rng, alone, log_weights, -np.inf, params)
        numbers.append(len(np.unique(labels)))
    return np.reshape(numbers, (posterior.sizes["chain"], posterior.sizes["draw"]))
