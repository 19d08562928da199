"""Responses of a mixture of regressions to new covariates; docs/method.md, (11.12) to (11.15)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model
from scipy.special import logsumexp

from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.posterior.prediction.in_groups import LabelsInGroups, unweighted
from pymc_dpsplit.posterior.prediction.new_rows import (
    TakesCovariates,
    feature_names_of,
    row_labels,
)
from pymc_dpsplit.posterior.prediction.profiles import (
    Profiles,
    number_of_rows,
    read_profiles,
    regressions_in,
)
from pymc_dpsplit.posterior.prediction.response_moments import ResponseMoments
from pymc_dpsplit.posterior.trace.draws import MixtureDraw, draws_of
from pymc_dpsplit.variables import MixtureVariables


def responses_to(
    covariates: Any,
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    places: list[tuple[int, ...]],
    labels_in_groups: Callable[[int], LabelsInGroups] | None,
    rng: np.random.Generator,
) -> xr.Dataset:
    """Return moments of the responses, and a response of each draw; see `predict`."""
    profiles = None
    if covariates is not None and regressions_in(mixture.component):
        profiles = read_profiles(covariates, mixture, model)
        own: Any = profiles.regression
    else:
        features = feature_names_of(mixture, model)
        own = _with_covariates(mixture, covariates, None if features is None else features[:-1])
    n_rows = number_of_rows(covariates)
    in_groups = None if labels_in_groups is None else labels_in_groups(n_rows)
    shape = (n_rows, mixture.n_features) if own.row_ndim else (n_rows,)
    response = np.empty((len(places), *shape))
    log_density = np.zeros((len(places), 1 if profiles is None else n_rows))
    moments = ResponseMoments(shape)
    of_trace = draws_of(posterior, mixture, model, places)
    draws = _draws(profiles, zip(places, of_trace, strict=True), in_groups, n_rows)
    for out, of_rows, (draw, log_masses) in zip(response, log_density, draws, strict=True):
        total = logsumexp(log_masses, axis=0)
        shares = np.exp(log_masses - np.where(np.isfinite(total), total, 0.0))
        if profiles is not None:
            of_rows[:] = total
        out[:] = _drawn(own, draw, shares, rng)
        is_known = isinstance(own, LinearRegression)
        mean, variance = moments_of(own, draw, shares) if is_known else (out, np.zeros(shape))
        moments.add(of_rows, mean, variance)
    dim, coords = row_labels(covariates)
    over = (dim, *[f"{mixture.name}_feature"] * own.row_ndim)
    found = {"response_mean": (over, moments.mean), "response_sd": (over, moments.sd)}
    if profiles is not None:
        _refuse_impossible(log_density)
        _resample(response, log_density, rng)
        found["effective_draws"] = over, moments.effective_draws
    found["response"] = ("sample", *over), response
    return xr.Dataset(found, coords=coords)


def _with_covariates(mixture: MixtureVariables, covariates: Any, names: Any) -> Any:
    """Return the family of the responses to new covariates."""
    if covariates is None:
        raise ValueError("new is missing; give rows, or covariates= of a mixture of regressions.")
    component = mixture.component
    takes = component.has_covariates or component.holds_covariates
    if not takes or not isinstance(component, TakesCovariates):
        raise ValueError(
            f"new is missing, and rows of {mixture.name} have no covariates from which they could "
            "be predicted; give new rows."
        )
    return component.with_covariates(covariates, names)


def _draws(
    profiles: Profiles | None,
    draws: Iterable[tuple[tuple[int, ...], MixtureDraw]],
    in_groups: LabelsInGroups | None,
    n_rows: int,
) -> Iterator[tuple[MixtureDraw, np.ndarray]]:
    """Yield draws, and the log masses (K + 1, M) of the clusters and of the remainder."""
    for place, draw in draws:
        if in_groups is None:
            with np.errstate(divide="ignore"):
                log_weights = np.log(np.append(draw.weights, draw.remainder))[:, None]
        else:
            log_weights = in_groups.log_weights_at(draw, place)[:, in_groups.position]
        if profiles is None:
            yield draw, np.broadcast_to(log_weights, (len(log_weights), n_rows))
        else:
            log_masses = profiles.log_masses(unweighted(draw))
            yield profiles.of_regression(draw), log_weights + log_masses


def moments_of(
    own: LinearRegression, draw: MixtureDraw, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance (M,) of the responses under one draw, eq. (11.12)."""
    base_mean, base_variance = own.base_moments(draw.values)
    means = np.vstack([own.fitted(draw.parameters["beta"]), base_mean])
    mean = (shares * means).sum(0)
    within = draw.parameters["sigma"] ** 2 @ shares[:-1]
    # The product of a share that underflows and an infinite variance is infinite, too.
    new = np.where(np.isinf(base_variance), np.inf, shares[-1] * base_variance)
    return mean, within + new + (shares * (means - mean) ** 2).sum(0)


def _drawn(own: Any, draw: MixtureDraw, shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a response (M,) to each row, each from a cluster of its own choice."""
    upto = np.cumsum(shares, axis=0)
    labels = (upto[:-1] <= upto[-1] * rng.random(shares.shape[1])).sum(0)
    is_new = labels == len(draw.weights)
    # Rows are predicted one by one: no two of them share a new cluster.
    labels[is_new] = len(draw.weights) + np.arange(is_new.sum())
    fresh = own.draw_base(rng, draw.values, int(is_new.sum()))
    parameters = {
        name: np.concatenate([values, fresh[name]]) for name, values in draw.parameters.items()
    }
    drawn: np.ndarray = own.draw_rows(rng, parameters, labels)
    return drawn


def _refuse_impossible(log_density: np.ndarray) -> None:
    impossible = np.flatnonzero(np.isneginf(log_density).all(0))
    if len(impossible):
        raise ValueError(
            f"covariates have density zero in row {impossible[0]}; leave that row out, or mark "
            "what is doubtful as missing."
        )


def _resample(response: np.ndarray, log_density: np.ndarray, rng: np.random.Generator) -> None:
    """Replace responses (S, M) by systematic samples, draws weighted by the density of the row."""
    n_draws = len(response)
    for drawn, log_weight in zip(response.T, log_density.T, strict=True):
        upto = np.cumsum(np.exp(log_weight - log_weight.max()))
        steps = (np.arange(n_draws) + rng.random()) / n_draws
        at = np.searchsorted(upto, steps * upto[-1], side="right")
        drawn[:] = drawn[np.minimum(at, n_draws - 1)]
