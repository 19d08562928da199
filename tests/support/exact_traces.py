"""Traces of independent draws from the exact posterior of a small data set, without a sampler."""

from typing import Any

import arviz as az
import numpy as np
import xarray as xr

from tests.support.families import twin_of
from tests.support.partitions import enumerate_partitions, exact_posterior


def exact_trace(
    family: str,
    rows: np.ndarray,
    alpha: float,
    shape: tuple[int, int],
    seed: int,
    n_kept: int | None = None,
) -> xr.DataTree:
    """A trace (chain, draw) of the mixture ``x`` of rows (n, D), as `pm.sample` writes it.

    Partitions are drawn by enumeration, weights given them from their Dirichlet law, and
    parameters by the naive twin of the family.  Clusters are in the order of their size, as the
    step records them.  The labels are in the trace, numbered arbitrarily, only if `n_kept` is
    given, the number of clusters of which it records weights and parameters.
    """
    rng = np.random.default_rng(seed)
    n_obs, twin = len(rows), twin_of(family, rows.shape[1])
    law = exact_posterior(twin, rows, alpha)
    chosen = enumerate_partitions(n_obs)[rng.choice(len(law), size=shape, p=law)]
    found: dict[str, Any] = {
        "x_n_clusters": chosen.max(-1) + 1,
        "x_new_weight": np.empty(shape),
        "x_weights": np.zeros((*shape, n_obs)),
    }
    for place in np.ndindex(*shape):
        labels = chosen[place]
        order = np.argsort(-np.bincount(labels), kind="stable")
        sizes = np.bincount(labels)[order]
        *weights, rest = rng.dirichlet([*sizes, alpha])
        found["x_weights"][place][: len(order)] = weights
        found["x_new_weight"][place] = rest
        for row, k in enumerate(order):
            for key, value in twin.draw_parameters(rng, rows[labels == k], 1).items():
                empty = np.full((*shape, n_obs, *value.shape[1:]), np.nan)
                found.setdefault(f"x_{key}", empty)[place][row] = value[0]
    names = [key for key in found if key not in ("x_n_clusters", "x_new_weight")]
    groups: dict[str, dict[str, Any]] = {"posterior": found}
    if n_kept is not None:
        found |= {key: found[key][:, :, :n_kept] for key in names}
        groups["sample_stats"] = {"x_labels": chosen.astype(np.uint8)}
    return az.from_dict(groups, dims={key: ["x_cluster"] for key in names})
