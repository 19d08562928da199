"""Selection of draws of a trace, by chain and draw."""

import numpy as np
import xarray as xr

from pymc_dpsplit.components.arguments import check_integer


def all_places(posterior: xr.Dataset) -> list[tuple[int, ...]]:
    """Return the chain and draw of every draw, chain by chain."""
    return list(np.ndindex(posterior.sizes["chain"], posterior.sizes["draw"]))


def spread_draws(
    drawn: xr.DataArray | xr.Dataset, num_samples: int
) -> tuple[xr.Variable, xr.Variable]:
    """Select at most `num_samples` evenly spaced draws of all chains.

    Parameters
    ----------
    drawn : DataArray or Dataset
        With the dimensions chain and draw.
    num_samples : int
        Largest number of draws.

    Returns
    -------
    chain, draw : Variable of int, dims (sample,)
        Indices of chain and draw of each selected draw.
    """
    per_chain = drawn.sizes["draw"]
    n_all = drawn.sizes["chain"] * per_chain
    taken = np.linspace(0, n_all - 1, min(num_samples, n_all)).round().astype(int)
    chain, draw = (xr.Variable("sample", of) for of in np.divmod(taken, per_chain))
    return chain, draw


def spread_places(drawn: xr.DataArray | xr.Dataset, num_samples: int) -> list[tuple[int, ...]]:
    """Return the chain and draw of each draw that `spread_draws` selects."""
    axes = spread_draws(drawn, num_samples)
    return list(zip(*(axis.values.tolist() for axis in axes), strict=True))


def spread_within_chains(posterior: xr.Dataset, num_samples: int | None) -> np.ndarray:
    """Return indices of draws, the same of each chain and evenly spaced.

    Parameters
    ----------
    posterior : Dataset
        With the dimensions chain and draw.
    num_samples : int, optional
        Largest number of draws of all chains, at least one of each; None for all.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    n_chains, n_draws = posterior.sizes["chain"], posterior.sizes["draw"]
    if num_samples is None:
        return np.arange(n_draws)
    check_integer("num_samples", num_samples, 1)
    n_wanted = min(n_draws, max(1, num_samples // n_chains))
    return np.linspace(0, n_draws - 1, n_wanted).round().astype(int)
