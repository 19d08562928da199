"""Leave-one-out cross-validation of observed mixtures."""

from collections.abc import Iterator
from typing import Any

import arviz_stats
import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.arguments import generator_of
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.data.sparse_rows import Rows, SparseRows, as_array
from pymc_dpsplit.moves.partition_law import PartitionLaw, opening_mass
from pymc_dpsplit.moves.patterns import patterns_of
from pymc_dpsplit.posterior.prediction.in_groups import densities_in_groups
from pymc_dpsplit.posterior.prediction.row_masses import Group, log_density_left_out, masses_of
from pymc_dpsplit.posterior.trace.draws import MixtureDraw, draws_of, recorded_posterior
from pymc_dpsplit.posterior.trace.hierarchical import hierarchical_in
from pymc_dpsplit.posterior.trace.labels import (
    items_in,
    model_given,
    refuse_other_data,
)
from pymc_dpsplit.posterior.trace.members import Members, mixture_of_either_kind
from pymc_dpsplit.posterior.trace.places import all_places, spread_within_chains
from pymc_dpsplit.posterior.trace.rows_in_groups import rows_in_groups
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.log_density import log_masses

# arviz_stats has no type annotations.
azs: Any = arviz_stats

# A tail has a fifth of the draws, and at least five of them.
_LEAST_TAIL = 5
_LEAST_DRAWS = 5 * _LEAST_TAIL


def loo(
    idata: xr.DataTree,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    num_samples: int | None = None,
    random_seed: Any = None,
) -> Any:
    """Estimate the log predictive density of each observation given the others.

    Use it instead of `arviz.loo` for a Dirichlet-process mixture.  The latter is too optimistic
    for observations that are alone in their cluster: the log likelihood of a draw contains the
    cluster that only this observation made.  Here such a cluster counts as unseen [1]_.

    Parameters
    ----------
    idata : DataTree
        As returned by ``pm.sample``, or loaded from disk; no group ``log_likelihood`` is needed.
    model : pymc.Model, optional
        The sampled model, by default that of the context.
    var_name : str, optional
        Name of the mixture; required if the model has several.
    num_samples : int, optional
        Largest number of draws to use, evenly spaced and the same of each chain, at least one of
        each; by default all.
    random_seed : int or numpy.random.Generator, optional
        Random seed for labels that are redrawn.

    Returns
    -------
    arviz_stats.ELPDData
        As from `arviz.loo` with ``pointwise=True``: ``elpd``, ``se`` and, for each observation,
        ``elpd_i`` and ``pareto_k``; `arviz.compare` takes it.  Rows without any observed entry are
        left out.  With ``groups=`` or ``counts=`` an observation is a group of rows; with
        ``labels=`` the rows of a known label, and that they are together, or one other row.  A row
        of an `HDPMixture` is predicted in its group, from the other rows of all groups [3]_.

    Raises
    ------
    ValueError
        If the mixture is latent (see `loo_groups`), or if the trace does not suit the model.

    Notes
    -----
    For each draw the cost is that of a sweep over the data.  Importance sampling is smoothed by a
    Pareto distribution [2]_; a ``pareto_k`` above 0.7 says that it failed for an observation.

    Labels that ``pm.sample(dpsplit={"keep_labels": True})`` recorded are not redrawn.  Weights and
    parameters of conjugate families are then drawn anew given them, which is exact, also where a
    large discount leaves too many atoms to redraw labels.

    References
    ----------
    .. [1] docs/method.md, eq. (11.10).
    .. [2] Vehtari, Gelman and Gabry (2017). Practical Bayesian model evaluation using
       leave-one-out cross-validation and WAIC. Statistics and Computing 27, 1413-1432.
    .. [3] docs/method.md, eq. (16.10).

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 0.2, 0.4])
    ...     idata = pm.sample(
    ...         draws=100, tune=100, chains=2, random_seed=1, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> int(dps.loo(idata, model=model, random_seed=1).n_data_points)
    4
    """
    rng = generator_of("random_seed", random_seed)
    model = model_given(model)
    mixture = mixture_of_either_kind(model, var_name)
    return smoothed(left_out_likelihood(idata, model, mixture, num_samples, rng))


def smoothed(likelihood: xr.DataArray) -> Any:
    """Return the estimate of ArviZ from log likelihoods (chain, draw, N).

    Raises
    ------
    ValueError
        If there are too few draws for a tail of importance weights, or if all of a tail are equal.
    """
    name = str(likelihood.name)
    n_draws = likelihood.sizes["chain"] * likelihood.sizes["draw"]
    if n_draws < _LEAST_DRAWS:
        raise ValueError(
            f"{n_draws} draws of {name} are too few to smooth the importance weights of leaving "
            f"one out; give {_LEAST_DRAWS} draws or more."
        )
    tree = {key: xr.Dataset({name: likelihood}) for key in ("posterior", "log_likelihood")}
    try:
        return azs.loo(xr.DataTree.from_dict(tree), var_name=name, pointwise=True)
    except ValueError:
        _refuse_equal(likelihood)
        raise


def _refuse_equal(likelihood: xr.DataArray) -> None:
    """Refuse observations whose largest importance weights are equal."""
    of_rows = likelihood.to_numpy().reshape(-1, likelihood.shape[-1])
    lowest = np.sort(of_rows, axis=0)[:_LEAST_TAIL]
    (equal,) = np.nonzero(lowest[0] == lowest[-1])
    if equal.size:
        raise ValueError(
            f"observation {equal[0]} of {likelihood.name} has the same log density, "
            f"{lowest[0, equal[0]]:.3g}, in the draws that leaving it out depends on, so that "
            "there is nothing to smooth; leave it out of the data, or scale them."
        ) from None


