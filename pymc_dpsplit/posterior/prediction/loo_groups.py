"""Leave-one-group-out cross-validation: groups of a latent mixture, or rows in groups."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model
from pymc.model.transform.conditioning import remove_value_transforms
from scipy.special import logsumexp

from pymc_dpsplit.components.arguments import generator_of
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables
from pymc_dpsplit.posterior.prediction.in_groups import left_out_shares
from pymc_dpsplit.posterior.prediction.knots import knots_about, knots_of_parts
from pymc_dpsplit.posterior.prediction.left_out_groups import left_out_groups
from pymc_dpsplit.posterior.prediction.loo import over_observations, smoothed
from pymc_dpsplit.posterior.prediction.panels import (
    TOLERANCE,
    DensityAndLikelihood,
    Integrals,
    OfValues,
    integrals,
)
from pymc_dpsplit.posterior.prediction.row_masses import log_density_left_out
from pymc_dpsplit.posterior.trace.draws import MixtureDraw, draws_of, recorded_posterior
from pymc_dpsplit.posterior.trace.hierarchical import declared_mixture, hierarchical_in
from pymc_dpsplit.posterior.trace.labels import mixture_in, model_given, refuse_other_data
from pymc_dpsplit.posterior.trace.members import recorded_labels
from pymc_dpsplit.posterior.trace.places import all_places, spread_within_chains
from pymc_dpsplit.posterior.trace.replaced_data import (
    refuse_other_observations,
    refuse_replaced,
)
from pymc_dpsplit.posterior.trace.rows_in_groups import rows_in_groups
from pymc_dpsplit.variables import MixtureVariables, row_likelihood
from pymc_dpsplit.variables.dependence import dependents_of
from pymc_dpsplit.variables.likelihood import RowLikelihood
from pymc_dpsplit.variables.log_density import log_masses

# An integral that may be off by more than this part of it is reported.
_LARGEST_ERROR = 0.01
# The predictive density of a family that is not conjugate is an average over draws, with an error
# above this one, and as rough as a histogram: more digits take three times as long.
_TOLERANCE_OF_AVERAGES = 1e-3
# Key of the draws that tell where the parts of a mixture lie; results depend on it within errors.
_KEY_OF_KNOTS = 0
# Kernels give the log of zero as a number below this one.
_LOG_ZERO = -1e200


def loo_groups(
    idata: xr.DataTree,
    *,
    model: Model | None = None,
    var_name: str | None = None,
    num_samples: int | None = None,
    random_seed: Any = None,
) -> Any:
    """Estimate how well a model predicts all observations of a new group.

    Of an `HDPMixture` with observed rows all rows of one group are left out, given the rows of the
    others [3]_.

    A latent mixture ``b`` has one value for each group, and the observations of a group depend on
    its value.  Leaving out one observation at a time keeps the value of its group, which the other
    observations of the group determine; here all of them are left out together, and the value of
    the group is integrated out under the random measure of each draw [1]_ [2]_.

    Parameters
    ----------
    idata : DataTree
        As returned by ``pm.sample``, or loaded from disk.
    model : pymc.Model, optional
        The sampled model, by default that of the context.
    var_name : str, optional
        Name of the latent mixture, or of the `HDPMixture`; required if the model has several
        mixtures.
    num_samples : int, optional
        Largest number of draws to use, evenly spaced and the same of each chain, at least one of
        each; by default all.
    random_seed : int or numpy.random.Generator, optional
        Random seed of the particles for an `HDPMixture`.

    Returns
    -------
    arviz_stats.ELPDData
        As from `arviz.loo` with ``pointwise=True``: ``elpd``, ``se`` and, for each group,
        ``elpd_i`` and ``pareto_k``.

    Raises
    ------
    ValueError
        If the mixture is not latent or its values are not scalars, if an observation depends on
        the values of several groups, or on latent variables that depend on them, if an observed
        `HDPMixture` has missing entries or is of a `Component`, or if the trace lacks a variable
        or is of other data.

    Notes
    -----
    In each draw the likelihood of a group is the integral of the product of two functions of its
    value: the likelihood of the group's observations given the value, and the density of the
    mixture, in which the atom of a group that has one to itself counts as unseen, eq. (11.10) of
    docs/method.md.  The integral is a sum over panels between points in and beside every part of
    the mixture and the draws of the value, which are halved until two rules agree.  A warning says
    if they do not to 1 %, or if the density itself does not integrate to one, so that a part of it
    was missed.  Pareto-smoothed importance sampling then gives
    the law of the draws without the group; a ``pareto_k`` above 0.7 says that this failed for a
    group, without which the posterior is too different.

    Of an `HDPMixture` the labels of a group are summed out by conditional sequential Monte Carlo,
    with the clusters of the other groups as in the draw, eq. (16.17) and (16.18) of docs/method.md.
    The mean of 1 / likelihood is exact for any number of particles.  The cost of a draw is that of
    some 32 sweeps over all rows.

    Groups without observations, or without rows, are left out of the result.  Missing observations
    are integrated out.

    References
    ----------
    .. [1] Merkle, Furr and Rabe-Hesketh (2019). Bayesian comparison of latent variable models:
       conditional versus marginal likelihoods. Psychometrika 84, 802-829.
    .. [2] Vehtari, Gelman and Gabry (2017). Practical Bayesian model evaluation using
       leave-one-out cross-validation and WAIC. Statistics and Computing 27, 1413-1432.
    .. [3] Andrieu, Doucet and Holenstein (2010). Particle Markov chain Monte Carlo methods. Journal
       of the Royal Statistical Society B 72, 269-342.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     b = dps.DPMixture("b", 1.0, dps.Normal(0, 0.1, 2, 1), shape=3)
    ...     _ = pm.Normal("y", b[[0, 0, 1, 1, 2]], 0.5, observed=[0.1, 0.3, 0.2, 0.4, 3.0])
    ...     idata = pm.sample(
    ...         draws=300, tune=100, chains=2, random_seed=3, progressbar=False,
    ...         compute_convergence_checks=False,
    ...     )
    >>> int(dps.loo_groups(idata, model=model).n_data_points)
    3
    """
    rng = generator_of("random_seed", random_seed)
    model = model_given(model)
    grouped = hierarchical_in(model, var_name)
    if grouped is not None:
        if grouped.rv not in model.free_RVs:
            return smoothed(left_out_groups(idata, model, grouped, num_samples, rng))
        return smoothed(integrated_likelihood(idata, model, grouped.as_mixture, num_samples))
    mixture = mixture_in(model, var_name)
    return smoothed(integrated_likelihood(idata, model, mixture, num_samples))


def integrated_likelihood(
    idata: xr.DataTree, model: Model, mixture: MixtureVariables, num_samples: int | None = None
) -> xr.DataArray:
    """Return the log likelihood of each group in each draw, its value integrated out.

    Parameters
    ----------
    idata : DataTree
    model : pymc.Model
    mixture : MixtureVariables
        A latent mixture of scalars.
    num_samples : int, optional
        See `loo_groups`.

    Returns
    -------
    DataArray of float64, dims (chain, draw, group)
        Of a latent `HDPMixture` over its rows.  Without groups that have no observations.
    """
    name = mixture.name
    is_latent = mixture.rv in model.free_RVs
    if not is_latent or mixture.component.row_ndim:
        kind = "vectors" if is_latent else "observed"
        raise ValueError(
            f"the values of {name} are {kind}, but groups have one latent number each; give "
            "var_name= of a mixture of scalars without observed=."
        )
    likelihoods = _likelihoods_of(mixture, model)
    refuse_other_data(idata, mixture)
    refuse_other_observations(idata, model, [of for of in likelihoods if of in model.observed_RVs])
    refuse_replaced(idata, likelihoods)
    posterior = recorded_posterior(idata, mixture)
    chosen = spread_within_chains(posterior, num_samples)
    posterior = posterior.isel(draw=chosen)
    values = posterior[name].transpose("chain", "draw", ...).to_numpy()
    of_groups = np.sort(values.reshape(-1, values.shape[2]), axis=0).T
    # The likelihood may be much narrower than every part; the draws of the value tell where it is.
    own_knots, legal = knots_about(of_groups)[0].T, of_groups[:, of_groups.shape[1] // 2]
    labels: Any = recorded_labels(idata, mixture, model)
    labels = labels[:, chosen]
    grouped = hierarchical_in(model, name)
    alphas = np.empty(0) if grouped is None else rows_in_groups(idata, name).alphas[:, chosen]
    out, is_doubtful = np.empty(values.shape), np.zeros(values.shape[2], bool)
    rng = np.random.default_rng(_KEY_OF_KNOTS)
    is_average = isinstance(mixture.component, NonconjugateFamily)
    tolerance = _TOLERANCE_OF_AVERAGES if is_average else TOLERANCE
    places = all_places(posterior)
    draws = draws_of(posterior, mixture, model, places)
    likelihood, points = _row_likelihood(posterior, model, mixture, likelihoods, places)
    for place, draw, point in zip(places, draws, points, strict=True):
        likelihood.hold(point)
        if grouped is None:
            density = _density(draw, labels[place], mixture)
        else:
            density = _density_in_groups(draw, labels[place], float(alphas[place]), grouped)
        common = knots_of_parts(draw, mixture.component, rng)[:, None]
        knots = np.concatenate([np.repeat(common, len(legal), axis=1), own_knots])
        found = integrals(_integrand(density, likelihood, legal), knots, tolerance)
        out[place] = found.log_value
        is_doubtful |= _doubtful(found)
    is_informed = likelihood.is_informed(len(legal))
    by_group = over_observations(out, posterior, mixture, model)[..., is_informed]
    _warn_of(by_group, is_doubtful[is_informed], mixture)
    return by_group


def _doubtful(found: Integrals) -> np.ndarray:
    """Return which integrals did not converge, or missed a part of the density."""
    return (found.error > _LARGEST_ERROR) | ~(np.abs(found.mass - 1.0) < _LARGEST_ERROR)


def _warn_of(by_group: xr.DataArray, is_doubtful: np.ndarray, mixture: MixtureVariables) -> None:
    """Warn if integrals of some groups may be wrong."""
    if not is_doubtful.any():
        return
    first = int(np.flatnonzero(is_doubtful)[0])
    dim = by_group.dims[-1]
    label = by_group[dim].to_numpy()[first] if dim in by_group.coords else first
    warnings.warn(
        f"in some draws the integral over the value of {mixture.name} did not converge for "
        f"{is_doubtful.sum()} of {len(is_doubtful)} groups, the first of which is {label}, so that "
        "elpd_i of these may be wrong; give a component with less extreme tails, or compute "
        "these groups by sampling the model without them.",
        UserWarning,
        stacklevel=3,
    )


def _likelihoods_of(mixture: MixtureVariables, model: Model) -> list[Any]:
    """Return the observations and potentials that depend on the values.

    The density of missing observations integrates to one.
    """
    found: list[Any] = dependents_of(mixture.rv, model)
    latent = [term for term in found if term in model.free_RVs]
    for term in latent:
        if below := [of for of in dependents_of(term, model) if of not in latent]:
            raise ValueError(
                f"{term.name} lies between {mixture.name} and {below[0].name}, so that the "
                f"likelihood given {mixture.name} alone is an integral that loo_groups does not "
                f"compute; declare the observations as they depend on {mixture.name}, with "
                f"{term.name} integrated out."
            )
    observed = [term for term in found if term not in latent]
    if not observed:
        raise ValueError(
            f"no observation depends on {mixture.name}, so that there is nothing to predict; "
            "observe a variable that depends on it."
        )
    return observed


def _row_likelihood(
    posterior: xr.Dataset,
    model: Model,
    mixture: MixtureVariables,
    likelihoods: list[Any],
    places: list[tuple[int, ...]],
) -> tuple[RowLikelihood, Iterator[dict[str, np.ndarray]]]:
    """Return the likelihood of the values, and the other variables in each draw."""
    plain = remove_value_transforms(model)
    point = plain.initial_point()
    found = declared_mixture(plain, mixture.name)
    assert found is not None
    of_plain = [plain[of.name] for of in likelihoods]
    likelihood = row_likelihood(found, plain, point, of_plain)
    if likelihood is None:
        raise ValueError(
            f"an observation depends on several values of {mixture.name}; leave-one-group-out "
            "needs each to depend on one group."
        )
    if absent := sorted(likelihood.inputs - {str(key) for key in posterior}):
        raise ValueError(
            f"the posterior group holds no {absent[0]}, on which the likelihood depends; give the "
            "trace of this model, sampled without var_names=."
        )
    drawn = {
        key: posterior[key].transpose("chain", "draw", ...).to_numpy() for key in likelihood.inputs
    }
    points = (point | {key: of[place] for key, of in drawn.items()} for place in places)
    return likelihood, points


def _integrand(
    density: OfValues, likelihood: RowLikelihood, legal: np.ndarray
) -> DensityAndLikelihood:
    """Return the logs of density and likelihood as functions of values (B, N).

    Where the density is zero, values may be illegal and are replaced by `legal` (N,).
    """

    def evaluate(grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        prior = density(grid)
        is_possible = prior > _LOG_ZERO
        allowed = np.where(is_possible, grid, legal)
        given = np.stack([likelihood.evaluate(values[:, None]) for values in allowed])
        # Far from all data a likelihood may be a difference of infinities.
        given[np.isnan(given)] = -np.inf
        return np.where(is_possible, prior, -np.inf), given

    return evaluate


def _density(draw: MixtureDraw, labels: np.ndarray, mixture: MixtureVariables) -> OfValues:
    """Return the log density of each group's value without it, eq. (11.10)."""
    n_members = np.bincount(labels, minlength=len(draw.weights))

    def evaluate(grid: np.ndarray) -> np.ndarray:
        rows = grid.reshape(-1, 1)
        law = draw.weights, 1.0, draw.parameters, draw.values, column_centres(rows)
        masses = log_masses(mixture.component, rows, *law).reshape(-1, *grid.shape)
        known = masses, draw.weights, n_members, draw.remainder, labels
        found: np.ndarray = log_density_left_out(*known)
        return found

    return evaluate


def _density_in_groups(
    draw: MixtureDraw, labels: np.ndarray, alpha: float, mixture: HierarchicalVariables
) -> OfValues:
    """Return the log density of each row in its group without it, eq. (16.10)."""
    shares = left_out_shares(draw, labels, alpha, mixture.groups.group_of_row)
    with np.errstate(divide="ignore"):
        log_shares = np.log(shares)[:, None]

    def evaluate(grid: np.ndarray) -> np.ndarray:
        rows = grid.reshape(-1, 1)
        law = np.ones(len(draw.weights)), 1.0, draw.parameters, draw.values, column_centres(rows)
        masses = log_masses(mixture.component, rows, *law).reshape(-1, *grid.shape)
        found: np.ndarray = logsumexp(masses + log_shares, axis=0)
        return found

    return evaluate
