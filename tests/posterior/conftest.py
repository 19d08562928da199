"""Made-up traces of known content."""

from collections.abc import Callable
from typing import Any

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

DIMS = {
    "x_weights": ["x_cluster"],
    "x_mu": ["x_cluster", "feature"],
    "x_cov": ["x_cluster", "feature", "feature_bis"],
    "x": ["obs_id", "feature"],
}
SCALAR_DIMS = {name: ["x_cluster"] for name in ("x_weights", "x_mu", "x_sigma")}


def correlated(rng: np.random.Generator, shape: tuple[int, int], correlation: float) -> np.ndarray:
    """Stationary standard-normal chains, each with the given correlation of neighbours."""
    noise = rng.normal(size=shape)
    values = noise.copy()
    for draw in range(1, shape[1]):
        innovation = np.sqrt(1 - correlation**2) * noise[:, draw]
        values[:, draw] = correlation * values[:, draw - 1] + innovation
    return values


@pytest.fixture
def make_trace(rng: np.random.Generator) -> Callable[..., xr.DataTree]:
    """A maker of traces of one mixture ``x``, in which only label-invariant quantities matter."""

    def make(
        n_chains: int = 4,
        n_draws: int = 1000,
        *,
        correlation: float = 0.0,
        shift: float = 0.0,
        n_rows: int = 12,
        **replaced: Any,
    ) -> xr.DataTree:
        shape = (n_chains, n_draws)
        # By how much the last chain is elsewhere.
        moved = np.zeros((n_chains, 1))
        moved[-1] = shift
        values = [correlated(rng, shape, correlation) + moved for _ in range(4)]
        posterior = {
            "alpha": np.exp(values[0]),
            "x_n_clusters": np.clip(np.round(5 + values[1]), 1, None).astype(int),
            "x_new_weight": rng.beta(1, 50, shape),
            "x_weights": np.full((*shape, n_rows), 1 / n_rows),
        }
        stats = {
            "x_entropy": 1 + 0.1 * values[2],
            "x_log_joint": -1000 + 5 * values[3],
            "x_splits_proposed": np.full(shape, 2),
            "x_splits_accepted": np.arange(n_chains * n_draws).reshape(shape) % 2,
            "x_merges_proposed": np.full(shape, 2),
            "x_merges_accepted": np.zeros(shape, int),
        }
        posterior |= {key: value for key, value in replaced.items() if key not in stats}
        stats |= {key: value for key, value in replaced.items() if key in stats}
        idata = az.from_dict({"posterior": posterior, "sample_stats": stats})
        idata["posterior"].attrs["tuning_steps"] = 500
        return idata

    return make


@pytest.fixture
def plane_trace() -> xr.DataTree:
    """Two clusters in three features in every draw, one of them only in the first chain."""
    weights = np.zeros((2, 3, 4))
    weights[0, :, :2] = 0.6, 0.3
    weights[1, :, 0] = 0.9
    mu = np.full((2, 3, 4, 3), np.nan)
    mu[:, :, 0] = 0.0, 1.0, 2.0
    mu[0, :, 1] = 5.0, -5.0, 0.0
    cov = np.full((2, 3, 4, 3, 3), np.nan)
    cov[:, :, 0] = [[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]]
    cov[0, :, 1] = np.diag([1.0, 2.0, 3.0])
    posterior = {"x_weights": weights, "x_mu": mu, "x_cov": cov}
    posterior["x_n_clusters"] = (weights > 0).sum(-1)
    observed = {"x": np.arange(30.0).reshape(10, 3) / 5}
    coords = {"feature": ["a", "b", "c"], "feature_bis": ["a", "b", "c"]}
    groups = {"posterior": posterior, "observed_data": observed}
    return az.from_dict(groups, dims=DIMS, coords=coords)


@pytest.fixture
def line_trace() -> xr.DataTree:
    """Two scalar clusters in every draw, of which the last row is empty."""
    weights = np.broadcast_to([0.5, 0.3, 0.0], (2, 3, 3))
    posterior = {
        "x_weights": weights,
        "x_mu": np.broadcast_to([0.0, 4.0, np.nan], (2, 3, 3)),
        "x_sigma": np.broadcast_to([1.0, 0.5, np.nan], (2, 3, 3)),
        "x_n_clusters": np.array([[2, 2, 3], [2, 2, 2]]),
    }
    groups = {"posterior": posterior, "observed_data": {"x": np.linspace(-2, 5, 40)}}
    return az.from_dict(groups, dims=SCALAR_DIMS)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")