def left_out_likelihood(
    idata: xr.DataTree,
    model: Model,
    mixture: MixtureVariables,
    num_samples: int | None,
    rng: np.random.Generator,
) -> xr.DataArray:
    """Return log densities of observations under what the others of each draw know, eq. (11.10).

    Parameters
    ----------
    idata : DataTree
    model : pymc.Model
    mixture : MixtureVariables
        An observed mixture.
    num_samples : int, optional
        See `loo`.
    rng : numpy.random.Generator

    Returns
    -------
    DataArray of float64, dims (chain, draw, N)
    """
    if mixture.rv in model.free_RVs:
        raise ValueError(
            f"{mixture.name} is latent and has no observations of its own; use loo_groups, which "
            "leaves out those of one of its values at a time."
        )
    recorded = recorded_posterior(idata, mixture)
    chosen = spread_within_chains(recorded, num_samples)
    posterior = recorded.isel(draw=chosen)
    members = Members(idata, recorded, mixture, model, chosen)
    refuse_other_data(idata, mixture, members.partitions)
    grouped = hierarchical_in(model, mixture.name)
    alphas = None if grouped is None else rows_in_groups(idata, mixture.name).alphas
    places = all_places(posterior)
    found: Any = None
    for place, draw in zip(places, draws_of(posterior, mixture, model, places), strict=True):
        if found is None:
            is_missing = _is_missing(mixture, draw.rows)
            found = np.empty((posterior.sizes["chain"], len(chosen), len(is_missing)))
        n_recorded = len(draw.weights)
        draw, labels = members.at(place, draw, rng)
        if grouped is None or alphas is None:
            densities = _densities(draw, labels, n_recorded, mixture, is_missing)
        else:
            alpha, patterns = float(alphas[place[0], chosen[place[1]]]), _patterns(draw, is_missing)
            densities = densities_in_groups(draw, labels, alpha, grouped, patterns)
        for where, density in densities:
            found[place][where] = density
    whole = over_observations(found, posterior, mixture, model)
    return whole[..., ~is_missing.all(1)]


def over_observations(
    found: np.ndarray, posterior: xr.Dataset, mixture: MixtureVariables, model: Model
) -> xr.DataArray:
    """Name the dimensions of an array (chain, draw, N) as in the posterior and the model."""
    dim, coord = items_in(model, mixture)
    coords: dict[str, Any] = {key: posterior.coords[key] for key in ("chain", "draw")}
    coords |= {} if coord is None else {dim: coord}
    return xr.DataArray(found, dims=("chain", "draw", dim), coords=coords, name=mixture.name)


def _is_missing(mixture: MixtureVariables, rows: Rows) -> np.ndarray:
    """Return which entries (N, D) are missing; none are where groups (G, D) share labels."""
    where, pattern = mixture.incomplete()
    is_missing = np.zeros((mixture.items.number_of(rows), rows.shape[1]), bool)
    is_missing[where] = pattern
    return is_missing


def _patterns(draw: MixtureDraw, is_missing: np.ndarray) -> list[Group]:
    """Return the rows of a draw by their pattern of missing entries."""
    rows: Any = as_array(draw.rows) if isinstance(draw.rows, SparseRows) else draw.rows
    return [(present, where, rows) for present, where in patterns_of(is_missing)]


def _densities(
    draw: MixtureDraw,
    labels: np.ndarray,
    n_recorded: int,
    mixture: MixtureVariables,
    is_missing: np.ndarray,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices (m,) and left-out log densities (m,) of blocks of the observations."""
    labels = mixture.items.of_recorded(labels, "idata")
    n_members = np.bincount(labels, minlength=len(draw.weights))
    # Atoms of the remainder that got observations are a part of it in `draw.remainder`.
    empty = draw.weights[:n_recorded][n_members[:n_recorded] == 0].sum()
    unseen = max(draw.remainder + empty - draw.weights[n_recorded:].sum(), 0.0)
    groups = _patterns(draw, is_missing)
    whole, centre = draw._replace(remainder=1.0), column_centres(draw.rows)
    if mixture.items.shared is not None:
        law = whole.weights, whole.remainder, whole.parameters, whole.values
        # At strength 0 the remainder is a single atom.
        masses = log_masses(mixture.items, groups[0][2], *law, centre, alpha=0.0)
        if mixture.items.depends_on_law:
            masses[-1] += _log_together_beside_others(mixture, draw.law, n_members, labels)
        known = masses, draw.weights, n_members, unseen, labels
        sizes = mixture.items.shared.multiplicities
        yield np.arange(len(labels)), log_density_left_out(*known, sizes)
        return
    for where, masses in masses_of(whole, mixture.component, groups, centre):
        known = masses, draw.weights, n_members, unseen, labels[where]
        yield where, log_density_left_out(*known)


def _log_together_beside_others(
    mixture: MixtureVariables, law: PartitionLaw, n_members: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Return the log probability (G,) that the rows of an item are one atom of what is unseen.

    Unseen is what is beside the clusters of the other items, eq. (14.9) with their number.
    """
    shared: Any = mixture.items.shared
    n_others = (n_members > 0).sum() - (n_members[labels] == 1)
    strengths = np.array([opening_mass(law, number) for number in n_others])
    found: np.ndarray = shared.log_together(strengths, law.discount)
    return found
