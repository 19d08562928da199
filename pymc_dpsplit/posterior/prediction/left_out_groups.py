"""Likelihood of all rows of a group given those of the others, in each draw of a trace."""

from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.data.sparse_rows import SparseRows, as_array
from pymc_dpsplit.hierarchical.seat_particles import GivenSeats, mean_weight, no_seats, seat_rows
from pymc_dpsplit.hierarchical.state import GroupedTarget
from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.posterior.prediction.row_masses import masses_of
from pymc_dpsplit.posterior.trace.draws import MixtureDraw, draws_of, recorded_posterior
from pymc_dpsplit.posterior.trace.labels import refuse_other_data
from pymc_dpsplit.posterior.trace.places import all_places, spread_within_chains
from pymc_dpsplit.posterior.trace.rows_in_groups import rows_in_groups

# Particles of a group in a draw; any number is exact, and more have less noise.
N_PARTICLES = 32


def left_out_groups(
    idata: xr.DataTree,
    model: Model,
    grouped: HierarchicalVariables,
    num_samples: int | None,
    rng: np.random.Generator,
    n_particles: int = N_PARTICLES,
) -> xr.DataArray:
    """Return log densities of the rows of groups under what the others of each draw know.

    Parameters
    ----------
    idata : DataTree
    model : pymc.Model
    grouped : HierarchicalVariables
    num_samples : int, optional
        See `loo_groups`.
    rng : numpy.random.Generator
    n_particles : int

    Returns
    -------
    DataArray of float64, dims (chain, draw, group)
        Without groups that have no rows.
    """
    mixture = grouped.as_mixture
    if grouped.unobserved is not None:
        raise ValueError(
            f"{grouped.name} has missing entries, with which groups cannot be left out; use loo, "
            "which leaves out one row at a time."
        )
    if isinstance(grouped.component, NonconjugateFamily):
        raise ValueError(
            f"{grouped.name} is of {grouped.component!r}, whose parameters cannot be integrated "
            "out, so that groups cannot be left out; use loo, which leaves out one row at a time."
        )
    recorded = recorded_posterior(idata, mixture)
    refuse_other_data(idata, mixture)
    chosen = spread_within_chains(recorded, num_samples)
    posterior = recorded.isel(draw=chosen)
    rows = rows_in_groups(idata, grouped.name)
    present = np.flatnonzero(grouped.groups.sizes)
    found = np.empty((posterior.sizes["chain"], len(chosen), len(present)))
    places, data = all_places(posterior), grouped.component.arranged(grouped.rows)
    for place, draw in zip(places, draws_of(posterior, mixture, model, places), strict=True):
        at = place[0], chosen[place[1]]
        labels, alpha = rows.labels[at].astype(np.int64), float(rows.alphas[at])
        target = _target_of(draw, alpha, data, grouped)
        rows_alone = _rows_alone(draw.rows, grouped.component)
        for g, group in enumerate(present):
            is_own = grouped.groups.group_of_row == group
            estimate = _log_density(draw, labels, is_own, target, rows_alone, n_particles, rng)
            found[place][g] = estimate
    dim = grouped.groups.dim
    coords: dict[str, Any] = {key: posterior.coords[key] for key in ("chain", "draw")}
    coords[dim] = [grouped.groups.names[int(group)] for group in present]
    return xr.DataArray(found, dims=("chain", "draw", dim), coords=coords, name=grouped.name)


def _target_of(
    draw: MixtureDraw, alpha: float, data: Any, grouped: HierarchicalVariables
) -> GroupedTarget:
    """Return what kernels read of a draw."""
    prior = grouped.component.prior(draw.values, column_centres(draw.rows))
    groups = grouped.groups
    of_rows = Target(prior, data, draw.law)
    return GroupedTarget(of_rows, groups.group_of_row, groups.sizes, alpha)


def _log_density(
    draw: MixtureDraw,
    labels: np.ndarray,
    is_own: np.ndarray,
    target: GroupedTarget,
    rows_alone: tuple[np.ndarray, ComponentFamily, np.ndarray],
    n_particles: int,
    rng: np.random.Generator,
) -> float:
    """Estimate the log density of the rows of a group given those of the others, eq. (16.18)."""
    known = _clusters_of_others(labels, is_own)
    given, log_rest = _given_seats(draw, labels[is_own], known)
    weights = draw.weights[known]
    parameters = {name: of[known] for name, of in draw.parameters.items()}
    plain = draw._replace(weights=np.ones(len(known)), remainder=1.0, parameters=parameters)
    rows, component, centre = rows_alone
    every = [(np.arange(rows.shape[1]), np.flatnonzero(is_own), rows)]
    seats: Any = no_seats(target.of_rows.prior, n_particles, len(known), log_rest)
    first = 0
    for where, log_known in masses_of(plain, component, every, centre):
        of_rows = np.ascontiguousarray(log_known.T)
        seats = seat_rows(target, where, of_rows, weights, given, first, seats, rng)
        first += len(where)
    return float(seats.log_evidence[0] + mean_weight(seats.log_weights))


def _rows_alone(
    rows: Any, component: ComponentFamily
) -> tuple[np.ndarray, ComponentFamily, np.ndarray]:
    """Return rows that hold their covariates, so that some can be read, their family and centre."""
    if isinstance(component, LinearRegression) and component.has_covariates:
        joined = np.asarray(component.arranged(rows))
        return joined, component.with_covariates_in_rows(), column_centres(joined)
    array = as_array(rows) if isinstance(rows, SparseRows) else rows
    return array, component, column_centres(rows)


def _clusters_of_others(labels: np.ndarray, is_own: np.ndarray) -> np.ndarray:
    """Return the clusters, in order, that rows outside the group have."""
    return np.unique(labels[~is_own])


def _given_seats(
    draw: MixtureDraw, labels: np.ndarray, known: np.ndarray
) -> tuple[GivenSeats, float]:
    """Return the labels of a group as particles number them, and the log of all other weight.

    Clusters of this group alone return their weights to the remainder.
    """
    own, at = np.unique(labels[~np.isin(labels, known)], return_index=True)
    own = own[np.argsort(at)]
    position = np.zeros(len(draw.weights), np.int64)
    position[known] = np.arange(len(known))
    position[own] = len(known) + np.arange(len(own))
    weights = draw.weights[own]
    # Sums from the last one that is opened, so that small remainders keep their digits.
    rests = draw.remainder + np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    with np.errstate(divide="ignore"):
        log_rests = np.log(rests)
    return GivenSeats(position[labels], weights, log_rests[1:]), float(log_rests[0])
