"""Smoothing of importance weights: what ArviZ cannot smooth is one sentence."""

import numpy as np
import pytest
import xarray as xr

from pymc_dpsplit.posterior.prediction.loo import smoothed


def log_likelihood(n_chains: int, n_draws: int, rng: np.random.Generator) -> xr.DataArray:
    """Densities of seven observations, standard normal."""
    values = rng.standard_normal((n_chains, n_draws, 7))
    return xr.DataArray(values, dims=("chain", "draw", "obs"), name="x")


@pytest.mark.parametrize(("n_chains", "n_draws"), [(1, 25), (4, 7), (2, 300)])
def test_draws_enough_for_a_tail_are_smoothed(
    n_chains: int, n_draws: int, rng: np.random.Generator
) -> None:
    assert np.isfinite(smoothed(log_likelihood(n_chains, n_draws, rng)).elpd)


@pytest.mark.parametrize(("n_chains", "n_draws"), [(1, 24), (4, 6), (1, 1)])
def test_too_few_draws_are_refused(n_chains: int, n_draws: int, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=r"draws of x are too few .* give 25 draws or more\.$"):
        smoothed(log_likelihood(n_chains, n_draws, rng))


def test_an_observation_with_one_density_is_named(rng: np.random.Generator) -> None:
    likelihood = log_likelihood(4, 100, rng)
    likelihood[:, :, 5] = -1e20
    with pytest.raises(ValueError, match=r"^observation 5 of x has the same log density, -1e\+20,"):
        smoothed(likelihood)
