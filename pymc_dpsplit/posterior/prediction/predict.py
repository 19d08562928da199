"""`predict`: prediction of new rows, averaged over draws; docs/method.md, eqs. (11.1) to (11.4)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import check_integer, generator_of, shown
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables
from pymc_dpsplit.moves.patterns import patterns_of
from pymc_dpsplit.posterior.partitions.reference import (
    Reference,
    counts_shared,
    reference_of,
    refuse_other_length,
    shares_of,
)
from pymc_dpsplit.posterior.prediction.in_groups import LabelsInGroups
from pymc_dpsplit.posterior.prediction.new_rows import NewRows, read_new
from pymc_dpsplit.posterior.prediction.responses import responses_to
from pymc_dpsplit.posterior.prediction.row_masses import masses_of
from pymc_dpsplit.posterior.prediction.running_average import RunningAverage
from pymc_dpsplit.posterior.trace.draws import MixtureDraw, draws_of
from pymc_dpsplit.posterior.trace.hierarchical import hierarchical_in
from pymc_dpsplit.posterior.trace.labels import (
    mixture_in,
    model_given,
    observations_in,
    recorded_measures,
    refuse_other_data,
)
from pymc_dpsplit.posterior.trace.members import Members
from pymc_dpsplit.posterior.trace.places import all_places, spread_places
from pymc_dpsplit.variables import MixtureVariables

# Squares of larger numbers overflow.
_FAR = 1e150


def predict(
    idata: xr.DataTree,
    new: Any = None,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    covariates: Any = None,
    groups: Any = None,
    partition: Any = None,
    num_samples: int | None = None,
    random_seed: Any = None,
) -> xr.Dataset:
    """Compute the predictive density, novelty and cluster memberships of new rows.

    Each draw of a trace is a mixture with a remainder, under which the density of a row has a
    closed form; for rows in groups (`HDPMixture`) it is one in each group.  Each row is treated
    separately: probabilities are posterior averages given the data and the row itself [1]_.  For a
    mixture of regressions, the responses to new covariates are predicted, for a profile regression
    those of rows with all other columns.

    Parameters
    ----------
    idata : DataTree
        As returned by ``pm.sample``, or loaded from disk.
    new : array-like or frame, shape (M,) or (M, D), optional
        Rows on the scale of the observations.  Missing entries (NaN) are integrated out; in a
        `Product` also a whole `Multinomial` or `Component` part, or the response of a
        `LinearRegression`.  If the features of the model have coordinates, columns of frames and
        coordinates of xarray are reordered to match them.  For a mixture of ``y - mean`` give rows
        less their mean.
    model : pymc.Model, optional
        The sampled model, by default that of the context.
    var_name : str, optional
        Name of the mixture; required if the model has several.
    covariates : array-like or frame, shape (M,) or (M, P), or dict, optional
        For a mixture of `LinearRegression`, or of a `Component` that was declared with a dict of
        covariates: other rows of the same.  Without `new`, covariates to predict responses for.
        With `new`, those of the new rows, which are responses if the mixture was declared with
        covariates: the density is that of a response given its covariates.  For a `Product` with a
        part `LinearRegression` (a profile regression) columns by name or an array (M, D - 1):
        covariates and all columns of other parts, which may have missing entries; not the response.
    groups : array-like of int or str, shape (M,), optional
        For an `HDPMixture`: group of each row of `new` or `covariates`, or names that the model
        does not have, for rows of new groups, in which each row is predicted as the first one.  By
        default all are of new groups.
    partition : PointPartition, DataArray or array_like of int, shape (N,), optional
        Reference clusters of the observations, as from `point_partition`, `find_map` or
        `dp_means`.
    num_samples : int, optional
        Largest number of draws to use, evenly spaced over all chains; by default all.
    random_seed : int or numpy.random.Generator, optional
        Random seed for responses, and with `partition` for labels that are redrawn.

    Returns
    -------
    Dataset
        Variables of float64 over the new rows:

        ``log_predictive_density``
            Log predictive density of the row given the data.
        ``new_cluster_probability``
            Probability that the row shares its cluster with none of the observations.
        ``membership_probability``, also over ``{name}_reference_cluster``
            Probability that the row shares its cluster with observations, and that one chosen at
            random among these is in the reference cluster.  The sum over reference clusters is
            one minus the probability of a new cluster.
        ``effective_draws``
            Effective number of draws in these averages; small if the density of the row is
            dominated by few draws.

        Without `new`:

        ``response_mean``, ``response_sd``
            Posterior predictive mean and standard deviation of the response to each row of
            `covariates`: of `LinearRegression` averages of exact moments, otherwise of `response`.
        ``response``, also over ``sample``
            A response drawn under each draw, for instance for intervals,
            ``found["response"].quantile([0.05, 0.95], "sample")``.
        ``effective_draws``
            Of a `Product`, whose rows tell about their clusters: all these are given the row, and
            draws count by the density of its other columns.

    Raises
    ------
    ValueError
        If there is no model, if the rows or the partition do not match it, if the trace lacks the
        mixture or was sampled with other data, or with `groups` with other groups, or if draws have
        more clusters than were recorded.

    Notes
    -----
    For each draw the cost is that of a sweep over M rows, and with `partition` also that of a
    sweep over the data.  Memory is proportional to the number of rows, not of draws; `response`
    takes 8 bytes for each row and draw, see `num_samples`.

    References
    ----------
    .. [1] docs/method.md, eqs. (11.1) to (11.4), (11.12) to (11.15) and (16.7).

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 0.2, 9.0])
    ...     idata = pm.sample(
    ...         draws=50, tune=50, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> found = dps.predict(
    ...     idata, [0.1, -40.0], model=model, partition=[0, 0, 0, 1], random_seed=1
    ... )
    >>> (found["new_cluster_probability"] > 0.5).values
    array([False,  True])
    >>> found["membership_probability"].dims
    ('new_row', 'x_reference_cluster')
    """
    rng = generator_of("random_seed", random_seed)
    model = model_given(model)
    hierarchical, mixture = _mixture_to_read(model, var_name, groups)
    posterior = recorded_measures(idata, mixture)
    labels_in_groups = (
        None
        if hierarchical is None
        else partial(LabelsInGroups, idata, hierarchical, model, groups)
    )
    if new is None:
        if partition is not None:
            raise ValueError("partition is given without new rows; give new=, or leave it out.")
        places = _places(posterior, num_samples)
        return responses_to(covariates, posterior, mixture, model, places, labels_in_groups, rng)
    rows = read_new(new, mixture, model, covariates)
    reference = None
    if partition is not None:
        reference = reference_of(partition, *observations_in(model, mixture))
        refuse_other_data(idata, mixture)
    in_groups = None if labels_in_groups is None else labels_in_groups(len(rows.values))
    labelled: Any = None
    if reference is not None:
        labelled = _labelling(idata, posterior, mixture, in_groups, rng)
    places = _places(posterior, num_samples)
    average = RunningAverage(len(rows.values), 0 if reference is None else len(reference.names))
    patterns = [
        (present, where, rows.values) for present, where in patterns_of(np.isnan(rows.values))
    ]
    of_centre: Any = None
    for place, draw in zip(places, draws_of(posterior, mixture, model, places), strict=True):
        if draw.rows is not of_centre:
            of_centre, centre = draw.rows, _centre_of(draw.rows, mixture.component)
        n_recorded = len(draw.weights)
        shares = np.zeros((n_recorded, 0))
        if reference is not None:
            draw, labels = labelled(place, draw)
            shares = _shares_at(labels, draw, mixture, reference)
        known = rows.component, patterns, centre
        masses = (
            masses_of(draw, *known) if in_groups is None else in_groups.masses(draw, place, *known)
        )
        for where, log_mass in masses:
            average.add(where, log_mass, n_recorded, shares)
    return _as_dataset(average, rows, reference, mixture.name)


def _mixture_to_read(
    model: Model, var_name: str | None, groups: Any
) -> tuple[HierarchicalVariables | None, MixtureVariables]:
    """Return the hierarchical mixture, if it is one, and the mixture of a new group."""
    hierarchical = hierarchical_in(model, var_name)
    if hierarchical is None:
        mixture = mixture_in(model, var_name)
        if groups is not None:
            raise ValueError(f"groups is given, but {mixture.name} is no HDPMixture; leave it out.")
        return None, mixture
    return hierarchical, hierarchical.as_mixture


def _labelling(
    idata: xr.DataTree,
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    in_groups: LabelsInGroups | None,
    rng: np.random.Generator,
) -> Callable[[tuple[int, ...], MixtureDraw], tuple[MixtureDraw, np.ndarray]]:
    """Return a function of a place and its draw that returns the draw with its labels."""
    if in_groups is not None:
        return lambda place, draw: (draw, in_groups.labels_at(place))
    members = Members(idata, posterior, mixture)
    return lambda place, draw: members.at(place, draw, rng)


def _shares_at(
    labels: np.ndarray, draw: MixtureDraw, mixture: MixtureVariables, reference: Reference
) -> np.ndarray:
    """Return the share (A, R) of each reference cluster among the members of each atom."""
    n_obs = mixture.items.number_of_observations(draw.rows)
    refuse_other_length(reference, n_obs, mixture.name)
    return shares_of(counts_shared(labels, len(draw.weights), reference))


def _centre_of(rows: Any, component: ComponentFamily) -> np.ndarray:
    """Return the centre of the observations, with their covariates if they have any."""
    return column_centres(component.arranged(rows) if component.has_covariates else rows)


def _places(posterior: xr.Dataset, num_samples: int | None) -> list[tuple[int, ...]]:
    """Return the chain and draw of the draws to use."""
    if num_samples is None:
        return all_places(posterior)
    check_integer("num_samples", num_samples, 1)
    return spread_places(posterior, num_samples)


def _as_dataset(
    average: RunningAverage, rows: NewRows, reference: Reference | None, name: str
) -> xr.Dataset:
    _refuse_overflow(average.log_density, rows.values)
    found: dict[str, Any] = {
        "log_predictive_density": (rows.dim, average.log_density),
        "new_cluster_probability": (rows.dim, average.new_probability),
        "effective_draws": (rows.dim, average.effective_draws),
    }
    coords = dict(rows.coords)
    if reference is not None:
        cluster = f"{name}_reference_cluster"
        found["membership_probability"] = ((rows.dim, cluster), average.membership)
        coords[cluster] = reference.names
    return xr.Dataset(found, coords=coords)


def _refuse_overflow(log_density: np.ndarray, rows: np.ndarray) -> None:
    """Refuse rows whose density overflows; zero is one that a family may have."""
    is_far = (np.abs(rows) > _FAR).any(1)
    lost = np.flatnonzero(~np.isfinite(log_density) & ((log_density != -np.inf) | is_far))
    if len(lost):
        raise ValueError(
            f"new has no finite density in row {lost[0]} ({shown(rows[lost[0]])}); leave that row "
            "out, or give the data and new on another scale."
        )
