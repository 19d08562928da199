"""Responses of a mixture of regressions to new covariates; docs/method.md, eq. (11.12)-(11.13)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from pymc.model import Model

from pymc_dpsplit.components.linear_regression.family import LinearRegression
from pymc_dpsplit.posterior.prediction.new_rows import (
    TakesCovariates,
    feature_names_of,
    row_labels,
)
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
    features = feature_names_of(mixture, model)
    own = _with_covariates(mixture, covariates, None if features is None else features[:-1])
    n_rows = len(next(iter(covariates.values())) if isinstance(covariates, Mapping) else covariates)
    shape = (n_rows, mixture.n_features) if own.row_ndim else (n_rows,)
    response = np.empty((len(places), *shape))
    sums = np.zeros((2, *shape))
    origin: Any = None
    is_known = isinstance(own, LinearRegression)
    draws = draws_of(posterior, mixture, model, places)
    for out, draw in zip(response, draws, strict=True):
        out[:] = _drawn(own, draw, n_rows, rng)
        mean, variance = moments_of(own, draw) if is_known else (out, np.zeros(shape))
        origin = mean.copy() if origin is None else origin
        sums += mean - origin, variance + (mean - origin) ** 2
    gap, square = sums / len(places)
    dim, coords = row_labels(covariates)
    over = (dim, *[f"{mixture.name}_feature"] * own.row_ndim)
    return xr.Dataset(
        {
            "response_mean": (over, origin + gap),
            "response_sd": (over, np.sqrt(square - gap**2)),
            "response": (("sample", *over), response),
        },
        coords=coords,
    )


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


def moments_of(own: LinearRegression, draw: MixtureDraw) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance (M,) of the responses under one draw, eq. (11.12)."""
    base_mean, base_variance = own.base_moments(draw.values)
    weights = np.append(draw.weights, draw.remainder)
    means = np.vstack([own.fitted(draw.parameters["beta"]), base_mean])
    mean = weights @ means
    within = draw.weights @ draw.parameters["sigma"] ** 2 + draw.remainder * base_variance
    return mean, within + weights @ (means - mean) ** 2


def _drawn(own: Any, draw: MixtureDraw, n_rows: int, rng: np.random.Generator) -> np.ndarray:
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
    drawn: np.ndarray = own.draw_rows(rng, parameters, labels)
    return drawn
