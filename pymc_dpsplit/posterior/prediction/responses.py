"""Responses of a mixture of regressions to new covariates; docs/method.md, eq. (11.12)-(11.13)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.posterior.prediction.new_rows import feature_names_of, row_labels
from pymc_dpsplit.posterior.trace.draws import MixtureDraw, draws_of
from pymc_dpsplit.variables import MixtureVariables


def responses_to(
    covariates: Any,
    posterior: xr.Dataset,
    mixture: MixtureVariables,
    model: Model,
    places: list[tuple[int, ...]],
    rng: np.random.Generator,
) -> xr.Dataset:
    """Return moments of the responses, and a response of each draw; see `predict`."""
    component = _regression_of(mixture, covariates)
    names = feature_names_of(mixture, model)
    own = component.with_covariates(covariates, None if names is None else names[:-1])
    assert own.covariates is not None
    n_rows = len(own.covariates)
    response = np.empty((len(places), n_rows))
    sums = np.zeros((2, n_rows))
    origin: Any = None
    draws: Iterable[MixtureDraw] = draws_of(posterior, mixture, model, places)
    for out, draw in zip(response, draws, strict=True):
        mean, variance = moments_of(own, draw)
        origin = mean if origin is None else origin
        sums += mean - origin, variance + (mean - origin) ** 2
        out[:] = _drawn(own, draw, n_rows, rng)
    gap, square = sums / len(places)
    dim, coords = row_labels(covariates)
    return xr.Dataset(
        {
            "response_mean": (dim, origin + gap),
            "response_sd": (dim, np.sqrt(square - gap**2)),
            "response": (("sample", dim), response),
        },
        coords=coords,
    )


def _regression_of(mixture: MixtureVariables, covariates: Any) -> LinearRegression:
    if covariates is None:
        raise ValueError("new is missing; give rows, or covariates= of a mixture of regressions.")
    if not isinstance(mixture.component, LinearRegression):
        raise ValueError(
            f"new is missing, and {mixture.name} is no mixture of LinearRegression, whose "
            "responses are predicted from covariates alone; give new rows."
        )
    return mixture.component


def moments_of(own: LinearRegression, draw: MixtureDraw) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance (M,) of the responses under one draw, eq. (11.12)."""
    base_mean, base_variance = own.base_moments(draw.values)
    weights = np.append(draw.weights, draw.remainder)
    means = np.vstack([own.fitted(draw.parameters["beta"]), base_mean])
    mean = weights @ means
    within = draw.weights @ draw.parameters["sigma"] ** 2 + draw.remainder * base_variance
    return mean, within + weights @ (means - mean) ** 2


def _drawn(
    own: LinearRegression, draw: MixtureDraw, n_rows: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw a response (M,) to each row, each from a cluster of its own choice."""
    weights = np.append(draw.weights, draw.remainder)
    labels = rng.choice(len(weights), size=n_rows, p=weights / weights.sum())
    is_new = labels == len(draw.weights)
    # Rows are predicted one by one: no two of them share a new cluster.
    labels[is_new] = len(draw.weights) + np.arange(is_new.sum())
    fresh = own.draw_base(rng, draw.values, int(is_new.sum()))
    parameters = {
        name: np.concatenate([values, fresh[name]]) for name, values in draw.parameters.items()
    }
    return own.draw_rows(rng, parameters, labels)
